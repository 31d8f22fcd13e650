"""What a node remembers of the tasks of one scheduler."""

from __future__ import annotations

import gc
import os
from contextlib import suppress

from hdphrs.node.scheduler import Behind, Scheduler
from hdphrs.protocol.tasks import PROGRAM, ROOT, Spark, Task, TaskRef
from hdphrs.wire import local
from hdphrs.wire.bulk import BULK_NAME, bulk_of
from hdphrs.wire.bundle import bundle_path
from tests.node.processless import bundle, handed

PARENT = b"ab"


def unwanted(scheduler: Scheduler, spark: Spark) -> None:
    """What it has got is cancelled."""
    scheduler.unwanted.add((spark.ref, spark.replica))


def test_it_is_idle_if_it_waits_for_tasks_and_runs_none(scheduler: Scheduler) -> None:
    assert not scheduler.is_idle
    scheduler.hungry = True
    assert scheduler.is_idle
    scheduler.process.line.ran(1.0, since_s=100.0)
    assert not scheduler.is_idle, "it has asked ahead"


def test_nearest_ancestor_that_somebody_wants_is_above(scheduler: Scheduler) -> None:
    far, near = handed(scheduler, 1, b"a"), handed(scheduler, 2, PARENT)
    handed(scheduler, 3, b"b")
    unwanted(scheduler, handed(scheduler, 4, PARENT + b"c"))
    bundle(scheduler, 5)
    assert scheduler.above(PARENT + b"c", running=4) is near
    assert scheduler.above(bundle_path(PARENT, 7), running=6) is near, "a bundle descends from the parent of its calls"
    unwanted(scheduler, near)
    assert scheduler.above(PARENT + b"c", running=4) is far


def test_bundle_that_has_the_core_is_above_what_its_calls_have_spawned(scheduler: Scheduler) -> None:
    handed(scheduler, 1, b"a")
    bundle(scheduler, 2)
    other = bundle(scheduler, 3)
    assert scheduler.above(PARENT + b"c", running=3) is other


def test_bundle_is_above_that_the_scheduler_has_named(scheduler: Scheduler) -> None:
    ancestor = handed(scheduler, 1, b"a")
    bundle(scheduler, 2)
    other = bundle(scheduler, 3)
    unwanted(scheduler, handed(scheduler, 4, PARENT + b"c"))
    scheduler.behind[4] = Behind(3, PARENT)
    assert scheduler.above(PARENT + b"c", running=4) is other
    near = handed(scheduler, 5, PARENT + b"b")
    assert scheduler.above(PARENT + b"bc", running=4) is near, "it is below the call"
    unwanted(scheduler, near)
    unwanted(scheduler, other)
    assert scheduler.above(PARENT + b"c", running=4) is ancestor


def test_no_bundle_is_above_if_the_scheduler_has_said_so(scheduler: Scheduler) -> None:
    bundle(scheduler, 1)
    child = handed(scheduler, 2, PARENT)
    unwanted(scheduler, child)
    scheduler.behind[2] = Behind(0, b"")
    assert scheduler.above(PARENT, running=2) is None
    scheduler.take_back(child.ref, child.replica)
    assert not scheduler.behind, "nothing is remembered of what is over"


def test_any_bundle_may_be_above_if_the_scheduler_could_not_say(scheduler: Scheduler) -> None:
    assert scheduler.above(PARENT, running=0) is None
    one, other = bundle(scheduler, 1), bundle(scheduler, 2)
    unwanted(scheduler, handed(scheduler, 3, PARENT))
    assert scheduler.above(PARENT, running=3) is one
    unwanted(scheduler, one)
    assert scheduler.above(PARENT, running=3) is other
    unwanted(scheduler, other)
    assert scheduler.above(PARENT, running=3) is None


def bulks() -> int:
    """Descriptors of large payloads that this process has."""
    names = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the list itself
            names.append(os.readlink(f"/proc/self/fd/{name}"))
    return sum(BULK_NAME in name for name in names)


def test_buried_one_holds_no_payload_though_it_is_part_of_cycles(scheduler: Scheduler) -> None:
    before = bulks()
    gc.disable()
    try:
        refs = [TaskRef(ROOT, PROGRAM, serial) for serial in (1, 2)]
        for serial, ref in enumerate(refs, 1):
            scheduler.hand(serial, Spark(ref, 0, Task("f", b"a", b"", bulk_of(bytes(1 << 17)))))
        scheduler.take_back(refs[0], 0)
        scheduler.link.post([local.CODE, b"", bulk_of(bytes(1 << 17))])
        assert bulks() > before
        scheduler.forget()
        assert bulks() == before
    finally:
        gc.enable()
