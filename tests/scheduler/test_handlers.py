"""What signal handlers raise in a scheduler: it gets to the task that has installed them, and harms no other."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

import pytest

from hdphrs import get, spawn, spawn_at
from hdphrs.api import future as fast
from hdphrs.api import isolation, waiting
from hdphrs.api.future import Future
from hdphrs.errors import CannotTravelError, UsageError
from hdphrs.protocol.tasks import ROOT
from hdphrs.scheduler import alarms, bundles, handlers, hub, note, port, strands
from hdphrs.scheduler.handlers import CALL_TASKS, Handlers, is_of_a_task
from hdphrs.wire import local
from hdphrs.wire.items import pack_outcome
from hdphrs.wire.signals import handling
from hdphrs.wire.values import dump_result
from tests.scheduler.test_export import assigned
from tests.scheduler.test_process import DEADLINE_S, FakeNode


class LateError(Exception):
    """What the handlers of these tests raise."""


def alarm(number: int, frame: FrameType | None) -> None:
    raise LateError(number)


class Striking:
    """A value that sends a signal to the process that unpickles it, from the middle of that."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        signal.raise_signal(signal.SIGUSR1)


def square(n: int) -> int:
    return n * n


def spin(path: Path) -> None:
    """In code of the task's own, until somebody has made this file."""
    deadline_s = monotonic() + DEADLINE_S
    while not path.exists():
        assert monotonic() < deadline_s


# In a process of its own.


def spin_on() -> None:
    """Until something is raised."""
    deadline_s = monotonic() + DEADLINE_S
    while monotonic() < deadline_s:
        pass


def install() -> None:
    signal.signal(signal.SIGUSR1, alarm)


def gets_striking_value() -> list[Any]:
    install()
    future = spawn_at(ROOT, square, 7)
    seen: list[Any] = []
    for _ in range(2):
        try:
            seen.append(get(future).value)  # type: ignore[attr-defined]
        except LateError as error:
            seen.append(repr(error))
    return seen


class Interrupting:
    """A value whose own code raises what else only signal handlers do."""

    def __reduce__(self) -> tuple[Any, ...]:
        return interrupt, ()


def interrupt() -> None:
    raise KeyboardInterrupt


def gets_interrupting_value() -> str:
    try:
        get(spawn_at(ROOT, square, 7))
    except CannotTravelError as error:
        return str(error)
    return "nothing"


def takes(value: Striking) -> int:
    return value.value


def strikes_itself() -> list[str]:
    install()
    seen = []
    for function in (strike, signal.raise_signal):
        try:
            get(spawn(function, signal.SIGUSR1))
            seen.append("the child has ended")
            spin_on()  # a loop here would not be part of the try: https://github.com/python/cpython/issues/130279
        except LateError as error:
            seen.append(repr(error))
    return seen


def strike(number: int) -> None:
    signal.raise_signal(number)


def prints_until_it_is_late(path: Path) -> str:
    install()
    try:
        path.touch()
        while True:
            print(end="")
    except LateError as error:
        return repr(error)


def waits_while_another_runs() -> list[Any]:
    install()
    future = spawn_at(ROOT, square, 7)
    try:
        return [get(future)]
    except LateError as error:
        return [repr(error), get(future)]


def strikes_another() -> str:
    signal.raise_signal(signal.SIGUSR1)
    return "unharmed"


def sees_its_own_handlers() -> list[Any]:
    before = signal.signal(signal.SIGUSR1, alarm)
    return [
        before,
        signal.getsignal(signal.SIGUSR1) is alarm,
        signal.signal(signal.SIGUSR1, signal.SIG_IGN) is alarm,
        signal.signal(signal.SIGUSR1, signal.SIG_DFL),
        signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    ]


def deliver(node: FakeNode, value: object) -> None:
    """The outcome of the task that was placed."""
    [_, slot, *_] = node.hear(local.PLACE)
    node.link.send([local.DELIVER, slot, pack_outcome(dump_result("square", value)), 0.0, 0.0])


def test_handler_that_raises_while_a_value_is_unpickled_leaves_the_value(node: FakeNode) -> None:
    node.start(gets_striking_value)
    deliver(node, Striking(49))
    _, succeeded, seen = node.result()
    assert succeeded
    assert seen == [f"LateError({signal.SIGUSR1:d})", 49]


def test_value_that_raises_like_ctrl_c_is_an_error_and_not_the_end_of_the_scheduler(node: FakeNode) -> None:
    node.start(gets_interrupting_value)
    deliver(node, Interrupting())
    assert node.result()[1:] == (True, "a result does not unpickle here: KeyboardInterrupt: ")


