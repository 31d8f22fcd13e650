"""Divide and conquer: exceptions, mistakes, and the task that spawns itself."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from hdphrs import skeletons
from hdphrs.errors import UsageError
from hdphrs.skeletons.divide_and_conquer import Plan
from hdphrs.skeletons.strategy import lazy

Conquer = Callable[..., Any]
Runner = Callable[..., Any]
Tree: TypeAlias = "int | list[Tree]"

SKELETONS: list[Conquer] = [
    skeletons.par_divide_and_conquer,
    skeletons.push_divide_and_conquer,
    skeletons.par_divide_and_conquer_ft,
    skeletons.push_divide_and_conquer_ft,
    skeletons.fork_divide_and_conquer,
]

every_skeleton = pytest.mark.parametrize("conquer", SKELETONS, ids=lambda each: each.__name__)


def is_leaf(tree: Tree) -> bool:
    return isinstance(tree, int)


def children_of(tree: list[Tree]) -> list[Tree]:
    return tree


def spell_leaf(tree: int) -> str:
    return f"<{tree}>"


def spell_node(tree: list[Tree], children: list[str]) -> str:
    return f"{len(tree)}({' '.join(children)})"


@every_skeleton
def test_parts_may_come_from_a_generator(runner: Runner, conquer: Conquer) -> None:
    def halves(length: int) -> Any:
        yield length // 2
        yield length - length // 2

    def add(_: int, parts: list[int]) -> int:
        return sum(parts)

    assert runner(conquer, (1).__ge__, halves, add, abs, 37) == 37


@every_skeleton
@pytest.mark.parametrize("culprit", ["trivial", "decompose", "combine", "solve"])
def test_an_exception_of_any_of_the_four_is_raised_to_the_caller(
    runner: Runner, conquer: Conquer, culprit: str
) -> None:
    def fail(*_: object) -> Any:
        raise LookupError(culprit)

    functions: dict[str, Callable[..., Any]] = {
        "trivial": is_leaf,
        "decompose": children_of,
        "combine": spell_node,
        "solve": spell_leaf,
    }
    functions[culprit] = fail
    with pytest.raises(LookupError, match=culprit):
        runner(conquer, *functions.values(), [[1, 2], 3])


@every_skeleton
@pytest.mark.parametrize(
    ("position", "name"),
    list(enumerate(["trivial", "decompose", "combine", "solve"])),
    ids=lambda each: str(each),
)
def test_what_cannot_be_called_is_the_callers_mistake(
    runner: Runner, conquer: Conquer, position: int, name: str
) -> None:
    functions: list[object] = [is_leaf, children_of, spell_node, spell_leaf]
    functions[position] = None
    with pytest.raises(UsageError, match=f"^{conquer.__name__}: {name} must be callable, not None$"):
        runner(conquer, *functions, 1)


def test_the_task_spawns_itself_in_another_process_too() -> None:
    """Else its functions would be pickled anew for each problem there."""
    task = Plan[Any, Any](lazy, bool, list, pow, abs).task
    arrived = pickle.loads(pickle.dumps(task))
    assert arrived.args[0].task is arrived


def test_the_papers_spellings_are_the_same_objects() -> None:
    assert [
        skeletons.parDivideAndConquer,
        skeletons.pushDivideAndConquer,
        skeletons.parDivideAndConquerFT,
        skeletons.pushDivideAndConquerFT,
        skeletons.forkDivideAndConquer,
    ] == SKELETONS
