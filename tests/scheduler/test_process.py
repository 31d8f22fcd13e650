"""One scheduler process, with the test as its node."""

from __future__ import annotations

import importlib
import os
import pickle
import platform
import resource
import socket
import subprocess
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from hdphrs import get, spawn, spawn_at
from hdphrs.api import future as fast
from hdphrs.config import PIECE_COST_S
from hdphrs.node.process import SchedulerProcess, start_scheduler
from hdphrs.protocol.paths import child_path
from hdphrs.protocol.pieces import check_of
from hdphrs.protocol.tasks import PROGRAM, ROOT, Crash, Outcome, Piece, Spark, Task, TaskRef, Verdict
from hdphrs.wire import local
from hdphrs.wire.code import CodeBook
from hdphrs.wire.items import pack_outcome, pack_spark, unpack_outcome, unpack_piece, unpack_task
from hdphrs.wire.page import Label, Line, Page, Reading
from hdphrs.wire.settings import NodeSettings
from hdphrs.wire.tray import Taker
from hdphrs.wire.values import dump_result, load_outcome

DEADLINE_S = 60.0

ALLOCATOR = {"LD_PRELOAD", "GLIBC_TUNABLES"} | {
    f"MALLOC_{name}_" for name in ("TRIM_THRESHOLD", "MMAP_THRESHOLD", "MMAP_MAX", "TOP_PAD")
}
"""Variables by which a user has another allocator, or has told the one that there is what to do."""

SKIPPED = (
    local.HUNGRY,
    local.READY,
    local.CODE,
    local.ABOUT,
    local.REUSED,
    local.BEHIND,
    local.IMPORTED,
    local.KEEP,
    local.RELEASE,
)
"""The last two: whatever child the scheduler was held up in has run for long, and is kept; and code is forgotten."""


class PostingLink:
    """A node's: it says in the page that something has come."""

    def __init__(self, sock: socket.socket, line: Line) -> None:
        self.line = line
        self._link = local.Link(sock)
        self.receive = self._link.receive

    def send(self, *messages: list[Any]) -> None:
        self._link.send(*messages)
        self.line.post()


