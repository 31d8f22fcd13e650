"""A signal handler raises anywhere in a call of the program: what was called before works again after it."""

from __future__ import annotations

import pickle
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from hdphrs.api import future as fast
from hdphrs.api.future import AWAY, Future
from hdphrs.api.waiting import as_completed, get_any, scope, wait
from hdphrs.errors import Cancelled
from hdphrs.form import form
from hdphrs.program.calls import Kind
from hdphrs.program.port import ProgramPort
from hdphrs.protocol.paths import index_of
from hdphrs.wire import local
from hdphrs.wire.items import pack_outcome, unpack_task
from hdphrs.wire.values import dump_error, dump_result
from tests.program.interruption import LateError, handler, interrupted
from tests.program.test_calls import CORES, Program, content_of, kind
from tests.program.test_reader import DEADLINE_S, LONG_S, Node, double, in_thread, wait_for

POINTS_MAX = 2000
SOON_S = 1e-3


class Value:
    """Unpickles in some steps of code of the user's."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.parts = ["a", "b"]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.parts = [str(part) for part in state["parts"]]
        self.number = int(state["number"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return self.number


class FailedError(Exception):
    """Unpickles likewise."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return FailedError, (self.number,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FailedError) and other.number == self.number

    def __hash__(self) -> int:
        return self.number


