"""The Chaos Monkey: carries out a schedule of kills, and says each.

It knows neither the clock nor how nodes are started: the launcher asks it when it wants to be called, and calls it
with the running nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from hdphrs.chaos.schedule import Kill


class Victim(Protocol):
    """A node as the monkey sees it."""

    @property
    def label(self) -> str:
        """Such as "node on localhost (pid 123)"."""

    def kill(self) -> bool:
        """Kill the node process with SIGKILL; False if it is dead already."""


class Monkey:
    """Kills nodes at their times."""

    def __init__(self, kills: Sequence[Kill], seed: int, say: Callable[[str], None]) -> None:
        self._kills = sorted(kills, key=lambda kill: kill.at_s)
        self._seed = seed
        self._say = say

    @property
    def next_s(self) -> float | None:
        """When it wants to be called, in seconds after all nodes have joined; None: never again."""
        return self._kills[0].at_s if self._kills else None

    def ready(self) -> None:
        """All nodes have joined: the clock starts."""
        noun = "node" if len(self._kills) == 1 else "nodes"
        self._say(f"chaos: {len(self._kills)} {noun} to be killed; the same ones again with --seed {self._seed}")

    def strike(self, elapsed_s: float, nodes: Sequence[Victim]) -> None:
        """Carry out the kills that are due.

        Args:
            elapsed_s: since all nodes joined.
            nodes: all nodes of the plan in its order, dead or alive.
        """
        while self._kills and self._kills[0].at_s <= elapsed_s:
            kill = self._kills.pop(0)
            victim = nodes[kill.node]
            # Said first: the death itself makes others speak.
            self._say(f"chaos: killing {victim.label} at {kill.at_s:g} s, seed {self._seed}")
            if not victim.kill():
                self._say(f"chaos: {victim.label} was dead already")