class FakeNode:
    """Hands tasks to one scheduler, and reads what it says, one message at a time."""

    def __init__(self) -> None:
        self.page = Page.create(1)
        settings = NodeSettings(root=True, host="localhost", slots=1, secret=b"")
        self.process: SchedulerProcess = start_scheduler(self.page, 0, settings)
        assert isinstance(self.process.process, subprocess.Popen)
        self.popen: subprocess.Popen[bytes] = self.process.process
        self.process.work.settimeout(DEADLINE_S)
        self.link = PostingLink(self.process.work, self.process.line)
        self.taker = Taker(self.process.tray, self.process.line)
        self.book = CodeBook(lambda digest, data: self.link.send([local.CODE, digest, data]))
        self.serial = 0
        self.heard: list[list[Any]] = []
        self.handed: dict[tuple[int, ...], tuple[int, list[Any]]] = {}
        """By ref."""

    def hear(self, kind: int, *skipped: int) -> list[Any]:
        """The next message, which must be of this kind (hunger is skipped, and what else is named)."""
        return self.hear_one_of((kind,), *skipped)

    def hear_one_of(self, kinds: Collection[int], *skipped: int) -> list[Any]:
        """The same, if several kinds may come first."""
        while True:
            if not self.heard:
                received = self.link.receive(block=True)
                assert received is not None, "the scheduler has ended"
                self.heard = self.taker.among(received)
            message = self.heard.pop(0)
            if message[0] in kinds:
                return message
            if message[0] == local.RETURN:
                self.hand_over_again(message)
            else:
                assert message[0] in (*SKIPPED, *skipped), message

    def hand_over_again(self, returned: list[Any]) -> None:
        """What has come back since another task has taken too long on this machine: there is nobody else."""
        self.link.send([local.START, [self.handed[tuple(ref)] for ref, _ in returned[1]]])

    def messages(self) -> list[list[Any]]:
        """What has arrived by now."""
        received = self.link.receive(block=True)
        assert received is not None, "the scheduler has ended"
        return [message for message in self.taker.among(received) if len(message) == 2]

    def spark(
        self, function: Callable[..., Any], *args: Any, careful: bool = False, pieces: tuple[Piece, ...] = ()
    ) -> tuple[int, list[Any]]:
        """A task to hand over: serial number and spark."""
        self.serial += 1
        code, payload = self.book.encode("f", function, args, {})
        crashes = (Crash("localhost", 1, "was killed"),) if careful else ()
        ref = TaskRef(ROOT, PROGRAM, self.serial)
        packed = pack_spark(Spark(ref, 0, Task("f", bytes(16), code, payload), crashes, pieces=pieces))
        self.handed[(ROOT, PROGRAM, self.serial)] = self.serial, packed
        return self.serial, packed

    def start(
        self, function: Callable[..., Any], *args: Any, careful: bool = False, pieces: tuple[Piece, ...] = ()
    ) -> int:
        """Hand over one task; its serial number."""
        serial, spark = self.spark(function, *args, careful=careful, pieces=pieces)
        self.link.send([local.START, [[serial, spark]]])
        return serial

    def ask(self) -> None:
        """Ask the helper thread for sparks."""
        self.process.line.want(True)
        self.process.control.send(b"?")

    def wait_for(self, path: Path) -> None:
        """Wait until a task has made this file."""
        deadline_s = monotonic() + DEADLINE_S
        while not path.exists():
            assert monotonic() < deadline_s
            assert self.popen.poll() is None

    def result(self) -> tuple[int, bool, Any]:
        """The next single result: (slot, succeeded, content)."""
        [[ref, _, outcome, *_]] = self.hear(local.RESULTS)[1]
        return ref[2], *load_outcome(unpack_outcome(outcome))

    def run_exported(self) -> int:
        """Play the other scheduler: run the next exported tasks and deliver their results; how many."""
        items = self.hear(local.EXPORT)[1]
        for slot, packed in items:
            task = unpack_task(packed)
            function, args = EXPORTED[task.name.split(".")[-1]], task.payload
            value = function(*pickle.loads(args)[:-1])  # the last is what random numbers depend on
            self.link.send([local.DELIVER, slot, pack_outcome(dump_result(task.name, value)), 0.0, 0.0])
        return len(items)


def fib(n: int) -> int:
    return n if n < 2 else sum(map(get, [spawn(fib, n - 1), spawn(fib, n - 2)]))


def square(n: int) -> int:
    return n * n


def sum_of_squares(n: int) -> int:
    return sum(map(get, [spawn(square, i) for i in range(n)]))


def faults_of_blocks(count: int, block_bytes: int, again: int) -> int:
    """How many pages the system has to give while so many blocks are taken and freed, again and again, after the first
    time.
    """
    before = 0
    for turn in range(1 + again):
        if turn == 1:
            before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        blocks = [bytearray(b"1") * block_bytes for _ in range(count)]
        del blocks
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


EXPORTED: dict[str, Callable[..., Any]] = {"square": square}


def test_a_task_without_demand_runs_with_all_its_children_in_place(node: FakeNode) -> None:
    slot = node.start(fib, 15)
    assert node.result() == (slot, True, 610)


def test_an_exception_is_an_outcome(node: FakeNode) -> None:
    node.start(int, "x")
    _, succeeded, error = node.result()
    assert not succeeded
    assert isinstance(error, ValueError)


def test_a_task_that_calls_sys_exit_does_not_end_its_scheduler(node: FakeNode) -> None:
    node.start(exit, 3)
    assert node.result()[1] is False
    node.start(square, 3)
    assert node.result()[2] == 9


