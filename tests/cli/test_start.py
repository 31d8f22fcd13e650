"""What the processes of a run load before they do anything: what they do not load does not delay the start."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = ("trio", "ssl", "cryptography", "cloudpickle", "multiprocessing")


@pytest.mark.parametrize(
    ("loaded", "spared"),
    [
        ("hdphrs", ("hdphrs.api", "hdphrs.skeletons", "hdphrs.protocol", "dataclasses", "typing_extensions", *SLOW)),
        (
            "hdphrs.cli.group, hdphrs.cli.run, hdphrs.cluster.restarts",
            (
                "hdphrs.api",
                "hdphrs.skeletons",
                "hdphrs.protocol",
                "hdphrs.chaos",
                "hdphrs.sim",
                "hdphrs.explore",
                *SLOW,
            ),
        ),
        ("hdphrs.program.attach", ("hdphrs.skeletons", "hdphrs.executor", "click", "trio", "ssl", "cryptography")),
        ("hdphrs.scheduler.hub", ("hdphrs.skeletons", "hdphrs.program", "click", "trio", "ssl", "cryptography")),
        ("hdphrs.node.member", ("hdphrs.skeletons", "hdphrs.program", "hdphrs.scheduler", "click", "cryptography")),
    ],
)
def test_process_of_a_run_starts_without_what_others_need(loaded: str, spared: tuple[str, ...]) -> None:
    """By module; one that is spared is so with all that is below it."""
    said = subprocess.run(
        [sys.executable, "-c", f"import sys, {loaded}; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert not [name for name in said.split() if name in spared or name.startswith(tuple(f"{one}." for one in spared))]
