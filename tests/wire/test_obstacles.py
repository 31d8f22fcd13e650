"""What does not travel is named, with where it is and what to do instead."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import io
import logging
import mmap
import multiprocessing
import queue
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from hdphrs.api.future import Future
from hdphrs.errors import CannotTravelError
from hdphrs.wire.code import CodeBook
from hdphrs.wire.obstacles import obstacle_in
from hdphrs.wire.values import dump_arguments, dump_result, load_outcome

LOCK = threading.Lock()


def code_is_refused(function: Callable[..., Any]) -> str:
    with pytest.raises(CannotTravelError) as refused:
        CodeBook(lambda digest, data: None).encode("task", function, (), {})
    return str(refused.value)


def is_refused(value: object) -> str:
    with pytest.raises(CannotTravelError) as refused:
        dump_arguments("task", (1, value), {}, b"")
    return str(refused.value)


async def asynchronous(x: int) -> int:
    return x


async def stream() -> AsyncIterator[int]:
    yield 1


def numbers() -> Iterator[int]:
    yield 1


@dataclass
class Record:
    name: str
    parts: list[object] = field(default_factory=list)


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def method(self) -> None: ...


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def made(kind: str, stack: ExitStack) -> object:
    if kind == "coroutine":
        coroutine = asynchronous(1)
        stack.callback(coroutine.close)
        return coroutine
    if kind in ("asyncio.Future", "loop"):
        loop = asyncio.new_event_loop()
        stack.callback(loop.close)
        return loop.create_future() if kind == "asyncio.Future" else loop
    if kind == "child":
        return stack.enter_context(subprocess.Popen([sys.executable, "-c", ""]))
    if kind == "database":
        connection = sqlite3.connect(":memory:")
        stack.callback(connection.close)
        return connection
    if kind == "pool":
        return stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
    if kind == "file":
        return stack.enter_context(open(__file__, "rb"))
    if kind == "socket":
        return stack.enter_context(socket.socket())
    if kind == "mmap":
        return stack.enter_context(mmap.mmap(-1, 16))
    simple: dict[str, Callable[[], object]] = {
        "concurrent.futures": concurrent.futures.Future,
        "ours": Future,
        "generator": numbers,
        "async generator": stream,
        "lock": threading.Lock,
        "rlock": threading.RLock,
        "condition": threading.Condition,
        "event": threading.Event,
        "semaphore": threading.Semaphore,
        "local": threading.local,
        "thread": threading.Thread,
        "queue": queue.Queue,
        "simple queue": queue.SimpleQueue,
        "process": multiprocessing.Process,
        "context": contextvars.copy_context,
        "weak reference": lambda: weakref.ref(Record),
    }
    return simple[kind]()


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("concurrent.futures", "pass its value, future.result()"),
        ("ours", r"get\(\) it first, and pass its value"),
        ("asyncio.Future", "await it first, and pass its value"),
        ("loop", "let the task make its own"),
        ("coroutine", r"asyncio.run\(function\(argument\)\)"),
        ("generator", r"pass list\(...\) of it, or the function"),
        ("async generator", r"asyncio.run"),
        ("lock", "make it in the function that uses it"),
        ("rlock", "make it in the function that uses it"),
        ("condition", "make it in the function that uses it"),
        ("event", "make it in the function that uses it"),
        ("semaphore", "make it in the function that uses it"),
        ("local", "fill it in the task"),
        ("thread", "start it in the task"),
        ("process", "start it in the task"),
        ("child", "start it in the task"),
        ("queue", "return what comes out"),
        ("simple queue", "return what comes out"),
        ("pool", "make one in the task"),
        ("file", "pass its name, and open it in the task"),
        ("mmap", "pass its name, and open it in the task"),
        ("socket", "open it in the task"),
        ("database", "open it in the task"),
        ("context", "tasks have a copy"),
        ("weak reference", "pass the object"),
    ],
)
def test_what_belongs_to_one_process_is_named_with_the_remedy(kind: str, remedy: str, stack: ExitStack) -> None:
    value = made(kind, stack)
    assert_is_named(obstacle_in({"a": [value]}), "['a'][0]", remedy)
    if kind not in ("process", "weak reference"):  # these have errors of their own, or none here
        assert_is_named(is_refused([value]), "[0]", remedy)


def assert_is_named(sentence: str, where: str, remedy: str) -> None:
    assert re.search(rf"; {re.escape(where)} is a \S+: .*{remedy}", sentence), sentence


@pytest.mark.parametrize(
    ("wrap", "where"),
    [
        (lambda lock: lock, "it"),
        (lambda lock: [0, lock], "[1]"),
        (lambda lock: (0, (lock,)), "[1][0]"),
        (lambda lock: {"k": {2: lock}}, "['k'][2]"),
        (lambda lock: deque([lock]), "[0]"),
        (lambda lock: Record("r", [lock]), ".parts[0]"),
        (lambda lock: Slotted(lock), ".held"),
        (lambda lock: functools.partial(print, lock), ".args[0]"),
        (lambda lock: functools.partial(print, file=lock), ".keywords['file']"),
        (lambda lock: functools.partial(Slotted(lock).method), ".func.__self__.held"),
    ],
)
def test_where_it_is_is_said(wrap: Callable[[object], object], where: str) -> None:
    assert is_refused(wrap(threading.Lock())).split("; ")[1].startswith(f"{where} is a _thread.lock: ")


def test_captured_names_defaults_and_globals_of_a_function_are_named() -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    captured = code_is_refused(lambda: future.result())
    assert "; the name 'future', which " in captured
    assert "captures, is a concurrent.futures._base.Future: " in captured
    assert "; a default of " in code_is_refused(lambda x=future: x)
    local: dict[str, Any] = {"LOCK": LOCK}
    exec("def by_value():\n    with LOCK:\n        return [LOCK for _ in range(3)]", local)
    assert "; the global 'LOCK', which by_value uses, is a _thread.lock: " in code_is_refused(local["by_value"])


def test_a_result_is_searched_too_and_a_coroutine_is_not_reported_as_never_awaited() -> None:
    with pytest.raises(CannotTravelError, match=r"^the result of task f \(a coroutine\) .*; it is a coroutine: "):
        raise load_outcome(dump_result("f", asynchronous(1)))[1]
    with pytest.raises(CannotTravelError, match=r"^the result of task f \(a list\) .*; \[0\] is a generator: "):
        raise load_outcome(dump_result("f", [numbers()]))[1]


def test_a_handler_of_logging_is_refused_for_its_lock() -> None:
    assert "; .lock is a _thread.RLock: " in is_refused(logging.StreamHandler(io.StringIO()))


@pytest.mark.skipif(sys.version_info < (3, 14), reason="these pickle here")
def test_an_iterator_of_itertools_is_named_where_it_no_longer_travels() -> None:
    assert "; [0] is an itertools.count: it can be used up" in is_refused([count()])


def test_nothing_is_said_where_nothing_is_found() -> None:
    class Refuses:
        def __reduce__(self) -> str:
            raise ValueError("I do not pickle")

        def __getattr__(self, name: str) -> object:
            raise AssertionError("asked")

        @property
        def asked(self) -> object:
            raise AssertionError("asked")

    assert is_refused([Refuses()]).endswith("ValueError: I do not pickle")


def test_values_that_go_round_or_on_for_long_are_given_up() -> None:
    ring: list[object] = []
    ring.append({"ring": ring})
    assert obstacle_in(ring) == ""
    deep: object = threading.Lock()
    for _ in range(100_000):
        deep = [deep]
    assert obstacle_in(deep) == ""
    assert obstacle_in([io.BytesIO(), io.StringIO()]) == ""
    while isinstance(deep, list):  # what is so deep ends the process when it is dropped at once
        deep = deep.pop()