class Answering(Node):
    """Answers by itself, from a thread of its own, unless it is to hold answers back."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = False
        self.held: dict[int, list[Any]] = {}
        self.cancelled: set[int] = set()
        self.makes: Callable[[int], object] = lambda number: 2 * number
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while messages := self.link.receive(block=True):
            for message in messages:
                if message[0] in (local.EXPORT, local.PLACE):
                    for slot, packed in message[1] if message[0] == local.EXPORT else [(message[1], message[3])]:
                        number, *_ = pickle.loads(unpack_task(packed).payload)
                        made = self.makes(number)
                        is_error = isinstance(made, BaseException)
                        outcome = dump_error("f", made) if is_error else dump_result("f", made, LONG_S)  # type: ignore[arg-type]
                        self.held[slot] = [local.DELIVER, slot, pack_outcome(outcome)]
                elif message[0] == local.CANCEL:
                    self.cancelled.update(message[1])
                    self.link.send([local.HEARD])
            if not self.holds:
                self.release()

    def release(self) -> None:
        """What was held back."""
        for slot in list(self.held):
            delivery = self.held.pop(slot, None)  # another thread may release it too
            if delivery is not None and slot not in self.cancelled:
                self.link.send(delivery)

    def is_in_order(self) -> bool:
        """Whether nothing is under way any more."""
        calls = self.port._calls
        return not (calls._load or calls._alone or calls._bundles or calls._waiting or self.port._waiters)

    def end(self) -> None:
        self.link._socket.shutdown(2)
        self._thread.join(DEADLINE_S)
        super().end()


@pytest.fixture
def node() -> Iterator[Answering]:
    node = Answering()
    with handler():
        yield node
    node.end()


def outcome(work: Callable[[], Any]) -> Any:
    """Its value, or what it raises, of a call that is not interrupted; in another thread, so that it ends in time."""

    def settle() -> Any:
        try:
            return work()
        except BaseException as error:
            return error

    thread, got = in_thread(settle)
    thread.join(DEADLINE_S)
    assert got, "it never ends"
    return got[0]


def each_point(work: Callable[[int], object], check: Callable[[int], object], least: int) -> None:
    """Interrupt this at one point after the other, and check each time."""
    for at in count(1):
        again = interrupted(lambda at=at: work(at), at, also=__file__)  # type: ignore[misc]
        check(at)
        if not again:
            break
        assert at < POINTS_MAX
    assert at > least


@pytest.mark.parametrize("is_here", [False, True])
@pytest.mark.parametrize("make", [Value, FailedError, lambda number: 2 * number])
def test_get_gives_the_value_after_it_was_interrupted_anywhere(
    node: Answering, make: Callable[[int], object], is_here: bool
) -> None:
    """Be it while the value is unpickled, which it can be again."""
    node.makes = make
    node.holds = True

    def answer() -> None:
        wait_for(lambda: bool(node.held) and (is_here or _is_waited_for(node)))
        node.release()

    for at in count(1):
        future = node.port.spawn(double, (7,), {}, None)
        answering, _ = in_thread(answer)
        if is_here:
            wait_for(lambda future=future: future._status is not AWAY)  # type: ignore[misc]
        raised: list[BaseException] = []

        def work(future: Future[Any] = future, raised: list[BaseException] = raised) -> None:
            try:
                node.port.wait(future)
            except FailedError as error:
                raised.append(error)

        again = interrupted(work, at, also=__file__)
        got = outcome(lambda future=future: node.port.wait(future))  # type: ignore[misc]
        assert got == make(7), f"interrupted at point {at}: {got!r}"
        answering.join(DEADLINE_S)
        if not again:
            break
    points = 1 if form() == "compiled" else 10 if is_here else 20  # compiled code is not interrupted
    assert at > points
    wait_for(node.is_in_order)


def test_spawn_that_is_interrupted_leaves_nothing_behind(node: Answering) -> None:
    def check(at: int) -> None:
        assert outcome(lambda: node.port.wait(node.port.spawn(double, (at,), {}, None))) == 2 * at
        wait_for(node.is_in_order)

    each_point(lambda at: node.port.spawn(double, (at,), {}, None), check, 20)


def test_placing_a_task_that_is_interrupted_leaves_nothing_behind(node: Answering) -> None:
    def check(at: int) -> None:
        assert outcome(lambda: node.port.wait(node.port.place(0, double, (at,), None))) == 2 * at  # type: ignore[arg-type]
        wait_for(node.is_in_order)

    each_point(lambda at: node.port.place(0, double, (at,), None), check, 20)  # type: ignore[arg-type]


def test_run_that_is_interrupted_cancels_its_task(node: Answering) -> None:
    """Nobody else has its future."""
    node.holds = True
    for at in count(1):
        over = threading.Event()

        def answer(over: threading.Event = over) -> None:
            wait_for(lambda: over.is_set() or (bool(node.held) and _is_waited_for(node)))
            node.release()

        answering, _ = in_thread(answer)
        again = interrupted(lambda at=at: node.port.run(double, (at,)), at)  # type: ignore[misc]
        over.set()
        answering.join(DEADLINE_S)
        wait_for(node.is_in_order)
        if not again:
            break
    assert at > 20


def _is_waited_for(node: Node) -> bool:
    return bool(node.port._waiters) or node.port._reader.is_lent


def test_cancel_that_is_interrupted_keeps_nobody_waiting(node: Answering) -> None:
    """Not another thread that waits for the future, either."""
    node.holds = True
    current: list[Any] = []

    def prepare() -> None:
        future = node.port.spawn(double, (7,), {}, None)
        wait_for(lambda: bool(node.held))
        current[:] = [future, *in_thread(lambda: outcome_of(node, future))]
        wait_for(lambda: _is_waited_for(node))

    def check(at: int) -> None:
        future, thread, got = current
        if future._status is AWAY:
            node.release()
        node.held.clear()
        thread.join(DEADLINE_S)
        assert got == [14] or (len(got) == 1 and isinstance(got[0], Cancelled)), f"interrupted at point {at}"
        wait_for(node.is_in_order)
        prepare()

    prepare()
    each_point(lambda at: node.port.cancel(current[0]), check, 10)
    node.port.cancel(current[0])
    current[1].join(DEADLINE_S)


def outcome_of(node: Answering, future: Future[Any]) -> Any:
    try:
        return node.port.wait(future)
    except BaseException as error:
        return error


@pytest.fixture
def attached(node: Answering, monkeypatch: pytest.MonkeyPatch) -> Answering:
    monkeypatch.setattr(fast.state, "port", node.port)
    return node


def test_wait_that_is_interrupted_loses_none_of_the_futures(attached: Answering) -> None:
    for work in (wait, get_any, lambda some: list(as_completed(some)), lambda some: wait(some, timeout=DEADLINE_S)):
        for at in count(1):
            futures = [fast.spawn(double, number) for number in range(2)]
            again = interrupted(lambda futures=futures, work=work: work(futures), at)  # type: ignore[misc]
            assert outcome(lambda futures=futures: list(map(fast.get, futures))) == [0, 2]  # type: ignore[misc]
            if not again:
                break
        assert at > 10
    wait_for(attached.is_in_order)


def test_what_a_handler_raises_in_get_any_comes_out_of_it(attached: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is not lost when an iterator is dropped."""
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    attached.holds = True
    for at in count(1):
        over = threading.Event()

        def answer(over: threading.Event = over) -> None:
            wait_for(lambda: over.is_set() or len(attached.port._waiters) == 2)
            attached.release()

        futures = [fast.spawn(double, number) for number in range(2)]
        wait_for(lambda: bool(attached.held))
        answering, _ = in_thread(answer)
        again = interrupted(lambda futures=futures: get_any(futures), at)  # type: ignore[misc]
        over.set()
        answering.join(DEADLINE_S)
        attached.holds = False
        attached.release()
        assert outcome(lambda futures=futures: list(map(fast.get, futures))) == [0, 2]  # type: ignore[misc]
        attached.holds = True
        if not again:
            break
    assert at > 20
    assert lost == []
    wait_for(attached.is_in_order)


