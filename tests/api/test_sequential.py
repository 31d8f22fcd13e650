"""Sequential mode: the oracle."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
import time
import warnings
from collections.abc import Iterator

import pytest

import hdphrs
from hdphrs import get, spawn, spawn_at
from hdphrs.errors import UsageError


def test_tasks_run_in_spawn_order_in_this_process() -> None:
    order: list[int] = []
    with hdphrs.sequential():
        futures = [spawn(order.append, i) for i in range(5)]
        assert order == list(range(5))
        assert all(future.done() for future in futures)


def test_an_exception_waits_for_get() -> None:
    with hdphrs.sequential():
        future = spawn(int, "x")
        for _ in range(2):
            with pytest.raises(ValueError, match="invalid literal"):
                get(future)


def test_run_calls_main_and_nested_spawns_work() -> None:
    def fib(n: int) -> int:
        return n if n < 2 else sum(map(get, [spawn(fib, n - 1), spawn(fib, n - 2)]))

    with hdphrs.sequential():
        assert hdphrs.run(fib, 12) == 144


def test_there_is_one_node_which_is_this_one() -> None:
    with hdphrs.sequential():
        assert hdphrs.all_nodes() == [hdphrs.my_node()]
        assert get(spawn_at(hdphrs.my_node(), abs, -3)) == 3
        with pytest.raises(UsageError, match="there is no node 7"):
            spawn_at(hdphrs.my_node() + 7, abs, -3)


def test_spawn_at_something_that_is_no_node_is_refused() -> None:
    with hdphrs.sequential(), pytest.raises(UsageError, match="the first argument is a node id"):
        spawn_at(abs, -3)  # type: ignore[arg-type]


def test_keywords_reach_the_task() -> None:
    with hdphrs.sequential():
        assert get(spawn(int, "ff", base=16)) == 255
        assert hdphrs.run(int, "ff", base=16) == 255
        assert get(spawn_at(hdphrs.my_node(), int, "ff", base=16)) == 255


def test_the_paper_spellings_are_the_same_objects() -> None:
    assert hdphrs.spawnAt is hdphrs.spawn_at
    assert hdphrs.allNodes is hdphrs.all_nodes
    assert hdphrs.myNode is hdphrs.my_node


def test_threads_of_a_task_and_of_the_program_keep_what_these_have_set(capsys: pytest.CaptureFixture[str]) -> None:
    def ticks(said: io.StringIO) -> bool:
        """Whether somebody writes there soon."""
        end_s, before = time.monotonic() + 30, said.tell()
        while said.tell() == before and time.monotonic() < end_s:
            time.sleep(0.0005)
        return said.tell() > before

    @contextlib.contextmanager
    def ticking(what: str) -> Iterator[None]:
        def tick() -> None:
            while not ended.wait(0.0005):
                print(what, end="")

        ended = threading.Event()
        thread = threading.Thread(target=tick)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def child(of_parent: io.StringIO) -> bool:
        with contextlib.redirect_stdout(io.StringIO()) as mine:
            print("c", end="")
            return ticks(of_parent) and ticks(of_program) and mine.getvalue() == "c"

    def parent() -> tuple[bool, set[str]]:
        with contextlib.redirect_stdout(io.StringIO()) as mine, ticking("t"):
            return get(spawn(child, mine)), set(mine.getvalue())

    classes = type(sys), type(warnings)
    with contextlib.redirect_stdout(io.StringIO()) as of_program, hdphrs.sequential(), ticking("p"):
        assert get(spawn(parent)) == (True, {"t"})
    assert set(of_program.getvalue()) == {"p"}
    assert (type(sys), type(warnings)) == classes
    assert not capsys.readouterr().out
