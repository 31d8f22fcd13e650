"""Bundles in one scheduler process, with the test as its node and its program."""

from __future__ import annotations

import os
import pickle
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hdphrs import get, spawn, spawn_at
from hdphrs.protocol.paths import PROGRAM_PATH, index_of
from hdphrs.protocol.tasks import PROGRAM, ROOT, Crash, Origin, Outcome, Spark, Task, TaskRef
from hdphrs.scheduler.assigned import path_of
from hdphrs.scheduler.habits import SOON_S
from hdphrs.wire import local
from hdphrs.wire.bundle import RETURNED, Answer, Calls, bundle_path, pack_calls, unpack_answer
from hdphrs.wire.items import pack_outcome, pack_spark, unpack_outcome, unpack_piece, unpack_task
from hdphrs.wire.page import LOOK
from hdphrs.wire.values import dump_result, load_outcome
from tests.scheduler.test_process import FakeNode

FIRST = 7
"""Index of the first call."""


def bundle(
    node: FakeNode,
    function: Callable[..., Any],
    *arguments: tuple[Any, ...] | bytes,
    replica: int = 0,
    crashes: int = 0,
) -> list[Any]:
    """Hand over a bundle; its copy."""
    node.serial += 1
    code, data = node.book.code_of("f", function)
    calls = Calls(PROGRAM_PATH, range(FIRST, FIRST + len(arguments)), b"" if code else data, b"", arguments)
    task = Task("f", bundle_path(PROGRAM_PATH, node.serial), code, pack_calls(calls))
    ref = TaskRef(ROOT, PROGRAM, node.serial)
    spark = Spark(ref, replica, task, (Crash("localhost", 1, "was killed"),) * crashes)
    node.link.send([local.START, [[node.serial, pack_spark(spark)]]])
    return [list(ref), replica]


def answer(node: FakeNode) -> Answer | None:
    """The next result, which is a bundle's."""
    [[_, _, outcome, *_]] = node.hear(local.RESULTS, local.CALLED, local.KEEP)[1]
    return unpack_answer(unpack_outcome(outcome).data)


def run(node: FakeNode, function: Callable[..., Any], *arguments: tuple[Any, ...] | bytes) -> dict[int, Any]:
    """What all calls of a bundle come to, by their places; those that a slow machine has given back go once more."""
    come_to: dict[int, Any] = {}
    while places := [place for place in range(len(arguments)) if place not in come_to]:
        bundle(node, function, *[arguments[place] for place in places])
        got = answer(node)
        assert got is not None
        for number, place in enumerate(places):
            if number not in got.others:
                come_to[place] = got.values[number]
            elif got.others[number] is not None:
                come_to[place] = value_of(got.others[number])
    return come_to


def begin(node: FakeNode, begun: Path, function: Callable[..., Any], *arguments: tuple[Any, ...]) -> list[Any]:
    """Hand over a bundle of which the first call makes a file; its copy, when it does."""
    while True:
        copy = bundle(node, function, *arguments)
        while not begun.exists():
            if select.select([node.process.work], [], [], 0.01)[0]:
                said = node.link.receive(block=True) or []
                if any(message[0] == local.RESULTS for message in said):  # all of it has been given back
                    node.heard = [message for message in node.heard if message[0] != local.KEEP]  # some of it before
                    break
                node.heard += said
        else:
            return copy


def parts(node: FakeNode) -> dict[int, Outcome]:
    """The next outcomes that come before their bundle, by index."""
    return parts_of(node.hear(local.KEEP, local.CALLED))


def parts_of(kept: list[Any]) -> dict[int, Outcome]:
    """Those of one message."""
    pieces = [unpack_piece(piece) for piece in kept[1]]
    return {index_of(piece.path): piece.outcome for piece in pieces}


def value_of(outcome: list[object] | None) -> Any:
    assert outcome is not None
    return load_outcome(unpack_outcome(outcome))[1]


def half(n: Any) -> Any:
    if n == 13:
        raise ValueError("unlucky")
    return [n / 2] if isinstance(n, str) or n > 100 else n / 2


