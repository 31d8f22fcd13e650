"""Options of tasks while nodes and schedulers die: trees with drawn options, whose values are known."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from tests.e2e.harness import Cluster, eventually
from tests.processes import send

PROGRAM = """
import os, random, sys, threading, time
import hdphrs
from hdphrs.errors import TaskCrashedError, TaskLostError, TaskTimeoutError

LOG, SEED, DEPTH = sys.argv[1], sys.argv[2], 3
HANGS, CRASHES = 10**6, 10**3

def note():
    with open(LOG, "ab") as file:
        file.write(b".")

def hang():
    while True:
        time.sleep(0.005)
        hdphrs.get(hdphrs.spawn(abs, 0))

def spin():
    while True:
        pass

def crash():
    os._exit(3)

def with_lock(lock, path):
    assert lock.acquire(timeout=10)
    lock.release()
    return tree(path)

def on_root(info):
    return info.is_root

def options(draw):
    some = draw.choice([0, 1, 2, 3])
    return draw.choice([
        {"pin": True}, {"pin": 0}, {"pin": [some, 0]}, {"pin": some}, {"pin": "localhost"}, {"pin": on_root},
        {"attempts": 9}, {"attempts": 9, "timeout": 500}, {"timeout": 500, "pin": [0, some]}, {"memo": True},
        {"memo": False, "attempts": 9, "pin": "localhost"},
    ])

def tree(path):
    note()
    time.sleep(0.01)
    if len(path) == DEPTH:
        return 1
    draw = random.Random(f"{SEED} {path}")
    tasks = []
    for number in range(3):
        below, kind = path + str(number), draw.random()
        if kind < 0.12:
            tasks.append((hdphrs.spawn(hdphrs.task(draw.choice([hang, hang, spin]), timeout=0.2)), None))
        elif kind < 0.24:
            tasks.append((hdphrs.spawn(hdphrs.task(crash, attempts=draw.choice([1, 2]))), None))
        elif kind < 0.4:
            tasks.append((hdphrs.spawn(hdphrs.task(with_lock, stealable=False), threading.Lock(), below), below))
        elif kind < 0.6:
            tasks.append((hdphrs.spawn(tree, below), below))
        else:
            tasks.append((hdphrs.spawn(hdphrs.task(tree, **options(draw)), below), below))
    return sum(value(*task) for task in tasks)

def value(future, below):
    try:
        return hdphrs.get(future)
    except TaskTimeoutError:
        assert below is None
        return HANGS
    except TaskCrashedError:
        assert below is None
        return CRASHES
    except TaskLostError:  # it was pinned to a node that is dead, or never was
        return tree(below)

def known(path):
    if len(path) == DEPTH:
        return 1
    draw, total = random.Random(f"{SEED} {path}"), 0
    for number in range(3):
        kind = draw.random()
        if kind < 0.24:
            total += HANGS if kind < 0.12 else CRASHES
            draw.choice([hang, hang, spin] if kind < 0.12 else [1, 2])
        else:
            if kind >= 0.6:
                options(draw)
            total += known(path + str(number))
    return total

if __name__ == "__main__":
    print(hdphrs.run(tree, "") == known(""), known(""))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "cores", "deaths"),
    [
        (1, 2, "scheduler"),
        (2, 1, "node"),
        (3, 1, "node, scheduler"),
        (4, 1, "node, node"),
    ],
)
def test_tree_with_drawn_options_has_its_value_whoever_dies(
    cluster: Cluster, nodes: int, cores: int, deaths: str
) -> None:
    seed = f"{nodes} {deaths} {os.environ.get('HDPHRS_OPTIONS_SEED', '')}"
    draw = random.Random(seed)
    cluster.recorded = True
    log = cluster.folder / "log"
    log.touch()
    program = cluster.write(PROGRAM)
    cluster.start("--local-nodes", nodes, "--cores", cores, program, log, seed)
    for death in deaths.split(", "):
        kill(cluster, death, log, draw)
    completed = cluster.finish()
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.startswith("True "), completed.stdout + completed.stderr


def kill(cluster: Cluster, whom: str, log: Path, draw: random.Random) -> None:
    """Once so many tasks have begun; not a node, if the run is over before."""
    begun = log.stat().st_size + draw.randrange(1, 12)
    process = cluster.process
    assert process is not None
    eventually(lambda: log.stat().st_size >= begun or process.poll() is not None, 60, "tasks that begin")
    victims = cluster.nodes()[1:] if whom == "node" else cluster.schedulers()
    if victims and process.poll() is None:
        send(draw.choice(victims), signal.SIGKILL)
