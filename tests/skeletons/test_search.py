"""Searches: what is left out, what is given away, and that knowledge changes no answer."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import hdphrs
from hdphrs.api.future import Future, state
from hdphrs.api.sequential import SequentialPort
from hdphrs.errors import UsageError
from hdphrs.skeletons import search, walk
from hdphrs.skeletons.strategy import lazy

Word = str
"""A node of the tree of words over a, b and c."""


NOTHING: list[Word] = []


def longer(length: int, word: Word) -> list[Word]:
    return [word + letter for letter in "abc"] if len(word) < length else []


def words(length: int, word: Word = "") -> list[Word]:
    """All of them in depth-first order."""
    return [word, *(below for child in longer(length, word) for below in words(length, child))]


def in_list(word: Word) -> list[Word]:
    return [word]


def together(left: list[Word], right: list[Word]) -> list[Word]:
    return [*left, *right]


class Seen:
    """A function of nodes that remembers them."""

    def __init__(self, function: Callable[[Word], Any]) -> None:
        self._function = function
        self.words: list[Word] = []

    def __call__(self, word: Word) -> Any:
        self.words.append(word)
        return self._function(word)


class Gossip(SequentialPort):
    """Somebody has found something, and is dead."""

    def __init__(self, rank: float, find: object) -> None:
        super().__init__()
        self._gossip = rank, find

    def best(self, topic: bytes) -> tuple[float, Any] | None:
        return self._gossip


@pytest.fixture
def sequentially() -> Iterator[None]:
    with hdphrs.sequential():
        yield


pytestmark = pytest.mark.usefixtures("sequentially")


def test_an_answer_ends_a_decision() -> None:
    found = Seen("ab".__eq__)
    assert hdphrs.par_decide(partial(longer, 3), found, "") == "ab"
    assert found.words == words(3)[: words(3).index("ab") + 1]


def test_no_answer_is_none() -> None:
    assert hdphrs.par_decide(partial(longer, 3), "d".__eq__, "") is None
    assert hdphrs.par_maximise(partial(longer, 3), lambda word: None, None, "") is None


def test_what_is_bounded_by_what_is_known_is_not_searched() -> None:
    objective = Seen(lambda word: word.count("a"))
    bound = lambda word: word.count("a") + 4 - len(word)  # noqa: E731
    assert hdphrs.par_maximise(partial(longer, 4), objective, bound, "") == (4, "aaaa")
    assert objective.words == ["", "a", "aa", "aaa", "aaaa"]


def test_with_descending_bounds_nothing_is_looked_at_after_what_is_bounded() -> None:
    for descending, looks in ((False, 12), (True, 8)):
        bound = Seen(lambda word: word.count("a") + 4 - len(word))
        best = hdphrs.par_maximise(partial(longer, 4), lambda word: word.count("a"), bound, "", descending=descending)
        assert best == (4, "aaaa")
        assert len(bound.words) == looks


@pytest.mark.parametrize("depth", [None, 1, 2])
def test_the_answer_of_a_task_that_has_died_since_is_not_lost(depth: int | None) -> None:
    """What it told remains, and has others leave out the very part in which it had found it."""
    state.port = Gossip(1.0, (1.0, "ccc"))
    found = Seen("ccc".__eq__)
    assert hdphrs.par_decide(partial(longer, 3), found, "", depth=depth) == "ccc"
    assert found.words == []
    state.port = Gossip(3.0, (3, "ccc"))
    bound = lambda word: 3 if "ccc".startswith(word) else 2  # noqa: E731
    objective = Seen(lambda word: 3 if word == "ccc" else 0)
    assert hdphrs.par_maximise(partial(longer, 3), objective, bound, "", depth=depth) == (3, "ccc")
    assert objective.words == []


def test_searches_do_not_hear_of_each_other() -> None:
    for length in (3, 2):
        assert hdphrs.par_decide(partial(longer, length), lambda word: len(word) >= 2, "") == "aa"
        assert hdphrs.par_maximise(partial(longer, length), len, None, "") == (length, "a" * length)


def test_a_value_too_large_to_be_told_is_found_nevertheless() -> None:
    assert hdphrs.par_maximise(partial(longer, 2), lambda word: 10 ** (400 + len(word)), None, "") == (10**402, "aa")


class Recorded(SequentialPort):
    """Remembers what tasks begin with."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[tuple[int, Word]] = []

    def spawn(self, function: Callable[..., Any], args: Any, kwargs: Any, supervised: bool | None) -> Future[Any]:
        self.begun.append(args[0])
        return super().spawn(function, args, kwargs, supervised)