def test_on_demand_the_oldest_half_is_exported_and_the_task_waits_for_it(node: FakeNode) -> None:
    node.process.line.want(True)
    node.start(sum_of_squares, 10)
    exported = node.run_exported()
    assert exported >= 1
    node.process.line.want(False)  # at the end of a rest (decision 17) hunger that lasts is heard again
    assert node.result()[2] == 285
    assert not node.process.line.demand


def test_a_careful_task_exports_every_child(node: FakeNode) -> None:
    node.start(sum_of_squares, 10, careful=True)
    exported = 0
    while exported < 10:
        exported += node.run_exported()
    assert node.result()[2] == 285


def spin(folder: Path) -> int:
    """Spawn four tasks, say so, and compute until told to go on."""
    futures = [spawn(square, i) for i in range(4)]
    (folder / "spinning").touch()
    while not (folder / "go").exists():
        pass
    return sum(map(get, futures))


def test_the_helper_thread_exports_for_a_long_task(node: FakeNode, tmp_path: Path) -> None:
    node.start(spin, tmp_path)
    node.wait_for(tmp_path / "spinning")
    exported = 0
    while exported < 2:
        node.ask()
        exported += node.run_exported()
    (tmp_path / "go").touch()
    assert node.result()[2] == 14


def test_the_helper_thread_sees_by_itself_that_somebody_is_hungry(node: FakeNode, tmp_path: Path) -> None:
    """The node asks once for each hunger, and that may have been between two tasks."""
    node.start(spin, tmp_path)
    node.wait_for(tmp_path / "spinning")
    node.process.line.want(True)
    assert node.run_exported() >= 1
    (tmp_path / "go").touch()
    assert node.result()[2] == 14


def wait_for_child(n: int) -> int:
    return n + get(spawn(square, n))


def test_many_tasks_wait_at_once_without_holding_the_scheduler(node: FakeNode) -> None:
    """Careful tasks export their only child, so each of them waits."""
    waiting = 200
    for i in range(waiting):
        node.start(wait_for_child, i, careful=True)
    pending: list[tuple[int, int]] = []
    while len(pending) < waiting:
        for slot, packed in node.hear(local.EXPORT)[1]:
            [n, _] = pickle.loads(unpack_task(packed).payload)
            pending.append((slot, n))
    for slot, n in reversed(pending):
        node.link.send([local.DELIVER, slot, pack_outcome(Outcome(Verdict.VALUE, pickle.dumps(n * n))), 0.0, 0.0])
    values: dict[int, int] = {}
    while len(values) < waiting:
        for ref, _, outcome, *_ in node.hear(local.RESULTS)[1]:
            values[ref[2]] = load_outcome(unpack_outcome(outcome))[1]
    assert sorted(values.values()) == sorted(i + i * i for i in range(waiting))


def test_what_was_handed_over_later_does_not_begin_earlier(node: FakeNode, tmp_path: Path) -> None:
    """A scheduler asks ahead: what it has would never begin if whatever comes went before it."""
    node.start(spin, tmp_path)
    node.wait_for(tmp_path / "spinning")
    serials = [node.start(square, n) for n in range(4)]
    pair = [node.spark(square, n) for n in range(2)]
    node.link.send([local.START, pair])
    (tmp_path / "go").touch()
    begun: list[int] = []
    while len(begun) < 7:
        begun += [ref[2] for ref, *_ in node.hear(local.RESULTS)[1]]
    assert begun[1:] == [*serials, *[serial for serial, _ in pair]]


def test_tasks_that_wait_their_turn_are_given_back_on_request(node: FakeNode, tmp_path: Path) -> None:
    first = node.spark(spin, tmp_path)
    waiting = [node.spark(square, i) for i in range(6)]
    node.link.send([local.START, [first, *waiting]])
    node.wait_for(tmp_path / "spinning")
    returned: set[int] = set()
    while len(returned) < 3:
        node.ask()
        for kind, items in node.messages():
            if kind == local.RETURN:
                returned.update(ref[2] for ref, _ in items)
    (tmp_path / "go").touch()
    assert returned <= {serial for serial, _ in waiting}


