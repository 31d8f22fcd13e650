"""What waits to be sent is bounded in bytes, and what has been got is kept by nobody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.memory import LOOK

PROGRAM = (
    LOOK
    + """
import gc, os, resource, sys, threading, time
import hdphrs

MB = 1 << 20

def bulks():
    found = {}
    for pid in processes(os.getpid()):
        try:
            found.update(held(pid))
        except OSError:  # it has ended
            pass
    return sum(found.values()) // MB

PEAK = [0]

def watch():
    while True:
        PEAK[0] = max(PEAK[0], bulks())
        time.sleep(0.005)

def size(data):
    time.sleep(0.02)
    return len(data)

def make(index):
    return bytes(4 * MB)

def place(count):
    nodes = hdphrs.all_nodes()
    futures = [hdphrs.spawn_at(nodes[0], size, bytes(20 * MB)) for _ in range(count)]
    return sum(map(hdphrs.get, futures))

def place_in_a_thread(count):
    got = []
    thread = threading.Thread(target=lambda: got.append(place(count)))
    thread.start()
    thread.join()
    return got[0]

def spawn(count):
    return sum(map(hdphrs.get, [hdphrs.spawn(size, bytes(20 * MB)) for _ in range(count)]))

threading.Thread(target=watch, daemon=True).start()
how = sys.argv[1]
if how == "results":
    gc.disable()
    assert sum(map(len, hdphrs.par_buffer(3, make, range(40), ordered=False))) == 160 * MB
elif how == "as_completed":
    gc.disable()
    futures = [hdphrs.spawn(make, index) for index in range(3)]
    for index in range(40):
        done = next(iter(hdphrs.as_completed(futures)))
        futures.remove(done)
        assert len(hdphrs.get(done)) == 4 * MB
        del done
        futures.append(hdphrs.spawn(make, index))
elif how == "items":
    assert sum(hdphrs.par_map(size, (bytes(20 * MB) for _ in range(24)))) == 480 * MB
    PEAK[0] = max(PEAK[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
else:
    assert hdphrs.get(hdphrs.spawn(globals()[how], 24)) == 480 * MB
print(PEAK[0])
"""
)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("how", "most"),
    [
        ("place", 320),
        ("place_in_a_thread", 320),
        ("spawn", 320),
        ("items", 400),
        ("results", 40),
        ("as_completed", 40),
    ],
)
def test_peak_of_the_large_data_of_all_processes(tmp_path: Path, how: str, most: int) -> None:
    """In MiB.  Without bounds 480, and 160 of what nobody has any more; of items the whole memory of the program."""
    path = tmp_path / "prog.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(path), how], capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= most
