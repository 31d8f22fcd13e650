"""The same program and seed give the same result, wherever it runs and whoever dies."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.e2e.harness import Cluster, result_of

PROGRAM = Path(__file__).with_name("drawing.py")
WORK = 20_000

EXPECTED = "90045e5363aaaf26 with 7"
"""As long as this does not change, nobody gets other numbers from an old seed."""


@pytest.mark.parametrize(
    "options",
    [
        ["--sequential"],
        ["--cores", 1],
        ["--cores", 2],
        ["--cores", 2, "--unreliable"],
        ["--local-nodes", 3, "--cores", 1],
        ["--local-nodes", 3, "--cores", 1, "--kill-at", "0.3,0.6"],
        ["--cores", 2, "--speculate"],
    ],
    ids=lambda options: " ".join(map(str, options)),
)
@pytest.mark.slow
def test_same_seed_same_result_everywhere(cluster: Cluster, options: list[object]) -> None:
    cluster.start("--seed", 7, *options, PROGRAM, WORK)
    assert result_of(cluster.finish()) == EXPECTED


@pytest.mark.slow
def test_plain_program_takes_its_seed_from_the_environment(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDPHRS_SEED", "7")
    cluster.start(PROGRAM, WORK, python=True)
    assert result_of(cluster.finish()) == EXPECTED


def test_run_that_is_given_no_seed_tells_it_and_can_be_repeated(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs
        print("result:", hdphrs.get(hdphrs.spawn(hdphrs.seed)), hdphrs.run_seed())
        """
    )
    cluster.start("-v", "--cores", 1, program)
    first = cluster.finish()
    drawn, seed = result_of(first).split()
    assert f"--seed {seed} repeats it" in first.stderr
    cluster.start("--cores", 1, "--seed", seed, program)
    assert result_of(cluster.finish()) == f"{drawn} {seed}"


def test_program_sets_the_seed_itself_and_so_may_a_module_that_tasks_import(cluster: Cluster) -> None:
    cluster.write("import hdphrs\nhdphrs.set_seed(9)\ndef f(): return hdphrs.seed()\n", "helper.py")
    program = cluster.write(
        """
        import helper, hdphrs
        def late():
            try:
                hdphrs.set_seed(10)
            except hdphrs.errors.UsageError as error:
                return str(error)
        values = hdphrs.get(hdphrs.spawn(helper.f)), hdphrs.get(hdphrs.spawn(late)), hdphrs.run_seed()
        print("result:", values)
        """
    )
    results = []
    for options in (["--cores", 1], ["--seed", 3, "--local-nodes", 2, "--cores", 1]):
        cluster.start(*options, program)
        results.append(result_of(cluster.finish()))
    assert results[0] == results[1]
    assert re.search(r"only the program sets the seed.*, 9\)$", results[0])


def test_executors_of_their_own_draw_other_numbers(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs
        with hdphrs.Executor(1) as one, hdphrs.Executor(1) as other:
            calls = [executor.submit(hdphrs.seed, 64) for executor in (one, other, one, other)]
            drawn = [call.result() for call in calls]
        print("result:", len(set(drawn)), drawn)
        """
    )
    results = []
    for _ in range(2):
        cluster.start(program, python=True)
        results.append(result_of(cluster.finish()))
    assert results[0].startswith("4 ")
    assert results[0].split()[1:] != results[1].split()[1:]  # another run, another seed


LEDGER = """
import hdphrs, sys

def draws(n):
    print("ran draws", flush=True)
    return hdphrs.seed(64)

def through(n):
    print("ran through", flush=True)
    return draws(n)

def inside(n):
    from hdphrs import rng
    print("ran inside", flush=True)
    return rng(numpy=False).random()

def given(function, n):
    print("ran given", flush=True)
    return function(n)

def plain(n):
    print("ran plain", flush=True)
    return n

for function in (draws, through, inside, given, plain):
    hdphrs.task(memo=True)(function)
calls = [(draws, 1), (draws, 1), (through, 1), (inside, 1), (given, draws, 1), (plain, 1)]
print("result:", [hdphrs.get(hdphrs.spawn(*call)) for call in calls])
"""


def test_ledger_gives_what_was_drawn_by_the_same_seed_at_the_same_place_and_nothing_else(cluster: Cluster) -> None:
    program = cluster.write(LEDGER)

    def run(seed: int) -> tuple[str, int]:
        cluster.start("--cores", 1, "--ledger", cluster.folder / "ledger", "--seed", seed, program)
        finished = cluster.finish()
        return result_of(finished), finished.stdout.count("ran ")

    first, ran = run(1)
    assert (run(1), ran) == ((first, 0), 8)
    other, ran = run(2)
    assert other != first
    assert ran == 7  # all but `plain`
    values = ast.literal_eval(first)
    assert len({*values}) == len(values)
    assert run(1) == (first, 0)
