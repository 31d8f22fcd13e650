"""A short call is answered while others keep all cores busy, and all values are right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, time
import hdphrs

def fib(n):
    if n < 2:
        return n
    left = hdphrs.spawn(fib, n - 1)
    return fib(n - 2) + hdphrs.get(left)

def count(n):
    return sum(hdphrs.get(future) for future in [hdphrs.spawn(abs, 1) for _ in range(n)])

def add(x, y):
    return x + y

def until(path):
    while not os.path.exists(path):
        count(3)
    return "done"

if __name__ == "__main__":
    assert hdphrs.get(hdphrs.spawn(add, 0, 1)) == 1
    end = os.path.abspath("end")
    cores = sum(info.slots for info in hdphrs.node_infos())
    long = [hdphrs.spawn(until, end) for _ in range(cores)]
    time.sleep(0.3)
    waited = []
    for number in range(15):
        began = time.monotonic()
        spelling = number % 5
        if spelling == 0:
            assert hdphrs.get(hdphrs.spawn(add, number, 1)) == number + 1
        elif spelling == 1:
            assert hdphrs.par_map(abs, [-number, 1]) == [number, 1]
        elif spelling == 2:
            assert hdphrs.Executor().submit(add, number, 2).result() == number + 2
        elif spelling == 3:
            assert hdphrs.get(hdphrs.spawn(count, 5)) == 5
        else:
            assert hdphrs.get(hdphrs.spawn(hdphrs.task(add, priority=3), number, 1)) == number + 1
        waited.append(time.monotonic() - began)
    assert not any(future.done() for future in long), "they had run already"
    open(end, "x").close()
    print(sorted(waited)[len(waited) // 2] < 1.0, max(waited) < 4.0)
    assert [hdphrs.get(future) for future in long] == ["done"] * cores
    trees = [hdphrs.spawn(fib, 18 + number % 3) for number in range(12)]
    assert [hdphrs.get(tree) for tree in trees] == [2584, 4181, 6765] * 4
"""


def test_short_calls_are_answered_while_recursive_ones_have_all_cores(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, "service.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "True True\n"), ran.stderr


BEHIND = """
import itertools, os
import hdphrs

def count(n):
    return sum(hdphrs.get(future) for future in [hdphrs.spawn(abs, 1) for _ in range(n)])

def until(path):
    while not os.path.exists(path):
        count(3)
    return "done"

def square(n):
    return n * n

def answered(order, end):
    calls = [hdphrs.spawn(until, end) if each == "u" else hdphrs.spawn(square, 7) for each in order]
    try:
        return hdphrs.get(calls[order.index("s")], timeout=60)
    finally:
        open(end, "x").close()
        assert [hdphrs.get(each) for each in calls] == ["done" if each == "u" else 49 for each in order]

if __name__ == "__main__":
    orders = ["us", "us", "us", "uusu", "uus", "suu", "uuuus", "usuuu", "uuusuu"]
    print([answered(order, os.path.abspath(str(number))) for number, order in enumerate(orders)])
"""


def test_what_was_handed_over_to_wait_behind_an_endless_call_is_run_all_the_same(tmp_path: Path) -> None:
    """The last call of its kind was short, so its scheduler asks for more before this one ends, which it never does."""
    (tmp_path / "behind.py").write_text(BEHIND)
    ran = subprocess.run(
        [sys.executable, "behind.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, f"{[49] * 9}\n"), ran.stderr
