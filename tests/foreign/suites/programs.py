"""The task benchmarks of Barcelona (BOTS) and the Unbalanced Tree Search (UTS), written anew for hdphrs."""

from __future__ import annotations

from tests.foreign.suite import REPOSITORY, Suite

CHECK = str(REPOSITORY / "tests" / "foreign" / "programs" / "check_programs.py")

SUITE = Suite(
    name="programs",
    title="BOTS and UTS as programs",
    version="1",
    tests=("--noconftest", CHECK),
    ci=("--noconftest", CHECK, "-k", "killed"),
    plugin="for_programs",
    plugged="their tasks are ours; the results are compared with published figures, or with a sequential computation",
)
