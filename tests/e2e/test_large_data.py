"""Large arguments and results on real processes: whole, private, and gone when they are not needed any more."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from hdphrs.config import CoreConfig
from hdphrs.wire.bulk import BULK_NAME
from tests.e2e.harness import DEADLINE_S, Cluster, eventually

ARRAY = """
import os, pickle, signal, hdphrs

class Array:
    "What of NumPy's arrays matters here."
    def __init__(self, data):
        self.data = memoryview(data)
    def __reduce_ex__(self, protocol):
        return Array, (pickle.PickleBuffer(self.data),)
"""


def bulks(cluster: Cluster, module: str = "") -> int:
    """Bytes of bulks for which processes of the run have a descriptor or a mapping."""
    found = 0
    for pid in cluster.processes(module):
        with suppress(OSError):
            for path in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if BULK_NAME in os.readlink(path):
                        found += path.stat().st_size
            found += Path(f"/proc/{pid}/maps").read_text().count(BULK_NAME)
    return found


def has_none(cluster: Cluster, module: str) -> bool:
    """Whether such processes hold no bulk."""
    return bulks(cluster, module) == 0


@pytest.mark.parametrize("nodes", [1, 2])
def test_many_large_arguments_and_results_arrive_whole_and_are_dropped(cluster: Cluster, nodes: int) -> None:
    program = cluster.write(
        ARRAY
        + """
def twice(array):
    return Array(bytes(array.data) * 2), hdphrs.get(hdphrs.spawn(len, bytes(array.data)))

def check(size, number):
    results = [hdphrs.spawn(twice, Array(bytes([n]) * size)) for n in range(number)]
    for n, result in enumerate(results):
        array, length = hdphrs.get(result)
        assert length == size and bytes(array.data) == bytes([n]) * size * 2

check(100_000, 40)
hdphrs.run(check, 1_000_000, 60)
for node in hdphrs.all_nodes():
    array, _ = hdphrs.get(hdphrs.spawn_at(node, twice, Array(bytes(3_000_000))))
    assert len(array.data) == 6_000_000
del array
print("done", flush=True)
input()
"""
    )
    process = cluster.start("--local-nodes", nodes, program)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "done\n"
    for module in "hdphrs.program", "hdphrs.scheduler":
        eventually(partial(has_none, cluster, module), DEADLINE_S, f"the end of all bulks in {module}")
    most = nodes * CoreConfig().retained_bytes_max
    eventually(lambda: bulks(cluster, "hdphrs.node") <= most, DEADLINE_S, "the end of what nodes need not retain")
    process.stdin.write("\n")
    process.stdin.flush()
    completed = cluster.finish()
    assert completed.returncode == 0, completed.stderr


def test_task_that_has_written_to_its_argument_and_dies_is_run_again_on_what_it_got(cluster: Cluster) -> None:
    program = cluster.write(
        ARRAY
        + """
def spoil(array, folder):
    seen = bytes(array.data[:5])
    array.data[:5] = b"spoil"
    try:
        os.mkdir(folder)
    except FileExistsError:
        return seen
    os.kill(os.getpid(), signal.SIGKILL)

array = Array(bytearray(b"fresh") + bytes(1_000_000))
print(hdphrs.get(hdphrs.spawn(spoil, array, os.path.join(os.path.dirname(__file__), "once"))), bytes(array.data[:5]))
"""
    )
    completed = cluster.run("--local-nodes", 1, program)
    assert completed.stdout == "b'fresh' b'fresh'\n", completed.stderr


def test_array_that_could_not_be_written_to_cannot_where_it_arrives(cluster: Cluster) -> None:
    program = cluster.write(
        ARRAY
        + """
def is_readonly(array):
    return array.data.readonly

for data in bytes(100_000), bytearray(100_000):
    print(hdphrs.get(hdphrs.spawn(is_readonly, Array(data))))
"""
    )
    assert cluster.run("--local-nodes", 1, program).stdout == "True\nFalse\n"


@pytest.mark.parametrize("victim", ["program", "root", "scheduler"])
def test_kill_9_with_large_data_about_leaves_nothing(cluster: Cluster, victim: str) -> None:
    program = cluster.write(
        ARRAY
        + """
def grow(array):
    return Array(bytes(array.data) + b".")

print("begun", flush=True)
array = Array(bytes(1_000_000))
while not os.path.exists(__file__ + ".enough"):
    futures = [hdphrs.spawn(grow, array) for _ in range(8)]
    assert all(len(hdphrs.get(future).data) == 1_000_001 for future in futures)
"""
    )
    process = cluster.start("--local-nodes", 2, program)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    eventually(lambda: bulks(cluster), DEADLINE_S, "large data")
    pids = {
        "program": lambda: cluster.processes("hdphrs.program")[0],
        "root": lambda: cluster.nodes()[0],
        "scheduler": lambda: cluster.schedulers()[-1],
    }
    os.kill(pids[victim](), signal.SIGKILL)
    Path(f"{program}.enough").touch()
    completed = cluster.finish()
    assert (completed.returncode == 0) == (victim == "scheduler"), completed.stderr
    assert "Traceback" not in completed.stderr


def test_few_descriptors_then_the_rest_is_copied(cluster: Cluster) -> None:
    program = cluster.write(
        ARRAY
        + """
import resource
def grow(array):
    return Array(bytes(array.data) + b".")

futures = [hdphrs.spawn(grow, Array(bytes(100_000))) for _ in range(300)]
results = [hdphrs.get(future) for future in futures]
assert all(len(result.data) == 100_001 for result in results)
print("done")
"""
    )
    limited = cluster.write(
        f"""
        import os, resource, sys
        resource.setrlimit(resource.RLIMIT_NOFILE, (160, 160))
        os.execv(sys.executable, [sys.executable, "-m", "hdphrs", "run", "--local-nodes", "1", {str(program)!r}])
        """,
        "limited.py",
    )
    completed = cluster.run(limited, python=True)
    assert completed.stdout == "done\n", completed.stderr
