"""Calls for the tests of executors; schedulers import this, so it imports little."""

from __future__ import annotations

import os
import time
from concurrent import futures
from pathlib import Path

import hdphrs

state = "untouched"


def square(n: int) -> int:
    return n * n


def add(a: int, b: int) -> int:
    return a + b


def whoami() -> int:
    return os.getpid()


def fail(message: str) -> None:
    raise ValueError(message)


def wait_for(gate: Path) -> str:
    """Return when this file is there."""
    while not gate.exists():
        time.sleep(0.002)
    return gate.name


def wait_and_fail(gate: Path) -> None:
    wait_for(gate)
    raise ValueError("so it fails")


def mark_and_loop(gate: Path) -> None:
    """Make the file, and spawn until nobody wants that any more."""
    gate.touch()
    while not gate.with_name("enough").exists():
        hdphrs.get(hdphrs.spawn(square, 2))


def crash_until(marks: Path, times: int) -> int:
    """Take the process down, but for so many marks in the folder."""
    count = len(list(marks.iterdir()))
    if count < times:
        (marks / str(count)).touch()
        os._exit(3)
    return count


def crowd(folder: Path) -> int:
    """How many calls of this are under way."""
    (folder / str(os.getpid())).touch()
    time.sleep(0.01)
    count = len(list(folder.iterdir()))
    (folder / str(os.getpid())).unlink()
    return count


def touch_state(value: str, log: Path) -> None:
    """An initializer that leaves a trace of each time it has run."""
    global state
    state = value
    with log.open("a") as file:
        file.write(f"{os.getpid()}\n")


def state_here() -> tuple[str, int]:
    return state, os.getpid()


class Adder:
    """Something whose methods are not code that travels once."""

    def __init__(self, amount: int) -> None:
        self.amount = amount

    def plus(self, n: int) -> int:
        return self.amount + n


def spawn_first() -> None:
    hdphrs.spawn(square, 2)


def tree(levels: int) -> int:
    """Executors all the way down."""
    if levels == 0:
        return 1
    with hdphrs.Executor() as executor:
        return sum(executor.map(tree, [levels - 1] * 3))


def inside() -> dict[str, object]:
    """What a task can do with an executor."""
    called: list[int] = []
    found: dict[str, object] = {}
    with hdphrs.Executor(max_workers=2) as executor:
        children = [executor.submit(square, n) for n in range(6)]
        children[0].add_done_callback(lambda future: called.append(future.result()))
        found["wait"] = sum(future.result() for future in futures.wait(children[:2]).done)
        found["as_completed"] = sorted(future.result() for future in futures.as_completed(children[2:]))
        found["map"] = list(executor.map(add, range(5), range(5), chunksize=2))
        failing = executor.submit(fail, "inside")
        found["exception"] = repr(failing.exception())
        found["done"] = children[0].cancel(), children[0].done(), children[0].running()
        last = executor.submit(square, 9)
    found["shutdown"] = last.done()
    found["callback"] = called
    try:
        executor.submit(square, 1)
    except RuntimeError as error:
        found["closed"] = str(error)
    with hdphrs.Executor() as executor:
        for _ in range(300):
            executor.submit(square, 3).result()
        found["swept"] = len(executor._children) < 300
    return found


def inside_initialized(log: Path) -> object:
    with hdphrs.Executor(initializer=touch_state, initargs=("inside", log)) as executor:
        return executor.submit(state_here).result()[0]
