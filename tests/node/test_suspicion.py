"""Whether a scheduler that was killed was killed by the task that it ran."""

from __future__ import annotations

import random
from itertools import count, islice
from math import exp

import pytest

from hdphrs.node.suspicion import IDLE_S, OTHERS_MIN, SPARED_MAX, TOGETHER_MAX, WINDOW_S, Suspicion, chance_of

ATTEMPTS = 3
"""As many charges end a task."""

START_S = 0.1
"""What it takes to start a scheduler."""


def test_kill_of_a_scheduler_that_ran_nothing_is_from_outside() -> None:
    assert Suspicion(1).is_outside(None, 0.0, 1.0)


def test_lone_task_that_kills_its_schedulers_is_charged_each_time() -> None:
    suspicion = Suspicion(4)
    assert not any(suspicion.is_outside(b"a", float(n), 0.5) for n in range(100))


def test_nested_task_is_not_excused_by_the_charges_of_its_ancestors_in_whose_place_it_ran() -> None:
    suspicion = Suspicion(4)
    charged = [not suspicion.is_outside(path, 0.1, 0.01) for path in (b"a", b"ab", b"abc", b"abcd", b"abcd", b"abcd")]
    assert all(charged)


def test_task_is_excused_by_what_is_killed_elsewhere_at_about_that_time_and_not_by_old_kills() -> None:
    for later_s, outside in ((WINDOW_S / 2, True), (2 * WINDOW_S, False)):
        suspicion = Suspicion(4)
        for other in (b"b", b"c")[:OTHERS_MIN]:
            suspicion.is_outside(other, 0.0, 0.5)
        assert suspicion.is_outside(b"a", later_s, 0.5) == outside


def test_what_is_killed_below_a_task_excuses_it() -> None:
    suspicion = Suspicion(1)
    for child in (b"ab", b"ac"):
        suspicion.is_outside(child, 0.0, 0.5)
    assert suspicion.is_outside(b"a", 1.0, 0.5)


def test_schedulers_that_are_killed_while_they_run_nothing_excuse_a_task() -> None:
    suspicion = Suspicion(4)
    for _ in range(OTHERS_MIN):
        suspicion.is_outside(None, 0.0, 0.0)
    assert suspicion.is_outside(b"a", 0.0, 0.5)


def test_task_is_excused_while_schedulers_are_killed_that_run_nothing_however_quickly_and_often_it_is_hit() -> None:
    """On a busy host schedulers take nearly as long to start as they are let live: few have a task, none for long."""
    suspicion = Suspicion(4)
    for n in range(100):
        suspicion.is_outside(None, float(n), 0.0)
        assert suspicion.is_outside(b"a", n + IDLE_S / 2, 0.001)
    assert not suspicion.is_outside(b"a", 100 + 2 * WINDOW_S, 0.001)


def test_task_is_excused_by_schedulers_that_are_killed_at_the_same_moment_until_it_should_have_got_on() -> None:
    suspicion = Suspicion(2)
    assert suspicion.is_outside(b"a", 0.0, 0.001, [None])
    assert all(suspicion.is_outside(b"a", float(n), 0.001, [b"b"]) for n in range(TOGETHER_MAX))
    assert not suspicion.is_outside(b"a", 99.0, 0.001, [b"b"])
    suspicion.got_on(b"ab")
    assert suspicion.is_outside(b"a", 100.0, 0.001, [b"b"])


def test_task_is_not_excused_by_an_ancestor_that_is_killed_at_the_same_moment() -> None:
    assert not Suspicion(2).is_outside(b"ab", 0.0, 0.001, [b"a"])


@pytest.mark.parametrize("tasks", [2, 4, 100])
def test_tasks_that_kill_their_schedulers_at_once_use_up_their_attempts_though_there_are_many(tasks: int) -> None:
    """Each is hit far more often than chance would: its schedulers have just begun."""
    suspicion, charges, kills, now_s = Suspicion(4), dict.fromkeys(range(tasks), 0), 0, 0.0
    while charges:
        for task in list(charges):
            kills += 1
            now_s += 0.15 / 4
            charges[task] += not suspicion.is_outside(b"%03d" % task, now_s, 0.003)
            if charges[task] == ATTEMPTS:
                del charges[task]
    assert kills <= 8 * tasks


def test_tasks_that_kill_their_schedulers_after_a_while_cannot_excuse_each_other_for_ever() -> None:
    suspicion = Suspicion(4)
    charged = [not suspicion.is_outside(path, n * 0.6, 0.5) for n in range(50) for path in (b"a", b"b", b"c", b"d")]
    assert sum(charged) > 4 * ATTEMPTS
    assert charged.count(False) <= 4 * SPARED_MAX


def test_task_that_gets_on_is_excused_again() -> None:
    suspicion = Suspicion(4)
    charges = 0
    for n in range(200):
        for path in (b"b", b"c", b"d", b"a"):
            charges += not suspicion.is_outside(path, float(n), 0.9)
        for path in (b"b", b"c", b"d", b"a"):
            suspicion.got_on(path + b"part")
    assert charges <= OTHERS_MIN


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("schedulers", [1, 2, 4, 16])
def test_no_task_that_can_finish_uses_up_its_attempts_while_all_schedulers_are_killed_once_a_second(
    seed: int, schedulers: int
) -> None:
    """For ten minutes; what was killed is run again first."""
    chance = random.Random(seed)
    suspicion = Suspicion(schedulers)
    charges: dict[bytes, int] = {}
    tasks = ((b"%06d" % number, chance.uniform(0.0, 0.9)) for number in count())
    running = list(islice(tasks, schedulers))
    now_s = 0.0
    while now_s < 600.0:
        lived_s = chance.uniform(0.8, 1.2)
        now_s += lived_s + START_S
        for place in range(schedulers):
            left_s = lived_s
            while (left_s := left_s - running[place][1]) >= 0.0:
                running[place] = next(tasks)
            task = running[place][0]
            charges[task] = charges.get(task, 0) + (not suspicion.is_outside(task, now_s, lived_s))
    assert max(charges.values()) < ATTEMPTS


def test_chance_is_that_of_poisson() -> None:
    assert chance_of(0, 3.0) == 1.0
    assert chance_of(1, 0.5) == pytest.approx(1 - exp(-0.5))
    assert chance_of(2, 0.5) == pytest.approx(1 - 1.5 * exp(-0.5))
