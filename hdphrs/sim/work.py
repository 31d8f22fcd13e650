"""Who has computed what for how long, and what of that was in vain.

What lives here: the accounts of one run, in nanoseconds of computing, that is without waiting.

* *done*: all that schedulers have computed, up to their ends.
* *needed*: each task once, as far as it was computed at all.  What is done beyond that is *recomputed*.
* *lost*: of what processes that died had computed, the time for tasks of which nothing was left elsewhere.  It is
  settled when the process ends, once it is clear which of its last words arrive.  A task is not lost if it, or any
  ancestor of it, has a result that was sent to a process that lives (its future's, or one where its supervisor still
  handed it over), or that is among the root's pieces or on its way there.

So what is lost must be recomputed, and what is recomputed beyond that was finished, and had been thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hdphrs.protocol.tasks import TaskRef
from hdphrs.sim.program import Program


@dataclass(slots=True)
class Totals:
    """Of one run, or of many; nanoseconds."""

    sequential_ns: int = 0
    """All tasks once."""
    done_ns: int = 0
    recomputed_ns: int = 0
    lost_ns: int = 0
    took_ns: int = 0
    """From the program's beginning to its last result."""
    ideal_ns: int = 0
    """In which the cores that live at each moment do everything once."""

    def add(self, other: Totals) -> None:
        """Another run."""
        self.sequential_ns += other.sequential_ns
        self.done_ns += other.done_ns
        self.recomputed_ns += other.recomputed_ns
        self.lost_ns += other.lost_ns
        self.took_ns += other.took_ns
        self.ideal_ns += other.ideal_ns

    def __str__(self) -> str:
        """For a person."""
        ratio = f", {self.recomputed_ns / self.lost_ns:.2f} times what was lost" if self.lost_ns else ""
        return (
            f"{self.sequential_ns / 1e9:.3f} s in sequence, {self.done_ns / 1e9:.3f} s done, "
            f"{self.recomputed_ns / 1e9:.3f} s recomputed, {self.lost_ns / 1e9:.3f} s lost{ratio}"
        )


class Accounts:
    """Those of one run."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._done_ns: dict[int, int] = {}
        """By task."""
        self._sent_to: dict[int, list[TaskRef]] = {}
        """By task: futures that its results have gone to."""
        self._lost_ns = 0
        self._cores: list[tuple[int, int]] = []
        """When so many have come or gone."""
        self._began_ns = self._ended_ns = 0

    def begin(self, now_ns: int) -> None:
        """The program begins."""
        self._began_ns = now_ns

    def end(self, now_ns: int) -> None:
        """It has one more result, perhaps the last."""
        self._ended_ns = now_ns

    def add_cores(self, now_ns: int, cores: int) -> None:
        """So many more from now on, or less."""
        self._cores.append((now_ns, cores))

    def compute(self, number: int, for_ns: int) -> None:
        """A task has been computed for so long."""
        self._done_ns[number] = self._done_ns.get(number, 0) + for_ns

    def send(self, number: int, ref: TaskRef) -> None:
        """A result leaves for the future that it fills."""
        self._sent_to.setdefault(number, []).append(ref)

    def lose(
        self,
        computed_ns: dict[int, int],
        kept: Iterable[bytes],
        is_alive: Callable[[TaskRef], bool],
    ) -> None:
        """A process has died.

        Args:
            computed_ns: what it had computed, by task.
            kept: paths of all pieces that the root has or will get.
            is_alive: whether the process lives that has this future.
        """
        program = self._program
        pieces = frozenset(kept)
        safe: dict[int, bool] = {}
        for number, for_ns in computed_ns.items():
            chain: list[int] = []
            ancestor: int | None = number
            while ancestor is not None and ancestor not in safe:
                chain.append(ancestor)
                ancestor = program.parent[ancestor]
            is_safe = ancestor is not None and safe[ancestor]
            for one in reversed(chain):
                is_safe = is_safe or program.task[one].path in pieces
                is_safe = is_safe or any(is_alive(ref) for ref in self._sent_to.get(one, ()))
                safe[one] = is_safe
            if not safe[number]:
                self._lost_ns += for_ns

    def totals(self) -> Totals:
        """So far."""
        program = self._program
        done_ns = sum(self._done_ns.values())
        needed_ns = sum(
            min(for_ns, program.before_ns[number] + program.after_ns[number])
            for number, for_ns in self._done_ns.items()
        )
        took_ns = max(0, self._ended_ns - self._began_ns)
        return Totals(program.work_ns, done_ns, done_ns - needed_ns, self._lost_ns, took_ns, self._ideal_ns())

    def _ideal_ns(self) -> int:
        """How long the cores that there are at each moment need for everything."""
        left_ns, now_ns, cores = self._program.work_ns, self._began_ns, 0
        for at_ns, change in self._cores:
            spent_ns = max(0, at_ns - now_ns)
            if cores * spent_ns >= left_ns:
                break
            left_ns -= cores * spent_ns
            now_ns += spent_ns
            cores += change
        return now_ns - self._began_ns + left_ns // max(1, cores)
