"""Of what a scheduler has died, and who is to blame."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any, cast

import pytest

from hdphrs.node import coroner
from hdphrs.node.coroner import Coroner
from hdphrs.node.links import LOST
from hdphrs.node.oom import OomWitness
from hdphrs.node.scheduler import Fault, Named, Scheduler
from hdphrs.protocol.tasks import Crash
from hdphrs.wire.settings import LINKS_LOST_STATUS
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
