"""A run whose schedulers are all killed once a second gives the right answer.

    python -m tests.e2e.all_killed --seeds 0..19 --seconds 60

The program is a recursion with many small tasks, which sleep rather than compute, so that it takes as long on a busy
machine.  The seed shifts the times of the kills.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from tests.e2e.harness import Cluster, cluster
from tests.processes import send

CORES = 4
LEAF_S = 0.005
INTERVAL_S = 1.0
JITTER_S = 0.1
REST_S = 180.0
"""How long the run may take when the kills are over."""

PROGRAM = """
    import sys
    import time
    import hdphrs

    def total(low, high, leaf_s):
        if high - low == 1:
            time.sleep(leaf_s)
            return low * low
        middle = (low + high) // 2
        left = hdphrs.spawn(total, low, middle, leaf_s)
        right = total(middle, high, leaf_s)
        return hdphrs.get(left) + right

    if __name__ == "__main__":
        print(hdphrs.run(total, 0, int(sys.argv[1]), float(sys.argv[2])))
"""


class Told(NamedTuple):
    """What became of one run."""

    kills: int
    """Schedulers that were killed."""
    took_s: float
    status: int
    is_right: bool
    errors: str
    """Its standard error."""

    @property
    def is_good(self) -> bool:
        """Whether it has ended as a run does of which nothing is killed."""
        return self.status == 0 and self.is_right


def leaves_for(seconds: float) -> int:
    """How many keep all schedulers busy for so long, if none is killed."""
    return int(seconds * CORES / LEAF_S)


def run(one: Cluster, seed: int, seconds: float) -> Told:
    """Run the program once, and kill all schedulers each second, for so many seconds."""
    leaves = leaves_for(seconds)
    chance = random.Random(seed)
    process = one.start("--cores", CORES, one.write(PROGRAM), leaves, LEAF_S)
    began_s = monotonic()
    kills = 0
    due_s = began_s + chance.uniform(0.5, 0.5 + INTERVAL_S)
    while due_s < began_s + seconds and process.poll() is None:
        sleep(max(0.0, due_s - monotonic()))
        kills += sum(send(pid, signal.SIGKILL) for pid in one.schedulers())
        due_s += INTERVAL_S + chance.uniform(-JITTER_S, JITTER_S)
    completed = one.finish(REST_S)
    answer = str((leaves - 1) * leaves * (2 * leaves - 1) // 6)
    is_right = completed.stdout.strip() == answer
    return Told(kills, monotonic() - began_s, completed.returncode, is_right, completed.stderr)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.all_killed", description=__doc__)
    parser.add_argument("--seeds", default="0..19", help="the first and the last, as in 0..19")
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition("..")
    bad = 0
    for seed in range(int(first), int(last or first) + 1):
        with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as one:
            told = run(one, seed, asked.seconds)
        bad += not told.is_good
        verdict = "right" if told.is_good else f"WRONG (status {told.status}): {told.errors[-2000:]}"
        print(f"seed {seed}: {told.kills} kills, {told.took_s:.1f} s: {verdict}", flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
