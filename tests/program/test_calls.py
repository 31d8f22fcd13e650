"""Which calls of the program are sent when, and what becomes of them; the test is the cluster."""

from __future__ import annotations

import gc
import pickle
import threading
from collections.abc import Callable
from random import Random
from typing import Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.api.future import AWAY, DONE, FAILED, Future, Status
from hdphrs.errors import Cancelled
from hdphrs.program.calls import (
    ARRIVED,
    BUNDLE_WEIGHT,
    REFILL,
    TASKS_PER_CORE,
    CallFuture,
    Calls,
    Kind,
)
from hdphrs.protocol.paths import PROGRAM_PATH, child_path, index_of
from hdphrs.protocol.tasks import Outcome, Verdict
from hdphrs.wire.bundle import (
    BUNDLE_BYTES_MAX,
    BUNDLE_S,
    CALLS_MAX,
    GROWTH,
    JUMP_MAX,
    RETURNED,
    SHARES_PER_CORE,
    Answer,
    is_bundle,
    pack_answer,
    payload_of,
    unpack_calls,
)
from hdphrs.wire.items import pack_outcome, unpack_outcome, unpack_task

CORES = 2
CHEAP_S = 1e-6
CHANCE = b"chance"


class Program:
    """The calls of one, and a cluster that does nothing by itself."""

    def __init__(self) -> None:
        self.filled: list[Future[Any]] = []
        self.calls = Calls(threading.RLock(), self._fill, ())
        self.calls.cores = CORES
        self.spawned = 0
        self.there: dict[int, list[tuple[int, tuple[Any, ...]]]] = {}
        """By slot: the calls of each task, as (index, arguments)."""

    def _fill(self, future: Future[Any], status: Status, content: Any) -> None:
        assert future._status is AWAY
        self.filled.append(future)
        future._status = status
        future._content = content

    def spawn(self, kind: Kind, *args: Any) -> CallFuture[Any]:
        future: CallFuture[Any] = CallFuture()
        future._function = None
        future._content = None
        future._index = self.spawned
        future._kind = kind
        future._arguments = args
        future._status = AWAY
        self.spawned += 1
        self.calls.add(future)
        return future

    def send(self) -> list[int]:
        """Let all leave for which there is room; their slots."""
        items = list(self.calls.take(1000))
        for slot, packed in items:
            task = unpack_task(packed)
            if is_bundle(task.path):
                calls = unpack_calls(task.payload)
                arguments = [pickle.loads(payload_of(b"", one, CHANCE))[:-1] for one in calls.arguments]
                self.there[slot] = list(zip(calls.indices, arguments, strict=True))
            else:
                self.there[slot] = [(index_of(task.path), pickle.loads(task.payload)[:-1])]
        return [slot for slot, _ in items]

    def answer(self, slot: int, cost_s: float = CHEAP_S) -> None:
        """All calls of a task return their first argument."""
        calls = self.there.pop(slot)
        if len(calls) == 1:
            self.calls.arrive(slot, value(calls[0][1][0], cost_s))
        else:
            data = pack_answer(Answer([args[0] for _, args in calls], {}))
            self.calls.arrive(slot, pack_outcome(Outcome(Verdict.VALUE, data, (), cost_s * len(calls))))

    def undo(self, slot: int) -> None:
        """A bundle was lost, and comes back without outcomes."""
        del self.there[slot]
        self.calls.arrive(slot, pack_outcome(Outcome(Verdict.VALUE, pack_answer(None))))


def value(content: object, cost_s: float = 0.0) -> list[object]:
    return pack_outcome(Outcome(Verdict.VALUE, pickle.dumps(content), (), cost_s))


def content_of(future: Future[Any]) -> object:
    if future._status is ARRIVED:
        return pickle.loads(unpack_outcome(future._content).data)
    assert future._status is DONE
    return future._content


def kind(name: str = "f", cost_s: float = CHEAP_S) -> Kind:
    """One of which many calls have come back; none if it is not known what they take."""
    made = Kind(name, name.encode(), b"", True, CHANCE)
    made.cost_s = cost_s
    made.calls = 0 if cost_s < 0 else 10 * CALLS_MAX
    return made


@pytest.mark.parametrize("going", [lambda one: one, lambda one: one.solitary, lambda one: one.whole])
def test_a_kind_goes_with_the_last_that_refers_to_it(going: Callable[[Kind], Kind]) -> None:
    """It may hold a function that has captured megabytes: these must not wait for the garbage collector."""
    made = going(kind())
    assert made.solitary.solitary is made.solitary
    assert made.whole.whole is made.whole
    kinds = [ref(made), ref(made.solitary), ref(made.whole)]
    collects = gc.isenabled()
    gc.disable()
    try:
        del made
        assert [one() for one in kinds] == [None] * 3
    finally:
        if collects:
            gc.enable()