def test_a_result_that_does_not_pickle_is_an_error_that_says_so(node: FakeNode) -> None:
    node.start(threading.Lock)
    _, succeeded, error = node.result()
    assert not succeeded
    assert "the result of task f (a _thread.lock) does not pickle" in str(error)


def test_the_running_word_names_the_task_on_the_stack(node: FakeNode, tmp_path: Path) -> None:
    serial = node.start(spin, tmp_path)
    node.wait_for(tmp_path / "spinning")
    assert node.process.line.running == serial
    (tmp_path / "go").touch()
    node.result()
    node.start(square, 1)
    node.result()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have other habits")
@pytest.mark.skipif(bool(ALLOCATOR & os.environ.keys()), reason="the allocator has been told what to do")
@pytest.mark.parametrize("block_bytes", [100_000, 500_000])
def test_memory_that_a_task_takes_again_and_again_stays_with_the_scheduler(node: FakeNode, block_bytes: int) -> None:
    count, again = 4_000_000 // block_bytes, 50
    serial = node.start(faults_of_blocks, count, block_bytes, again)
    slot, succeeded, faults = node.result()
    assert (slot, succeeded) == (serial, True)
    assert faults < again  # where the blocks are given back each time it is a thousand pages each time


def test_a_scheduler_ends_when_its_node_closes_the_links(node: FakeNode) -> None:
    node.process.work.close()
    node.process.control.close()
    assert node.popen.wait(DEADLINE_S) == 0


def test_a_scheduler_ends_when_told_to(node: FakeNode) -> None:
    node.link.send([local.QUIT])
    assert node.popen.wait(DEADLINE_S) == 0


def test_careful_task_tells_its_arguments_before_it_runs(node: FakeNode) -> None:
    serial = node.start(fib, 1, careful=True)
    assert node.hear(local.ABOUT) == [local.ABOUT, serial, "1"]