def test_handler_that_raises_while_arguments_are_unpickled_harms_neither_task_nor_scheduler(node: FakeNode) -> None:
    node.start(install)
    node.result()
    node.start(takes, Striking(49))
    assert node.result()[1:] == (True, 49)
    errors = os.read(node.process.errors, 10_000).decode()
    assert errors.startswith(
        "hdphrs: dropped what a signal handler has raised (tests.scheduler.test_handlers.LateError: 10)"
    )
    assert errors.count("\n") == 1


def test_handler_that_raises_while_nothing_runs_is_one_line(node: FakeNode) -> None:
    node.start(install)
    node.result()
    os.set_blocking(node.process.errors, True)
    node.popen.send_signal(signal.SIGUSR1)
    assert os.read(node.process.errors, 10_000).decode().startswith("hdphrs: dropped what")
    node.start(square, 7)
    assert node.result()[1:] == (True, 49)


def test_handler_raises_in_the_code_of_its_task_and_not_of_what_that_has_spawned(node: FakeNode) -> None:
    node.start(strikes_itself)
    assert node.result()[1:] == (True, 2 * ["the child has ended", f"LateError({signal.SIGUSR1:d})"])


def test_handler_that_raises_in_the_midst_of_a_print_raises_soon_in_the_code_of_its_task(
    node: FakeNode, tmp_path: Path
) -> None:
    for number in range(10):
        path = tmp_path / str(number)
        node.start(prints_until_it_is_late, path)
        node.wait_for(path)
        node.popen.send_signal(signal.SIGUSR1)
        assert node.result()[1:] == (True, f"LateError({signal.SIGUSR1:d})")


def test_handler_that_raises_while_another_task_runs_raises_in_its_own(node: FakeNode) -> None:
    node.start(waits_while_another_runs)
    [_, slot, *_] = node.hear(local.PLACE)
    node.start(strikes_another)
    assert node.result()[1:] == (True, "unharmed")
    node.link.send([local.DELIVER, slot, pack_outcome(dump_result("square", 49)), 0.0, 0.0])
    assert node.result()[1:] == (True, [f"LateError({signal.SIGUSR1:d})", 49])


def test_task_sees_the_handlers_that_it_has_installed(node: FakeNode) -> None:
    node.start(sees_its_own_handlers)
    assert node.result()[1:] == (True, [signal.SIG_DFL, True, True, signal.SIG_IGN, True])


def test_interrupt_of_an_idle_scheduler_does_not_end_it(node: FakeNode) -> None:
    node.start(square, 2)
    node.result()
    os.set_blocking(node.process.errors, True)
    node.popen.send_signal(signal.SIGINT)
    assert os.read(node.process.errors, 10_000).startswith(
        b"hdphrs: dropped what a signal handler has raised (Keyboard"
    )
    node.start(square, 7)
    assert node.result()[1:] == (True, 49)


# In this process.


@pytest.fixture
def here() -> Iterator[tuple[Handlers, set[Future[Any]]]]:
    """Handlers, and the tasks that have ended."""
    kept = signal.signal, signal.getsignal, signal.getsignal(signal.SIGINT), handling.waits
    ended: set[Future[Any]] = set()
    one = Handlers(ended.__contains__)
    one.install()
    yield one, ended
    signal.signal, signal.getsignal, handler, handling.waits = kept
    signal.setitimer, signal.getitimer, signal.alarm = alarms._setitimer, alarms._getitimer, alarms._alarm
    signal.alarm(0)
    for number in (signal.SIGUSR1, signal.SIGALRM, handlers.AGAIN):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, handler)
    fast.here.task = None


def child_of(task: Future[Any], function: Callable[..., Any], *args: Any) -> Future[Any]:
    """A spark, as `spawn` makes it."""
    future: Future[Any] = Future()
    future._function, future._content, future._parent, future._index = function, args, task, 0
    return future


def in_our_code() -> None:
    """As of a module of ours: where a task cannot be left."""
    source = compile("import signal; signal.raise_signal(signal.SIGUSR1)", handlers.__file__, "exec")
    exec(source, {})


def test_signal_is_held_once_and_dropped_when_its_task_ends(
    here: tuple[Handlers, set[Future[Any]]], capfd: pytest.CaptureFixture[str]
) -> None:
    one, ended = here
    owner = fast.here.task = assigned(1)
    signal.signal(signal.SIGUSR1, alarm)
    fast.here.task = assigned(2)
    for _ in range(3):
        in_our_code()
    assert one.held == [(owner, signal.SIGUSR1)]
    one.check()
    ended.add(owner)
    one.look()
    assert one.held == []
    assert capfd.readouterr().err.count("hdphrs: dropped SIGUSR1") == 1


