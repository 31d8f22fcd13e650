"""What the benchmarks compute is right, in every size and shape that the comparison uses."""

from __future__ import annotations

import tempfile
from functools import partial
from hashlib import sha1
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.compare.job import RIGHT, ComparedJob
from benchmarks.compare.launch import Outcome
from benchmarks.compare.processes import FOLDER_PREFIX
from benchmarks.compare.workloads import TIMED_S, TINY, WORKLOADS, Flat, Nested, build
from benchmarks.kernels import paper, uts
from benchmarks.peers.ideal import Ideal, shares_of
from benchmarks.peers.plain import Plain

TIMED = ("startup", "waiting", "recovery", "no_recovery", "poison", "arrays_1mb")
"""What takes processes, or NumPy."""


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name not in TIMED])
def test_a_workload_done_by_plain_calls_gives_the_answer_that_is_known(name: str) -> None:
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        figures, outcome = ComparedJob(name, TINY, 2, folder, 0.0)._measure(Plain())
    assert outcome == RIGHT
    assert figures


@pytest.mark.parametrize("name", ["sum_euler", "liouville", "queens", "mandelbrot"])
def test_items_of_the_full_size_cover_all_work_once(name: str) -> None:
    flat = build(name, "full")
    assert isinstance(flat, Flat)
    if name in ("sum_euler", "liouville"):
        numbers = [(part.start, part.stop) for part in flat.items]
        assert all(stop == start for (_, stop), (start, _) in pairwise(numbers))
    else:
        assert len(set(flat.items)) == len(flat.items)


@pytest.mark.parametrize("name", ["sum_euler", "liouville", "mandelbrot"])
def test_timed_programs_have_as_many_tasks_as_the_real_ones_and_all_the_same_work(name: str) -> None:
    real, timed = build(name, "full"), build(f"{name}_timed", "full")
    assert isinstance(real, Flat)
    assert isinstance(timed, Flat)
    assert len(timed.items) == len(real.items) == timed.answer
    assert sum(timed.items) == pytest.approx(TIMED_S)


def test_recorded_iterations_are_those_that_are_counted() -> None:
    rows = paper.iterations_by_row()
    assert sum(rows) == 16_977_376
    for row in (0, 17, 479):
        assert rows[row] == paper.count_iterations(640, 256, (row, row + 1))


@pytest.mark.parametrize(
    ("tree", "size"),
    [(uts.Geometric(4, 6, 19), 16_000), (uts.Binomial(200, 8, 0.1, 42), 889), (uts.Binomial(0, 8, 0, 1), 1)],
)
def test_uts_counts_a_small_tree_whatever_the_grain(tree: uts.Tree, size: int) -> None:
    assert uts.walk(tree, 1 << 40, [uts.root_of(tree)]) == size
    for grain in (1, 7, 1000):
        assert Plain().tree(partial(uts.visit_nodes, tree, grain), [uts.root_of(tree)]) == size


def test_uts_children_are_hashed_from_the_parent_and_their_number() -> None:
    tree = uts.Binomial(roots=3, width=8, chance=0.0, seed=42)
    stack = [uts.root_of(tree)]
    assert uts.walk(tree, 1, stack) == 1
    root = sha1(bytes(19) + b"\x2a").digest()
    assert stack == [(sha1(root + bytes([0, 0, 0, child])).digest(), 1) for child in range(3)]


def test_uts_task_leaves_its_argument_as_it_was() -> None:
    nodes = [uts.root_of(uts.T1)]
    assert uts.visit_nodes(uts.T1, 10, nodes) == uts.visit_nodes(uts.T1, 10, nodes)
    assert nodes == [uts.root_of(uts.T1)]


def test_mandelbrot_counts_the_same_however_it_is_cut() -> None:
    whole = paper.count_iterations(24, 64, (0, 18))
    assert whole == sum(paper.count_iterations(24, 64, band) for band in paper.bands(18, 5))
    assert whole == Plain().tree(partial(paper.visit_mandelbrot, 24, 64, 2), (0, 18))


def test_nested_sizes_know_how_many_tasks_they_are() -> None:
    def count(nested: Nested, problem: object) -> int:
        _, below = nested.visit(problem)
        return 1 + sum(count(nested, child) for child in below)

    for name in ("fib", "queens_nested", "spin_1ms_nested"):
        nested = build(name, TINY)
        assert isinstance(nested, Nested)
        assert count(nested, nested.problem) == nested.tasks


def test_perfect_shares_are_even_and_complete() -> None:
    shares = shares_of([5.0, 1.0, 3.0, 3.0], 2)
    assert sorted(task for share in shares for task in share) == [0, 1, 2, 3]
    assert [sum([5.0, 1.0, 3.0, 3.0][task] for task in share) for share in shares] == [6.0, 6.0]


def test_jobs_of_the_same_work_share_one_rehearsal(tmp_path: Path) -> None:
    visited: list[int] = []

    def visit(problem: int) -> tuple[int, list[int]]:
        visited.append(problem)
        return problem, [problem - 1] * (problem > 0)

    first, second, stranger = Ideal(2, str(tmp_path)), Ideal(2, str(tmp_path)), Ideal(2, "")
    for ideal in (first, second):
        ideal.rehearse_tree(visit, 3)
        assert visited == [3, 2, 1, 0]
        assert ideal.tree(visit, 3) == 6
    stranger.rehearse_tree(visit, 3)
    assert len(visited) == 8


def test_a_job_survives_json() -> None:
    job = ComparedJob("noops", TINY, 2, "/nowhere", 1.5)
    assert ComparedJob.from_json(job.to_json()) == job
    assert Outcome("s", "w", TINY, RIGHT).figures == {}
