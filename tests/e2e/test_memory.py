"""What is computed with large data again and again takes no more memory than once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.memory import LOOK

pytest.importorskip("numpy")

PROGRAM = (
    LOOK
    + """
import functools, os, sys, threading
import numpy as np
import hdphrs

MB = 1 << 20

def used():
    total = 0
    for pid in processes(os.getpid()):
        try:
            lines = open(f"/proc/{pid}/smaps_rollup").read().splitlines()[1:]
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) << 10
        total += sum(held(pid).values()) // 4
    return total

class Model:
    def __init__(self, array):
        self.array = array

    def at(self, index):
        return self.array[index]

def at(array, index):
    return array[index]

def add(x, y):
    return x + y

def nested(seed):
    array = np.arange(MB // 8) + float(seed)
    return hdphrs.par_map(lambda index: array[index], range(4))

SPELLINGS = {
    "par_map": lambda a: hdphrs.par_map(lambda i: a[i], range(4)),
    "par_map_chunked": lambda a: hdphrs.par_map_chunked(2, lambda i: a[i], range(4)),
    "par_map_sliced": lambda a: hdphrs.par_map_sliced(2, lambda i: a[i], range(4)),
    "spawn": lambda a: [hdphrs.get(f) for f in [hdphrs.spawn(lambda i: a[i], i) for i in range(4)]],
    "partial": lambda a: hdphrs.par_map(functools.partial(at, a), range(4)),
    "method": lambda a: hdphrs.par_map(Model(a).at, range(4)),
    "argument": lambda a: [hdphrs.get(f) for f in [hdphrs.spawn(at, a, i) for i in range(4)]],
    "submit": lambda a: [f.result() for f in [EXECUTOR.submit(lambda i: a[i], i) for i in range(4)]],
    "map_reduce": lambda a: [hdphrs.par_map_reduce_chunked(2, lambda i: a[i], add, 0.0, range(4))] * 4,
    "nested": lambda a: hdphrs.get(hdphrs.spawn(nested, int(a[0]))),
}

if __name__ == "__main__":
    name, rounds = sys.argv[1], 60
    EXECUTOR = hdphrs.Executor() if name == "submit" else None
    for number in range(rounds):
        array = np.arange(MB // 4) + float(number)
        values = SPELLINGS[name](array)
        assert values[0] == (number if name != "map_reduce" else 4.0 * number + 6.0), values
        if number == 15:
            before = used()
    print((used() - before) // MB)
"""
)


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="the system does not tell who uses how much")
@pytest.mark.parametrize(
    "spelling",
    ["par_map", "par_map_chunked", "par_map_sliced", "spawn", "partial", "method", "argument", "submit", "nested"],
)
def test_a_loop_with_fresh_data_takes_no_more_memory_in_its_later_rounds(tmp_path: Path, spelling: str) -> None:
    """Two megabytes a round in 44 rounds: kept for ever that is 88 in the node, and as much again in each scheduler."""
    (tmp_path / "loop.py").write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, "loop.py", spelling], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 60


MANY = """
import threading
import numpy as np
import hdphrs

def at(array, index):
    return float(array[index])

if __name__ == "__main__":
    array = np.arange(1_000_000.0)
    most = 0
    futures = []
    for index in range(60):
        futures.append(hdphrs.spawn(at, array, index))
        most = max(most, hdphrs.api.future.state.port.held_bytes)
    threads = [
        threading.Thread(target=lambda: futures.extend([hdphrs.spawn(at, array, i) for i in range(10)]))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cancelled = [hdphrs.spawn(at, array, index) for index in range(10)]
    for future in cancelled:
        future.cancel()
    assert sum(hdphrs.get(future) for future in futures) == sum(range(60)) + 3 * sum(range(10))
    print(most < (256 << 20) + (8 << 20), hdphrs.api.future.state.port.held_bytes)
"""


def test_many_calls_with_a_large_argument_wait_for_room(tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(MANY)
    ran = subprocess.run(
        [sys.executable, "many.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "True 0\n"), ran.stderr
