"""What is computed again: nothing without a fault, and less where finished parts are kept."""

from __future__ import annotations

import pytest

from hdphrs.protocol.tasks import PROGRAM, ROOT, TaskRef
from hdphrs.sim.draw import draw, stream
from hdphrs.sim.program import Program
from hdphrs.sim.run import RIGHT, Result, simulate
from hdphrs.sim.work import Accounts

QUIET = dict.fromkeys(
    (
        *("kills", "power_losses", "ambushes", "departures", "crashes", "blameless", "cuts", "one_way_cuts"),
        *(
            "isolations",
            "stalls",
            "root_stalls",
            "joins",
            "repeats_pct",
            "poison",
            "deadly",
            "unsupervised_pct",
            "raising_pct",
        ),
        *("forgotten_pct", "placed_pct", "abrupt", "slow_pct", "skew_ppm"),
    ),
    0,
) | {"shape": 1, "tasks": 200, "depth_max": 60, "nodes": 4, "cost_us": 4000, "latency_us": 100, "piece_cost_us": 20}


def one_death(seed: int, pieces_bytes_max: int) -> Result:
    fixed = QUIET | {"kills": 1, "eager": 0, "sampled_pct": 100, "detect_ms": 10, "rounds": 1, "lifo": 0}
    result = simulate(seed, **fixed, pieces_bytes_max=pieces_bytes_max)
    assert result.status == RIGHT, result.told
    return result


def test_without_faults_everything_is_computed_once() -> None:
    work = simulate(4, **QUIET, pieces_bytes_max=1 << 20).work
    assert work.done_ns == work.sequential_ns > 0
    assert (work.recomputed_ns, work.lost_ns) == (0, 0)


def test_pieces_save_work_after_a_death() -> None:
    seeds = range(8)
    without = [one_death(seed, 0) for seed in seeds]
    with_pieces = [one_death(seed, 1 << 28) for seed in seeds]
    assert not any(result.tallies.get("pieces used") for result in without)
    assert any(result.tallies.get("pieces used") for result in with_pieces)
    assert sum(result.work.recomputed_ns for result in with_pieces) < sum(
        result.work.recomputed_ns for result in without
    )
    assert any(result.work.lost_ns for result in with_pieces)


@pytest.mark.parametrize(("alive", "kept", "lost_ns"), [(True, False, 0), (False, True, 0), (False, False, 7)])
def test_task_is_lost_unless_it_or_an_ancestor_is_elsewhere(alive: bool, kept: bool, lost_ns: int) -> None:
    program = Program(draw(1, {"shape": 1, "tasks": 3, "depth_max": 5}), stream(1, "program"))
    parent = program.tops[0]
    child = program.children[parent][0]
    accounts = Accounts(program)
    accounts.send(parent, TaskRef(ROOT, PROGRAM, 0))
    accounts.lose({child: 7}, [program.task[parent].path] if kept else [], lambda ref: alive)
    assert accounts.totals().lost_ns == lost_ns


def test_what_is_computed_twice_is_computed_again() -> None:
    program = Program(draw(1, {"shape": 0, "tasks": 3}), stream(1, "program"))
    accounts = Accounts(program)
    cost_ns = program.before_ns[0]
    accounts.compute(0, cost_ns)
    accounts.compute(0, cost_ns - 1)
    totals = accounts.totals()
    assert (totals.done_ns, totals.recomputed_ns) == (2 * cost_ns - 1, cost_ns - 1)
