"""When a scheduler is started in the place of one that has ended, and when a node gives up."""

from __future__ import annotations

import pytest

from hdphrs.node.restart_policy import (
    FAILURE_PAUSE_S,
    FAILURES_MAX,
    PAUSE_MAX_S,
    QUICK_MAX,
    QUICK_PAUSE_S,
    QUICK_S,
    End,
    RestartPolicy,
)

LONG_S = 1.0
assert LONG_S > QUICK_S


@pytest.mark.parametrize("end", [End.READY, End.KILLED])
def test_place_whose_scheduler_is_killed_once_a_second_gets_the_next_one_at_once_for_ever(end: End) -> None:
    policy = RestartPolicy()
    assert [policy.pause_s(0, end, LONG_S) for _ in range(600)] == [0.0] * 600


@pytest.mark.parametrize("end", [End.READY, End.KILLED])
def test_place_whose_schedulers_are_killed_faster_gets_them_later_and_later_but_always(end: End) -> None:
    policy = RestartPolicy()
    pauses = [policy.pause_s(0, end, 0.01) for _ in range(100)]
    grown = [QUICK_PAUSE_S, 2 * QUICK_PAUSE_S, 4 * QUICK_PAUSE_S]
    assert pauses[: QUICK_MAX + 3] == [0.0] * QUICK_MAX + grown
    assert pauses[-1] == PAUSE_MAX_S
    assert policy.pause_s(0, end, LONG_S) == 0.0


def test_kills_are_no_failures_to_start() -> None:
    policy = RestartPolicy()
    for _ in range(100):
        assert policy.pause_s(0, End.KILLED, 0.01) is not None
    assert policy.failures(0) == 0


def test_node_gives_up_when_one_place_has_failed_so_often_with_growing_pauses() -> None:
    policy = RestartPolicy()
    pauses = [policy.pause_s(0, End.FAILED, 0.3) for _ in range(FAILURES_MAX)]
    assert pauses == [FAILURE_PAUSE_S * 2**n for n in range(FAILURES_MAX - 1)] + [None]


def test_failures_of_several_places_do_not_add_up() -> None:
    policy = RestartPolicy()
    for place in range(10):
        for _ in range(FAILURES_MAX - 1):
            assert policy.pause_s(place, End.FAILED, 0.3) is not None
    assert policy.pause_s(7, End.FAILED, 0.3) is None


@pytest.mark.parametrize(("between", "forgives"), [(End.READY, True), (End.KILLED, False), (End.NO_ROOM, False)])
def test_failures_are_forgiven_by_a_scheduler_that_was_ready_and_by_nothing_else(between: End, forgives: bool) -> None:
    policy = RestartPolicy()
    for _ in range(FAILURES_MAX - 1):
        policy.pause_s(0, End.FAILED, 0.3)
    assert policy.pause_s(0, between, LONG_S) is not None
    assert (policy.pause_s(0, End.FAILED, 0.3) is not None) == forgives


def test_want_of_room_is_waited_for_with_pauses_however_long_it_takes() -> None:
    policy = RestartPolicy()
    pauses = [policy.pause_s(0, End.NO_ROOM, 0.2) for _ in range(100)]
    assert None not in pauses
    assert min(pause for pause in pauses if pause is not None) > 0.0
    assert pauses[-1] == PAUSE_MAX_S