def test_bell_that_is_interrupted_anywhere_in_its_wait_can_be_rung(node: Answering) -> None:
    """Also in the standard library: what the handler has raised comes out, and no lock stays as it should not be."""
    bell = node.port.bell()
    for at in count(1):
        again = interrupted(lambda: bell.wait(SOON_S), at, also=threading.__file__)
        assert outcome(bell.ring) is None, f"interrupted at point {at}"
        assert outcome(lambda: bell.wait(DEADLINE_S)) is True
        if not again:
            break
    assert at > 1


def test_start_that_is_interrupted_anywhere_in_its_wait_can_be_called_again() -> None:
    """Also in the standard library."""
    ours, theirs = socket.socketpair()
    node = local.Link(theirs)
    port = ProgramPort(local.Link(ours), describe_loss=lambda: "it is gone")
    port._sender.start()
    port._receiver.start()
    with handler():
        for at in range(1, 20):
            assert interrupted(port.start, at, also=threading.__file__)
    node.send([local.READY, True, False])
    assert outcome(port.start) is None
    theirs.close()
    port.release()


def test_scope_that_is_interrupted_anywhere_leaves_futures_that_are_full(attached: Answering) -> None:
    scopes: list[scope] = []

    def work(at: int) -> None:
        with scope() as tasks:
            scopes.append(tasks)
            for number in range(2):
                tasks.spawn(double, number)

    def check(at: int) -> None:
        for number, future in enumerate(scopes[-1]._futures if scopes else ()):
            got = outcome(lambda future=future: fast.get(future))  # type: ignore[misc]
            assert got == 2 * number or isinstance(got, Cancelled), f"interrupted at point {at}: {got!r}"
        wait_for(attached.is_in_order)

    each_point(work, check, 50)


# Calls that go together.


def test_cancel_of_one_of_a_bundle_that_is_interrupted_loses_none_of_the_others() -> None:
    with handler():
        for at in count(1):
            program = Program()
            cheap: Kind = kind()
            futures = [program.spawn(cheap, number) for number in range(40 * CORES)]
            program.send()
            again = interrupted(lambda program=program, futures=futures: program.calls.cancel(futures[1]), at)  # type: ignore[misc]
            program.calls.mend()
            while program.there or program.calls._waiting:
                for slot in list(program.there):
                    program.answer(slot)
                program.send()
            for number, future in enumerate(futures):
                if number != 1:
                    assert content_of(future) == number
            assert not program.calls._load
            if not again:
                break
        assert at > 5


@pytest.mark.skipif(form() == "compiled", reason="compiled code is not interrupted")
def test_interruption_is_what_it_is_taken_for() -> None:
    with handler():
        assert interrupted(lambda: index_of(b"\x01"), 1)
        assert not interrupted(lambda: None, 1)
        with pytest.raises(LateError):
            __import__("signal").raise_signal(__import__("signal").SIGUSR1)


def test_interruption_leaves_no_exception_behind_that_seems_to_be_handled(node: Answering) -> None:
    node.makes = FailedError

    def work() -> None:
        try:
            node.port.wait(future)
        except FailedError as error:
            str(error)

    for at in range(1, 100):
        future = node.port.spawn(double, (7,), {}, None)
        interrupted(work, at, also=__file__)
        assert sys.exception() is None
