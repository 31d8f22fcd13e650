"""A program whose tasks have threads, which see what their task has set while it has the core and while it has not.

As `seeing.py`, whose ways of running a child these are.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hdphrs
from tests.e2e.seeing import Run, main, says, sees_a_stream_of_another, warns


def prints(what: object) -> Any:
    print(what)
    return sys.stdout


@contextlib.contextmanager
def again_and_again(look: Callable[[], Any], seen: set[Any]) -> Iterator[None]:
    """A thread of the task collects what it sees."""
    ended, begun = threading.Event(), threading.Event()

    def body() -> None:
        while not ended.wait(0.0005):
            seen.add(look())
            begun.set()

    thread = threading.Thread(target=body)
    thread.start()
    try:
        begun.wait()
        yield
    finally:
        ended.set()
        thread.join()


def prints_meanwhile(depth: int = 0) -> Any:
    """So does a thread of its own, and children each of which has a stream of its own."""
    mine, seen = io.StringIO(), set[Any]()
    with contextlib.redirect_stdout(mine), again_and_again(lambda: prints(depth) is mine, seen):
        print("child")
        below = hdphrs.get(hdphrs.spawn(prints_meanwhile, depth - 1)) if depth else []
        time.sleep(0.01)
    return [sorted(set(mine.getvalue().split())), *seen, *below]


def prints_of_a_thread(start: Run) -> Any:
    mine, seen = io.StringIO(), set[Any]()
    with contextlib.redirect_stdout(mine), again_and_again(lambda: prints("not shown") is mine, seen):
        child = start(prints_meanwhile)()
        print("parent")
    return child, set(mine.getvalue().splitlines()) == {"not shown", "parent"}, *seen


def prints_of_threads_of_nested_tasks(start: Run) -> Any:
    return start(prints_meanwhile, 2)()


def warnings_in_a_thread(start: Run) -> Any:
    seen = set[Any]()
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        with again_and_again(warns, seen):
            child = start(ignores_warnings)()
    return child, *seen, warnings.filters[0][0] == "error"


def ignores_warnings() -> Any:
    seen = set[Any]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        with again_and_again(warns, seen):
            time.sleep(0.01)
    return *seen, warns_elsewhere()


def warns_elsewhere() -> str:
    with ThreadPoolExecutor(1) as pool, warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        return pool.submit(warns).result()


def threads_of_a_pool(start: Run) -> Any:
    """And threads of theirs."""

    def looks(_: int) -> bool:
        in_it: list[bool] = []
        thread = threading.Thread(target=lambda: in_it.append(sys.stderr is mine))
        thread.start()
        thread.join()
        return in_it[0] and sys.stderr is mine

    mine, seen = io.StringIO(), set[Any]()
    with contextlib.redirect_stderr(mine), ThreadPoolExecutor(2) as pool:
        list(pool.map(str, range(2)))
        with again_and_again(lambda: all(list(pool.map(looks, range(2)))), seen):
            child = start(sees_a_stream_of_another)()
    return child, *seen


def logs_in_a_thread(start: Run) -> Any:
    logger, mine, seen = logging.getLogger("seeing"), io.StringIO(), set[Any]()
    logger.propagate, logger.handlers = False, [logging._StderrHandler()]  # type: ignore[attr-defined]
    with contextlib.redirect_stderr(mine), again_and_again(lambda: logger.error("mine"), seen):
        child = start(logs)()
    return child, sorted(set(mine.getvalue().split()))


def logs() -> Any:
    logger = logging.getLogger("seeing")
    logger.propagate, logger.handlers = False, [logging._StderrHandler()]  # type: ignore[attr-defined]
    with contextlib.redirect_stderr(io.StringIO()) as mine:
        for _ in range(10):
            logger.error("child's")
            time.sleep(0.001)
    return sorted(set(mine.getvalue().split()))


def leaves_a_thread() -> bool:
    """Which goes on printing where its task has printed."""
    sys.stdout, ended = io.StringIO(), time.monotonic() + 0.03
    begun = threading.Event()

    def body() -> None:
        while time.monotonic() < ended:
            print("not shown")
            begun.set()
            time.sleep(0.0005)

    threading.Thread(target=body).start()
    return begun.wait()


def thread_that_outlives_its_task(start: Run) -> Any:
    with contextlib.redirect_stdout(io.StringIO()) as mine:
        start(leaves_a_thread)()
        print("parent")
        for _ in range(10):
            hdphrs.get(hdphrs.spawn(says))
            time.sleep(0.002)
    return mine.getvalue()


def what_a_thread_sets(start: Run) -> Any:
    """Is its task's too, whether that is in force or not."""
    mine, before = io.StringIO(), sys.stdout

    def body() -> None:
        time.sleep(0.005)
        sys.stdout = mine

    thread = threading.Thread(target=body)
    thread.start()
    child = start(sees_nothing_for_a_while)()
    thread.join()
    is_mine, sys.stdout = sys.stdout is mine, before
    return child, is_mine


def sees_nothing_for_a_while() -> bool:
    before, end_s = sys.stdout, time.monotonic() + 0.02
    while time.monotonic() < end_s:
        time.sleep(0.001)
        if sys.stdout is not before:
            return False
    return True


SCENARIOS: tuple[Callable[[Run], Any], ...] = (
    prints_of_a_thread,
    prints_of_threads_of_nested_tasks,
    warnings_in_a_thread,
    threads_of_a_pool,
    logs_in_a_thread,
    thread_that_outlives_its_task,
    what_a_thread_sets,
)

if __name__ == "__main__":
    main(SCENARIOS)
