"""What comes out of a scope when something fails, in sequential mode; and which failures are distinct."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import TracebackType

import pytest

import hdphrs
from hdphrs.api.failures import RELATED_MAX, detach, distinct
from tests.api import scopes


@pytest.fixture
def in_this_process() -> Iterator[None]:
    with hdphrs.sequential():
        yield


def failed(*levels: BaseException) -> BaseException:
    """The first, raised from the second, and so on."""
    for effect, cause in pairwise(levels):
        effect.__cause__ = cause
    return levels[0]


@pytest.mark.parametrize("leaf", [scopes.near, scopes.far])
@pytest.mark.parametrize("pattern", scopes.EXPECTED)
def test_failure_counts_once_however_it_comes(
    in_this_process: None, pattern: scopes.Pattern, leaf: scopes.Leaf
) -> None:
    assert scopes.outcome(pattern, leaf) == scopes.EXPECTED[pattern]


def test_what_comes_out_is_the_very_exception_and_of_thousands_of_scopes_too(in_this_process: None) -> None:
    error = RuntimeError("a")

    def level(rest: int) -> None:
        if rest == 0:
            raise error
        with hdphrs.scope() as tasks:
            hdphrs.get(tasks.spawn(level, rest - 1))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        with pytest.raises(RuntimeError) as caught:
            level(2000)
    finally:
        sys.setrecursionlimit(limit)
    assert caught.value is error


def test_traceback_and_pickle_grow_with_the_number_of_scopes_at_most(in_this_process: None) -> None:
    def sizes(levels: int) -> tuple[int, int]:
        try:
            scopes.nested(scopes.near, levels)
        except RuntimeError as error:
            return length(error.__traceback__), len(pickle.dumps(error))
        raise AssertionError("nothing is raised")

    def length(traceback: TracebackType | None) -> int:
        count = 0
        while traceback is not None:
            traceback, count = traceback.tb_next, count + 1
        return count

    (short, small), (long, large) = sizes(20), sizes(40)
    assert long <= 2 * short
    assert large == small


def test_group_has_no_context_that_holds_what_it_holds(in_this_process: None) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        scopes.block_beside_a_task(scopes.near)
    assert caught.value.__context__ is None


def test_task_that_raises_what_another_has_raised_is_no_failure_of_its_own(in_this_process: None) -> None:
    def two(again: bool) -> None:
        with hdphrs.scope() as tasks:
            first = tasks.spawn(scopes.near, "a")
            tasks.spawn(lambda: hdphrs.get(first))
            if again:
                tasks.spawn(lambda: hdphrs.get(first))

    for again in (False, True):
        with pytest.raises(RuntimeError, match="a"):
            two(again)


def test_task_does_not_know_what_its_parent_handles(in_this_process: None) -> None:
    try:
        raise KeyError
    except KeyError as error:
        future = hdphrs.spawn(scopes.near, "a")
        detach(error, error)
    with pytest.raises(RuntimeError) as caught:
        hdphrs.get(future)
    assert caught.value.__context__ is None


def test_what_a_task_itself_has_handled_stays_its_context() -> None:
    own, handled = KeyError(), ValueError()
    error = RuntimeError()
    error.__context__, own.__context__ = own, handled
    detach(error, None)
    assert own.__context__ is handled
    detach(error, handled)
    assert error.__context__ is own
    assert own.__context__ is None
    own.__context__ = error  # cyclic
    detach(error, handled)


def test_what_one_failure_was_raised_from_or_holds_is_not_another() -> None:
    a, b, c = RuntimeError("a"), RuntimeError("b"), RuntimeError("c")
    group = ExceptionGroup("g", [a, ExceptionGroup("h", [b])])
    assert distinct(None, [a, b, a]) == [a, b]
    assert distinct(None, [a, b, group, c]) == [group, c]
    assert distinct(None, [a, failed(KeyError(), a)])[0].__cause__ is a
    assert distinct(b, [a, b, c]) == [b, a, c]
    assert distinct(group, [b, c, a]) == [group, c]
    assert distinct(b, [group, c]) == [b, c]
    assert distinct(None, []) == []


def test_context_counts_for_the_block_which_has_handled_it_and_not_for_a_task() -> None:
    a, b = RuntimeError("a"), RuntimeError("b")
    b.__context__ = a
    assert distinct(b, [a]) == [b]
    assert distinct(None, [a, b]) == [a, b]


def test_failures_that_lead_to_each_other_are_one_and_not_none() -> None:
    a, b = RuntimeError("a"), RuntimeError("b")
    failed(a, b, a)
    assert distinct(None, [a, b]) == [a]
    assert distinct(a, [a, b]) == [a]


def test_long_chain_is_followed_so_far_and_no_farther() -> None:
    chain = [RuntimeError(str(n)) for n in range(2 * RELATED_MAX)]
    failed(*chain)
    assert distinct(chain[0], [chain[RELATED_MAX // 2], chain[-1]]) == [chain[0], chain[-1]]


def test_group_of_many_that_a_block_has_collected_is_all_of_it() -> None:
    many = [RuntimeError(str(n)) for n in range(1000)]
    group = ExceptionGroup("g", many)
    assert distinct(group, many) == [group]
