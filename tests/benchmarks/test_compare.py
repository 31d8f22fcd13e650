"""The harness that compares systems: jobs that end well, badly or never; tables, JSON, the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks import launch as starting
from benchmarks.compare import launch
from benchmarks.compare.command import TABLES, main
from benchmarks.compare.document import marks
from benchmarks.compare.install import requirements
from benchmarks.compare.job import RIGHT
from benchmarks.compare.launch import HANGS, Outcome, environment, run_job
from benchmarks.compare.processes import FOLDER_PREFIX, FOLDER_VARIABLE, kill_members, members
from benchmarks.compare.report import figure, markdown
from benchmarks.compare.results import Board, Result, read_results, write_results
from benchmarks.compare.systems import BASE, SYSTEMS, System
from benchmarks.compare.workloads import FULL, LESS, TINY, WORKLOADS, Nested, build
from benchmarks.installed import READY, as_installed, fingerprint, is_stale, way
from benchmarks.kernels.small import visit_waiting

PYTHON = "{bin}/python"


@pytest.fixture(autouse=True)
def venvs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Only the environment of the systems that need nothing is there."""
    folder = tmp_path / "venvs"
    (folder / BASE / "bin").mkdir(parents=True)
    (folder / BASE / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(launch, "VENVS", folder)
    monkeypatch.setattr("benchmarks.compare.systems.VENVS", folder)
    return folder


# ---- jobs ------------------------------------------------------------------------------------------------------


def test_a_job_that_ends_well_leaves_figures() -> None:
    done = run_job("plain", SYSTEMS["plain"], "fib", TINY)
    assert (done.outcome, done.size) == (RIGHT, TINY)
    assert done.figures["seconds"] > 0.0


def test_a_workload_that_makes_no_sense_is_skipped_with_the_reason() -> None:
    assert run_job("pool", SYSTEMS["pool"], "fib").outcome == "skipped: its tasks cannot wait for tasks of their own"


def test_threads_run_flat_work_and_cannot_nest() -> None:
    assert run_job("threads", SYSTEMS["threads"], "noops", TINY).outcome == RIGHT
    assert run_job("threads", SYSTEMS["threads"], "all_wait").outcome.startswith("skipped: its tasks cannot wait")
    assert run_job("threads", SYSTEMS["threads"], "recovery").outcome == "skipped: one process"


def test_tasks_that_all_wait_for_tasks_are_answered() -> None:
    done = run_job("plain", SYSTEMS["plain"], "all_wait", TINY)
    assert done.outcome == RIGHT
    assert build("all_wait", TINY) == Nested(visit_waiting, (2, 3), 3, 7)


def test_a_system_that_is_not_there_is_skipped_with_the_reason(venvs: Path) -> None:
    assert run_job("ray", SYSTEMS["ray"], "noops").outcome == "skipped: not installed (make bench-peers)"
    (venvs / "ray").mkdir()
    (venvs / "ray" / "failure").write_text("does not install: no wheel\n")
    assert run_job("ray", SYSTEMS["ray"], "noops").outcome == "skipped: does not install: no wheel"


def test_an_hdphrs_that_is_not_that_of_this_tree_is_not_measured(venvs: Path) -> None:
    (venvs / BASE / READY).write_text("another\n")
    outcome = run_job("hdphrs", SYSTEMS["hdphrs"], "noops").outcome
    assert outcome == "skipped: hdphrs has changed since it was installed (make bench-peers)"
    (venvs / BASE / READY).write_text(f"{fingerprint()}\n")
    assert not is_stale(venvs / BASE)


def test_everything_can_be_imported_on_the_way_but_hdphrs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert [part.name for part in way().iterdir()] == ["benchmarks"]
    with as_installed():
        said = "import sys, benchmarks.launch; print('there', sys.dont_write_bytecode)"
        assert starting.launch(["-c", said]).last_line == "there False"
    assert starting.python == sys.executable


def test_a_system_that_ends_without_a_report_is_told_with_its_last_words() -> None:
    dying = System("dying", "plain", launcher=(PYTHON, "-c", "import sys; sys.exit('no luck')"))
    assert run_job("dying", dying, "noops", TINY).outcome == "ended with status 1: no luck"


def test_a_system_that_hangs_is_ended_with_all_its_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "DEADLINE_S", 0.2)
    monkeypatch.setattr(launch, "FAREWELL_S", 0.0)
    folders: list[str] = []

    def remember(ours: os._Environ[str], how: System, folder: str) -> dict[str, str]:
        folders.append(folder)
        return environment(ours, how, folder)

    monkeypatch.setattr(launch, "environment", remember)
    script = "import subprocess, time; subprocess.Popen(['sleep', '60']); time.sleep(60)"
    assert (
        run_job("hanging", System("hanging", "plain", launcher=(PYTHON, "-c", script)), "noops", TINY).outcome == HANGS
    )
    assert members(folders[0]) == []


