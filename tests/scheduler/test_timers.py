"""Tasks that wait no longer than they want (decision 19)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hdphrs import Future, as_completed, get, scope, spawn, spawn_at, wait
from hdphrs.errors import WaitTimeoutError
from hdphrs.scheduler.timers import DROPPED_MAX, Timers
from hdphrs.wire import local
from hdphrs.wire.items import pack_outcome
from hdphrs.wire.values import dump_result
from tests.scheduler.test_process import FakeNode

LONG_S = 1000.0


class Clock:
    """Stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now_s = 10.0

    def __call__(self) -> float:
        return self.now_s


def test_calls_are_made_once_in_the_order_of_their_times() -> None:
    clock, made = Clock(), list[str]()
    timers = Timers(clock)
    assert timers.left_s() is None
    timers.add(2.0, lambda: made.append("second"))
    timers.add(1.0, lambda: made.append("first"))
    assert (len(timers.calls), timers.left_s()) == (2, 1.0)
    timers.fire()
    assert made == []
    clock.now_s += 5.0
    assert timers.left_s() == 0.0
    timers.fire()
    timers.fire()
    assert made == ["first", "second"]
    assert not timers.calls


def test_dropped_calls_are_not_made_and_do_not_pile_up() -> None:
    clock, made = Clock(), list[int]()
    timers = Timers(clock)
    for number in range(10 * DROPPED_MAX):
        timers.drop(timers.add(LONG_S, lambda number=number: made.append(number)))  # type: ignore[misc]
    assert len(timers._heap) <= DROPPED_MAX
    assert timers.left_s() is None
    clock.now_s += 2 * LONG_S
    timers.fire()
    assert made == []


# ---- in a scheduler ------------------------------------------------------------------------------------------


def spin(path: Path) -> str:
    """Spawns and gets until there is a file."""
    while not path.exists():
        get(spawn(abs, 0))
    return "spun"


def refused(call: Callable[[], object]) -> str:
    try:
        call()
    except WaitTimeoutError as error:
        return str(error)
    return "not late"


def impatient(path: Path) -> tuple[str, str]:
    child = spawn(spin, path)
    told = refused(lambda: child.get(timeout=0.01))
    path.touch()
    return told, get(child)


def test_task_that_runs_on_this_scheduler_is_left_at_its_next_spawn(node: FakeNode, tmp_path: Path) -> None:
    node.start(impatient, tmp_path / "late")
    node.wait_for(tmp_path / "late")
    told = "get: task spin has not ended within 0.01 s; to end a task, cancel its future"
    assert node.result()[1:] == (True, (told, "spun"))


def test_idle_scheduler_comes_back_by_itself(node: FakeNode, tmp_path: Path) -> None:
    node.process.line.want(True)
    node.start(impatient, tmp_path / "late")
    node.hear(local.EXPORT)
    node.wait_for(tmp_path / "late")


def patient(path: Path) -> list[object]:
    futures = [spawn(abs, -n) for n in range(5)]
    values = [get(future) for future in as_completed(futures, timeout=LONG_S)]
    quick = spawn(abs, -7)
    late = spawn(spin, path)
    told = refused(lambda: wait([quick, late], timeout=2))  # the quick one ends in this time
    path.touch()
    return [values, quick.done(), late.get(timeout=LONG_S), told]


def test_what_is_waited_for_with_a_limit_is_run_by_the_loop_in_order(node: FakeNode, tmp_path: Path) -> None:
    node.start(patient, tmp_path / "late")
    node.wait_for(tmp_path / "late")
    told = "wait: the task has not ended within 2 s; to end a task, cancel its future"
    assert node.result()[1:] == (True, [[0, 1, 2, 3, 4], True, "spun", told])


def in_scope(path: Path) -> str:
    def late() -> None:
        with scope(timeout=0.01) as tasks:
            tasks.spawn(spin, path)

    told = refused(late)
    path.touch()
    return told


def test_tasks_of_a_scope_that_are_late_are_cancelled(node: FakeNode, tmp_path: Path) -> None:
    node.start(in_scope, tmp_path / "late")
    node.wait_for(tmp_path / "late")
    assert "scope: the task has not ended within 0.01 s" in node.result()[2]


def unpicklable(path: Path) -> list[str]:
    child = spawn(lambda lock: str(lock), __import__("threading").Lock())
    path.touch()
    try:
        child.get(timeout=LONG_S)
    except TypeError as error:
        return [type(error).__name__]
    return []


def test_task_that_cannot_leave_when_it_is_asked_for_is_not_waited_for(node: FakeNode, tmp_path: Path) -> None:
    node.process.line.want(True)
    node.start(unpicklable, tmp_path / "begun")
    assert node.result()[1:] == (True, ["CannotTravelError"])


def test_limit_of_nothing_asks_what_is_there(node: FakeNode) -> None:
    def ask() -> list[object]:
        child: Future[int] = spawn(abs, -3)
        told = refused(lambda: child.get(timeout=0))
        return [told, child.get(timeout=LONG_S), child.get(timeout=0)]

    node.start(ask)
    _, fine, value = node.result()
    assert fine, value
    told, *values = value
    assert "task abs has not ended within 0 s" in told
    assert values == [3, 3]


def test_task_that_only_looks_again_and_again_lets_others_go_on(node: FakeNode, tmp_path: Path) -> None:
    """Nothing that it gets is elsewhere, so it never waits, and never looks at the mail."""

    def waits(end: str) -> int:
        value = get(spawn_at(1, abs, -3))
        Path(end).touch()
        return value

    def polls(begun: str, end: str) -> str:
        Path(begun).touch()
        while not Path(end).exists():
            get(spawn(abs, -1))
        return "polled"

    node.link.send([local.NODES, [[0, "here", 1], [1, "there", 1]]])
    node.start(waits, str(tmp_path / "end"))
    _, slot, *_ = node.hear(local.PLACE)
    node.start(polls, str(tmp_path / "begun"), str(tmp_path / "end"))
    node.wait_for(tmp_path / "begun")
    node.link.send([local.DELIVER, slot, pack_outcome(dump_result("abs", 3)), 0.0, 0.0])
    assert {node.result()[2] for _ in range(2)} == {3, "polled"}
