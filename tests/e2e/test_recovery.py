"""What is finished stays finished: a task that is run again computes only what is missing."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.e2e.harness import Cluster, written

TREE = """
    import os
    import signal
    import sys
    import time
    import hdphrs

    PROGRAM, *OPTIONS = sys.argv

    def leaf(number):
        time.sleep(0.03)
        with open(PROGRAM + ".log", "a") as log:
            log.write(f"{number}\\n")
        if number == 90 and OPTIONS and not os.path.exists(PROGRAM + ".killed"):
            open(PROGRAM + ".killed", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    def tree(low, high):
        if high - low == 1:
            return [leaf(low)]
        middle = (low + high) // 2
        left = hdphrs.spawn(tree, low, middle)
        right = tree(middle, high)
        return hdphrs.get(left) + right

    if __name__ == "__main__":
        print(sum(hdphrs.run(tree, 0, 128)))
"""


def ran_twice(cluster: Cluster) -> int:
    """How many leaves were run more than once."""
    times = Counter((cluster.folder / "prog.py.log").read_text().split())
    assert len(times) == 128
    return sum(1 for count in times.values() if count > 1)


@pytest.mark.slow
def test_node_that_dies_takes_along_only_what_nobody_has_a_piece_of(cluster: Cluster) -> None:
    report = cluster.folder / "report.json"
    program = cluster.write(TREE)
    completed = cluster.run(
        "--local-nodes", 2, "--cores", 1, "--seed", 1, "--kill-at", 1.2, "--report", report, program
    )
    assert completed.stdout == f"{sum(range(128))}\n", completed.stderr
    told = json.loads(report.read_text())
    root, dead = told["nodes"]
    assert dead["died"]
    assert root["pieces"] > 0
    assert root["pieces_used"] > 0
    assert root["pieces_mismatched"] == 0
    assert ran_twice(cluster) < 20
    assert told["lost_s"] == dead["lost_s"]
    assert 0 < told["recomputed_s"] < told["work_s"] / 4


@pytest.mark.slow
def test_scheduler_that_dies_costs_only_what_it_ran(cluster: Cluster) -> None:
    report = cluster.folder / "report.json"
    program = cluster.write(TREE)
    completed = cluster.run("--cores", 1, "--report", report, program, "kill")
    assert completed.stdout == f"{sum(range(128))}\n", completed.stderr
    told = json.loads(report.read_text())
    (root,) = told["nodes"]
    assert root["crashes"] == 1
    assert 0 < told["lost_s"] < told["work_s"] / 4
    assert 0 < told["recomputed_s"] < told["work_s"] / 4
    assert root["pieces_used"] > 0
    assert ran_twice(cluster) < 10


ORPHAN = """
    import os
    import signal
    import sys
    import time
    import hdphrs

    LOG = sys.argv[0] + ".log"
    KILLED = sys.argv[0] + ".killed"

    def child():
        with open(LOG, "a") as log:
            log.write("child\\n")
        time.sleep(1.5)
        return 7

    def parent():
        future = hdphrs.spawn_at(2, child)
        if not os.path.exists(KILLED):
            while not os.path.exists(LOG):
                time.sleep(0.01)
            open(KILLED, "w").close()
            os.kill(os.getppid(), signal.SIGKILL)
        return hdphrs.get(future)

    if __name__ == "__main__":
        assert list(hdphrs.all_nodes()) == [0, 1, 2]
        print(hdphrs.get(hdphrs.spawn_at(1, parent)))
"""


@pytest.mark.slow
def test_child_that_runs_on_when_its_parent_dies_is_not_run_twice(cluster: Cluster) -> None:
    completed = cluster.run("--local-nodes", 3, "--cores", 1, cluster.write(ORPHAN))
    assert completed.stdout == "7\n", completed.stderr
    assert (cluster.folder / "prog.py.log").read_text() == "child\n"


STRAGGLER = """
    import os
    import sys
    import time
    import hdphrs

    SLOW = sys.argv[0] + ".slow"
    LOG = sys.argv[0] + ".log"

    def work(number):
        with open(LOG, "a") as log:
            log.write(f"{number}\\n")
        if number == 0 and not os.path.exists(SLOW):
            open(SLOW, "w").close()
            time.sleep(30)
        time.sleep(0.02)
        return number

    if __name__ == "__main__":
        futures = [hdphrs.spawn(work, number) for number in range(20)]
        print(sum(hdphrs.get(future) for future in futures))
"""


@pytest.mark.slow
def test_straggler_is_started_once_more_and_the_first_answer_wins(cluster: Cluster) -> None:
    report = cluster.folder / "report.json"
    program = cluster.write(STRAGGLER)
    completed = cluster.run("--local-nodes", 2, "--cores", 1, "--speculate", "--report", report, program)
    assert completed.stdout == f"{sum(range(20))}\n", completed.stderr
    told = json.loads(report.read_text())
    assert told["wall_s"] < 15
    assert written(cluster.folder / "prog.py.log").count("0") == 2
    assert told["nodes"][0]["doubled"] >= 1  # another one, if its process was held up
    assert "is started once more" in completed.stderr