def test_calls_of_an_unknown_kind_go_alone_and_no_more_than_there_is_room_for() -> None:
    program = Program()
    for number in range(1000):
        program.spawn(kind(cost_s=-1.0), number)
    slots = program.send()
    assert len(slots) == TASKS_PER_CORE * CORES
    assert all(len(program.there[slot]) == 1 for slot in slots)
    assert not program.calls.are_due


def test_several_go_together_when_a_part_of_the_room_is_free() -> None:
    program = Program()
    for number in range(1000):
        program.spawn(kind(cost_s=-1.0), number)
    slots = program.send()
    kept = int(REFILL * len(slots))
    for slot in slots[kept + 1 :]:
        program.answer(slot)
        assert not program.calls.are_due
    program.answer(slots[0])
    assert program.calls.are_due
    assert len(program.send()) == len(slots) - kept
    assert not program.calls.are_due


def test_cheap_calls_go_in_bundles_of_a_fair_share_that_get_smaller() -> None:
    program = Program()
    cheap = kind()
    for number in range(1000):
        program.spawn(cheap, number)
    sizes = [len(program.there[slot]) for slot in program.send()]
    assert sizes[0] == 1000 // (SHARES_PER_CORE * CORES)
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) <= TASKS_PER_CORE * CORES // BUNDLE_WEIGHT
    for slot in list(program.there):
        program.answer(slot)
    assert [content_of(future) for future in program.filled] == list(range(sum(sizes)))


def test_a_bundle_is_as_long_as_its_calls_allow() -> None:
    assert kind(cost_s=BUNDLE_S / 10).fit(1000) == 10
    assert kind(cost_s=BUNDLE_S).fit(1000) == 1
    assert kind(cost_s=0.0).fit(10_000) == CALLS_MAX
    assert kind(cost_s=-1.0).fit(1000) == 1
    assert kind().solitary.fit(1000) == 1
    new = kind(cost_s=-1.0)
    sizes = []
    for _ in range(3):
        sizes.append(new.fit(1000))
        new.learn(sizes[-1] * CHEAP_S, 0, sizes[-1])
    assert sizes == [1, GROWTH, GROWTH * (1 + GROWTH)], "the first may tell little of the others"


