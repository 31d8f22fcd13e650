"""`hdphrs sim` as a person meets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hdphrs.cli.sim import sim
from hdphrs.errors import UsageError
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.sim.run import WRONG
from tests.sim.test_failures import later_results_are_delivered_too


def run(*args: str) -> tuple[int, str]:
    """Exit status and output."""
    ran = CliRunner().invoke(sim, args, standalone_mode=False, catch_exceptions=False)
    return ran.return_value, ran.output


def test_one_seed_tells_its_trace() -> None:
    status, output = run("--seed", "0x5")
    assert status == 0
    assert "trace: " in output
    assert run("--seed", "5")[1] == output


def test_batch_prints_a_table() -> None:
    status, output = run("--seeds", "0..5", "--set", "nodes=3")
    assert status == 0
    assert output.startswith("6 seeds, ")
    assert "failures: 0" in output
    assert "trace: " in output


def test_benchmark_prints_what_deaths_cost() -> None:
    status, output = run("--benchmark", "queens", "--seeds", "0..1", "--set", "tasks=20", "--set", "kills=1")
    assert status == 0
    assert output.splitlines()[-1].startswith("took/ideal: ")


def test_stop_shows_the_last_events(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    status, output = run("--seed=5", "--until-event=50", "--trace", str(trace))
    assert status == 0
    assert output.count("  node ") == len([line for line in output.splitlines() if " s  node " in line])
    assert "50 events" in output
    assert trace.read_text().splitlines()[-1].strip() in output


def test_failure_ends_with_its_status_and_how_to_rerun_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Supervisor, "on_result", later_results_are_delivered_too)
    status, output = run("--seeds", "0..40", "--set", "tasks=30", "--set", "nodes=3", "--set", "joins=0")
    assert status == WRONG
    assert "rerun with: hdphrs sim --seed=0x" in output
    assert "rerun shrunk: hdphrs sim --seed=0x" in output


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--seed", "1", "--seeds", "0..1"),
        ("--seed", "x"),
        ("--seed", "-1"),
        ("--seeds", "5"),
        ("--seeds", "5..2"),
        ("--seed", "1", "--set", "nodes"),
        ("--seed", "1", "--set", "nodes=0"),
        ("--seed", "1", "--set", "unknown=0"),
        ("--seed", "1", "--trace", "/nowhere/trace"),
        ("--seeds", "0..1", "--until-event", "5"),
        ("--seed", "1", "--benchmark", "fib"),
    ],
)
def test_misuse_is_one_clear_error(args: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as error:
        run(*args)
    assert "\n" not in str(error.value)
