"""What the executor promises beyond CPython's own tests, on a node that is there already."""

from __future__ import annotations

import asyncio
import gc
import itertools
import multiprocessing
import os
import pickle
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import BrokenExecutor, Future
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

import hdphrs
from hdphrs.api.future import AWAY
from hdphrs.errors import CannotTravelError, RemoteTraceback, StartError, TaskCrashedError
from hdphrs.executor.inside import InsideFuture
from hdphrs.program import embedded
from tests.executor import work
from tests.executor.conftest import SLOTS
from tests.program.interruption import LateError, handler, interrupted

DEADLINE_S = 60.0

pytestmark = [pytest.mark.usefixtures("shared_node"), pytest.mark.slow]


@pytest.fixture(scope="module")
def executor(shared_node: object) -> Iterator[hdphrs.Executor]:
    with hdphrs.Executor() as executor:
        yield executor


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file that `work.wait_for` waits for."""
    return tmp_path / "gate"


def test_a_call_that_waits_for_room_can_be_cancelled_and_never_runs(gate: Path) -> None:
    with hdphrs.Executor(max_workers=1) as executor:
        first = executor.submit(work.wait_for, gate)
        second = executor.submit(gate.with_name("ran").touch)
        third = executor.submit(work.square, 3)
        assert second.cancel()
        assert not first.done()
        gate.touch()
        assert (first.result(), third.result()) == ("gate", 9)
        assert not first.cancel()
    assert not gate.with_name("ran").exists()


def test_shutdown_that_cancels_leaves_what_runs(gate: Path) -> None:
    executor = hdphrs.Executor(max_workers=2)
    calls = [executor.submit(work.wait_for, gate) for _ in range(5)]
    executor.shutdown(wait=False, cancel_futures=True)
    gate.touch()
    assert [call.cancelled() for call in calls] == [False, False, True, True, True]
    assert [call.result() for call in calls[:2]] == ["gate", "gate"]


def test_what_runs_when_an_executor_is_abandoned_is_cancelled_and_frees_its_core(gate: Path) -> None:
    executor = hdphrs.Executor(max_workers=1)
    runs, waits = executor.submit(work.mark_and_loop, gate), executor.submit(work.square, 1)
    work.wait_for(gate)
    executor.abandon()
    assert waits.cancelled()
    with pytest.raises(futures.CancelledError):
        runs.result()
    executor.shutdown()
    gate.with_name("enough").touch()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(work.square, 1)


def test_no_more_calls_run_at_a_time_than_there_may_be_workers(tmp_path: Path) -> None:
    with hdphrs.Executor(max_workers=2) as executor:
        assert max(executor.map(work.crowd, [tmp_path] * 12)) <= 2


@pytest.mark.parametrize("buffersize", [None, 1, 3, 50])
@pytest.mark.parametrize("chunksize", [1, 3, 100])
def test_map_is_the_map_of_python(executor: hdphrs.Executor, chunksize: int, buffersize: int | None) -> None:
    for count in (0, 1, 7):
        results = executor.map(work.add, range(count), range(10, 99), chunksize=chunksize, buffersize=buffersize)
        assert list(results) == list(map(work.add, range(count), range(10, 99)))


def test_a_buffered_map_takes_items_as_its_results_are_taken(executor: hdphrs.Executor) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for n in range(100):
            taken.append(n)
            yield n

    results = executor.map(work.square, items(), buffersize=2)
    assert len(taken) == 2
    assert [next(results), next(results)] == [0, 1]
    assert len(taken) == 4
    chunks = executor.map(work.square, items(), chunksize=5, buffersize=2)
    assert next(chunks) == 0
    assert len(taken) == 4 + 15


def test_a_map_that_nobody_reads_on_cancels_what_is_pending(gate: Path) -> None:
    with hdphrs.Executor(max_workers=1) as executor:
        results = executor.map(work.wait_for, [gate] * 4, timeout=0)
        with pytest.raises(TimeoutError):
            next(results)
        gate.touch()
    assert gate.exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({"chunksize": 0}, ValueError), ({"buffersize": 0}, ValueError), ({"buffersize": 1.5}, TypeError)],
)
def test_map_refuses_at_once(executor: hdphrs.Executor, arguments: dict[str, int], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(arguments))):
        executor.map(work.square, [1], **arguments)


def test_an_initializer_runs_once_in_each_process_before_any_call(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with hdphrs.Executor(initializer=work.touch_state, initargs=("touched", log)) as executor:
        found = [call.result() for call in [executor.submit(work.state_here) for _ in range(40)]]
        assert executor.submit(work.Adder(3).plus, 4).result() == 7
        assert list(executor.map(work.square, range(5), chunksize=2)) == [0, 1, 4, 9, 16]
    assert {value for value, _ in found} == {"touched"}
    pids = log.read_text().split()
    assert len(pids) == len(set(pids))
    assert {str(pid) for _, pid in found} <= set(pids)


def test_an_initializer_belongs_to_no_task(caplog: pytest.LogCaptureFixture) -> None:
    with hdphrs.Executor(initializer=work.spawn_first) as executor:
        with pytest.raises(BrokenExecutor, match=r"initializer has failed with UsageError: .*belongs to no task"):
            executor.submit(work.square, 1).result()
        with pytest.raises(BrokenExecutor, match="initializer"):
            executor.submit(work.square, 1)
    assert "Exception in initializer" in caplog.text


@pytest.mark.parametrize(("arguments", "error"), [({"initializer": 3}, TypeError), ({"max_workers": 0}, ValueError)])
def test_an_executor_is_refused_at_once(arguments: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        hdphrs.Executor(**arguments)  # type: ignore[arg-type]


def test_an_error_has_the_remote_traceback_as_its_cause(executor: hdphrs.Executor) -> None:
    error = executor.submit(work.fail, "far away").exception()
    assert isinstance(error, ValueError)
    assert isinstance(error.__cause__, RemoteTraceback)
    assert "raise ValueError(message)" in str(error.__cause__)
    assert error.__traceback__ is None


def test_what_does_not_pickle_is_the_outcome_of_its_call_alone(executor: hdphrs.Executor) -> None:
    lock = threading.Lock()
    argument, result, good = (executor.submit(*call) for call in ((id, lock), (threading.Lock,), (work.square, 4)))
    assert isinstance(argument.exception(), CannotTravelError)
    assert isinstance(result.exception(), CannotTravelError)
    assert good.result() == 16


def test_a_worker_that_dies_breaks_nothing(executor: hdphrs.Executor, tmp_path: Path) -> None:
    calls: list[Future[int]] = [executor.submit(work.square, n) for n in range(20)]
    survivor = executor.submit(work.crash_until, tmp_path, 1)
    assert survivor.result() == 1
    assert [call.result() for call in calls] == [n * n for n in range(20)]


def test_a_call_that_always_takes_its_process_down_fails_alone(executor: hdphrs.Executor) -> None:
    crash, other = executor.submit(os._exit, 3), executor.submit(work.square, 5)
    assert isinstance(crash.exception(), TaskCrashedError)
    assert (other.result(), executor.submit(work.square, 6).result()) == (25, 36)


def test_callbacks_may_submit_and_shut_down() -> None:
    executor = hdphrs.Executor()
    ended = threading.Event()
    further: list[Future[int]] = []

    def go_on(future: Future[int]) -> None:
        further.append(executor.submit(work.square, future.result()))
        executor.shutdown(wait=True)
        ended.set()

    executor.submit(work.square, 3).add_done_callback(go_on)
    assert ended.wait(30)
    assert further[0].result() == 81


def test_any_thread_may_submit(executor: hdphrs.Executor) -> None:
    with futures.ThreadPoolExecutor(8) as threads:
        sums = threads.map(lambda base: sum(executor.map(work.square, range(base, base + 30))), range(8))
        assert list(sums) == [sum(n * n for n in range(base, base + 30)) for base in range(8)]


def test_submission_that_a_signal_handler_interrupts_keeps_no_later_one_waiting() -> None:
    with hdphrs.Executor() as executor, handler():
        for at in itertools.count(1):
            again = interrupted(lambda: executor.submit(work.square, 3), at)
            assert executor.submit(work.square, 4).result(DEADLINE_S) == 16, f"interrupted at point {at}"
            if not again:
                break
    assert at > 5


def test_child_is_as_it_was_when_a_signal_handler_interrupts_who_waits_for_it() -> None:
    outcomes: Iterator[int | LateError] = iter([LateError(), 9])

    def get(timeout: float | None) -> int:
        outcome = next(outcomes)
        if isinstance(outcome, LateError):
            raise outcome
        return outcome

    task: Any = SimpleNamespace(get=get, _function=None, _status=AWAY, done=lambda: False)
    child = InsideFuture[int](task)
    with pytest.raises(LateError):
        child.result()
    assert child.result() == 9


def test_asyncio_runs_in_it(executor: hdphrs.Executor) -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(executor, work.square, n) for n in range(5)))

    assert asyncio.run(main()) == [0, 1, 4, 9, 16]


def test_trio_runs_in_it(executor: hdphrs.Executor) -> None:
    async def main() -> int:
        return await trio.to_thread.run_sync(executor.submit(work.square, 8).result)

    assert trio.run(main) == 64


def test_an_executor_that_is_dropped_finishes_its_calls_and_its_thread(gate: Path) -> None:
    executor = hdphrs.Executor()
    call = executor.submit(work.wait_for, gate)
    assert executor._desk is not None
    thread = executor._desk._thread
    del executor
    gc.collect()
    gate.touch()
    assert call.result() == "gate"
    thread.join(30)
    assert not thread.is_alive()


def test_a_node_that_does_not_start_breaks_its_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "start_node", lambda *_, **__: subprocess.Popen(["false"], stdin=subprocess.PIPE))
    with hdphrs.Executor(max_workers=SLOTS + 1) as executor:
        error: BaseException | None
        try:
            error = executor.submit(work.square, 1).exception()
        except BrokenExecutor as known_before:
            error = known_before
        assert isinstance(error, BrokenExecutor)
        assert isinstance(error.__cause__, StartError)
        assert "ended with status 1" in str(error)


def test_executors_share_the_node_and_leave_it() -> None:
    with hdphrs.Executor(max_workers=1) as one, hdphrs.Executor() as other:
        assert (one._max_workers, other._max_workers) == (1, 5)
        calls = [one.submit(work.square, 2), other.submit(work.square, 3)]
    assert [call.result() for call in calls] == [4, 9]
    assert hdphrs.get(hdphrs.spawn(work.square, 4)) == 16


def test_a_task_may_use_executors(executor: hdphrs.Executor) -> None:
    assert executor.submit(work.inside).result() == {
        "wait": 1,
        "as_completed": [4, 9, 16, 25],
        "map": [0, 2, 4, 6, 8],
        "exception": "ValueError('inside')",
        "done": (False, True, False),
        "shutdown": True,
        "callback": [0],
        "closed": "cannot schedule new futures after shutdown",
        "swept": True,
    }


def test_a_child_that_nobody_has_taken_can_be_cancelled() -> None:
    def waiting() -> hdphrs.Future[int]:
        task: hdphrs.Future[int] = hdphrs.Future()
        task._function, task._content = work.square, (7,)
        return task

    child = InsideFuture(waiting())
    assert not child.running()
    assert [child.cancel(), child.cancel(), child.cancelled(), child.done()] == [True] * 4
    with pytest.raises(futures.CancelledError):
        child.result()
    taken: hdphrs.Future[int] = hdphrs.Future()
    taken._function = None
    assert not InsideFuture(taken).cancel()
    abandoned = InsideFuture(waiting())
    abandoned.abandon()
    assert abandoned.cancelled()


def test_executors_nest_as_deep_as_one_likes(executor: hdphrs.Executor) -> None:
    assert executor.submit(work.tree, 4).result() == 81


def test_an_initializer_runs_for_a_task_too(executor: hdphrs.Executor, tmp_path: Path) -> None:
    assert executor.submit(work.inside_initialized, tmp_path / "log").result() == "inside"


def test_sequential_mode_runs_calls_when_they_are_submitted() -> None:
    with hdphrs.sequential(), hdphrs.Executor(max_workers=3) as executor:
        call = executor.submit(work.whoami)
        assert call.done()
        assert (call.result(), executor._max_workers) == (os.getpid(), 3)
        assert executor.submit(work.inside).result()["map"] == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("is_complete", [True, False])
def test_who_waits_for_several_is_not_held_up_once_others_were_enough(*, is_complete: bool) -> None:
    """One with a callback is completed by a thread, at any time; the others when they are waited for."""
    with hdphrs.sequential(), hdphrs.Executor() as executor:
        call = executor.submit(work.square, 2)
        assert isinstance(call, InsideFuture)
        if is_complete:
            called = threading.Event()
            call.add_done_callback(lambda _: called.set())
            assert called.wait(30)
        else:
            call._is_attended = True
        waiter = SimpleNamespace(event=threading.Event())
        waiter.event.set()
        call._waiters.append(waiter)
        assert waiter.event.is_set()


def test_functions_of_any_kind_are_calls(executor: hdphrs.Executor) -> None:
    base = 5
    calls = [
        executor.submit(lambda n: n + base, 1),
        executor.submit(partial(work.add, 2), b=3),
        executor.submit(work.Adder(4).plus, n=1),
        executor.submit(max, 3, 7),
    ]
    assert [call.result() for call in calls] == [6, 5, 5, 7]


@pytest.mark.parametrize("kind", [TypeError, pickle.PicklingError, hdphrs.HdphrsError])
def test_what_does_not_pickle_is_caught_as_with_other_executors(
    executor: hdphrs.Executor, kind: type[Exception]
) -> None:
    lock = threading.Lock()
    for call in (executor.submit(id, lock), executor.submit(threading.Lock), executor.submit(partial(id, lock))):
        with pytest.raises(kind):
            call.result()


@pytest.mark.parametrize(
    ("initializer", "argument"),
    [
        (work.square, threading.Lock()),
        (work.square, multiprocessing.get_context("spawn").Event()),
        (work.square, (n for n in range(2))),
        (threading.Lock().acquire, None),
    ],
)
def test_an_initializer_that_does_not_pickle_is_refused_at_once(initializer: Any, argument: object) -> None:
    with pytest.raises(CannotTravelError, match="the initializer or its arguments do not pickle: "):
        hdphrs.Executor(initializer=initializer, initargs=(argument,))


class OwnError(BaseException):
    """What no handler of `Exception` catches."""


def raising(error: BaseException) -> Callable[[object], None]:
    def callback(future: object) -> None:
        raise error

    return callback


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), OwnError()])
def test_whatever_a_callback_raises_the_executor_goes_on(
    gate: Path, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    with hdphrs.Executor(max_workers=1) as executor:
        functions: list[Callable[[Any], object]] = [work.wait_for, work.fail]
        for function in functions:
            call = executor.submit(function, gate)
            call.add_done_callback(raising(error))
            gate.touch()
            call.exception()
        assert executor.submit(work.square, 3).result(DEADLINE_S) == 9
    assert [record.getMessage()[:26] for record in caplog.records] == ["exception calling callback"] * 2


def test_a_callback_that_exits_does_not_keep_other_calls_from_being_cancelled(gate: Path) -> None:
    executor = hdphrs.Executor(max_workers=1)
    running = executor.submit(work.wait_for, gate)
    waiting = [executor.submit(work.square, n) for n in range(4)]
    waiting[1].add_done_callback(raising(SystemExit(3)))
    with pytest.raises(SystemExit):
        executor.shutdown(cancel_futures=True)
    assert all(call.cancelled() for call in waiting)
    gate.touch()
    assert running.result(DEADLINE_S) == gate.name
    executor.shutdown()


def test_a_callback_that_exits_does_not_keep_a_broken_executor_from_saying_so(gate: Path) -> None:
    with hdphrs.Executor(max_workers=1, initializer=work.wait_and_fail, initargs=(gate,)) as executor:
        calls = [executor.submit(work.square, n) for n in range(4)]
        for call in calls:
            call.add_done_callback(raising(SystemExit(3)))
        gate.touch()
        assert all(isinstance(call.exception(DEADLINE_S), BrokenExecutor) for call in calls)


def test_a_wait_for_the_first_of_two_children_sees_the_one_that_is_there_already() -> None:
    """In either order in which the standard library, which keeps them in a set, tells them of the wait."""

    def forever() -> hdphrs.Future[int]:
        task: hdphrs.Future[int] = hdphrs.Future()
        task._function, task._content, task._status = None, None, AWAY
        return task

    with hdphrs.sequential():
        for _ in range(20):
            here, away = InsideFuture(hdphrs.spawn(work.square, 3)), InsideFuture(forever())
            away._is_attended = True
            done, _ = futures.wait([here, away], timeout=30, return_when=futures.FIRST_COMPLETED)
            assert done == {here}
            assert not futures.wait([here, away], timeout=0, return_when=futures.FIRST_EXCEPTION).not_done - {away}


def test_a_wait_for_children_of_which_one_is_done_and_has_callbacks_ends() -> None:
    with hdphrs.sequential():
        for _ in range(20):
            one, other = InsideFuture(hdphrs.spawn(work.square, 3)), InsideFuture(hdphrs.spawn(work.square, 4))
            called = threading.Event()
            one.add_done_callback(lambda _, called=called: called.set())  # type: ignore[misc]
            called.wait(30)
            assert futures.wait([one, other], timeout=30).done == {one, other}
