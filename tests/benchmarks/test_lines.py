"""The bounds: which figures make a sample, what is said of them, the command line, and our own probes for real."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.compare import launch
from benchmarks.compare.document import marks
from benchmarks.compare.job import RIGHT
from benchmarks.compare.launch import Outcome, run_job
from benchmarks.compare.results import Result
from benchmarks.compare.systems import BASE, SYSTEMS, System
from benchmarks.compare.workloads import FULL, TINY, WORKLOADS
from benchmarks.figures import Budget
from benchmarks.installed import READY
from benchmarks.lines.bounds import DIFFERENCE, LINES, RATE, TURNS, Line, Quantity, plan, turns_of
from benchmarks.lines.command import TABLE, main
from benchmarks.lines.judge import MET, MISSED, UNKNOWN, Rounds, contenders, judge
from benchmarks.lines.own import OWN_WORKLOADS, run_own

SECONDS = Quantity("noops", "seconds")


def result(number: int, system: str, value: float, workload: str = "noops", others_cores: float = 0.0) -> Result:
    return Result(number, 0.0, Outcome(system, workload, FULL, RIGHT, {"seconds": value, "others_cores": others_cores}))


# ---- samples ---------------------------------------------------------------------------------------------------


def test_a_line_compares_what_was_measured_in_the_same_round_with_the_best_of_the_others() -> None:
    rows = [result(1, "hdphrs", 1.0), result(1, "pool", 2.0), result(1, "loky", 9.0)]
    rows += [result(2, "hdphrs", 2.0, others_cores=1.0), result(2, "pool", 6.0), result(2, "loky", 1.0)]
    rows += [result(3, "hdphrs", 2.0), result(4, "pool", 2.0), result(4, "loky", 9.0)]
    line = Line("a line", "×", Budget(2.0, at_most=False), "hdphrs", SECONDS, ("pool", "loky", "mpire"))
    verdict = judge(line, Rounds(rows))
    assert (verdict.best, verdict.samples, verdict.word) == ("pool", (2.0, 3.0), MET)
    assert verdict.disturbed == 1


def test_a_rate_is_compared_with_the_highest_and_a_difference_is_taken_from_the_lowest() -> None:
    rounds = Rounds([result(1, "hdphrs", 6.0), result(1, "pool", 2.0), result(1, "loky", 4.0)])
    rate = Line("a line", "×", Budget(2.0, at_most=False), "hdphrs", SECONDS, ("pool", "loky"), how=RATE)
    less = Line("a line", "s", Budget(0.0), "hdphrs", SECONDS, ("pool", "loky"), how=DIFFERENCE)
    assert [judge(line, rounds).samples for line in (rate, less)] == [(1.5,), (4.0,)]
    assert [judge(line, rounds).word for line in (rate, less)] == [MISSED, MISSED]


def test_a_death_costs_what_the_run_takes_longer_but_for_the_work_that_was_lost() -> None:
    killed = Result(
        1, 0.0, Outcome("hdphrs", "recovery", FULL, RIGHT, {"seconds": 5.5, "lost_s": 0.125, "run_again": 1.0})
    )
    rounds = Rounds([killed, result(1, "hdphrs", 5.0, "no_recovery")])
    assert rounds.values("hdphrs", Quantity("recovery", "longer_s")) == {(1, 1): 0.5}
    assert rounds.values("hdphrs", Quantity("recovery", "beyond_s")) == {(1, 1): 0.375}


def test_turns_of_a_round_are_samples_of_their_own() -> None:
    rows = [result(1, "hdphrs", 1.0), result(1, "pool", 2.0), result(1, "loky", 3.0)]
    rows += [replace(result(1, "hdphrs", 2.0, others_cores=1.0), turn=2), replace(result(1, "pool", 6.0), turn=2)]
    line = Line("a line", "×", Budget(2.0, at_most=False), "hdphrs", SECONDS, ("pool", "loky"))
    verdict = judge(line, Rounds(rows))
    assert (verdict.best, verdict.samples, verdict.disturbed) == ("loky", (3.0,), 0)
    verdict = judge(line, Rounds([*rows, replace(result(2, "loky", 9.0), turn=2)]))
    assert (verdict.best, verdict.samples, verdict.disturbed) == ("pool", (2.0, 3.0), 1)


def test_what_is_not_bound_says_what_the_limit_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "bare processes", "--repeat", "2"], fake_run, fake_own) == 0
    row = "| the least: 3 bare processes in a row, there and back | µs | 1.5 | 1 – 2 | 2 | a limit |"
    assert row in capsys.readouterr().out


def test_what_could_not_be_measured_says_why() -> None:
    failed = Result(1, 0.0, Outcome("pool", "noops", FULL, "hangs"))
    line = Line("a line", "×", Budget(1.0), "hdphrs", SECONDS, ("pool",))
    alone = judge(line, Rounds([failed]))
    beside = judge(line, Rounds([failed, result(1, "hdphrs", 1.0)]))
    assert (alone.word, alone.trouble) == (UNKNOWN, "hdphrs: not run")
    assert (beside.word, beside.trouble) == (UNKNOWN, "pool: hangs")


# ---- the lines -------------------------------------------------------------------------------------------------


def test_another_turn_is_had_by_us_the_ideal_and_the_fastest_of_the_others() -> None:
    seen = [
        Outcome(system, "sum_euler", FULL, RIGHT, {"seconds": seconds})
        for system, seconds in {"hdphrs": 9.0, "ideal": 8.0, "pool": 3.0, "loky": 1.0, "mpire": 2.0}.items()
    ]
    seen.append(Outcome("scoop", "sum_euler", FULL, "hangs"))
    assert contenders(LINES, "sum_euler", seen) == {"hdphrs", "ideal", "loky", "mpire"}
    rates = [Outcome(system, "noops", FULL, RIGHT, {"tasks_per_s": float(len(system))}) for system in ("pool", "mpire")]
    rates.append(Outcome("process_pool", "noops", FULL, RIGHT, {"tasks_per_s": 50.0}))
    assert contenders(LINES, "noops", rates) == {"hdphrs", "hdphrs_program", "mpire", "process_pool"}


def test_only_what_is_compared_with_itself_has_turns() -> None:
    for line in LINES:
        assert line.theirs is None or turns_of(line.ours.workload) == turns_of(line.theirs.workload) == 1


def test_lines_name_only_workloads_and_systems_that_exist() -> None:
    for workload, systems in plan(LINES).items():
        assert workload in WORKLOADS or workload in OWN_WORKLOADS
        assert all(system in SYSTEMS and workload not in SYSTEMS[system].skips for system in systems)
    assert len({line.what for line in LINES}) == len(LINES)


def test_a_round_has_what_the_lines_need_and_nothing_twice() -> None:
    wanted = plan([line for line in LINES if "killed" in line.what])
    assert wanted["no_recovery"] == wanted["recovery"]
    assert sorted(wanted["recovery"]) == ["dask", "hdphrs", "hdphrs_program", "ray"]


# ---- the command line ------------------------------------------------------------------------------------------


def fake_run(system: str, how: System, workload: str, size: str | None, memory: str) -> Outcome:
    """A system that is always as fast."""
    assert Path(memory).is_dir()
    return Outcome(system, workload, FULL, RIGHT, {"seconds": 2.0, "tasks_per_s": 50.0 if system == "hdphrs" else 1.0})


def fake_own(workload: str, size: str, number: int) -> Outcome:
    """It takes longer and longer."""
    return Outcome("hdphrs", workload, size, RIGHT, {"us": float(number), "least_us": float(number)})


def test_rounds_are_judged_and_written_into_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, document = tmp_path / "lines.json", tmp_path / "page.md"
    begin, end = marks(TABLE)
    document.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    arguments = ["--only", "no-ops", "--repeat", "3", "--json", str(file), "--write", str(document)]
    assert main(arguments, fake_run, fake_own) == 1
    table = capsys.readouterr().out
    in_task = "| 20,000 flat no-ops in a task (multiprocessing.Pool) | ≥ 20 × | 50 | 50 – 50 | 6 | met |"
    assert in_task in table
    assert table.count("MISSED") == 1
    assert document.read_text() == f"before\n{begin}\n\n{table.rstrip()}\n\n{end}\nafter\n"
    stored = json.loads(file.read_text())
    assert [line["verdict"] for line in stored["lines"]] == [MISSED, MET]
    assert {row["round"] for row in stored["results"]} == {1, 2, 3}
    order = [[(row["system"], row["turn"]) for row in stored["results"] if row["round"] == number] for number in (1, 2)]
    assert order[0] == [
        *[("hdphrs_program", 1), ("pool", 1), ("process_pool", 1), ("loky", 1), ("mpire", 1), ("hdphrs", 1)],
        *[("hdphrs", 2), ("process_pool", 2), ("pool", 2), ("hdphrs_program", 2)],
    ]
    assert [system for system, turn in order[1] if turn == 1] == [system for system, _ in order[0][5::-1]]
    assert TURNS == 2
    assert main(["--read", "--only", "in a task", "no-ops", "--json", str(file)], fake_run, fake_own) == 2


@pytest.mark.parametrize("arguments", [["--repeat", "0"], ["--read"], ["--only", "tea"], ["--size", "huge"]])
def test_bad_arguments_are_refused_in_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        main(arguments, fake_run, fake_own)
    assert refusal.value.code == 2
    assert ": error: " in capsys.readouterr().err.splitlines()[-1]


def test_a_document_without_room_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    arguments = ["--json", str(tmp_path / "lines.json"), "--write", str(page)]
    with pytest.raises(SystemExit, match=r"page\.md: No such file"):
        main(arguments, fake_run, fake_own)
    page.write_text("no room\n")
    with pytest.raises(SystemExit, match="lines: begin"):
        main(arguments, fake_run, fake_own)
    assert page.read_text() == "no room\n"
    assert not (tmp_path / "lines.json").exists()


# ---- for real --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_lines_are_measured_once_in_tiny_sizes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / BASE).mkdir()
    for part in Path(sys.prefix).iterdir():
        if part.name != READY:  # which in ours says something else
            (tmp_path / BASE / part.name).symlink_to(part)
    monkeypatch.setattr(launch, "VENVS", tmp_path)
    monkeypatch.setattr("benchmarks.compare.systems.VENVS", tmp_path)
    file = tmp_path / "lines.json"
    some = [
        "spawn + get",
        "no-ops",
        "UTS T3",
        "round trip",
        "bare processes",
        "killed, from the program",
        "unreliable, queens, time",
    ]
    assert main(["--only", *some, "--repeat", "1", "--size", TINY, "--json", str(file)], run_job, run_own) == 2
    facts = json.loads(file.read_text())
    base = {name for name, system in SYSTEMS.items() if system.venv == BASE}
    unlucky = [row for row in facts["results"] if row["system"] in base and row["outcome"] != RIGHT]
    assert unlucky == []
    unknown = [line["trouble"] for line in facts["lines"] if line["verdict"] == UNKNOWN]
    assert len(unknown) == 3  # what SCOOP, Charm4py, Ray and Dask are needed for
    assert all("not installed" in trouble for trouble in unknown)
