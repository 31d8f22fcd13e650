"""What leaves a virtual scheduler: sparks for whoever is hungry, and threads for other nodes (`scheduler/export.py`).

What lives here: the private deque, the way out of it, and the futures of what is away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hdphrs.protocol import events as ev
from hdphrs.protocol.tasks import NodeId, Origin, Spark, TaskRef
from hdphrs.sim.program import Program
from hdphrs.sim.stack import AWAY, WAITING, Future

EXPORT_MAX = 64
"""As in the real one."""


class Exporter:
    """The deque of one scheduler."""

    def __init__(self, program: Program, origin: Origin, tell: Callable[..., None]) -> None:
        """`tell` sends events to the node."""
        self.deque: deque[Future | Spark] = deque()
        """Oldest left; assigned tasks and the scheduler's own sparks, some of them taken already."""
        self.away: dict[int, Future] = {}
        """By slot."""
        self.taught: dict[bytes, None] = {}
        """Code that the node has given."""
        self._registered: dict[bytes, None] = {}
        """Code that the node has from here."""
        self._program = program
        self._origin = origin
        self._tell = tell
        self._slots = 0

    def export(self, *, careful: bool) -> bool:
        """Give sparks to the node: the oldest half, or all that are younger than what the node has handed over.

        Returns:
            Whether there were any.
        """
        return self._give(self._take_new() if careful else self._take_old())

    def export_youngest(self) -> None:
        """Give the spark that has just been made to the node."""
        self._give([self.deque.pop()])

    def _give(self, taken: list[Future | Spark]) -> bool:
        exported: list[tuple[int, Future]] = []
        returned: list[tuple[TaskRef, int]] = []
        for item in taken:
            if isinstance(item, Spark):
                returned.append((item.ref, item.replica))
            elif item.status == WAITING:
                exported.append((self._send_away(item), item))
        told: list[ev.Event] = []
        if exported:
            tasks = tuple((slot, self._program.task[future.number]) for slot, future in exported)
            for _, task in tasks:
                told += self._teach(task.code)
            told.append(ev.Exported(self._origin, tasks))
        if returned:
            told.append(ev.GivenBack(self._origin, tuple(returned)))
        if told:
            self._tell(*told)
        return bool(told)

    def _take_old(self) -> list[Future | Spark]:
        wanted = min(EXPORT_MAX, (len(self.deque) + 1) // 2)
        return [self.deque.popleft() for _ in range(wanted)]

    def _take_new(self) -> list[Future | Spark]:
        taken: list[Future | Spark] = []
        while self.deque and isinstance(self.deque[-1], Future):
            taken.append(self.deque.pop())
        return taken[::-1]

    def place(self, future: Future, nodes: list[NodeId]) -> None:
        """Send a thread to one of these nodes."""
        slot = self._send_away(future)
        task = self._program.task[future.number]
        node = nodes[self._program.place[future.number] % len(nodes)]
        self._tell(*self._teach(task.code), ev.Placed(self._origin, slot, task, node))

    def _send_away(self, future: Future) -> int:
        slot = self._slots
        self._slots += 1
        self.away[slot] = future
        future.status = AWAY
        return slot

    def _teach(self, digest: bytes) -> list[ev.Event]:
        if digest in self.taught or digest in self._registered:
            return []
        self._registered[digest] = None
        return [ev.Learned(digest, digest, self._origin)]

    def forget_code(self, digest: bytes) -> None:
        """The node asks for that."""
        del self.taught[digest]
        self._tell(ev.Released(self._origin, (digest,)))

    def release_code(self) -> None:
        """All tasks have ended, and their functions are gone."""
        if self._registered:
            released, self._registered = tuple(self._registered), {}
            self._tell(ev.Released(self._origin, released))
