"""Whole runs: some seeds of every kind, the same trace everywhere, and the seeds that have once found something."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hdphrs.sim.run import RIGHT, simulate
from hdphrs.sim.table import WANTED, run_batch

SEEDS = 40

NAMED_SEEDS: dict[str, tuple[int, dict[str, int]]] = {
    # The core: a newcomer hears nothing of the root between its admission and its WELCOME, because it is cut off; it
    # tripped over its own unfinished core instead of ending with a reason.
    "root falls silent before the welcome": (24, {"nodes": 4, "joins": 3}),
}
"""Seeds that have found a bug: what it was, the seed, and what is fixed of what it drew then."""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_seed_is_right(seed: int) -> None:
    result = simulate(seed)
    assert result.status == RIGHT, result.told


@pytest.mark.parametrize("name", NAMED_SEEDS)
def test_seed_that_found_a_bug_is_right(name: str) -> None:
    seed, fixed = NAMED_SEEDS[name]
    result = simulate(seed, **fixed)
    assert result.status == RIGHT, result.told


def test_trace_is_the_same_under_any_hash_seed() -> None:
    code = "from hdphrs.sim.run import simulate; print([simulate(seed).trace for seed in range(100, 108)])"
    traces = []
    for hash_seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        )
        traces.append(ran.stdout)
    assert traces[0] == traces[1]
    assert traces[0].decode().strip() == str([simulate(seed).trace for seed in range(100, 108)])


def test_trace_tells_seeds_apart_and_does_not_depend_on_the_jobs() -> None:
    one, two = run_batch(range(8), 1, {}), run_batch(range(8), 2, {})
    assert one.trace == two.trace
    assert one.events == two.events
    assert one.trace != run_batch(range(1, 9), 1, {}).trace


def test_fixed_number_changes_no_other() -> None:
    drawn, fixed = simulate(7).drawn, simulate(7, kills=2).drawn
    assert fixed.kills == 2
    assert all(getattr(drawn, name) == getattr(fixed, name) for name in drawn.__slots__ if name != "kills")


@pytest.mark.parametrize("shape", range(5))
def test_quiet_run_of_any_shape_loses_and_repeats_nothing(shape: int) -> None:
    quiet = dict.fromkeys(
        ("kills", "power_losses", "departures", "crashes", "blameless", "cuts", "one_way_cuts", "isolations", "stalls"),
        0,
    )
    quiet |= dict.fromkeys(("root_stalls", "joins", "repeats_pct", "poison"), 0)
    result = simulate(11, shape=shape, nodes=4, tasks=200, detect_ms=1000, **quiet)
    assert result.status == RIGHT, result.told
    assert not any(result.tallies[name] for name in ("replicas", "duplicates", "orphans", "crashes", "deaths_seen"))


def test_large_cluster() -> None:
    result = simulate(3, nodes=64, cores=1, tasks=300)
    assert result.status == RIGHT, result.told


def test_everything_happens_in_a_few_hundred_seeds() -> None:
    """Here: in a few dozen, with all faults on."""
    faults = dict.fromkeys(("kills", "power_losses", "crashes", "blameless", "cuts", "one_way_cuts", "stalls"), 2)
    faults |= {"departures": 1, "isolations": 1, "root_stalls": 1, "joins": 2, "repeats_pct": 20, "poison": 2}
    faults |= {"unsupervised_pct": 20, "returns": 1, "start_max": 2, "guards_max": 1, "long_pct": 50}
    batch = run_batch(range(30), 1, faults)
    assert not batch.failures
    missing = [name for names in WANTED.values() for name in names if not batch.tallies.get(name)]
    assert not missing
