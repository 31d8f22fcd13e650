"""The work: a tree of tasks with virtual costs, and the value that a sequential evaluation gives it.

What lives here: data, made once for a run.  A task's payload is its number in here, so any scheduler can run it; its
path is the chain of spawn indices, as in real programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hdphrs.protocol.paths import PROGRAM_PATH, child_path
from hdphrs.protocol.tasks import Outcome, Task, Verdict
from hdphrs.sim import paper
from hdphrs.sim.draw import SHAPES, Draw

NUMBER_BYTES = 4
MASK = 0xFFFFFFFF

TAINTED = b"?"
"""The value of a task below which something was lost: nobody can say what it should be."""

_CRASHED = 0xDEAD
_RAISED = 0x5A5A5A5A
_DEADLY = 0xD1E

DEPTH_MAX = 10
"""Levels below the top, if tasks are poisoned.  When a scheduler dies, each of the ancestors that waited in it is run
again from its beginning, while what they had spawned goes on elsewhere and, poisoned too, kills more schedulers: below
a long chain the work grows exponentially before it ends."""

CODES = tuple(b"code of f%d" % number for number in range(24))


class Program:
    """Tasks 0, 1, ...; children have higher numbers than their parents."""

    def __init__(self, drawn: Draw, chance: Random) -> None:
        self.children: list[list[int]] = []
        self.parent: list[int | None] = []
        self._depth: list[int] = []
        self._depth_max = min(drawn.depth_max, DEPTH_MAX) if drawn.poison or drawn.deadly else drawn.depth_max
        self.tops: list[int] = []
        """What the program itself spawns."""
        shape = SHAPES[drawn.shape]
        self.is_paper: bool = shape in paper.BENCHMARKS
        """Whether it is one of the paper's benchmarks."""
        if self.is_paper:
            work = paper.plant(self, shape, drawn.tasks)
            count = len(self.children)
            self.before_ns: list[int] = paper.costs_ns(self, work, drawn.cost_us)
            self.after_ns: list[int] = [0] * count
            self.place: list[int] = paper.places(self) if drawn.eager else [-1] * count
        else:
            _PLANTERS[shape](self, drawn, chance)
            count = len(self.children)
            self.before_ns = [_cost_ns(drawn.cost_us, chance) for _ in range(count)]
            self.after_ns = [_cost_ns(drawn.cost_us // 4, chance) if children else 0 for children in self.children]
            placed_pct = 100 if shape == "pushed" else drawn.placed_pct
            self.place = [chance.randrange(1 << 16) if chance.randrange(100) < placed_pct else -1 for _ in range(count)]
            """Where: an index of the nodes alive, modulo their number; -1 for anywhere."""
        self.supervised: list[bool] = [chance.randrange(100) >= drawn.unsupervised_pct for _ in range(count)]
        self.raises: list[bool] = [chance.randrange(100) < drawn.raising_pct for _ in range(count)]
        poison = [chance.randrange(count) for _ in range(drawn.poison)]
        self.poison: list[bool] = [number in poison for number in range(count)]
        below = [number for number in range(count) if self.parent[number] is not None]
        deadly = [chance.choice(below) for _ in range(drawn.deadly if below else 0)]
        self.deadly: list[bool] = [number in deadly for number in range(count)]
        """Whether its value takes down who reads it; run in place it takes down nobody, so whoever gets it makes the
        same of its value and of its crash.  The program reads none."""
        forgotten = {child for child in range(count) if chance.randrange(100) < drawn.forgotten_pct}
        self.got: list[list[int]] = [
            [child for child in children if child not in forgotten] for children in self.children
        ]
        if drawn.lifo:
            self.got = [children[::-1] for children in self.got]
        self.task: list[Task] = [
            self._task(number, path, drawn.payload_bytes) for number, path in enumerate(self._paths())
        ]
        self.outcomes: list[Outcome] = self._evaluate()
        """What each task's future must be filled with, if nothing is lost."""
        self.may_lose: list[bool] = self._find_losable()
        """Whether a loss is a right outcome: the task, or something below it, is unsupervised."""

    @property
    def work_ns(self) -> int:
        """All costs: what one core needs without faults."""
        return sum(self.before_ns) + sum(self.after_ns)

    @property
    def blamable(self) -> int:
        """How many tasks a poisoned one can get blamed: itself, and all above it, in whose place it may run; and those
        with deadly values."""
        blamed = list(self.poison)
        for number in reversed(range(len(blamed))):
            blamed[number] = blamed[number] or any(blamed[child] for child in self.children[number])
        return sum(blamed) + sum(self.deadly)

    def add(self, parent: int | None) -> int:
        """One more task; a child of one that is deep enough becomes a top task."""
        if parent is not None and self._depth[parent] >= self._depth_max:
            parent = None
        number = len(self.children)
        self.children.append([])
        self.parent.append(parent)
        self._depth.append(0 if parent is None else self._depth[parent] + 1)
        (self.tops if parent is None else self.children[parent]).append(number)
        return number

    def combine(self, number: int, contributions: Sequence[int | None], cost_s: float = 0.0) -> Outcome:
        """What a task gives whose children, in the order of `got`, gave this; None is a loss."""
        verdict = Verdict.RAISED if self.raises[number] else Verdict.VALUE
        value = number * 2654435761 + 1
        for contribution in contributions:
            if contribution is None:
                return Outcome(verdict, TAINTED, (), cost_s)
            value = (value * 31 + contribution) & MASK
        return Outcome(verdict, (value & MASK).to_bytes(NUMBER_BYTES, "big"), (), cost_s)

    def contribution(self, number: int, outcome: Outcome) -> int | None:
        """What the parent of a task makes of its outcome; None is a loss."""
        return _DEADLY if self.deadly[number] and not _is_loss(outcome) else contribution(outcome)

    def _paths(self) -> list[bytes]:
        paths = [PROGRAM_PATH] * len(self.children)
        for index, top in enumerate(self.tops):
            paths[top] = child_path(PROGRAM_PATH, index)
        for parent, children in enumerate(self.children):
            for index, child in enumerate(children):
                paths[child] = child_path(paths[parent], index)
        return paths

    def _task(self, number: int, path: bytes, payload_bytes: int) -> Task:
        code = CODES[number % len(CODES)]
        payload = number.to_bytes(NUMBER_BYTES, "big").ljust(payload_bytes, b".")
        return Task("f", path, code, payload, self.supervised[number])

    def _evaluate(self) -> list[Outcome]:
        outcomes: list[Outcome] = [Outcome(Verdict.CRASHED, b"f")] * len(self.children)
        for number in reversed(range(len(self.children))):
            if not self.poison[number]:
                outcomes[number] = self.combine(
                    number, [self.contribution(child, outcomes[child]) for child in self.got[number]]
                )
        return outcomes

    def _find_losable(self) -> list[bool]:
        losable = [not supervised for supervised in self.supervised]
        for number in reversed(range(len(losable))):
            losable[number] = losable[number] or any(losable[child] for child in self.got[number])
        return losable


def number_of(task: Task) -> int:
    """The task's number in its program."""
    return int.from_bytes(task.payload[:NUMBER_BYTES], "big")


def contribution(outcome: Outcome) -> int | None:
    """What a parent makes of a child's outcome; None is a loss."""
    if outcome.verdict is Verdict.CRASHED:
        return _CRASHED
    if _is_loss(outcome):
        return None
    value = int.from_bytes(outcome.data, "big")
    return value ^ _RAISED if outcome.verdict is Verdict.RAISED else value


def _is_loss(outcome: Outcome) -> bool:
    return outcome.verdict is Verdict.LOST or outcome.data == TAINTED


def _cost_ns(mean_us: int, chance: Random) -> int:
    """Mostly near the mean, some far below, a few far above."""
    kind = chance.randrange(20)
    if kind < 4:
        return chance.randrange(1000)
    if kind == 19:
        return chance.randrange(8 * mean_us * 1000 + 1)
    return chance.randrange(mean_us * 500, mean_us * 1500 + 1)


# ---- shapes --------------------------------------------------------------------------------------------------


def _plant_flat(program: Program, drawn: Draw, chance: Random) -> None:
    for _ in range(drawn.tasks):
        program.add(None)


def _plant_divide(program: Program, drawn: Draw, chance: Random) -> None:
    """Divide and conquer: the same number of children everywhere, level by level."""
    _plant_fans(program, [program.add(None)], drawn.tasks, chance.choice((2, 2, 3, 8)))


def _plant_irregular(program: Program, drawn: Draw, chance: Random) -> None:
    """Each task hangs below one of the latest: long thin branches and sudden fans."""
    tasks = [program.add(None)]
    reach = chance.choice((2, 4, 16, 1000))
    while len(tasks) < drawn.tasks:
        parent = tasks[-1 - chance.randrange(min(reach, len(tasks)))]
        tasks.append(program.add(None if chance.randrange(50) == 0 else parent))


def _plant_pushed(program: Program, drawn: Draw, chance: Random) -> None:
    """Tasks that are all placed, some by placed ones."""
    tops = [program.add(None) for _ in range((drawn.tasks + 3) // 4)]
    while len(program.children) < drawn.tasks:
        program.add(chance.choice(tops))


def _plant_mixed(program: Program, drawn: Draw, chance: Random) -> None:
    """Several trees beside leaves."""
    trees = chance.randint(2, 6)
    for tree in range(trees):
        quota = drawn.tasks * (tree + 1) // trees
        plant = chance.choice((_plant_leaf, _plant_tree))
        while len(program.children) < quota:
            plant(program, quota, chance)


def _plant_leaf(program: Program, quota: int, chance: Random) -> None:
    program.add(None)


def _plant_tree(program: Program, quota: int, chance: Random) -> None:
    _plant_fans(program, [program.add(None)], quota, chance.randint(1, 4))


def _plant_fans(program: Program, parents: list[int], quota: int, fan: int) -> None:
    while parents and len(program.children) < quota:
        level: list[int] = []
        for parent in parents:
            if len(program.children) < quota:
                level += [program.add(parent) for _ in range(fan)]
        parents = level


_PLANTERS = {
    "flat": _plant_flat,
    "divide": _plant_divide,
    "irregular": _plant_irregular,
    "pushed": _plant_pushed,
    "mixed": _plant_mixed,
}
