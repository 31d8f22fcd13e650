"""Of what a scheduler has died, and who is to blame."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any, cast

import pytest

from hdphrs.node import coroner
from hdphrs.node.coroner import Coroner
from hdphrs.node.links import LOST
from hdphrs.node.scheduler import Fault, Named, Scheduler
from hdphrs.node.suspicion import SPARED_MAX
from hdphrs.oom import OomWitness
from hdphrs.protocol.events import SchedulerDied
from hdphrs.protocol.tasks import Cause, Crash, Outcome, Piece, Verdict
from hdphrs.wire.page import ARGUMENTS, Reading, label
from hdphrs.wire.settings import LINKS_LOST_STATUS
from tests.node.processless import STATUS, bundle, handed, processless

HOW = f"exited with status {STATUS}"
VALUE = Outcome(Verdict.VALUE, b"", ())


def cancelled(scheduler: Scheduler, path: bytes) -> None:
    """It was ended because this task was cancelled, and did not end."""
    scheduler.replace(Named("g", path))


def test_what_ran_is_charged(scheduler: Scheduler) -> None:
    spark = handed(scheduler, 7, b"a")
    scheduler.process.line.run(7, careful=False, again=False)
    said, death = Coroner("here").inquire(scheduler)
    assert said == f"scheduler process 1 on here {HOW} while it ran task f"
    assert death.running == (spark.ref, spark.replica)
    assert death.crash == Crash("here", 1, HOW, "", "")
    assert not death.blameless


def test_what_an_ended_task_had_left_behind_is_charged_to_that(scheduler: Scheduler) -> None:
    spark = handed(scheduler, 7, b"a")
    scheduler.process.line.run(7, careful=False, again=False)
    scheduler.take_back(spark.ref, spark.replica)
    said, death = Coroner("here").inquire(scheduler)
    assert said == f"scheduler process 1 on here {HOW} while it ran what task f had left behind"
    assert death.running is None
    assert death.leftover_of == b"a"


def test_nobody_is_charged_if_nothing_ran(scheduler: Scheduler) -> None:
    handed(scheduler, 7, b"a")
    said, death = Coroner("here").inquire(scheduler)
    assert said == f"scheduler process 1 on here {HOW} while it ran no task"
    assert death.running is None


def test_an_ancestor_is_charged_when_a_cancelled_task_takes_it_along_for_the_second_time(scheduler: Scheduler) -> None:
    above = handed(scheduler, 1, b"a")
    here = Coroner("here")
    cancelled(scheduler, b"ab")
    said, first = here.inquire(scheduler)
    assert said == f"scheduler process 1 on here {HOW} while it ran task g, which was cancelled and did not end"
    assert (first.running, first.blameless) == (None, True)
    _, second = here.inquire(scheduler)
    assert (second.running, second.blameless) == ((above.ref, above.replica), False)
    assert second.crash.how == f"{HOW}, because task g was cancelled and did not end"


def test_a_bundle_is_charged_at_once_for_it_comes_back_as_calls_alone(scheduler: Scheduler) -> None:
    above = bundle(scheduler, 1)
    scheduler.process.line.run(1, careful=False, again=False)
    cancelled(scheduler, b"ab")
    _, death = Coroner("here").inquire(scheduler)
    assert (death.running, death.blameless) == ((above.ref, above.replica), False)


def test_only_so_many_cancelled_tasks_are_remembered(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coroner, "REMEMBERED_MAX", 1)
    handed(scheduler, 1, b"a")
    here = Coroner("here")
    deaths = []
    for path in (b"ab", b"ac", b"ab"):
        cancelled(scheduler, path)
        deaths.append(here.inquire(scheduler)[1].blameless)
    assert deaths == [True, True, True]


def test_a_kill_is_for_want_of_memory_if_the_kernel_has_killed_for_that(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OomWitness, "has_risen", lambda self: True)
    here = Coroner("here")
    seen = []
    for status in (STATUS, -signal.SIGKILL):
        scheduler.process.process.returncode = status
        seen.append(here.inquire(scheduler)[1].crash.how)
    assert seen == [HOW, f"{HOW}, out of memory"]


def test_a_value_that_was_read_is_charged_to_its_task_and_not_to_the_one_that_ran(scheduler: Scheduler) -> None:
    handed(scheduler, 7, b"a")
    scheduler.arguments[7] = "of the reader"
    line = scheduler.process.line
    line.run(7, careful=True, again=False)
    line.unpickle(label(Reading.VALUE, b"ab", "g"))
    assert scheduler.running() == Named("g", b"ab")
    said, death = Coroner("here").inquire(scheduler)
    assert said == f"scheduler process 1 on here {HOW} while it unpickled the value of task g"
    assert (death.running, death.leftover_of, death.read_of, death.blameless) == (None, b"", b"ab", False)
    assert death.crash == Crash("here", 1, HOW, cause=Cause.VALUE)


def test_a_value_that_was_read_is_not_charged_to_who_has_ended_before(scheduler: Scheduler) -> None:
    spark = handed(scheduler, 7, b"a")
    scheduler.process.line.run(7, careful=False, again=False)
    scheduler.take_back(spark.ref, spark.replica)
    scheduler.process.line.unpickle(label(Reading.VALUE, b"ab", "g"))
    _, death = Coroner("here").inquire(scheduler)
    assert (death.running, death.leftover_of, death.read_of) == (None, b"", b"ab")


def test_arguments_are_charged_to_the_task_that_gets_them(scheduler: Scheduler) -> None:
    spark = handed(scheduler, 7, b"a")
    scheduler.process.line.run(7, careful=False, again=False)
    scheduler.process.line.unpickle(ARGUMENTS)
    said, death = Coroner("here").inquire(scheduler)
    assert said == f"scheduler process 1 on here {HOW} while it unpickled the arguments of task f"
    assert (death.running, death.crash.cause) == ((spark.ref, spark.replica), Cause.ARGUMENTS)


def test_a_find_is_charged_to_nobody(scheduler: Scheduler) -> None:
    handed(scheduler, 7, b"a")
    scheduler.process.line.run(7, careful=False, again=False)
    scheduler.process.line.unpickle(label(Reading.FIND, b"search"))
    said, death = Coroner("here").inquire(scheduler)
    assert said == f"scheduler process 1 on here {HOW} while it unpickled what a task of a search had found"
    assert (death.running, death.leftover_of, death.read_of) == (None, b"", b"")


def test_a_value_is_not_charged_if_the_process_was_ended_because_of_a_cancelled_task(scheduler: Scheduler) -> None:
    scheduler.process.line.unpickle(label(Reading.VALUE, b"ab", "g"))
    cancelled(scheduler, b"ac")
    _, death = Coroner("here").inquire(scheduler)
    assert (death.read_of, death.blameless) == (b"", True)


def killed(one: Coroner, path: bytes, status: int = -signal.SIGKILL) -> tuple[str, SchedulerDied]:
    """What is said of a scheduler that was killed while it ran the task at this path."""
    with processless() as scheduler:
        handed(scheduler, 1, path)
        scheduler.process.line.run(1, careful=False, again=False)
        scheduler.ready_s = scheduler.began_s - 0.9
        scheduler.process.process.returncode = status
        return one.inquire(scheduler)


@pytest.mark.parametrize("status", [-signal.SIGKILL, -signal.SIGTERM])
def test_kill_from_outside_is_charged_to_no_task(status: int) -> None:
    here = Coroner("here", 4)
    blameless = [killed(here, path, status)[1].blameless for path in (b"a", b"b", b"c", b"d", b"a", b"b", b"c", b"d")]
    assert blameless == [False] * 2 + [True] * 6
    assert "while it ran task f, which is not to blame" in killed(here, b"a", status)[0]


@pytest.mark.parametrize("status", [-signal.SIGSEGV, -signal.SIGABRT, 1])
def test_what_only_a_process_itself_does_is_charged_whatever_is_killed_elsewhere(status: int) -> None:
    here = Coroner("here", 4)
    for path in (b"a", b"b", b"c"):
        killed(here, path)
    assert not killed(here, b"d", status)[1].blameless


def test_kill_for_want_of_memory_is_charged_and_excuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OomWitness, "has_risen", lambda self: True)
    here = Coroner("here", 4)
    assert not any(killed(here, path)[1].blameless for path in (b"a", b"b", b"c", b"d"))
    monkeypatch.setattr(OomWitness, "has_risen", lambda self: False)
    assert not killed(here, b"e")[1].blameless


def test_task_that_gets_on_is_excused_however_often_it_is_hit() -> None:
    here = Coroner("here", 4)
    for round_ in range(3 * SPARED_MAX):
        deaths = [killed(here, path)[1] for path in (b"a", b"b", b"c", b"d")]
        assert round_ == 0 or all(death.blameless for death in deaths)
        here.got_on(Piece(path + b"x", b"", VALUE) for path in (b"a", b"b", b"c", b"d"))


def test_lost_links_are_told_whoever_has_noticed_them(scheduler: Scheduler) -> None:
    spark = handed(scheduler, 7, b"a")
    scheduler.process.line.run(7, careful=False, again=False)
    process = cast(Any, scheduler.process).process
    process.returncode = LINKS_LOST_STATUS
    said, death = Coroner("here").inquire(scheduler)
    assert said == f"scheduler process 1 on here {LOST} while it ran task f"
    assert (death.running, death.blameless) == ((spark.ref, 0), False)
    process.returncode = -signal.SIGKILL
    scheduler.condemn(Fault(LOST, 7))
    scheduler.process.line.run(8, careful=False, again=False)
    said, death = Coroner("here").inquire(scheduler)
    assert said == f"scheduler process 1 on here {LOST} while it ran task f"
    assert (death.running, death.crash.how) == ((spark.ref, 0), LOST)


def test_process_that_ends_by_itself_before_its_node_ends_it_has_its_own_end(scheduler: Scheduler) -> None:
    handed(scheduler, 7, b"a")
    scheduler.condemn(Fault(LOST, 7))
    said, _ = Coroner("here").inquire(scheduler)
    assert said == f"scheduler process 1 on here {HOW} while it ran task f"


def test_task_in_which_a_process_was_stopped_is_charged_the_second_time(scheduler: Scheduler) -> None:
    handed(scheduler, 7, b"a")
    cast(Any, scheduler.process).process.returncode = -signal.SIGKILL
    scheduler.condemn(Fault("was stopped", 7, forgiven=True))
    here = Coroner("here")
    assert [here.inquire(scheduler)[1].blameless for _ in range(3)] == [True, False, False]


def test_task_that_has_written_into_a_link_is_the_one_that_is_there_each_time(scheduler: Scheduler) -> None:
    here = Coroner("here")
    cast(Any, scheduler.process).process.returncode = -signal.SIGKILL
    for number in (1, 2, 3):
        first, last = (b"culprit", b"a") if number == 2 else (bytes([number]), b"culprit")
        sparks = {path: handed(scheduler, serial, path) for serial, path in ((1, first), (2, last))}
        scheduler.spoil("wrote")
        _, death = here.inquire(scheduler)
        assert death.running == (sparks[b"culprit"].ref, 0)
        scheduler.handed.clear()
        scheduler.fault = None


def test_task_that_is_charged_already_runs_apart_and_is_charged_for_nothing_but_what_it_does(
    scheduler: Scheduler,
) -> None:
    crash = Crash("here", 1, HOW, "", "")
    cast(Any, scheduler.process).process.returncode = -signal.SIGKILL
    for serial in (1, 2, 3):
        handed(scheduler, serial, bytes([serial]))
    scheduler.handed[2] = replace(scheduler.handed[2], crashes=(crash,))
    here, charged = Coroner("here"), []
    for running in (0, 1, 2, 3):
        scheduler.fault = None
        scheduler.process.line.run(running, careful=False, again=False)
        scheduler.spoil("wrote")
        copy = here.inquire(scheduler)[1].running
        assert copy is not None
        charged.append(copy[0].slot)
    assert charged == [3, 1, 2, 1]


def test_schedulers_that_are_killed_at_the_same_moment_excuse_each_other_whichever_is_reaped_first() -> None:
    here = Coroner("here", 2)
    with processless() as one, processless() as two:
        for scheduler, path in ((one, b"a"), (two, b"b")):
            handed(scheduler, 1, path)
            scheduler.process.line.run(1, careful=False, again=False)
            scheduler.process.process.returncode = -signal.SIGKILL
        assert here.inquire(one, [two])[1].blameless
        assert here.inquire(two)[1].blameless


def test_scheduler_that_has_ended_by_itself_at_the_same_moment_excuses_none() -> None:
    with processless() as one, processless() as two:
        handed(one, 1, b"a")
        one.process.line.run(1, careful=False, again=False)
        one.process.process.returncode = -signal.SIGKILL
        assert not Coroner("here", 2).inquire(one, [two])[1].blameless