def test_each_call_has_its_own_outcome(node: FakeNode) -> None:
    got = run(node, half, (4,), (13,), (200,), pickle.dumps((6, b"")), b"no pickle", ("x",), (8,))
    assert [got[place] for place in (0, 2, 3, 6)] == [2.0, [100.0], 3.0, 4.0]
    assert str(got[1]) == "unlucky"
    assert "does not unpickle here" in str(got[4])
    assert isinstance(got[5], TypeError)


def test_a_function_that_travels_inline_is_every_calls_own(node: FakeNode) -> None:
    seen: list[int] = []

    def remember(n: int) -> int:
        seen.append(n)
        return len(seen)

    assert run(node, remember, (1,), (2,), (3,)) == {0: 1, 1: 1, 2: 1}


def test_a_value_that_does_not_pickle_is_the_error_of_its_call_alone(node: FakeNode) -> None:
    got = run(node, lambda n: threading.Lock() if n else n, (0,), (1,), (0,))
    assert (got[0], got[2]) == (0, 0)
    assert "does not pickle" in str(got[1])


def same(n: int) -> int:
    return n


def doubled(n: int) -> int:
    return 2 * get(spawn(same, n))


def test_calls_spawn_and_get_in_place(node: FakeNode) -> None:
    assert run(node, doubled, *[(n,) for n in range(50)]) == {n: 2 * n for n in range(50)}


def path_of_child(n: int) -> bytes:
    """Of the second one."""
    spawn(same, n)
    return path_of(spawn(same, n))


def test_children_of_a_call_have_its_own_path(node: FakeNode) -> None:
    [first, second] = run(node, path_of_child, (1,), (2,)).values()
    assert {first, second} <= {bytes((FIRST, 1)), bytes((FIRST + 1, 1))}


@pytest.mark.parametrize("again", [{"replica": 1}, {"crashes": 1}])
def test_a_bundle_that_is_run_again_runs_nothing(node: FakeNode, again: dict[str, int]) -> None:
    bundle(node, os._exit, (1,), **again)
    assert answer(node) is None


def block(folder: str, n: int) -> int:
    """The first call of all waits for a file."""
    if n == 0:
        Path(folder, "blocked").touch()
        while not Path(folder, "go").exists():
            pass
    return n


def test_a_call_that_takes_long_holds_back_neither_what_is_done_nor_what_has_not_begun(
    node: FakeNode, tmp_path: Path
) -> None:
    begin(node, tmp_path / "blocked", block, *[(str(tmp_path), n) for n in range(5)])
    heard: dict[int, Outcome] = {}
    while len(heard) < 4:
        heard |= parts(node)
    assert heard == dict.fromkeys(range(FIRST + 1, FIRST + 5), RETURNED)
    (tmp_path / "go").touch()
    got = answer(node)
    assert got is not None
    assert got.values[0] == 0
    assert got.others == dict.fromkeys(range(1, 5))


def wait_for_other(folder: str, n: int) -> int:
    """The first call waits for a child that somebody else has taken."""
    if n == 0:
        future = spawn(same, n)
        Path(folder, "waits").touch()
        return get(future)
    return n


def test_while_a_call_waits_the_others_go_on(node: FakeNode, tmp_path: Path) -> None:
    node.process.line.want(True)
    begin(node, tmp_path / "waits", wait_for_other, *[(str(tmp_path), n) for n in range(20)])
    heard: dict[int, Outcome] = {}
    slot: int | None = None
    while slot is None or len(heard) < 19:
        message = node.hear_one_of((local.EXPORT, local.KEEP), local.CALLED)  # on a slow machine the helper is first
        if message[0] == local.KEEP:
            heard |= parts_of(message)
        else:
            [[slot, _]] = message[1]
    values = {index - FIRST: load_outcome(outcome)[1] for index, outcome in heard.items() if outcome != RETURNED}
    assert values == {n: n for n in values}
    node.link.send([local.DELIVER, slot, pack_outcome(dump_result("same", 0)), 0.0, 0.0])
    got = answer(node)
    assert got is not None
    assert [got.values[place] for place in (0, *values)] == [0, *values]