def test_loading_a_function_is_no_work_of_the_task_that_needs_it_first(
    node: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what tasks have taken it is judged whether others are worth sending."""
    (tmp_path / "slow_to_load.py").write_text("import time\ntime.sleep(0.2)\ndef same(n): return n\n")
    monkeypatch.syspath_prepend(tmp_path)
    node.start(importlib.import_module("slow_to_load").same, 7)
    [[_, _, outcome, *_]] = node.hear(local.RESULTS)[1]
    assert load_outcome(unpack_outcome(outcome)) == (True, 7)
    assert unpack_outcome(outcome).cost_s < 0.1


class Slow:
    """Takes long to pickle, and to unpickle."""

    def __init__(self, for_s: float) -> None:
        self.for_s = for_s

    def __reduce__(self) -> tuple[Callable[[float], Slow], tuple[float]]:
        sleep(self.for_s)
        return wake_slow, (self.for_s,)


def wake_slow(for_s: float) -> Slow:
    sleep(for_s)
    return Slow(for_s)


def itself(slow: Slow) -> Slow:
    return slow


def test_what_a_scheduler_has_done_is_behind_what_it_answers(node: FakeNode) -> None:
    """What takes long to unpickle, too: else it would seem to be lost when the scheduler ends."""
    node.start(itself, Slow(0.1))
    [[_, _, outcome, own_s, here_s]] = node.hear(local.RESULTS)[1]
    assert unpack_outcome(outcome).cost_s == own_s >= 0.2
    assert here_s == 0.0
    assert node.process.line.busy_s == pytest.approx(own_s)


def slow_parent(folder: Path) -> list[int]:
    numbers = get(spawn(slow_child, folder))
    numbers.append(get(spawn(square, 3)))
    return numbers


def slow_child(folder: Path) -> list[int]:
    (folder / "begun").touch()
    while not (folder / "go on").exists():
        if fast.watched is not None:
            (folder / "watched").touch()
    return [1]


def test_child_that_runs_for_long_in_place_is_kept_as_it_was_when_it_ended(node: FakeNode, tmp_path: Path) -> None:
    node.start(slow_parent, tmp_path)
    node.wait_for(tmp_path / "begun")
    node.wait_for(tmp_path / "watched")
    (tmp_path / "go on").touch()
    ((path, _, outcome),) = node.hear(local.KEEP)[1]
    assert path == child_path(bytes(16), 0)
    assert load_outcome(unpack_outcome(outcome)) == (True, [1])
    assert node.result()[2] == [1, 9]


def dear(folder: Path) -> int:
    """Until its parent, which waits, can go on, and it has surely cost enough to be kept."""
    (folder / "began").touch()
    while fast.watched is None or not (folder / "delivered").exists():
        sleep(0.001)
    sleep(2 * PIECE_COST_S)
    return 1


def wait_beside_dear(folder: Path) -> int:
    placed = spawn_at(ROOT, square, 2)
    beside = spawn(dear, folder)
    get(placed)
    return get(beside)


def test_a_piece_alone_wakes_nobody(node: FakeNode, tmp_path: Path) -> None:
    """Its parent's stack goes on next, and what has gathered is said before that."""
    node.start(wait_beside_dear, tmp_path)
    slot = node.hear(local.PLACE)[1]
    node.wait_for(tmp_path / "began")
    node.link.send([local.DELIVER, slot, pack_outcome(dump_result("square", 4)), 0.0, 0.0])
    (tmp_path / "delivered").touch()
    heard: list[list[Any]] = []
    while local.RESULTS not in [message[0] for message in heard]:
        heard += node.link.receive(block=True) or pytest.fail("the scheduler has ended")
    assert local.KEEP not in [message[0] for message in heard]
    [laid] = [message for message in node.taker.among(heard) if message[0] == local.KEEP]
    assert [unpack_piece(piece).path for piece in laid[1]] == [child_path(bytes(16), 1)]


def test_task_that_is_run_again_computes_only_what_is_not_finished(node: FakeNode, tmp_path: Path) -> None:
    (tmp_path / "go on").touch()
    code, payload = node.book.encode("slow_child", slow_child, (tmp_path,), {})
    piece = Piece(child_path(bytes(16), 0), check_of(code, payload), dump_result("slow_child", [5]))
    node.start(slow_parent, tmp_path, pieces=(piece,))
    assert node.hear(local.REUSED) == [local.REUSED, 1, 0]
    assert node.result()[2] == [5, 9]
    assert not (tmp_path / "begun").exists()


class NeedsAnother:
    """Odd, but lawful: to unpickle it waits for another task."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return get_another, (self.folder,)


def get_another(folder: Path) -> int:
    value = get(spawn_at(ROOT, square, 4))
    (folder / "has it").touch()
    while not (folder / "end").exists():
        sleep(0.001)
    return value


def get_what_needs_another(folder: Path) -> int:
    future = spawn_at(ROOT, square, 3)
    while not (folder / "delivered").exists():
        sleep(0.001)
    return get(future)


def test_a_value_that_waits_while_it_is_unpickled_is_not_blamed_for_what_runs_meanwhile(
    node: FakeNode, tmp_path: Path
) -> None:
    """And is named again when it goes on."""
    line = node.process.line
    node.start(get_what_needs_another, tmp_path)
    outer = node.hear(local.PLACE)[1]
    value = pack_outcome(dump_result("square", NeedsAnother(tmp_path)))
    node.link.send([local.DELIVER, outer, value, 0.0, 0.0])
    (tmp_path / "delivered").touch()
    inner = node.hear(local.PLACE)[1]
    node.start(square, 5)
    assert node.result()[2] == 25
    assert line.unpickles == Label()
    node.link.send([local.DELIVER, inner, pack_outcome(dump_result("square", 16)), 0.0, 0.0])
    node.wait_for(tmp_path / "has it")
    assert line.unpickles == Label(Reading.VALUE, child_path(bytes(16), 0), "square")
    (tmp_path / "end").touch()
    assert node.result()[2] == 16
    assert line.unpickles == Label()
