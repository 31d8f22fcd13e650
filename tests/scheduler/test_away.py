"""Small sparks of a task that leave together (decision 30), and what comes back of them; without a process."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from hdphrs.api import future as fast
from hdphrs.api.future import AWAY, DONE, FAILED, Future, SupervisedFuture, get, spawn
from hdphrs.api.options import task as with_options
from hdphrs.errors import Cancelled, CannotTravelError
from hdphrs.protocol.tasks import ROOT, NodeId, Outcome, Task, Verdict
from hdphrs.scheduler.assigned import path_of
from hdphrs.scheduler.pace import EXPORT_MAX, WORTH_S
from hdphrs.wire import local
from hdphrs.wire.bundle import (
    BUNDLE_BYTES_MAX,
    BUNDLE_S,
    GROWTH,
    SHARES_PER_CORE,
    WHOLE_BYTES_MIN,
    Answer,
    Calls,
    bundle_path,
    is_bundle,
    pack_answer,
    unpack_calls,
)
from hdphrs.wire.items import pack_outcome, unpack_task
from hdphrs.wire.page import Label, Line, Reading
from hdphrs.wire.values import dump_error, dump_result
from tests.scheduler.test_export import Desk, assigned

CHEAP_S = 2 * WORTH_S
TAUGHT = 64


def double(n: Any) -> Any:
    return 2 * n


class Node:
    """Hears what a desk tells."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.tasks: dict[int, Task] = {}
        self.cancelled: list[int] = []

    def hear(self) -> list[int]:
        """The slots that are new."""
        slots = []
        told, self.desk.told = self.desk.told, []
        for kind, items in told:
            if kind == local.EXPORT:
                self.tasks |= {slot: unpack_task(packed) for slot, packed in items}
                slots += [slot for slot, _ in items]
            elif kind == local.CANCEL:
                self.cancelled += items
        return slots

    def export(self) -> list[int]:
        """Have the desk export what it can; the slots."""
        self.desk.line.want(True)
        self.desk.exporter.export()
        return self.hear()

    def answer(self, slot: int, outcome: Outcome) -> list[Future[Any]]:
        """This has come of a task: the futures that are full by that."""
        return self.desk.exporter.arrived(slot, outcome)[1]

    def teach(self, function: Callable[..., Any] = double, cost_s: float = CHEAP_S) -> None:
        """Let the desk know how long a function takes, from so many calls that they say nothing of a bundle's size."""
        for _ in range(TAUGHT):
            future = spawn(function, 0)
            (slot,) = self.export()
            self.answer(slot, outcome_of(0, cost_s))
            assert get(future) == 0

    def calls(self, slot: int) -> Calls:
        """Those of a bundle."""
        assert is_bundle(self.tasks[slot].path)
        return unpack_calls(self.tasks[slot].payload)


def outcome_of(value: Any, cost_s: float = CHEAP_S) -> Outcome:
    return Outcome(Verdict.VALUE, dump_result("double", value).data, (), cost_s)


def answer_of(values: list[Any], others: dict[int, list[object] | None] | None = None) -> Outcome:
    return Outcome(Verdict.VALUE, pack_answer(Answer(values, others or {})), (), CHEAP_S)