@pytest.mark.parametrize("folder", ["", "/", ".", "/tmp", tempfile.gettempdir(), f"/{FOLDER_PREFIX}x", "/tmp/other"])
def test_nobody_is_killed_for_a_folder_that_is_not_that_of_a_job(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))
    with pytest.raises(ValueError, match="not the folder of a job"):
        kill_members(folder)
    assert killed == []


def test_members_are_those_in_the_folder_or_with_it_in_their_environment_and_no_others(tmp_path: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder,
        tempfile.TemporaryDirectory(prefix=f"{Path(folder).name}x") as similar,
    ):
        started = [
            subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=where, env=given)
            for where, given in ((folder, {}), (tmp_path, {FOLDER_VARIABLE: folder}), (similar, {}), (tmp_path, {}))
        ]
        try:
            pids = [process.pid for process in started]
            assert members(folder) == sorted(pids[:2])
        finally:
            for process in started:
                process.communicate(b"\n")


def test_a_worker_is_killed_on_the_way_and_what_that_does_is_reported() -> None:
    done = run_job("process_pool", SYSTEMS["process_pool"], "recovery", TINY)
    assert done.outcome.startswith("failed: BrokenProcessPool")
    assert set(done.figures) == {"seconds", "run_again", "lost_s"}
    assert 0.0 <= done.figures["lost_s"] < 0.5


def test_a_job_gets_its_folder_and_the_programs_of_its_system(venvs: Path) -> None:
    ours = {"PATH": "/bin", "VIRTUAL_ENV": "/ours", "PYTHONDONTWRITEBYTECODE": "1"}
    given = environment(ours, SYSTEMS["dask"], "m")
    assert given["PATH"] == f"{venvs}/dask/bin:/bin"
    assert given[FOLDER_VARIABLE] == "m"
    assert not {"VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"} & given.keys()


# ---- systems ---------------------------------------------------------------------------------------------------


def test_systems_name_only_workloads_and_sizes_that_exist() -> None:
    for system in SYSTEMS.values():
        assert set(system.skips) <= set(WORKLOADS)
        assert all(size in WORKLOADS[workload] for workload, size in system.sizes.items())
        assert (Path(launch.__file__).parents[1] / "peers" / f"{system.adapter}.py").exists()


def test_each_system_has_an_environment_of_its_own() -> None:
    assert set(requirements(["pool", "dask"])) == {BASE, "dask"}
    needed = requirements(SYSTEMS)
    assert all(needed.values())
    assert not any(
        package.startswith("ray")
        for packages in needed.values()
        for package in packages
        if packages is not needed["ray"]
    )


# ---- results ---------------------------------------------------------------------------------------------------


def results() -> list[Result]:
    """Three rounds of an ideal, a system that is half as fast, and one that fails."""
    rows = []
    for number, seconds in enumerate([1.0, 2.0, 4.0], 1):
        rows.append(
            Result(number, 1.0, Outcome("ideal", "spin_1ms", FULL, RIGHT, {"seconds": seconds, "cpu_s": seconds}))
        )
        rows.append(
            Result(number, 1.0, Outcome("pool", "spin_1ms", FULL, RIGHT, {"seconds": 2 * seconds, "cpu_s": seconds}))
        )
        rows.append(
            Result(number, 1.0, Outcome("plain", "spin_1ms", FULL, RIGHT, {"seconds": seconds, "cpu_s": seconds}))
        )
        rows.append(Result(number, 1.0, Outcome("loky", "spin_1ms", FULL, "failed: TerminatedWorkerError: it was")))
        rows.append(Result(number, 1.0, Outcome("mpire", "spin_1ms", FULL, "skipped: not installed")))
    rows.append(Result(1, 1.0, Outcome("dask", "noops", LESS, RIGHT, {"tasks_per_s": 531.7})))
    return rows


