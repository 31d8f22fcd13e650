"""Shrinking a failure: fewer faults, nodes and tasks, as long as it fails in the same way.

What lives here: a greedy descent over the numbers that a seed draws.  It changes what happens, so it looks for any
failure with the same status, not for the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from hdphrs.sim.draw import Draw
from hdphrs.sim.run import Result, run

TRIES_MAX = 150
"""Runs."""

EVENTS_MAX = 2_000_000
"""Of all runs together, roughly."""

_OFF = {
    "kills": 0,
    "ambushes": 0,
    "slow_pct": 0,
    "power_losses": 0,
    "departures": 0,
    "crashes": 0,
    "blameless": 0,
    "cuts": 0,
    "one_way_cuts": 0,
    "isolations": 0,
    "stalls": 0,
    "root_stalls": 0,
    "crowds": 0,
    "joins": 0,
    "returns": 0,
    "repeats_pct": 0,
    "poison": 0,
    "deadly": 0,
    "placed_pct": 0,
    "unsupervised_pct": 0,
    "raising_pct": 0,
    "forgotten_pct": 0,
    "jitter_pct": 0,
    "byte_ns": 0,
    "large_pct": 0,
    "skew_ppm": 0,
    "eager": 0,
    "speculate": 0,
    "lifo": 0,
    "abrupt": 0,
    "pieces_bytes_max": 0,
    "code_bytes_max": 32 << 20,
    "fair_us": 0,
    "sampled_pct": 100,
    "rounds": 1,
    "payload_bytes": 4,
    "fish_max": 3,
    "want_max": 16,
    "start_max": 16,
    "room": 16,
    "guards_max": 64,
    "parked_max": 256,
    "give_bytes_max": 16 << 20,
    "remembered_crashes_max": 1024,
}
"""Where each kind of trouble is off, or a bound has its default."""

_LEAST = {
    "nodes": 1,
    "tasks": 1,
    "cores": 1,
    "depth_max": 0,
    "kills": 1,
    "ambushes": 1,
    "power_losses": 1,
    "departures": 1,
    "crashes": 1,
    "blameless": 1,
    "cuts": 1,
    "one_way_cuts": 1,
    "isolations": 1,
    "stalls": 1,
    "root_stalls": 1,
    "crowds": 1,
    "joins": 1,
    "poison": 1,
    "deadly": 1,
}
"""What is worth lowering, and how far."""


def shrink(failed: Result, tries_max: int = TRIES_MAX) -> tuple[Result, int]:
    """The smallest failure that was found, and after how many runs."""
    best, tries, events = failed, 0, 0
    improved = True
    while improved:
        improved = False
        for name, value in _smaller(best.drawn):
            if getattr(best.drawn, name) == value:
                continue  # done with meanwhile
            if tries >= tries_max or events >= EVENTS_MAX:
                return best, tries
            tried = run(failed.seed, {**best.fixed, name: value})
            tries += 1
            events += tried.events
            if tried.status == failed.status:
                best, improved = tried, True
    return best, tries


def _smaller(drawn: Draw) -> Iterator[tuple[str, int]]:
    """One number less at a time: what can be off, then what can be lower."""
    numbers = asdict(drawn)
    for name, off in _OFF.items():
        if numbers[name] != off:
            yield name, off
    for name, least in _LEAST.items():
        for value in (least, numbers[name] // 4, numbers[name] // 2, numbers[name] - 1):
            if least <= value < numbers[name]:
                yield name, value