def test_what_the_handler_of_a_task_that_has_ended_raises_is_dropped(
    here: tuple[Handlers, set[Future[Any]]], capfd: pytest.CaptureFixture[str]
) -> None:
    _, ended = here
    owner = fast.here.task = assigned(1)
    signal.signal(signal.SIGUSR1, alarm)
    ended.add(owner)
    fast.here.task = assigned(2)
    get(child_of(assigned(2), strike, signal.SIGUSR1))
    in_our_code()
    assert capfd.readouterr().err.count("hdphrs: dropped what a signal handler has raised") == 2


def test_each_of_two_tasks_has_its_own_handler_and_neither_sees_that_of_the_other(
    here: tuple[Handlers, set[Future[Any]]],
) -> None:
    one, _ = here
    seen: list[str] = []
    tasks = [assigned(1), assigned(2)]
    for name, task in zip("ab", tasks, strict=True):
        fast.here.task = task
        assert signal.signal(signal.SIGUSR1, lambda *_, name=name: seen.append(name)) is signal.SIG_DFL
    for task in tasks:
        fast.here.task = task
        get(child_of(task, strike, signal.SIGUSR1))
        in_our_code()
        one.check()
    assert seen == ["a", "b"]  # each once, for a signal that is held comes once
    fast.here.task = assigned(3)
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_alarm_rings_for_the_task_that_has_set_it(here: tuple[Handlers, set[Future[Any]]]) -> None:
    one, ended = here
    first, second, third = assigned(1), assigned(2), assigned(3)
    fast.here.task = first
    signal.signal(signal.SIGALRM, alarm)
    assert signal.setitimer(signal.ITIMER_REAL, 0.02) == (0.0, 0.0)
    fast.here.task = second
    assert signal.alarm(100) == 0
    deadline_s = monotonic() + DEADLINE_S
    while not one.held:
        assert monotonic() < deadline_s
    assert one.held == [(first, signal.SIGALRM)]
    one.check()
    assert signal.alarm(0) == 100
    fast.here.task = first
    with pytest.raises(LateError):
        one.check()
    fast.here.task = third
    signal.alarm(100)
    ended.add(third)
    fast.here.task = first
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_alarm_without_a_handler_is_an_error_of_its_task(here: tuple[Handlers, set[Future[Any]]]) -> None:
    one, _ = here
    fast.here.task = assigned(1)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    deadline_s = monotonic() + DEADLINE_S
    while not one.held:
        assert monotonic() < deadline_s
    with pytest.raises(UsageError, match="has installed no handler for SIGALRM"):
        one.check()


@pytest.mark.parametrize("which", [signal.ITIMER_PROF, signal.ITIMER_VIRTUAL])
def test_timers_of_the_whole_process_are_refused(here: tuple[Handlers, set[Future[Any]]], which: int) -> None:
    with pytest.raises(UsageError, match="ITIMER_REAL only"):
        signal.setitimer(which, 1.0)


def test_a_child_of_a_task_has_its_handlers_as_everywhere(here: tuple[Handlers, set[Future[Any]]]) -> None:
    one, _ = here
    signal.signal(signal.SIGUSR1, alarm)
    one._fork()
    with pytest.raises(LateError):
        in_our_code()


CALLERS: dict[str, Callable[..., Any]] = {
    "get": fast.get,
    "Isolation.call": isolation.Isolation.call,
    "Isolation.run": isolation.Isolation.run,
    "Hub._call": hub.Hub._call,
    "Bundles._run": bundles.Bundles._run,
    "TaskPort.run": port.TaskPort.run,
    "Timed.__call__": note.Timed.__call__,
    "Strands.run_in_place": strands.Strands.run_in_place,
}


def test_those_that_call_tasks_are_called_what_is_said_of_them() -> None:
    assert CALLERS.keys() == CALL_TASKS
    for name, function in CALLERS.items():
        assert function.__code__.co_qualname == name
        assert function.__code__.co_filename.startswith(handlers.PACKAGE)


def test_code_of_a_task_is_what_it_is_called_with_and_not_what_it_calls_of_ours() -> None:
    seen: list[bool] = []

    def look() -> bool:
        seen.append(is_of_a_task(sys._getframe()))
        return True

    def of_ours() -> None:
        waiting.Limit("wait", Number(look))

    for work in (look, of_ours):
        get(child_of(assigned(1), work))
    assert seen == [True, False]


class Number(float):
    """Whose comparison is code of the user's, in the midst of ours."""

    def __new__(cls, look: Callable[[], bool]) -> Number:
        self = super().__new__(cls, 1.0)
        self.look = look
        return self

    look: Callable[[], bool]

    def __ge__(self, other: object) -> bool:
        return self.look()
