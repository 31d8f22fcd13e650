"""Counters: what a node has done, by name, for reports.

What lives here: the names.  The roles of one node share one table; nothing in the core looks at it.
"""

from __future__ import annotations

Counters = dict[str, int]

COUNTERS = (
    "tasks_started",
    "exported",
    "placed",
    "stolen",
    "given",
    "fish_sent",
    "fish_answered",
    "replicas",
    "deaths_seen",
    "leaves_seen",
    "crashes",
    "duplicates",
    "stale",
    "orphans",
    "doubled",
    "pieces",
    "cancelled",
    "timed_out",
)
