"""The demo behind `make demo`: a paper benchmark on two local nodes, one of which is killed on the way.

Runs Sum Euler three times: as a plain loop, on two nodes, and on two nodes with `kill -9` for one of them.
Says what came out, how fast, and what had to be recovered.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).with_name("sum_euler.py")
SEED = 2016
KILL_AFTER = 0.4
"""When the node dies, as a share of the time that the run takes undisturbed."""


def run(*command: str) -> tuple[float, str]:
    """Run a program to its end: the seconds that it took, and its last line.

    Raises:
        SystemExit: the program failed; what it wrote to stderr is shown.
    """
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0 or not done.stdout.strip():
        sys.exit(f"demo: exit status {done.returncode} of: {' '.join(command)}\n{done.stderr}")
    return seconds, done.stdout.splitlines()[-1]


def run_on_two_nodes(report: Path, size: str, *options: str) -> tuple[float, str, dict[str, Any]]:
    """Run the example with `hdphrs run`: its seconds, its last line, and the run's report."""
    nodes = ["-m", "hdphrs", "run", "--local-nodes", "2", "--report", str(report)]
    seconds, line = run(*nodes, *options, str(EXAMPLE), size)
    return seconds, line, json.loads(report.read_text())


def announce(what: str) -> None:
    print(f"{what:<58}", end="", flush=True)


def tell_recovery(report: dict[str, Any]) -> None:
    """Say from a run's report who died, and what that cost."""
    nodes = report["nodes"]
    for node in nodes:
        if node.get("died"):
            print(f"  node {node['node']} was killed {node['died']:.1f} s into the run")
    recreated = sum(node.get("replicas", 0) for node in nodes)
    duplicates = sum(node.get("duplicates_run", 0) for node in nodes)
    print(f"  {recreated} lost tasks were created again; {duplicates} tasks were run twice to the end")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("size", nargs="?", default="20000", help="totients to sum (default %(default)s)")
    size = parser.parse_args().size

    print(f"Sum Euler 1..{size} (a benchmark of the HdpH-RS paper); this machine has {os.cpu_count()} cores")
    announce("as a plain loop ...")
    alone_s, expected = run(str(EXAMPLE), size, "--skeleton", "seq")
    print(f"{alone_s:6.1f} s   {expected}")

    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        announce("on 2 local nodes ...")
        seconds, result, _ = run_on_two_nodes(report, size)
        print(f"{seconds:6.1f} s   {result}   speed-up {alone_s / seconds:.2f}")

        kill_at = f"{KILL_AFTER * seconds:.2f}"
        announce(f"on 2 local nodes, kill -9 of one after {kill_at} s ...")
        killed_s, survived, facts = run_on_two_nodes(report, size, "--kill-at", kill_at, "--seed", str(SEED))
        print(f"{killed_s:6.1f} s   {survived}   speed-up {alone_s / killed_s:.2f}")
        tell_recovery(facts)

    if not expected == result == survived:
        sys.exit("demo: the results differ")
    if not any(node.get("died") for node in facts["nodes"]):
        sys.exit("demo: nobody died; the run was over before the kill")
    print("The results are equal: the program did not notice that it lost a node.")


if __name__ == "__main__":
    main()