def test_large_values_and_large_arguments_make_bundles_small() -> None:
    large = kind()
    large.learn(3 * CHEAP_S, 3 * BUNDLE_BYTES_MAX // 2, 3)
    assert large.fit(1000) == 2
    large.learn(CHEAP_S, 2 * BUNDLE_BYTES_MAX)
    assert large.fit(1000) == 1
    program = Program()
    cheap = kind()
    for _ in range(200):
        program.spawn(cheap)._arguments = bytes(BUNDLE_BYTES_MAX // 2)
    assert len(program.calls._next().futures) == 3  # type: ignore[union-attr]


def test_one_call_that_was_held_up_does_not_make_its_kind_dear() -> None:
    held_up = kind(cost_s=1e-3)
    held_up.learn(10.0, 0)
    assert held_up.cost_s < JUMP_MAX * 1e-3
    for _ in range(10):
        held_up.learn(10.0, 0)
    assert held_up.fit(1000) == 1


def test_kinds_that_alternate_are_bundled_all_the_same_and_none_is_left_behind() -> None:
    program = Program()
    kinds = [kind("f"), kind("g"), kind("h")]
    futures = [program.spawn(kinds[number % 3], number) for number in range(900)]
    while slots := program.send():
        assert len({index % 3 for index, _ in program.there[slots[0]]}) == 1
        for slot in slots:
            program.answer(slot)
    assert [content_of(future) for future in futures] == list(range(900))


def test_calls_of_a_lost_bundle_are_sent_again_alone() -> None:
    program = Program()
    cheap = kind()
    futures = [program.spawn(cheap, number) for number in range(400)]
    first = program.send()[0]
    lost = len(program.there[first])
    program.undo(first)
    for slot in list(program.there):
        program.answer(slot)
    again = program.send()[:lost]
    assert [program.there[slot][0][0] for slot in again] == list(range(lost))
    while slots := list(program.there):
        for slot in slots:
            program.answer(slot)
        program.send()
    assert [content_of(future) for future in futures] == list(range(400))


@pytest.mark.parametrize("verdict", [Verdict.RAISED, Verdict.LOST])
def test_what_befalls_a_bundle_as_a_whole_befalls_each_call(verdict: Verdict) -> None:
    program = Program()
    cheap = kind()
    for number in range(400):
        program.spawn(cheap, number)
    first = program.send()[0]
    size = len(program.there[first])
    outcome = pack_outcome(Outcome(verdict, b"why"))
    program.calls.arrive(first, outcome)
    assert [future._content for future in program.filled] == [outcome] * size


def test_parts_come_before_their_bundle_and_what_was_not_run_is_sent_again() -> None:
    program = Program()
    cheap = kind()
    futures = [program.spawn(cheap, number) for number in range(400)]
    first = program.send()[0]
    size = len(program.there[first])
    program.calls.hear_of(child_path(PROGRAM_PATH, 0), value("early"))
    for index in range(size // 2, size):
        program.calls.hear_of(child_path(PROGRAM_PATH, index), pack_outcome(RETURNED))
    assert cheap.cost_s > CHEAP_S
    assert [content_of(future) for future in program.filled] == ["early"]
    values = [*range(size // 2), *[None] * (size - size // 2)]
    others = dict.fromkeys(range(size // 2, size))
    program.calls.arrive(first, pack_outcome(Outcome(Verdict.VALUE, pack_answer(Answer(values, others)))))
    assert len(program.filled) == size // 2
    del program.there[first]
    while slots := list(program.there):
        for slot in slots:
            program.answer(slot)
        program.send()
    assert [content_of(future) for future in futures[1:]] == list(range(1, 400))


def test_cancelling_one_call_of_a_bundle_gives_up_the_bundle_and_sends_the_others_again() -> None:
    program = Program()
    cheap = kind()
    futures = [program.spawn(cheap, number) for number in range(100)]
    first = program.send()[0]
    members = [index for index, _ in program.there[first]]
    assert program.calls.cancel(futures[members[1]]) == [first]
    assert program.calls.cancel(futures[members[1]]) is None
    assert program.calls.cancel(futures[members[2]]) == []
    assert isinstance(futures[members[1]]._content, Cancelled)
    program.answer(first)  # too late
    assert futures[members[0]]._status is AWAY
    while slots := [*program.there, *program.send()]:
        for slot in dict.fromkeys(slots):
            program.answer(slot)
    left = [future for future in futures if future._status is not FAILED]
    assert len(left) == 98
    assert [content_of(future) for future in left] == [future._index for future in left]


def test_a_cancelled_call_that_waits_is_never_sent() -> None:
    program = Program()
    futures = [program.spawn(kind(cost_s=-1.0), number) for number in range(200)]
    program.send()
    sent = set(program.there)
    assert program.calls.cancel(futures[150]) == []
    [slot] = program.calls.cancel(futures[0]) or [-1]
    assert slot in sent
    del program.there[slot]
    while slots := [*program.there, *program.send()]:
        assert all(index != 150 for slot in slots for index, _ in program.there[slot])
        for slot in dict.fromkeys(slots):
            program.answer(slot)
    assert all(future._status is not AWAY for future in futures)


def test_an_outcome_that_a_signal_handler_deals_with_meanwhile_counts_once() -> None:
    program = Program()
    program.spawn(kind(), 1)
    [slot] = program.send()
    fill, outcome = program.calls._fill_only, value("v")

    def interrupted(future: Future[Any], status: Status, content: Any) -> None:
        fill(future, status, content)
        program.calls._fill_only = lambda *_: None
        program.calls.arrive(slot, outcome)  # what the thread has caught, the handler's `get` reads too

    program.calls._fill_only = interrupted
    program.calls.arrive(slot, outcome)
    assert not program.calls.is_alone(slot)
    assert program.calls._load == 0


def test_when_the_root_is_lost_every_empty_future_is_named() -> None:
    program = Program()
    futures = [program.spawn(kind(), number) for number in range(3000)]
    slots = program.send()
    program.answer(slots[0])
    assert set(program.calls.lose()) == {future for future in futures if future._status is AWAY}
    assert not program.calls.are_due


@given(st.integers(0, 2**32), st.integers(1, 400))
def test_whatever_happens_on_the_way_each_future_gets_its_own_value_or_was_cancelled(seed: int, count: int) -> None:
    random = Random(seed)
    program = Program()
    kinds = [kind("f"), kind("g", -1.0), kind("h", BUNDLE_S / 3)]
    futures: list[CallFuture[Any]] = []
    cancelled = set()
    while len(futures) < count or program.there or program.calls.are_due:
        if len(futures) < count:
            futures += [program.spawn(random.choice(kinds), len(futures) + i) for i in range(random.randrange(1, 40))]
        if random.random() < 0.7:
            program.send()
        for slot in [slot for slot in program.there if random.random() < 0.5]:
            calls = program.there.get(slot, [])
            if not calls:
                continue  # cancelled a moment ago
            fate = random.randrange(6)
            if fate == 0 and len(calls) > 1:
                program.undo(slot)
            elif fate == 1 and len(calls) > 1:
                for index, args in random.sample(calls, len(calls) // 2):
                    part = value(args[0]) if random.random() < 0.5 else pack_outcome(RETURNED)
                    program.calls.hear_of(child_path(PROGRAM_PATH, index), part)
            elif fate == 2:
                index, _ = random.choice(calls)
                given_up = program.calls.cancel(futures[index])
                if given_up is not None:
                    cancelled.add(index)
                for gone in given_up or ():
                    program.there.pop(gone, None)
            else:
                program.answer(slot, random.choice([CHEAP_S, BUNDLE_S / 2]))
    assert len(program.filled) == len(futures)
    for future in futures:
        if future._index in cancelled:
            assert isinstance(future._content, Cancelled)
        else:
            assert content_of(future) == future._index
    assert program.calls._load == 0
    assert not program.calls._alone
    assert not program.calls._bundles
