"""The report of a run: what each node did, as JSON.

What lives here: what the root gathers for `--report FILE`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import monotonic
from typing import Any

from hdphrs.node.life import say
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import ROOT, Member, NodeId
from hdphrs.wire.settings import NodeSettings

COUNTERS = {
    "tasks_run": "Tasks that ended on this node, in place or from its pool.",
    "sparks_made": "Sparks that tasks of this node have spawned, and that it has run or exported.",
    "exported": "Sparks that left their scheduler, or the program, for the node.",
    "placed": "Threads made by spawn_at.",
    "stolen": "Sparks that arrived from other nodes.",
    "given": "Sparks that left for other nodes.",
    "fish_sent": "Steal attempts.",
    "fish_answered": "Steal attempts of others that were answered with sparks.",
    "replicas": "Tasks re-created because a node died.",
    "deaths_seen": "Nodes declared dead.",
    "crashes": "Scheduler processes that died.",
    "duplicates_run": "Results that came when the future was full already.",
    "stale": "Late replies that were ignored.",
    "pieces": "Finished parts of unfinished tasks that the root has got, to be used if these run again.",
    "pieces_used": "Pieces that tasks which ran again did not compute again.",
    "pieces_mismatched": "Pieces that were not used because the program spawned another call in their place.",
    "orphans": "Sparks dropped because their supervisor was gone.",
}
"""What the report tells of each node, and what it means."""


CORE_NAMES = {"duplicates_run": "duplicates"}
"""Where the core counts under another name."""


class Report:
    """Gathers what is worth telling at the root; `write` at the end."""

    def __init__(self, core: Node, settings: NodeSettings) -> None:
        self._core = core
        self._settings = settings
        self._started_s = monotonic()
        self._members = {ROOT: Member(ROOT, settings.host, settings.slots, ("", 0), os.getpid())}
        self._died_s: dict[NodeId, float] = {}

    def begun(self) -> None:
        """The program starts now."""
        self._started_s = monotonic()

    def joined(self, member: Member) -> None:
        """A node is there."""
        self._members[member.node] = member

    def died(self, node: NodeId, recreated: int) -> None:
        """A node was declared dead; this one has re-created so many tasks for it."""
        self._died_s[node] = monotonic() - self._started_s
        member = self._members[node]
        tasks = "1 task runs" if recreated == 1 else f"{recreated} tasks run"
        again = f"; {tasks} again from here" if recreated else ""
        say(f"node {node} on {member.host} (process {member.pid}) has died{again}")

    def write(self) -> None:
        """Write the file, if one was asked for; if that fails, say so."""
        if self._settings.report is None:
            return
        nodes = [self._describe(member) for member in self._members.values()]
        report = {
            "wall_s": round(monotonic() - self._started_s, 6),
            "seed": self._settings.seed,
            "reliable": self._settings.reliable,
            "nodes": nodes,
        }
        try:
            Path(self._settings.report).write_text(json.dumps(report, indent=2) + "\n")
        except OSError as error:
            say(f"the report could not be written to {self._settings.report}: {error.strerror}")

    def _describe(self, member: Member) -> dict[str, Any]:
        counters = dict(self._core.reports.get(member.node, {}))
        if member.node == self._core.me:
            counters = dict(self._core.counters)
        died_s = self._died_s.get(member.node)
        return {
            "node": member.node,
            "host": member.host,
            "pid": member.pid,
            "slots": member.slots,
            "died": False if died_s is None else round(died_s, 6),
            **{name: counters.get(CORE_NAMES.get(name, name), 0) for name in COUNTERS},
        }
