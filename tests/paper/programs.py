"""Programs, as data that is read in two ways: by the API of the package, and by the terms of Figure 3.

What lives here: trees of tasks that spawn, place, wait and fail; `perform`, which is such a task as user code; and
`term_of`, which is the same task as a term.  A task's value depends on all that it reads and on nothing else: neither
on who runs it nor on where (transitively location invariant, section 3.5).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from hypothesis import strategies as st

import hdphrs
from tests.paper.terms import (
    AllNodes,
    Bind,
    Eval,
    Get,
    If,
    Lam,
    Lit,
    Prim,
    Return,
    Spawn,
    SpawnAt,
    Term,
    Var,
)


class Failed(Exception):  # noqa: N818 - what a task ends with, not a fault of ours
    """A task of a program raises this."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(frozen=True, slots=True)
class Child:
    """Spawn a task; if `where` is given, place it on that one of the live nodes, counted round."""

    task: Program
    where: int | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """Wait for one of the futures made so far, counted round; any of them, in any order, more than once."""

    which: int
    catches: bool = False
    """Whether the task goes on if that one has failed."""


@dataclass(frozen=True, slots=True)
class Fail:
    """Raise."""


Step = Child | Read | Fail


@dataclass(frozen=True, slots=True)
class Program:
    """A task: its own number, and what it does one after another."""

    number: int
    steps: tuple[Step, ...] = ()

    def size(self) -> int:
        """Tasks."""
        return 1 + sum(step.task.size() for step in self.steps if isinstance(step, Child))


def mix(total: int, value: int) -> int:
    """What a task makes of one more value; neither commutative nor associative."""
    return (31 * total + value + 7) % 1_000_003


# ---- as user code --------------------------------------------------------------------------------------------


def perform(program: Program) -> int:
    """The task, written against the public API."""
    total = program.number
    futures: list[hdphrs.Future[int]] = []
    for step in program.steps:
        match step:
            case Child(task, where) if where is None:
                futures.append(hdphrs.spawn(perform, task))
            case Child(task, where):
                assert where is not None
                nodes = hdphrs.all_nodes()
                futures.append(hdphrs.spawn_at(nodes[where % len(nodes)], perform, task))
            case Read(which, catches):
                if futures:
                    total = mix(total, _read(futures[which % len(futures)], catches))
            case Fail():
                raise Failed(total)
    return total


def _read(future: hdphrs.Future[int], catches: bool) -> int:
    try:
        return hdphrs.get(future)
    except Failed as error:
        if catches:
            return error.number
        raise


def sequential_outcome(program: Program) -> tuple[str, int]:
    """What the oracle says: ("value", n) or ("failed", n)."""
    with hdphrs.sequential():
        try:
            return "value", hdphrs.run(perform, program)
        except Failed as error:
            return "failed", error.number


# ---- as a term -----------------------------------------------------------------------------------------------


def term_of(program: Program) -> Term:
    """The task, as M of type Par; it returns what `sequential_outcome` would."""
    return _steps(program.steps, Lit(program.number), ())


def _steps(steps: tuple[Step, ...], total: Term, futures: tuple[Term, ...]) -> Term:
    if not steps:
        return Eval(Prim(_value, (total,)))
    (step, *rest), name = steps, f"x{len(steps)}"
    match step:
        case Child(task, where):
            spawned = (
                Spawn(term_of(task)) if where is None else SpawnAt(Prim(_pick, (Var(name), Lit(where))), term_of(task))
            )
            then = Lam(f"f{len(futures)}", _steps(tuple(rest), total, (*futures, Var(f"f{len(futures)}"))))
            return Bind(spawned, then) if where is None else Bind(AllNodes(), Lam(name, Bind(spawned, then)))
        case Read(which, catches):
            if not futures:
                return _steps(tuple(rest), total, futures)
            read = Var(name)
            onward = _steps(tuple(rest), Prim(_mix, (total, read)), futures)
            failed = Prim(_failed, (read, Lit(catches)))
            return Bind(Get(futures[which % len(futures)]), Lam(name, If(failed, Return(read), onward)))
        case Fail():
            return Eval(Prim(_raised, (total,)))


def _value(total: int) -> Hashable:
    return "value", total


def _raised(total: int) -> Hashable:
    return "failed", total


def _failed(read: tuple[str, int], catches: bool) -> bool:
    return read[0] == "failed" and not catches


def _mix(total: int, read: tuple[str, int]) -> int:
    return mix(total, read[1])


def _pick(nodes: tuple[int, ...], where: int) -> int:
    return nodes[where % len(nodes)]


# ---- random ones ---------------------------------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn, tasks_max: int) -> Program:
    """Programs of up to so many tasks."""
    left = [draw(st.integers(2, tasks_max))]

    def task() -> Program:
        left[0] -= 1
        steps: list[Step] = []
        for kind in draw(st.lists(st.sampled_from("ccccrrrrppf"), min_size=2, max_size=7)):
            match kind:
                case "r":
                    steps.append(Read(draw(st.integers(0, 7)), draw(st.booleans())))
                case "f":
                    steps.append(Fail())
                case _ if left[0] > 0:
                    steps.append(Child(task(), draw(st.integers(0, 7)) if kind == "p" else None))
        return Program(draw(st.integers(0, 99)), tuple(steps))

    return task()
