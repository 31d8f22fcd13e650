"""A scheduler that will soon have nothing to do asks for more in time; what it got too early it gives back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from hdphrs import get, spawn
from hdphrs.protocol.tasks import Task
from hdphrs.scheduler.answers import GATHERED_MAX, LATE_S, LONG_S, WAIT_S, Answers
from hdphrs.scheduler.habits import (
    AHEAD_S,
    FEW,
    LEFT_S,
    OVERDUE_S,
    OVERDUE_TIMES,
    ROOM_FIRST,
    ROOM_MAX,
    ROOM_MIN,
    ROOM_S,
    SOON_S,
    Habits,
)
from hdphrs.wire import local
from tests.scheduler.test_process import FakeNode

TASK = Task("f", bytes(16), b"code", b"")
OTHER = Task("g", bytes(16), b"code", b"")

OF_A_TASK: list[Any] = [[0, 1, 0], 0, [0, b"", [], 0.0, 0.0], 0.0, 0.0]


def test_what_was_short_last_time_is_soon_over() -> None:
    habits = Habits()
    assert habits.took_s(TASK) is None
    assert not habits.is_soon_over(TASK, 0), "nobody knows how long it takes"
    habits.learn(TASK, SOON_S / 4, 0)
    assert habits.took_s(TASK) == SOON_S / 4
    assert habits.is_soon_over(TASK, 0)
    assert habits.is_soon_over(TASK, FEW)
    assert not habits.is_soon_over(TASK, FEW + 1), "many others wait"
    assert not habits.is_soon_over(OTHER, 0)


def test_long_tasks_and_tasks_that_spawn_leave_something_to_do() -> None:
    habits = Habits()
    habits.learn(TASK, AHEAD_S, 0)
    assert not habits.is_soon_over(TASK, 0)
    habits.learn(TASK, SOON_S, 0)
    assert habits.is_soon_over(TASK, 0), "long enough before its end others can be had"
    assert not habits.is_soon_over(TASK, FEW), "two of them are too many to ask for a third"
    habits.learn(TASK, SOON_S / 4, 2)
    assert not habits.is_soon_over(TASK, 0)
    habits.learn(TASK, SOON_S / 4, 0)
    assert habits.is_soon_over(TASK, 0), "the last of its kind counts"


def test_what_runs_is_expected_to_go_on_for_as_long_as_the_last_of_its_kind_has() -> None:
    now_s = [100.0]
    habits = Habits(lambda: now_s[0])
    assert habits.begin(TASK, now_s[0]) == 0.0
    assert not habits.goes_on(), "nobody knows"
    habits.learn(TASK, 3 * LEFT_S, 0)
    assert habits.begin(TASK, now_s[0]) == 3 * LEFT_S
    assert habits.goes_on()
    now_s[0] += 2.5 * LEFT_S
    assert not habits.goes_on()
    assert habits.begin(OTHER, now_s[0]) == 0.0
    assert not habits.goes_on()


def test_what_runs_is_overdue_when_it_takes_much_longer_than_the_last_of_its_kind() -> None:
    now_s = [100.0]
    habits = Habits(lambda: now_s[0])
    assert not habits.is_overdue(), "nothing runs"
    habits.begin(TASK, now_s[0])
    now_s[0] += OVERDUE_S * 0.99
    assert not habits.is_overdue()
    now_s[0] += OVERDUE_S * 0.02
    assert habits.is_overdue(), "nobody knows how long it takes"
    habits.learn(TASK, OVERDUE_S, 0)
    habits.begin(TASK, now_s[0])
    now_s[0] += OVERDUE_TIMES * OVERDUE_S * 0.99
    assert not habits.is_overdue()
    now_s[0] += OVERDUE_TIMES * OVERDUE_S * 0.02
    assert habits.is_overdue()


def test_there_is_room_for_what_can_be_run_in_a_while_and_always_for_one_that_waits() -> None:
    habits = Habits()
    assert habits.room == ROOM_FIRST
    for took_s, room in ((ROOM_S / 4.9, 4), (100 * ROOM_S, ROOM_MIN), (0.0, ROOM_MAX)):
        habits.make_room(took_s)
        assert habits.room == room


def test_results_wait_for_each_other_if_the_next_task_is_short() -> None:
    answers = Answers(LATE_S)
    answers.add(OF_A_TASK)
    assert not answers.are_due(0.0, nobody_waits=False)
    assert answers.are_due(None, nobody_waits=False)
    assert answers.are_due(2 * WAIT_S, nobody_waits=False)
    for _ in range(GATHERED_MAX - 1):
        answers.add(OF_A_TASK)
    assert answers.are_due(0.0, nobody_waits=False)


def test_results_wait_while_all_schedulers_have_something_to_do() -> None:
    answers = Answers(LATE_S)
    answers.add(OF_A_TASK)
    assert not answers.are_due(2 * WAIT_S, nobody_waits=True)
    assert answers.are_due(None, nobody_waits=True)
    assert answers.are_due(LONG_S, nobody_waits=True)


def test_but_not_for_ever() -> None:
    now_s = [100.0]
    answers = Answers(LATE_S, lambda: now_s[0])
    assert not answers.are_due_at_a_tick(nobody_waits=True)
    answers.add(OF_A_TASK)
    now_s[0] += LATE_S / 2
    answers.add(OF_A_TASK)
    assert not answers.are_due(0.4 * LATE_S, nobody_waits=True)
    assert answers.are_due(0.6 * LATE_S, nobody_waits=True), "the first one would be late at its end"
    assert not answers.are_due_at_a_tick(nobody_waits=True)
    assert answers.are_due_at_a_tick(nobody_waits=False)
    now_s[0] += 0.6 * LATE_S
    assert answers.are_due_at_a_tick(nobody_waits=True), "a task that was expected to be quick is not"
    answers.take()
    assert not answers.are_due_at_a_tick(nobody_waits=False)


def short() -> None:
    until_s = time.perf_counter() + 0.5e-3
    while time.perf_counter() < until_s:
        pass


def parent(_: int) -> None:
    get(spawn(short))


def batch(node: FakeNode, *calls: tuple[Any, ...]) -> list[int]:
    """Hand over several tasks; how many results came before each HUNGRY, until all are answered and one has come.

    All that once more, if the machine is so busy that one has taken too long for the others to wait for it.
    """
    node.link.send([local.START, [node.spark(*call) for call in calls]])
    answered = 0
    is_undisturbed = True
    hungry_after: list[int] = []
    while answered < len(calls) or not hungry_after:  # the helper thread may send results alone
        received = node.link.receive(block=True)
        assert received is not None
        for message in received:
            if message[0] == local.RESULTS:
                answered += len(message[1])
            elif message[0] == local.HUNGRY:
                hungry_after.append(answered)
            elif message[0] == local.RETURN:
                node.hand_over_again(message)
                is_undisturbed = False
    return hungry_after if is_undisturbed else batch(node, *calls)


def test_hunger_is_said_while_the_last_tasks_wait_and_once_more_when_nothing_runs(node: FakeNode) -> None:
    node.hear(local.HUNGRY)
    while True:  # until the machine is not so busy that half a millisecond takes five
        hungry_after = batch(node, *[(short,)] * 8)
        if hungry_after == [8]:
            continue
        if len(hungry_after) == 1:
            assert node.hear(local.HUNGRY)[3] == local.AGAIN
        else:
            assert hungry_after[1:] == [8]
        assert 8 - FEW - 2 < hungry_after[0] < 8
        break


def test_whoever_spawns_is_not_expected_to_end_with_nothing_to_do(node: FakeNode) -> None:
    node.hear(local.HUNGRY)
    for _ in range(3):
        assert batch(node, *[(parent, n) for n in range(8)]) == [8]


@pytest.mark.parametrize("count", [1, 5])
def test_tasks_that_came_too_early_go_back_when_somebody_is_hungry(node: FakeNode, tmp_path: Path, count: int) -> None:
    def waits(begun: str, end: str) -> str:
        Path(begun).touch()
        while not Path(end).exists():
            time.sleep(0.001)
        return "waited"

    serial = node.start(waits, str(tmp_path / "begun"), str(tmp_path / "end"))
    node.wait_for(tmp_path / "begun")
    sparks = [node.spark(abs, -n) for n in range(count)]
    node.link.send([local.START, sparks])
    node.ask()
    assert sorted(node.hear(local.RETURN)[1]) == sorted([spark[0], spark[1]] for _, spark in sparks)
    node.process.line.want(False)
    (tmp_path / "end").touch()
    assert node.result() == (serial, True, "waited")
    node.hear(local.HUNGRY)
    last = node.start(abs, -7)
    assert node.result() == (last, True, 7)