@pytest.fixture
def node(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(desk.exporter.pace, "allow", lambda: EXPORT_MAX)
    return Node(desk)


def together(node: Node, count: int, function: Callable[..., Any] = double) -> tuple[list[Future[Any]], int]:
    """The futures of a bundle, and its slot: a quarter of what waits, which is no more than that on one core."""
    node.teach(function)
    futures = [spawn(function, n) for n in range(SHARES_PER_CORE * count)]
    slot, *_ = node.export()
    assert len(node.calls(slot).indices) == count
    return futures[:count], slot


def test_what_nobody_knows_leaves_alone_and_then_small_siblings_leave_together(node: Node) -> None:
    futures, slot = together(node, 5)
    calls = node.calls(slot)
    assert [calls.path(place) for place in range(5)] == [path_of(future) for future in futures]
    assert [*calls.arguments] == [(n,) for n in range(5)]
    assert node.answer(slot, answer_of([0, 2, 4, 6, 8])) == futures
    assert [get(future) for future in futures] == [0, 2, 4, 6, 8]


def test_ranges_are_pickled_with_their_bundle_as_numbers_are(node: Node) -> None:
    node.teach()
    for n in range(SHARES_PER_CORE * 3):
        spawn(double, range(n))
    slot, *_ = node.export()
    assert [*node.calls(slot).arguments] == [(range(n),) for n in range(3)]


def test_few_leave_together_before_many_have_come_back(node: Node) -> None:
    """The first may tell little of the others."""
    futures = [spawn(double, n) for n in range(1000)]
    sizes = []
    for _ in range(3):
        slot, *others = node.export()
        assert len(others) > 1
        calls = node.calls(slot).arguments if is_bundle(node.tasks[slot].path) else []
        sizes.append(max(1, len(calls)))
        values: list[Any] = [2 * argument[0] for argument in calls if isinstance(argument, tuple)]
        node.answer(slot, answer_of(values) if values else outcome_of(0))
    assert sizes == [1, GROWTH, GROWTH * (1 + GROWTH)]
    assert get(futures[0]) == 0


@pytest.mark.parametrize("cost_s", [BUNDLE_S, WORTH_S / 2])
def test_what_takes_long_leaves_alone_and_what_is_not_worth_it_too(node: Node, cost_s: float) -> None:
    node.teach(cost_s=cost_s)
    for n in range(20):
        spawn(double, n)
    assert not any(is_bundle(node.tasks[slot].path) for slot in node.export())


def test_each_outcome_is_that_of_its_own_future_and_what_was_given_back_leaves_alone(node: Node) -> None:
    futures, slot = together(node, 4)
    error = pack_outcome(dump_error("double", ValueError("unlucky")))
    whole = pack_outcome(dump_result("double", [2]))
    full = node.answer(slot, answer_of([0, None, None, None], {1: whole, 2: error, 3: None}))
    assert full == futures[:3]
    assert (get(futures[0]), get(futures[1])) == (0, [2])
    with pytest.raises(ValueError, match="unlucky"):
        get(futures[2])
    (again,) = node.hear()
    assert node.tasks[again].path == path_of(futures[3])
    assert node.answer(again, outcome_of(6)) == [futures[3]]
    assert get(futures[3]) == 6


@pytest.mark.parametrize("outcome", [Outcome(Verdict.CRASHED, b"double"), Outcome(Verdict.VALUE, pack_answer(None))])
def test_a_bundle_that_has_not_been_run_leaves_its_sparks_to_go_alone(node: Node, outcome: Outcome) -> None:
    futures, slot = together(node, 3)
    assert node.answer(slot, outcome) == []
    slots = node.hear()
    assert [node.tasks[slot].path for slot in slots] == [path_of(future) for future in futures]
    assert {node.tasks[slot].code for slot in slots} == {node.tasks[min(node.tasks)].code}
    assert [pickle.loads(node.tasks[slot].payload)[0] for slot in slots] == [0, 1, 2]


def test_a_bundle_that_is_lost_is_lost_to_all(node: Node) -> None:
    futures, slot = together(node, 3)
    assert node.answer(slot, Outcome(Verdict.LOST, b"its node died")) == futures
    assert {future._status for future in futures} == {FAILED}


def test_outcomes_may_come_before_the_answer_and_sparks_come_back(node: Node) -> None:
    futures, slot = together(node, 4)
    exporter = node.desk.exporter
    parts: list[tuple[int, list[object] | None]] = [(0, pack_outcome(dump_result("double", 0))), (2, None), (3, None)]
    assert exporter.hear_of(slot, parts) == [futures[0]]
    assert exporter.hear_of(slot, parts) == []
    again = node.hear()
    assert [node.tasks[slot].path for slot in again] == [path_of(future) for future in futures[2:]]
    assert node.answer(slot, answer_of([7, 2, None, None], {2: None, 3: None})) == [futures[1]]
    assert [get(future) for future in futures[:2]] == [0, 2]
    assert node.hear() == []
    assert exporter.hear_of(slot, parts) == []


def test_what_both_threads_want_to_send_again_leaves_once(node: Node) -> None:
    """The helper thread has read that a call comes back while the main thread reads the answer that says so too."""
    _, slot = together(node, 3)
    exporter = node.desk.exporter
    away = exporter._away[slot]
    exporter.hear_of(slot, [(2, None)])
    assert len(node.hear()) == 1
    exporter._send_again(away, [2])
    assert node.hear() == []


def test_a_future_that_is_cancelled_takes_its_bundle_along_and_the_others_leave_alone(node: Node) -> None:
    futures, slot = together(node, 3)
    assert node.desk.exporter.cancel(futures[1])
    again = node.hear()
    assert node.cancelled == [slot]
    assert [node.tasks[slot].path for slot in again] == [path_of(futures[0]), path_of(futures[2])]
    assert node.answer(slot, answer_of([0, 2, 4])) == []
    with pytest.raises(Cancelled):
        get(futures[1])
    assert not node.desk.exporter.cancel(futures[1])
    assert node.desk.exporter.cancel(futures[0])
    assert node.hear() == []
    assert node.cancelled == [slot, again[0]]


def test_with_their_parent_all_are_cancelled(node: Node) -> None:
    futures, slot = together(node, 3)
    assert fast.here.task is not None
    node.desk.exporter.cancel_below(fast.here.task)
    node.hear()
    assert slot in node.cancelled
    assert {future._status for future in futures} == {FAILED}


def test_arguments_that_are_large_or_do_not_pickle_leave_alone_or_fail_alone(node: Node) -> None:
    node.teach()
    given = [1, "x", bytes(WHOLE_BYTES_MIN), threading.Lock(), 3]
    futures = [spawn(double, value) for value in given]
    for n in range((SHARES_PER_CORE - 1) * len(given)):
        spawn(double, n)
    slots = node.export()
    paths = {node.tasks[slot].path for slot in slots}
    assert path_of(futures[2]) in paths
    with pytest.raises(CannotTravelError, match="argument"):
        get(futures[3])
    (slot,) = [slot for slot in slots if is_bundle(node.tasks[slot].path) and node.calls(slot).arguments[0] == (1,)]
    node.answer(slot, answer_of([2, "xx", 6]))
    assert [get(futures[place]) for place in (0, 1, 4)] == [2, "xx", 6]


def test_arguments_of_a_bundle_are_bounded_together(node: Node) -> None:
    node.teach()
    size = WHOLE_BYTES_MIN // 2
    for _ in range(64):
        spawn(double, bytes(size))
    for slot in node.export():
        if is_bundle(node.tasks[slot].path):
            assert len(node.tasks[slot].payload) < BUNDLE_BYTES_MAX + 2 * size


def two_parents() -> None:
    first, second = fast.here.task, assigned(1)
    for n in range(20):
        fast.here.task = (first, second)[n % 2]
        spawn(double, n)
    fast.here.task = first


def mixed_supervision() -> None:
    for n in range(20):
        future = spawn(double, n)
        if n % 2:
            fast.sparks[-1] = SupervisedFuture()
            for name in ("_function", "_content", "_parent", "_index"):
                setattr(fast.sparks[-1], name, getattr(future, name))


def keywords() -> None:
    for n in range(20):
        spawn(double, n=n)


@pytest.mark.parametrize("spawn_all", [two_parents, mixed_supervision, keywords])
def test_what_is_not_alike_does_not_leave_together(node: Node, spawn_all: Callable[[], None]) -> None:
    node.teach()
    spawn_all()
    assert not any(is_bundle(node.tasks[slot].path) for slot in node.export())


def test_among_several_nodes_each_leaves_alone(node: Node) -> None:
    node.teach()
    node.desk.roster.hear([[ROOT, "near", 1], [NodeId(1), "far", 1]])
    for n in range(20):
        spawn(double, n)
    assert not any(is_bundle(node.tasks[slot].path) for slot in node.export())


def test_tasks_with_options_leave_alone(node: Node) -> None:
    careful = with_options(attempts=2)(double)
    node.teach(careful)
    for n in range(20):
        spawn(careful, n)
    assert not any(is_bundle(node.tasks[slot].path) for slot in node.export())


@pytest.mark.parametrize("seed", range(50))
def test_whatever_becomes_of_bundles_each_future_has_its_own_value(node: Node, seed: int) -> None:
    """Answers, early parts, deaths, cancellations and takes in place, in any order."""
    chance = Random(seed)
    exporter = node.desk.exporter
    node.teach()
    futures: dict[int, Future[Any]] = {}
    cancelled: set[int] = set()
    open_slots: dict[int, set[int]] = {}

    def hear(slots: list[int]) -> None:
        for slot in slots:
            open_slots[slot] = set()

    def value(path: bytes) -> int:
        return next(2 * n for n, future in futures.items() if path_of(future) == path)

    def give(slot: int) -> None:
        task = node.tasks[slot]
        del open_slots[slot]
        if slot in node.cancelled:
            return
        if not is_bundle(task.path):
            node.answer(slot, outcome_of(value(task.path)))
            return
        if chance.random() < 0.3:
            node.answer(slot, chance.choice([Outcome(Verdict.CRASHED, b""), Outcome(Verdict.VALUE, pack_answer(None))]))
        else:
            calls = node.calls(slot)
            places = range(len(calls.indices))
            others: dict[int, list[object] | None] = {place: None for place in places if chance.random() < 0.2}
            node.answer(slot, answer_of([value(calls.path(place)) for place in places], others))
        hear(node.hear())

    def part(slot: int) -> None:
        if not is_bundle(node.tasks[slot].path):
            return
        calls = node.calls(slot)
        place = chance.randrange(len(calls.indices))
        outcome = pack_outcome(dump_result("double", value(calls.path(place)))) if chance.random() < 0.5 else None
        exporter.hear_of(slot, [(place, outcome)])
        hear(node.hear())

    for n in range(300):
        futures[n] = spawn(double, n)
        dice = chance.random()
        if dice < 0.1:
            hear(node.export())
        elif dice < 0.4 and open_slots:
            give(chance.choice(list(open_slots)))
        elif dice < 0.5 and open_slots:
            part(chance.choice(list(open_slots)))
        elif dice < 0.55:
            victim = chance.choice(list(futures))
            if getattr(futures[victim], "_status", None) is AWAY and exporter.cancel(futures[victim]):
                cancelled.add(victim)
                hear(node.hear())
    while open_slots:
        give(chance.choice(list(open_slots)))
    for n, future in futures.items():
        if n in cancelled:
            with pytest.raises(Cancelled):
                get(future)
        else:
            assert get(future) == 2 * n
            assert future._status is DONE
    assert not exporter._away


def test_a_bundle_has_the_path_of_its_first_call_and_a_mark(node: Node) -> None:
    _, slot = together(node, 16)
    calls = node.calls(slot)
    assert node.tasks[slot].path == bundle_path(calls.parent, calls.indices[0])


SEEN: list[Label] = []


class Seen:
    """Its value looks at the page while it is unpickled."""

    line: Line

    def __reduce__(self) -> Any:
        return _look, ()


def _look() -> str:
    SEEN.append(Seen.line.unpickles)
    return "seen"


def test_the_page_says_whose_value_is_unpickled_alone_or_in_a_bundle(node: Node) -> None:
    """And nothing before and after that."""
    SEEN.clear()
    Seen.line = node.desk.line
    futures, slot = together(node, 4)
    seen = pack_outcome(outcome_of(Seen()))
    for future in node.desk.exporter.hear_of(slot, [(0, seen)]):
        assert get(future) == "seen"
    assert node.desk.line.unpickles == Label()
    node.answer(slot, answer_of([None] * 4, {1: seen, 2: pack_outcome(dump_error("double", Raised())), 3: None}))
    (alone,) = node.hear()
    node.answer(alone, outcome_of(Seen()))
    assert [label.path for label in SEEN] == [path_of(future) for future in futures]
    assert {(label.reading, label.name) for label in SEEN} == {(Reading.VALUE, "double")}
    assert node.desk.line.unpickles == Label()


class Raised(Exception):  # noqa: N818 - it stands for any
    """The same of an exception."""

    def __reduce__(self) -> Any:
        return _look, ()
