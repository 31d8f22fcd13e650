"""Cancelled tasks of one scheduler process, with the test as its node (decision 14)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any, cast

import pytest

import hdphrs
from hdphrs import get, spawn, spawn_at
from hdphrs.protocol.paths import child_path
from hdphrs.protocol.tasks import PROGRAM, ROOT, Spark, Task, TaskRef, Verdict
from hdphrs.scheduler.assigned import Assigned
from hdphrs.scheduler.bundles import Bundles
from hdphrs.scheduler.export import Exporter
from hdphrs.scheduler.meter import Account, Meter
from hdphrs.scheduler.stop import Stopper
from hdphrs.wire import local
from hdphrs.wire.items import unpack_outcome
from hdphrs.wire.page import LOOK, Line
from hdphrs.wire.values import load_outcome
from tests.scheduler.test_process import FakeNode, square

FOREVER_S = 20.0


def stop(node: FakeNode, *slots: int) -> None:
    node.link.send([local.STOP, [[[ROOT, PROGRAM, slot], 0] for slot in slots]])
    node.process.control.send(LOOK)


def result(node: FakeNode) -> tuple[int, type[Any]]:
    slot, succeeded, error = node.result()
    assert not succeeded
    return slot, type(error)


def until_cancelled(begun: Path, step: Callable[[], object]) -> None:
    """A task that goes on whatever happens to it, for a while."""
    begun.touch()
    refusals = 0
    end_s = monotonic() + FOREVER_S
    while refusals < 3:
        assert monotonic() < end_s
        try:
            step()
        except hdphrs.Cancelled:
            refusals += 1
    raise hdphrs.Cancelled


def spawner(begun: Path) -> None:
    until_cancelled(begun, lambda: spawn(square, 1))


def nap(n: int) -> int:
    sleep(0.002)
    return n


def getter(begun: Path) -> None:
    futures = [spawn(nap, n) for n in range(10_000)]
    begun.touch()
    while futures:
        get(futures.pop())


def placer(begun: Path) -> None:
    until_cancelled(begun, lambda: spawn_at(ROOT, square, 1))


def waiter(begun: Path) -> None:
    future = spawn_at(ROOT, square, 1)
    begun.touch()
    get(future)


def parent_of_waiter(begun: Path) -> None:
    get(spawn(waiter, begun))


@pytest.mark.parametrize("function", [spawner, getter, placer])
def test_running_task_gets_cancelled_at_its_next_call(
    node: FakeNode, tmp_path: Path, function: Callable[[Path], None]
) -> None:
    slot = node.start(function, tmp_path / "begun")
    node.wait_for(tmp_path / "begun")
    stop(node, slot)
    while True:
        results = [message[1] for message in node.messages() if message[0] == local.RESULTS]
        if results:
            break
    assert [ref[2] for ref, *_ in results[0]] == [slot]


@pytest.mark.parametrize("function", [waiter, parent_of_waiter])
def test_waiting_task_ends_and_what_it_waits_for_is_given_up(
    node: FakeNode, tmp_path: Path, function: Callable[[Path], None]
) -> None:
    slot = node.start(function, tmp_path / "begun")
    child = node.hear(local.PLACE)[1]
    node.wait_for(tmp_path / "begun")
    stop(node, slot)
    assert node.hear(local.CANCEL) == [local.CANCEL, [child]]
    assert result(node) == (slot, hdphrs.Cancelled)
    # what was under way for it is lost, and the scheduler goes on
    node.link.send([local.DELIVER, child, [0, b"", [], 0.0, 0.0], 0.0, 0.0])
    assert (node.start(square, 7), True, 49) == node.result()


def hold(begun: Path, go_on: Path) -> None:
    begun.touch()
    while not go_on.exists():
        pass


def test_task_that_has_not_started_vanishes_while_another_one_runs(node: FakeNode, tmp_path: Path) -> None:
    first = node.start(hold, tmp_path / "begun", tmp_path / "go on")
    node.wait_for(tmp_path / "begun")
    second = node.start(square, 2)
    stop(node, second)
    stop(node, 99)
    (tmp_path / "go on").touch()
    ends: dict[int, Verdict | None] = {}
    while len(ends) < 2:
        kind, items = node.hear_one_of((local.RESULTS, local.RETURN))
        ends |= {item[0][2]: Verdict(item[2][0]) if kind == local.RESULTS else None for item in items}
    assert ends[first] is Verdict.VALUE
    assert ends[second] in (Verdict.RAISED, None), "or it was given back, if the machine is slow"


def sweep(begun: Path) -> list[object]:
    """What `cancel` says of each kind of future, and `get` after it."""
    said: list[object] = []
    waiting, running, done, away = spawn(square, 1), spawn(square, 2), spawn(square, 3), spawn_at(ROOT, square, 4)
    get(done)
    for future in (waiting, away, done, waiting):
        said.append(future.cancel())
        try:
            said.append(get(future))
        except hdphrs.Cancelled:
            said.append("cancelled")
    return [*said, get(running)]


def test_task_cancels_futures_of_its_own(node: FakeNode, tmp_path: Path) -> None:
    slot = node.start(sweep, tmp_path / "begun")
    child = node.hear(local.PLACE)[1]
    assert node.hear(local.CANCEL) == [local.CANCEL, [child]]
    assert node.result() == (slot, True, [True, "cancelled", True, "cancelled", False, 9, False, "cancelled", 4])


def rival(begun: Path) -> str:
    """Cancels a task that waits on a stack of its own."""
    future = spawn(parent_of_waiter, begun)
    other = spawn_at(ROOT, square, 5)
    get(other)
    assert future.cancel()
    try:
        get(future)
    except hdphrs.Cancelled:
        return "cancelled"
    return "done"


def test_task_cancels_one_that_waits_on_the_same_scheduler(node: FakeNode, tmp_path: Path) -> None:
    slot = node.start(rival, tmp_path / "begun")
    other = node.hear(local.PLACE)[1]
    child = node.hear(local.PLACE)[1]
    node.link.send([local.DELIVER, other, [0, b"N.", [], 0.0, 0.0], 0.0, 0.0])
    assert node.hear(local.CANCEL) == [local.CANCEL, [child]]
    assert node.result() == (slot, True, "cancelled")


def deaf(begun: Path, end: Path) -> None:
    """Hears that it is cancelled, and goes on without another call."""
    try:
        waiter(begun)
    except hdphrs.Cancelled:
        while not end.exists():
            pass


def leaver(begun: Path, end: Path) -> None:
    future = spawn(parent_of_deaf, begun, end)
    get(spawn_at(ROOT, square, 5))
    assert future.cancel()


def parent_of_deaf(begun: Path, end: Path) -> None:
    get(spawn(deaf, begun, end))


def test_node_is_told_of_a_cancelled_child_that_keeps_the_core_though_its_parent_has_ended(
    node: FakeNode, tmp_path: Path
) -> None:
    node.start(leaver, tmp_path / "begun", tmp_path / "end")
    other = node.hear(local.PLACE)[1]
    child = node.hear(local.PLACE)[1]
    node.link.send([local.DELIVER, other, [0, b"N.", [], 0.0, 0.0], 0.0, 0.0])
    assert node.hear(local.CANCEL) == [local.CANCEL, [child]]
    _, serial, name, path = node.hear(local.STUCK, local.RESULTS)  # its parent has ended
    assert (serial, name) == (node.process.line.running, "parent_of_deaf")  # the one that was cancelled
    assert path == child_path(bytes(16), 0)
    (tmp_path / "end").touch()
    node.start(square, 7)
    [[_, _, outcome, *_]] = node.hear(local.RESULTS, local.STUCK, local.KEEP)[1]
    assert load_outcome(unpack_outcome(outcome)) == (True, 49)


def grandchild(begun: Path) -> None:
    """Takes no notice the first time."""
    with suppress(hdphrs.Cancelled):
        get(spawn_at(ROOT, square, 3))
    end_s = monotonic() + FOREVER_S
    try:
        while monotonic() < end_s:
            get(spawn(square, 1))
    except hdphrs.Cancelled:
        begun.with_name("heard").touch()
        raise


def ends_before_its_child(begun: Path) -> None:
    spawn(grandchild, begun)
    get(spawn_at(ROOT, square, 2))


def grandparent(begun: Path) -> None:
    future = spawn(ends_before_its_child, begun)
    get(spawn_at(ROOT, square, 1))
    assert future.cancel()


def test_child_of_a_cancelled_task_ends_though_its_parent_has_ended_before_it(node: FakeNode, tmp_path: Path) -> None:
    slot = node.start(grandparent, tmp_path / "begun")
    first, *others = [node.hear(local.PLACE)[1] for _ in range(3)]
    node.link.send([local.DELIVER, first, [0, b"N.", [], 0.0, 0.0], 0.0, 0.0])
    assert node.hear(local.CANCEL) == [local.CANCEL, others]
    assert node.result() == (slot, True, None)
    node.wait_for(tmp_path / "heard")


def test_finished_future_is_not_cancelled() -> None:
    with hdphrs.sequential():
        future = spawn(square, 3)
        assert not future.cancel()
        assert get(future) == 9


def test_node_hears_of_a_running_task_that_is_to_end_before_that_can_answer() -> None:
    """The helper thread may stop it: from then on the main thread may be first."""
    task = Assigned(7, Spark(TaskRef(ROOT, PROGRAM, 0), 0, Task("f", bytes(16), b"", b"")))
    line = cast(Line, SimpleNamespace(again=lambda: None))
    meter = Meter(line)
    meter.lend(task, Account())
    heard: list[tuple[list[Any], bool]] = []
    stopper = Stopper(
        cast(Exporter, SimpleNamespace(cancel_below=lambda task: None)),
        meter,
        line,
        cast(Bundles, SimpleNamespace(stop=lambda copies: None, behind=lambda path: (0, b""))),
        answer=lambda result: pytest.fail("it runs"),
        tell=lambda message: heard.append((message, task in stopper.stopping)),
    )
    stopper.stop_copies([[[ROOT, PROGRAM, 0], 0]])
    assert heard == [([local.BEHIND, 7, 0, b""], False)]
    assert task in stopper.stopping
