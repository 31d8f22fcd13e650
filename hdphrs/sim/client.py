"""The user's program: spawns its tasks, waits for them, and ends.

What lives here: the process at the other end of the root's link.  It runs no tasks and does not die.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol.tasks import PROGRAM
from hdphrs.sim.errors import Wrong
from hdphrs.sim.program import CODES

if TYPE_CHECKING:
    from hdphrs.sim.cluster import Cluster

EXPORT_MAX = 64
"""Tasks in one message to the node."""

TIDY_NS = 3_000_000
"""How often it looks whether everything has been put away, before it ends."""


class Client:
    """The program of one run; its n-th future is that of the n-th top task."""

    def __init__(self, cluster: Cluster) -> None:
        self.began: bool = False
        self.ending: bool = False
        self._cluster = cluster
        self._world = cluster.world
        self._local_ns = cluster.drawn.local_us * 1000
        self._filled: dict[int, None] = {}
        self._cancelled: dict[int, None] = {}
        """Of these."""
        self._spawned = 0

    @property
    def unfilled(self) -> int:
        """Futures that are still empty."""
        return len(self._cluster.program.tops) - len(self._filled)

    @property
    def empty(self) -> list[int]:
        """Slots that it waits for."""
        return [slot for slot in range(self._spawned) if slot not in self._filled]

    def cancel(self, slot: int) -> None:
        """It gives one of them up."""
        self._cancelled[slot] = None
        self._tell(ev.Cancelled(PROGRAM, (slot,)))
        self._fill(slot)

    def start(self, _: None) -> None:
        """The nodes are there, or have had their time."""
        if not self.began:
            self.began = True
            self._cluster.accounts.begin(self._world.now_ns)
            self._spawn()

    def delivered(self, effect: fx.Deliver) -> None:
        """A future of the program is filled."""
        slot = effect.slot
        if slot in self._cancelled:
            return  # it was under way
        if slot >= self._spawned or slot in self._filled:
            raise Wrong(f"future {slot} of the program is filled, and is not waited for")
        self._cluster.judge(self._cluster.program.tops[slot], effect.outcome)
        self._fill(slot)

    def _fill(self, slot: int) -> None:
        self._filled[slot] = None
        self._cluster.accounts.end(self._world.now_ns)
        if len(self._filled) == self._spawned:
            self._go_on()

    def _go_on(self) -> None:
        if self._spawned < len(self._cluster.program.tops):
            self._spawn()
        elif self._cluster.drawn.abrupt:
            self._end()
        else:
            self._tidy(None)

    def _spawn(self) -> None:
        """The next round."""
        program, drawn = self._cluster.program, self._cluster.drawn
        for code in CODES:
            self._tell(ev.Learned(code, code))
        first = self._spawned
        self._spawned = last = min(len(program.tops), first + -(-len(program.tops) // drawn.rounds))
        exported: list[int] = []
        for slot in range(first, last):
            number = program.tops[slot]
            if program.place[number] >= 0:
                nodes = self._cluster.root.core.live_nodes()
                self._tell(ev.Placed(PROGRAM, slot, program.task[number], nodes[program.place[number] % len(nodes)]))
            else:
                exported.append(slot)
        for start in range(0, len(exported), EXPORT_MAX):
            chunk = exported[start : start + EXPORT_MAX]
            self._tell(ev.Exported(PROGRAM, tuple((slot, program.task[program.tops[slot]]) for slot in chunk)))
        self._tell(ev.Released(PROGRAM, CODES))  # the functions are gone; the next round has some of the same code

    def _tidy(self, _: None) -> None:
        """Let orphans run out, so that what is left over then is left over for ever."""
        if self._cluster.leftovers():
            self._world.post(TIDY_NS, self._tidy)
        else:
            self._cluster.look()
            self._world.tally("pieces too late", len(self._cluster.root.core.pieces))
            self._end()

    def _end(self) -> None:
        self.ending = True
        self._tell(ev.Terminate())

    def _tell(self, event: ev.Event) -> None:
        self._world.post(self._local_ns, self._heard, event)

    def _heard(self, event: ev.Event) -> None:
        self._cluster.root.when_running(self._cluster.root.feed, event)