def test_a_bundle_that_was_cancelled_stops_the_call_that_runs_and_begins_no_other(
    node: FakeNode, tmp_path: Path
) -> None:
    copy = begin(node, tmp_path / "0", spin_and_spawn, *[(str(tmp_path), n) for n in range(5)])
    node.link.send([local.STOP, [copy]])
    node.process.control.send(b"!")
    assert node.hear(local.BEHIND, local.CALLED)[2:] == [0, b""]
    got = answer(node)
    assert got is not None
    assert isinstance(value_of(got.others[0]), BaseException)
    assert not (tmp_path / "1").exists()


def spin_and_spawn(folder: str, n: int) -> None:
    Path(folder, str(n)).touch()
    while True:
        spawn(abs, n)


def test_node_is_told_which_call_a_cancelled_task_descends_from(node: FakeNode, tmp_path: Path) -> None:
    """It has been sent away, and has come back to the scheduler on which its parent waits for it."""
    [_, _, serial], _ = begin(node, tmp_path / "waits", wait_for_placed, *[(str(tmp_path), n) for n in range(3)])
    node.serial += 1
    path = unpack_task(node.hear(local.PLACE, local.KEEP, local.CALLED)[3]).path
    code, payload = node.book.encode("f", spin_and_spawn, (str(tmp_path), 0), {})
    ref = TaskRef(ROOT, Origin(1), 0)
    node.link.send([local.START, [[node.serial, pack_spark(Spark(ref, 0, Task("f", path, code, payload)))]]])
    node.wait_for(tmp_path / "0")
    node.link.send([local.STOP, [[list(ref), 0]]])
    node.process.control.send(LOOK)
    said = node.hear(local.BEHIND, local.CALLED)
    assert said == [local.BEHIND, node.serial, serial, bytes((FIRST,))]


def wait_for_placed(folder: str, n: int) -> None:
    """The first call waits for a child."""
    if n == 0:
        future = spawn_at(ROOT, spin_and_spawn, folder, 0)
        Path(folder, "waits").touch()
        get(future)


def test_a_call_counts_as_a_task_that_was_run(node: FakeNode) -> None:
    bundle(node, half, *[(n,) for n in range(10)])
    said, more = node.hear_one_of((local.CALLED, local.RESULTS), local.KEEP), 0
    if said[0] == local.CALLED:
        _, more, made = said
        assert made == 0, "they are the program's"
    else:  # a slow machine has given all others back
        node.heard.insert(0, said)
    got = answer(node)
    assert got is not None
    assert more == 9 - sum(other is None for other in got.others.values())


def test_values_that_are_together_too_large_make_the_rest_come_back(node: FakeNode) -> None:
    bundle(node, large, *[(n,) for n in range(10)])
    got = answer(node)
    assert got is not None
    here = [place for place, other in got.others.items() if other is not None]
    assert here == [0, 1, 2][: len(here)]
    assert len(got.others) == 10


def large(n: int) -> bytes:
    return bytes(400_000)


def test_hunger_is_said_in_a_bundle_that_will_soon_be_over(node: FakeNode, tmp_path: Path) -> None:
    def wait(end: str) -> int:
        while end and not Path(end).exists():
            time.sleep(0.001)
        return 1

    node.hear(local.HUNGRY)
    end = tmp_path / "end"
    for _ in range(20):  # until the machine is not so busy that two calls of nothing take as long as a bundle may
        bundle(node, wait, ("",), ("",), (str(end),))
        said = node.hear_one_of((local.HUNGRY, local.KEEP), local.CALLED)[0]
        end.touch()
        got = answer(node)
        assert got is not None
        if said == local.HUNGRY and not got.others:  # else it has become late before its last call began
            assert got.values == [1, 1, 1]
            return
        while node.hear(local.HUNGRY, local.CALLED)[3] == local.AHEAD:  # until it has nothing to do
            pass
        node.start(time.sleep, 0.0)  # so that it has not asked ahead when the next one begins
        node.result()
        node.hear(local.HUNGRY)
        end.unlink()
    pytest.fail("no hunger was said before the end")


def test_and_not_in_one_of_which_much_is_left(node: FakeNode) -> None:
    node.hear(local.HUNGRY)
    bundle(node, time.sleep, *[(SOON_S,)] * 3)
    assert node.hear_one_of((local.RESULTS, local.HUNGRY), local.CALLED, local.KEEP)[0] == local.RESULTS