def test_with_a_depth_the_nodes_down_to_it_are_tasks() -> None:
    port = state.port = Recorded()
    assert hdphrs.par_enumerate(partial(longer, 3), in_list, together, "", NOTHING, depth=2) == words(3)
    assert sorted(port.begun) == sorted((len(word), word) for word in words(3) if len(word) <= 2)


def test_after_a_while_what_is_nearest_to_the_beginning_is_given_away(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 0.0, 0.0, walk.SPLIT_S, *[walk.SPLIT_S] * 1000])
    monkeypatch.setattr(walk, "perf_counter", lambda: next(clock))
    port = state.port = Recorded()
    # The walk is at aaa when the time is over.
    assert hdphrs.par_enumerate(partial(longer, 3), in_list, together, "", NOTHING) == words(3)
    assert port.begun == [(0, ""), (0, "b"), (0, "c")]


@pytest.mark.parametrize("pace_s", [walk.SPLIT_S, walk.SPLIT_S / 2, walk.SPLIT_S / 7])
def test_whatever_is_given_away_the_order_is_depth_first(monkeypatch: pytest.MonkeyPatch, pace_s: float) -> None:
    steps = iter(range(1 << 20))
    monkeypatch.setattr(walk, "perf_counter", lambda: next(steps) * pace_s)
    assert hdphrs.par_enumerate(partial(longer, 5), in_list, together, "", ["^"]) == ["^", *words(5)]


def test_the_task_spawns_itself_in_another_process_too() -> None:
    task = walk.Plan[Any, Any](lazy, partial(search.Enumerator, len, max), in_list, None).task
    arrived = pickle.loads(pickle.dumps(task))
    assert arrived.args[0].task is arrived


@pytest.mark.parametrize("culprit", ["children", "objective", "bound"])
def test_an_exception_is_raised_to_the_caller(culprit: str) -> None:
    def fail(word: Word) -> Any:
        raise LookupError(culprit)

    functions: dict[str, Any] = {"children": partial(longer, 2), "objective": len, "bound": len}
    functions[culprit] = fail
    with pytest.raises(LookupError, match=culprit):
        hdphrs.par_maximise(functions["children"], functions["objective"], functions["bound"], "")


@pytest.mark.parametrize("depth", [0, -1, "2", True])
@pytest.mark.parametrize("prefix", ["par", "push", "fork"])
def test_mistakes_are_the_callers(prefix: str, depth: Any) -> None:
    decide, maximise, count = (getattr(hdphrs, f"{prefix}_{name}") for name in ("decide", "maximise", "enumerate"))
    calls: list[Callable[[], object]] = [
        lambda: decide(in_list, bool, "", depth=depth),
        lambda: maximise(in_list, len, None, "", depth=depth),
        lambda: count(in_list, len, max, "", 0, depth=depth),
    ]
    for call in calls:
        with pytest.raises(UsageError, match=f"^{prefix}_.*: depth must be a positive int, not"):
            call()
    with pytest.raises(UsageError, match="found must be callable"):
        decide(in_list, None, "")
    with pytest.raises(UsageError, match="descending must be True or False, not 1"):
        maximise(in_list, len, None, "", descending=1)
    with pytest.raises(UsageError, match="bound must be callable"):
        maximise(in_list, len, 3, "")
    with pytest.raises(UsageError, match="children must be callable"):
        count([], len, max, "", 0)
