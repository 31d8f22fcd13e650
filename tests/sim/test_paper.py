"""The paper's benchmarks in the simulator: their trees, their costs, and what a death costs."""

from __future__ import annotations

from dataclasses import fields

import pytest

from hdphrs.sim.draw import SHAPES, Draw, draw, stream
from hdphrs.sim.paper import BENCHMARKS, PROFILE, heaviest_ns
from hdphrs.sim.program import Program
from hdphrs.sim.run import RIGHT, Result, simulate
from hdphrs.sim.toll import tell_tolls
from hdphrs.sim.work import Accounts


def small(name: str, **changes: int) -> dict[str, int]:
    return PROFILE | {"shape": SHAPES.index(name), "tasks": 60, "nodes": 4} | changes


def plant(name: str, **changes: int) -> Program:
    return Program(draw(1, small(name, **changes)), stream(1, "program"))


def test_profile_leaves_nothing_to_chance_but_the_program() -> None:
    assert PROFILE.keys() == {field.name for field in fields(Draw)} - {"shape"}


def test_seeds_draw_no_benchmark() -> None:
    assert not {SHAPES[draw(seed).shape] for seed in range(200)} & set(BENCHMARKS)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_mean_cost_is_that_of_tasks_that_do_not_divide(name: str) -> None:
    program = plant(name, cost_us=1000)
    leaves = [number for number, children in enumerate(program.children) if not children]
    mean_ns = sum(program.before_ns[leaf] for leaf in leaves) / len(leaves)
    assert mean_ns == pytest.approx(1_000_000, rel=1e-3)
    assert len(program.tops) == 1


def test_queens_are_the_boards_that_there_are() -> None:
    assert len(plant("queens", tasks=5000).children) == 4959
    assert len(plant("queens", tasks=100).children) == 123


def test_eager_levels_go_round_all_nodes() -> None:
    program = plant("mandelbrot", eager=1, tasks=32)
    level = program.tops
    while level := [child for parent in level for child in program.children[parent]]:
        assert [program.place[number] for number in level] == list(range(len(level)))


def test_lazy_tasks_are_placed_nowhere() -> None:
    assert set(plant("queens").place) == {-1}


def test_placed_work_tells_how_long_a_run_takes_at_least() -> None:
    program = plant("sum_euler", eager=1)
    assert program.work_ns / 4 < heaviest_ns(program, 4, 1) < program.work_ns / 2


@pytest.mark.parametrize("eager", [0, 1])
@pytest.mark.parametrize("name", BENCHMARKS)
def test_quiet_run_computes_everything_once(name: str, eager: int) -> None:
    result = simulate(1, **small(name, eager=eager))
    assert result.status == RIGHT, result.told
    assert (result.work.recomputed_ns, result.work.lost_ns) == (0, 0)
    assert result.work.took_ns >= result.work.ideal_ns > 0


def one_death(name: str) -> Result:
    result = simulate(2, **small(name, kills=1))
    assert result.status == RIGHT, result.told
    return result


def test_scheduler_that_comes_up_while_somebody_is_hungry_gives_its_work_away_too() -> None:
    """One was never asked, since its node had said so before, and ran 4.6 s of work by itself."""
    numbers = {"local_us": 76, "latency_us": 27, "nodes": 256, "tasks": 10_240, "cost_us": 50_000, "eager": 0}
    result = simulate(0, **PROFILE | numbers | {"shape": SHAPES.index("mandelbrot")})
    assert result.status == RIGHT, result.told
    assert result.work.took_ns < 2e9


def test_death_strikes_while_the_program_runs() -> None:
    result = one_death("queens")
    assert result.tallies["kills"] == 1
    assert 0 < result.work.lost_ns <= result.work.recomputed_ns
    assert one_death("queens").trace == result.trace


def test_ideal_counts_the_cores_of_each_moment() -> None:
    program = plant("sum_euler")
    accounts = Accounts(program)
    accounts.add_cores(0, 2)
    accounts.begin(10)
    accounts.add_cores(110, -1)
    accounts.end(110 + program.work_ns)
    accounts.add_cores(10 * program.work_ns, 1)  # long after the end
    assert accounts.totals().ideal_ns == 100 + program.work_ns - 200
    assert accounts.totals().took_ns == 100 + program.work_ns


def test_table_tells_each_run_and_the_worst() -> None:
    results = [one_death("queens"), simulate(1, **small("queens"))]
    lines = list(tell_tolls(results))
    work = results[0].work
    assert len(lines) == 5
    assert f"worst {work.recomputed_ns / work.lost_ns:.3f}" in lines[3]
    assert lines[2].split()[5] == "-"
