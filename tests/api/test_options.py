"""What is said of the tasks of a function (decision 20)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any

import pytest

from hdphrs import NodeInfo, task
from hdphrs.api.memo import Wish, wish_of
from hdphrs.api.options import HERE, Options, Use, options_of, options_of_task, use
from hdphrs.api.places import Roster
from hdphrs.errors import UsageError
from hdphrs.protocol.tasks import NodeId


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    begun = use.begun
    yield
    use.begun = begun


def plain(n: int) -> int:
    return n + 1


@task(attempts=1, timeout=2)
def marked(n: int) -> int:
    return n + 2


def test_decorated_function_stays_what_it_is() -> None:
    assert marked(1) == 3
    assert options_of(marked) == Options(attempts=1, timeout_s=2.0)


def test_options_for_one_call_leave_the_function_alone() -> None:
    bound = task(plain, pin=[2, 1, 2])
    assert bound(1) == 2
    assert options_of(bound) == Options(pin=(NodeId(2), NodeId(1)))
    assert options_of(plain) is None


def test_options_add_up_and_the_last_word_counts() -> None:
    assert options_of(task(marked, attempts=5)) == Options(attempts=5, timeout_s=2.0)
    both = task(task(plain, memo=True), attempts=2)
    assert (wish_of(both), options_of(both)) == (Wish.ALWAYS, Options(attempts=2))


def test_options_are_found_behind_whatever_surrounds_a_function() -> None:
    class Thing:
        @task(pin=True)
        def method(self) -> None: ...

    @wraps(marked)
    def wrapper(n: int) -> int:
        return marked(n)

    del wrapper.__hdphrs_options__  # type: ignore[attr-defined]
    assert options_of(Thing().method) == Options(pin=HERE)
    assert options_of(partial(marked, 1)) == options_of(wrapper) == options_of(marked)


def test_fields_of_a_task() -> None:
    roster = Roster([NodeInfo(NodeId(3), "near", 2), NodeInfo(NodeId(4), "far", 1), NodeInfo(NodeId(7), "far", 1)])

    def fields(function: Callable[..., Any]) -> tuple[int, float, tuple[NodeId, ...], int]:
        return options_of_task(function, roster)

    assert fields(plain) == (0, 0.0, (), 0)
    assert fields(marked) == (1, 2.0, (), 0)
    assert fields(task(plain, pin=True)) == (0, 0.0, (3,), 0)
    assert fields(task(plain, pin=5)) == (0, 0.0, (5,), 0)
    assert fields(task(plain, stealable=False)) == (0, 0.0, (3,), 0)
    assert fields(task(plain, pin="far")) == (0, 0.0, (4, 7), 0)
    assert fields(task(plain, pin=lambda info: info.slots == 1)) == (0, 0.0, (4, 7), 0)
    assert fields(task(plain, pin=[7, "far", "near"])) == (0, 0.0, (7, 4, 3), 0)
    assert options_of_task(task(marked, pin="nowhere"), roster, is_placed=True) == (1, 2.0, (), 0)
    assert fields(task(plain, priority=5)) == (0, 0.0, (), 5)
    assert options_of_task(plain, roster, 3) == (0, 0.0, (), 3)
    assert options_of_task(task(plain, priority=0), roster, 3) == (0, 0.0, (), 0)
    with pytest.raises(UsageError, match="pin: there is no host 'nowhere' in this run now; the hosts are: near, far"):
        fields(task(plain, pin=[3, "nowhere"]))


def on_far(info: NodeInfo) -> bool:
    return info.host == "far"


def test_predicate_travels_with_its_function() -> None:
    assert options_of(pickle.loads(pickle.dumps(task(plain, pin=on_far)))) == Options(pin=(on_far,))


def test_process_that_gets_an_option_knows_it() -> None:
    assert use.begun
    data = pickle.dumps(task(plain, timeout=1))
    use.begun = False
    assert options_of(marked) is None
    assert options_of(pickle.loads(data)) == Options(timeout_s=1.0)
    assert use.begun


def test_beginning_is_told_once() -> None:
    told = list[int]()
    fresh = Use()
    fresh.on_begin = lambda: told.append(1)
    fresh.begin()
    fresh.begin()
    assert told == [1]


@pytest.mark.parametrize(
    "options",
    [
        {"memo": 1},
        {"attempts": 0},
        {"attempts": True},
        {"attempts": 1.5},
        {"attempts": 10**9},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": "1"},
        {"timeout": float("nan")},
        {"timeout": True},
        {"pin": -1},
        {"pin": ""},
        {"pin": 1.5},
        {"pin": ["far", None]},
        {"pin": []},
        {"pin": [True]},
        {"pin": None},
        {"stealable": 0},
        {"stealable": False, "attempts": 1},
        {"stealable": False, "pin": True},
        {"stealable": False, "timeout": 1.0},
    ],
    ids=str,
)
def test_wrong_option_is_one_clear_mistake_when_it_is_said(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"^task: "):
        task(plain, **options)
    with pytest.raises(UsageError, match=r"^task: "):
        task(**options)(plain)


def test_what_takes_no_options_says_so() -> None:
    with pytest.raises(UsageError, match="is no function"):
        task(3, attempts=1)  # type: ignore[call-overload]
    decorate: Callable[..., Any] = task(attempts=1)
    with pytest.raises(UsageError, match="takes no mark"):
        decorate(len)
