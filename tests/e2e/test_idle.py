"""What a run does when there is nothing to do, and when what there is to do is not worth its way (decision 17)."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from time import monotonic

from tests.e2e.harness import DEADLINE_S, Cluster, eventually

STILL_S = 1.0


class Stillness:
    """A condition: for a while no process of a run has been woken."""

    def __init__(self, run: Cluster) -> None:
        self._run = run
        self._switches = -1
        self._since_s = 0.0

    def __call__(self) -> bool:
        switches = sum(map(_switches, self._run.processes()))
        if switches != self._switches:
            self._switches, self._since_s = switches, monotonic()
        return monotonic() - self._since_s >= STILL_S


def _switches(pid: int) -> int:
    """How often the kernel has given a thread of this process a core."""
    count = 0
    with suppress(OSError):  # it ends, or one of its threads does
        for thread in Path(f"/proc/{pid}/task").iterdir():
            lines = (thread / "status").read_text().splitlines()
            count += sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
    return count


def test_idle_run_does_nothing_at_all(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs
        assert hdphrs.get(hdphrs.spawn(abs, -1)) == 1
        print("idle", flush=True)
        input()
        """
    )
    process = cluster.start("--cores", 2, program)
    assert process.stdout is not None
    assert process.stdout.readline() == "idle\n"
    eventually(Stillness(cluster), DEADLINE_S, "the end of all that goes on in a run that waits for its user")
    assert process.stdin is not None
    process.stdin.write("\n")
    assert cluster.finish().returncode == 0


def test_tasks_that_are_too_small_to_travel_stay(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs
        def nothing(): pass
        def main():
            futures = [hdphrs.spawn(nothing) for _ in range(20_000)]
            for future in futures: hdphrs.get(future)
        hdphrs.run(main)
        """
    )
    report = cluster.folder / "report.json"
    completed = cluster.run("--cores", 2, "--report", report, program)
    assert completed.returncode == 0, completed.stderr
    (node,) = json.loads(report.read_text())["nodes"]
    assert node["sparks_made"] >= 20_000
    assert node["exported"] < 2_000


def test_tasks_that_are_large_enough_are_shared_though_tiny_ones_came_first(cluster: Cluster) -> None:
    """No hunger is forgotten: with two schedulers, one of which spawns, the other gets about half."""
    program = cluster.write(
        """
        import hdphrs, os, time
        def nothing(): pass
        def work():
            end_s = time.thread_time() + 0.002
            while time.thread_time() < end_s: pass
            return os.getpid()
        def main():
            for future in [hdphrs.spawn(nothing) for _ in range(20_000)]: hdphrs.get(future)
            pids = [hdphrs.get(future) for future in [hdphrs.spawn(work) for _ in range(200)]]
            return pids.count(os.getpid())
        print(hdphrs.run(main))
        """
    )
    completed = cluster.run("--cores", 2, program)
    assert completed.returncode == 0, completed.stderr
    assert int(completed.stdout) < 190
