"""Of what a scheduler has died, and who is to blame."""

from __future__ import annotations

import signal

import pytest

from hdphrs.node import coroner
from hdphrs.node.coroner import Coroner
from hdphrs.node.oom import OomWitness
from hdphrs.node.scheduler import Named, Scheduler
from hdphrs.protocol.tasks import Crash
from tests.node.processless import STATUS, bundle, handed

HOW = f"exited with status {STATUS}"


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
