"""Tasks that compute little or nothing: so their cost is that of the system."""

from __future__ import annotations

import os
import time
from typing import Any

SPINS_PER_MS = 20_000
"""Steps of `spin` that take about a millisecond; how long exactly is measured with the rest, by the plain loop."""


def noop(number: int) -> int:
    """The smallest task."""
    return number


def visit_fib(number: int) -> tuple[int, list[int]]:
    """Fibonacci, every call a problem of its own."""
    return (number, []) if number < 2 else (0, [number - 1, number - 2])


def spin(steps: int) -> int:
    """Keep a core busy."""
    state = 1
    for _ in range(steps):
        state = state * 5 & 0xFFFF
    return state


def visit_spins(steps: int, leaves: int) -> tuple[int, list[int]]:
    """A binary tree whose leaves spin and count as one; inner problems do nothing."""
    if leaves == 1:
        spin(steps)
        return 1, []
    return 0, [leaves // 2, leaves - leaves // 2]


def visit_waiting(problem: tuple[int, int]) -> tuple[int, list[tuple[int, int]]]:
    """A level and a width: above level 0 a problem only waits for `width` of the level below; those of 0 count as one.

    On level 2 there are many that wait for one child each, and occupy all that waiting tasks occupy.
    """
    level, width = problem
    return (0, [(level - 1, 1)] * width) if level else (1, [])


def compute(seconds: float) -> int:
    """Keep a core busy for so much processor time, however fast it is just now."""
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass
    return 1


def note(log: str, what: str, number: int) -> None:
    """Append a line about a task to a file that other processes append to as well."""
    line = f"{what} {number} {os.getpid()} {time.time():.6f}\n"
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def paced(log: str, seconds: float, number: int) -> int:
    """Wait instead of computing, and leave word of the beginning and the end."""
    note(log, "start", number)
    time.sleep(seconds)
    note(log, "end", number)
    return number


def paced_or_poison(log: str, seconds: float, poison: int, number: int) -> int:
    """The same, but the task with the number `poison` takes its process along."""
    if number == poison:
        note(log, "start", number)
        os._exit(1)
    return paced(log, seconds, number)


def add_up(array: Any) -> int:
    """Touch each byte of a NumPy array."""
    return int(array.sum())