def test_medians_and_ratios_prefer_jobs_that_nobody_disturbed() -> None:
    def job(system: str, seconds: float, others: float) -> Result:
        return Result(1, 1.0, Outcome(system, "spin_1ms", FULL, RIGHT, {"seconds": seconds, "others_cores": others}))

    board = Board([job("pool", 9.0, 1.5), job("pool", 2.0, 0.0), job("ideal", 1.0, 0.1), job("loky", 3.0, 0.9)])
    assert board.ratio("pool", "spin_1ms", "ideal") == 0.5
    assert [board.disturbed(name, "spin_1ms") for name in ("pool", "loky", "dask")] == [False, True, False]


def test_medians_and_ratios_of_what_was_measured() -> None:
    board = Board(results())
    assert board.median("pool", "spin_1ms", "seconds") == 4.0
    assert board.ratio("pool", "spin_1ms", "ideal") == 0.5
    assert board.ratio("loky", "spin_1ms", "ideal") is None
    assert board.median("dask", "noops", "seconds") is None


def test_the_table_shows_figures_troubles_and_smaller_sizes() -> None:
    lines = markdown(results()).splitlines()
    assert "| multiprocessing.Pool | – | 4 · 0.50 · 1.00 | – | – |" in lines
    assert "| joblib/loky | – | TerminatedWorkerError | – | – |" in lines
    assert "| Dask | 532* | – | – | – | – | – | – | – |" in lines
    assert not any("mpire" in line for line in lines)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.01234, "0.0123"), (99.96, "100"), (1234.5, "1,230"), (2_345_678.0, "2,350,000")]
)
def test_a_figure_has_three_digits(value: float, text: str) -> None:
    assert figure(value) == text


def test_results_survive_json(tmp_path: Path) -> None:
    write_results(tmp_path / "all.json", results(), {"cores": 2})
    assert read_results(tmp_path / "all.json") == results()


# ---- the command line ------------------------------------------------------------------------------------------


def fake_run(system: str, how: System, workload: str, size: str | None) -> Outcome:
    """A system that is always as fast."""
    assert size is None
    return Outcome(system, workload, FULL, "wrong: 7" if system == "mpire" else RIGHT, {"seconds": 2.0, "cpu_s": 1.0})


def test_rounds_add_to_the_file_and_show_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "all.json"
    arguments = ["--systems", "ideal,pool", "--workloads", "spin_1ms", "--repeat", "2", "--json", str(file)]
    assert main(arguments, fake_run) == 0
    assert main([*arguments, "--repeat", "1"], fake_run) == 0
    assert "| multiprocessing.Pool | – | 2 · 1.00 · – | – | – |" in capsys.readouterr().out
    assert [row["round"] for row in json.loads(file.read_text())["results"]] == [1, 1, 2, 2, 3, 3]
    assert main(["--read", "--json", str(file)], fake_run) == 0
    assert len(read_results(file)) == 6


def test_the_tables_are_put_into_a_document_that_has_room_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    arguments = ["--systems", "ideal,pool", "--workloads", "spin_1ms", "--repeat", "1", "--write", str(page)]
    with pytest.raises(SystemExit, match=r"page\.md: No such file"):
        main(arguments, fake_run)
    begin, end = marks(TABLES)
    page.write_text(f"before\n{begin}\n{end}\nafter\n")
    assert main(arguments, fake_run) == 0
    tables = capsys.readouterr().out.rstrip()
    assert page.read_text() == f"before\n{begin}\n\n{tables}\n\n{end}\nafter\n"


def test_a_wrong_answer_is_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--systems", "mpire", "--workloads", "noops", "--repeat", "1"], fake_run) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--systems", "ibis"],
        ["--workloads", "lunch"],
        ["--repeat", "0"],
        ["--read"],
        ["--plots", "x"],
        ["--read", "--json", "/no"],
    ],
)
def test_bad_arguments_are_refused_in_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        main(arguments, fake_run)
    assert refusal.value.code == 2
    assert ": error: " in capsys.readouterr().err.splitlines()[-1]
