"""How often a helper thread wakes up."""

from __future__ import annotations

from math import inf

from hdphrs.scheduler.rhythm import ASLEEP_S, NOTHING, PATIENCE, TICK_S_MAX, VAIN_S_MAX, Rhythm

TICK_S = 0.02


class Thread:
    """One that does nothing but tick."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.state = (1, 0)
        self.rhythm = Rhythm(lambda: self.state, lambda: self.now_s)

    def tick(self, *, patient: bool = True, useful: bool = True) -> float:
        pause_s = self.rhythm.pause_s(TICK_S, patient=patient, useful=useful)
        if pause_s != inf:
            self.now_s += pause_s
        return pause_s


def test_while_tasks_come_and_go_ticks_are_regular() -> None:
    thread = Thread()
    for ran in range(100):
        thread.state = (1, ran)
        assert thread.tick() == TICK_S
        assert not thread.rhythm.is_slow


def test_the_longer_nothing_changes_the_later_the_next_tick_comes_but_one_comes() -> None:
    thread = Thread()
    began_s = thread.now_s
    pauses = [thread.tick() for _ in range(60)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == TICK_S_MAX
    assert thread.rhythm.is_slow
    quiet_s = thread.now_s - began_s
    assert len(pauses) < 8 + 20 + quiet_s / TICK_S_MAX


def test_what_may_go_unseen_is_short_against_the_time_that_was_quiet() -> None:
    thread = Thread()
    began_s = thread.now_s
    for _ in range(40):
        quiet_s = thread.now_s - began_s
        assert thread.tick() <= max(TICK_S, PATIENCE * quiet_s)


def test_whoever_counts_between_ticks_gets_them_regularly_while_something_runs() -> None:
    thread = Thread()
    assert {thread.tick(patient=False) for _ in range(100)} == {TICK_S}
    thread.state = (NOTHING, 0)
    assert inf in {thread.tick(patient=False) for _ in range(100)}


def test_idle_thread_ticks_for_a_while_and_then_sleeps_until_it_is_woken() -> None:
    thread = Thread()
    thread.state = (NOTHING, 0)
    began_s, ticks = thread.now_s, 0
    while thread.tick() != inf:
        ticks += 1
    assert ticks <= ASLEEP_S / TICK_S
    assert thread.now_s - began_s < 2 * ASLEEP_S
    assert thread.rhythm.is_slow
    assert thread.tick() == inf
    thread.state = (1, 0)
    thread.rhythm.change()
    assert not thread.rhythm.is_slow
    assert thread.tick() == TICK_S


def test_task_that_begins_while_the_thread_looks_is_seen_or_wakes_it() -> None:
    """Whoever begins a task says so first, and looks then whether the thread is to be woken."""
    thread = Thread()
    thread.state = (NOTHING, 0)
    while thread.tick() != inf:
        pass
    seen: list[bool] = []

    def state() -> tuple[int, ...]:
        seen.append(thread.rhythm.is_slow)
        return (NOTHING, 0)

    thread.rhythm._state = state
    thread.tick()
    assert seen == [True]


def test_change_makes_the_next_tick_soon_though_nothing_else_says_so() -> None:
    """The watched task has its value, but is still the one that runs."""
    thread = Thread()
    for _ in range(60):
        thread.tick()
    thread.rhythm.change()
    assert thread.tick() == TICK_S


def test_ticks_that_find_nothing_to_do_come_more_rarely_and_wake_nobody_who_begins_something() -> None:
    thread = Thread()
    pauses = []
    for ran in range(20):
        thread.state = (1, ran)
        pauses.append(thread.tick(useful=False))
        assert not thread.rhythm.is_slow
    assert pauses[:4] == [TICK_S, 2 * TICK_S, 4 * TICK_S, VAIN_S_MAX]
    assert set(pauses[4:]) == {VAIN_S_MAX}


def test_one_that_had_something_to_do_makes_them_regular_again() -> None:
    thread = Thread()
    for ran in range(20):
        thread.state = (1, ran)
        thread.tick(useful=False)
    thread.state = (1, 20)
    assert thread.tick() == TICK_S
    thread.state = (1, 21)
    assert thread.tick(useful=False) == 2 * TICK_S


def test_rare_ticks_do_not_put_off_those_of_whoever_counts_between_them() -> None:
    thread = Thread()
    assert {thread.tick(patient=False, useful=False) for _ in range(20)} == {TICK_S}


def test_whoever_is_to_be_woken_before_the_next_tick_can_tell() -> None:
    thread = Thread()
    began_s = thread.now_s
    thread.tick()
    thread.now_s = began_s
    assert thread.rhythm.is_later_than(TICK_S / 2)
    assert not thread.rhythm.is_later_than(TICK_S)
    thread.state = (NOTHING, 0)
    while thread.tick() != inf:
        pass
    assert thread.rhythm.is_later_than(1e9)
