"""When a scheduler counts as stopped, in virtual time: who is said, who is replaced, and who is not accused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import trio
import trio.testing

from hdphrs.node.kernel import STOPPED, TRACED, Stat, stat_of
from hdphrs.node.links import SPOILT
from hdphrs.node.scheduler import Fault, Scheduler
from hdphrs.node.stopped import LATE_S, LOOK_S, SAY_S, UNFINISHED_S, Steady, Suspect, Verdict, Watch
from tests.node.processless import handed, processless

RUNS = Stat("R", 5, is_ending=False)
SLEEPS = Stat("S", 5, is_ending=False)
STOPS = Stat(STOPPED, 5, is_ending=False)
HELD = Stat(TRACED, 5, is_ending=False)


def verdicts(
    stat: Stat | None, until_s: float, *, replace_after_s: float | None = None, look_s: float = 1.0, unfinished: int = 0
) -> list[tuple[float, Verdict]]:
    """What is found at which times, other than that it goes on."""
    suspect = Suspect(look_s, replace_after_s)
    times = [look_s * n for n in range(int(until_s / look_s) + 1)]
    found = [(now_s, suspect.judge(now_s, stat, unfinished)) for now_s in times]
    return [(now_s, verdict) for now_s, verdict in found if verdict is not Verdict.GOES_ON]


def test_stopped_process_is_said_once_and_never_replaced_by_itself() -> None:
    assert verdicts(STOPS, 1000.0) == [(SAY_S, Verdict.SAY)]


@pytest.mark.parametrize("stat", [RUNS, SLEEPS, None])
def test_process_that_runs_or_sleeps_for_ever_is_left_alone(stat: Stat | None) -> None:
    assert verdicts(stat, 1000.0, replace_after_s=1.0) == []


def test_stopped_process_is_replaced_after_the_time_that_is_wanted() -> None:
    assert verdicts(STOPS, 3.0, replace_after_s=3.0) == [(3.0, Verdict.REPLACE)]
    assert verdicts(STOPS, 12.0, replace_after_s=12.0) == [(SAY_S, Verdict.SAY), (12.0, Verdict.REPLACE)]


def test_process_in_a_debugger_is_said_and_never_replaced() -> None:
    assert verdicts(HELD, 1000.0, replace_after_s=1.0) == [(SAY_S, Verdict.SAY)]


def test_process_that_goes_on_in_between_is_stopped_anew() -> None:
    suspect = Suspect(1.0, None)
    stats = [STOPS] * 9 + [RUNS] + [STOPS._replace(ticks=6)] * 12
    found = [suspect.judge(float(now_s), stat, 0) for now_s, stat in enumerate(stats)]
    assert [now_s for now_s, verdict in enumerate(found) if verdict is Verdict.SAY] == [10 + SAY_S]


def test_process_that_has_had_processor_time_between_two_looks_has_gone_on() -> None:
    suspect = Suspect(1.0, 2.0)
    assert {suspect.judge(float(n), STOPS._replace(ticks=n), 0) for n in range(100)} == {Verdict.GOES_ON}


def test_process_that_stops_again_after_it_was_said_is_said_again() -> None:
    suspect = Suspect(1.0, None)
    stats = [*[STOPS] * 12, RUNS, *[STOPS] * 12]
    found = [suspect.judge(float(now_s), stat, 0) for now_s, stat in enumerate(stats)]
    assert found.count(Verdict.SAY) == 2


def test_look_that_is_late_accuses_nobody_of_the_time_before() -> None:
    suspect = Suspect(1.0, 3.0)
    late_s = 1.0 + 2 * LATE_S
    assert {suspect.judge(late_s * n, STOPS, 0) for n in range(100)} == {Verdict.GOES_ON}


def test_message_without_an_end_is_spoilt_when_no_byte_of_it_comes() -> None:
    assert verdicts(RUNS, UNFINISHED_S, unfinished=7) == [(UNFINISHED_S, Verdict.SPOILT)]
    suspect = Suspect(1.0, None)
    assert {suspect.judge(float(n), RUNS, 1 + n) for n in range(100)} == {Verdict.GOES_ON}


def test_message_of_a_stopped_process_is_not_spoilt() -> None:
    assert verdicts(STOPS, 100.0, unfinished=7) == [(SAY_S, Verdict.SAY)]


def test_what_is_of_no_interest_lasts_no_time() -> None:
    steady = Steady(1.0)
    assert [steady.look(now_s, what) for now_s, what in ((0.0, 1), (1.0, 1), (2.0, None), (3.0, 1))] == [0, 1, 0, 0]


class Bench:
    """A watch on one scheduler."""

    def __init__(self, scheduler: Scheduler, replace_after_s: float | None = None) -> None:
        self.scheduler = scheduler
        self.scheduler.ready = True
        self.said: list[str] = []
        self.asked = 0
        self.stat: Stat | None = STOPS
        self.watch = Watch(
            [scheduler], host="here", replace_after_s=replace_after_s, say=self.said.append, stat_of=self._stat_of
        )

    def _stat_of(self, pid: int) -> Stat | None:
        self.asked += 1
        return self.stat

    def look(self, until_s: float, every_s: float = LOOK_S) -> None:
        for n in range(int(until_s / every_s) + 1):
            self.watch.look(every_s * n)


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    with ExitStack() as stack:
        yield stack.enter_context(processless())


def test_line_about_a_stopped_scheduler_says_which_one_which_task_and_what_to_do(scheduler: Scheduler) -> None:
    bench = Bench(scheduler)
    handed(scheduler, 1, b"")
    scheduler.process.line.run(1, careful=False, again=False)
    bench.look(60.0)
    (line,) = bench.said
    assert line == (
        "scheduler process 1 on here has been stopped (SIGSTOP) for 10 s, in task f; there, kill -CONT 1 lets it go "
        "on, and kill -KILL 1 has it replaced, as --detect-stopped S does"
    )
    assert scheduler.fault is None


def test_debugger_is_named(scheduler: Scheduler) -> None:
    bench = Bench(scheduler)
    bench.stat = HELD
    handed(scheduler, 1, b"")
    bench.look(60.0)
    assert bench.said == ["scheduler process 1 on here has been held by a debugger for 10 s, and has begun no task"]


def test_stopped_scheduler_is_ended_without_blame(scheduler: Scheduler) -> None:
    bench = Bench(scheduler, replace_after_s=6.0)
    handed(scheduler, 1, b"")
    scheduler.process.line.run(1, careful=False, again=False)
    bench.look(6.0)
    assert scheduler.fault == Fault("was stopped for 6 s and then killed", 1, forgiven=True)
    assert bench.said == []


def test_scheduler_that_has_nothing_to_do_is_not_looked_at(scheduler: Scheduler) -> None:
    bench = Bench(scheduler, replace_after_s=1.0)
    bench.look(100.0)
    assert (bench.asked, scheduler.fault) == (0, None)


def test_scheduler_that_is_not_ready_is_looked_at(scheduler: Scheduler) -> None:
    bench = Bench(scheduler, replace_after_s=1.0)
    scheduler.ready = False
    bench.look(1.0, every_s=0.5)
    assert scheduler.fault is not None


def test_kernel_is_not_asked_of_a_scheduler_that_runs_one_task_after_the_other(scheduler: Scheduler) -> None:
    bench = Bench(scheduler)
    handed(scheduler, 1, b"")
    for n in range(100):
        scheduler.process.line.run(n, careful=False, again=False)
        bench.watch.look(LOOK_S * n)
    assert bench.asked == 1


class Unfinished:
    """A link on which a message has begun."""

    unfinished_bytes = 5


def test_scheduler_whose_message_has_no_end_is_ended_and_its_task_charged(scheduler: Scheduler) -> None:
    bench = Bench(scheduler)
    bench.stat = RUNS
    handed(scheduler, 1, b"")
    link: Any = Unfinished()
    scheduler.link = link
    bench.look(UNFINISHED_S)
    assert scheduler.fault == Fault(SPOILT, 0, suspects=(1,))


def test_watch_looks_while_there_is_something_to_do_and_sleeps_when_there_is_not(scheduler: Scheduler) -> None:
    bench = Bench(scheduler)
    clock = trio.testing.MockClock(autojump_threshold=0)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.watch.run)
            await trio.sleep(1000.0)
            assert bench.watch.sleeps
            handed(scheduler, 1, b"")
            bench.watch.wake()
            assert not bench.watch.sleeps
            await trio.sleep(SAY_S + 2 * LOOK_S)
            assert len(bench.said) == 1
            scheduler.take_back(scheduler.handed[1].ref, 0)
            await trio.sleep(2 * LOOK_S)
            assert bench.watch.sleeps
            asked = bench.asked
            await trio.sleep(1000.0)
            assert bench.asked == asked
            nursery.cancel_scope.cancel()

    trio.run(main, clock=clock)


def test_kernel_tells_of_a_process_that_runs_and_not_of_one_that_is_not_there() -> None:
    mine = stat_of(os.getpid())
    assert mine is not None
    assert (mine.state, mine.is_ending) == ("R", False)
    assert stat_of(2**22 + 1) is None
