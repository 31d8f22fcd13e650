"""Cost as the work grows: each kind of work is done and counted, and the ratios are those of what was counted."""

from __future__ import annotations

import pytest

from benchmarks import growth
from benchmarks.launch import BenchmarkError


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "count"), [("flat", 50_000), ("divided", 50_000), ("suspended", 1000), ("program", 10_000)]
)
def test_a_kind_of_work_is_counted_in_all_processes_of_its_run(kind: str, count: int) -> None:
    found = growth.cost(kind, count)
    assert found["cpu_s"] > 0.0  # where the kernel's clock ticks every 10 ms, too
    assert found["grown_mb"] >= 0.0
    assert found["processes"] >= 3  # the program, the node, a scheduler


@pytest.mark.slow
def test_work_among_two_nodes_is_begun_when_both_are_there() -> None:
    assert growth.cost("spins", 20, nodes=2)["processes"] >= 5


@pytest.mark.slow
def test_nodes_with_nothing_to_do_are_counted_once_all_are_there() -> None:
    found = growth.cost("idle", 1, nodes=2)
    assert found["processes"] >= 5
    assert found["seconds"] == pytest.approx(1.0, abs=0.9)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--unreliable",)])
def test_tasks_of_a_fixed_processor_time_take_at_least_that_in_either_shape(options: tuple[str, ...]) -> None:
    found = growth.cost("timed", 20, 2, *options)
    assert min(found[shape] for shape in growth.SHAPES) >= 20 * 2e-3


def test_supervision_is_what_a_reliable_run_takes_by_the_unreliable_one_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, ...]] = []

    def cost(kind: str, count: int, nodes: int = 1, *options: str) -> dict[str, float]:
        asked.append(options)
        return {"flat": 2.0, "tree": 8.0} if options else {"flat": 2.2, "tree": float(4 * nodes)}

    monkeypatch.setattr(growth, "cost", cost)
    every = [figure for figure in growth.measure_supervision(2, 2) if figure.unit == "x"]
    assert [figure.value for figure in every] == pytest.approx([1.1, 0.5, 1.1, 1.0])
    assert [figure.verdict for figure in every] == ["", "", "MISSED", "ok"]
    assert asked[:4] == [(), ("--unreliable",), ("--unreliable",), ()]  # either first


def test_idle_nodes_are_told_as_a_share_of_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "cost", lambda kind, count, nodes=1: {"cpu_s": nodes * count / 100})
    assert [figure.samples for figure in growth.measure_idle(1, 4)] == [(1.0,), (2.0,), (4.0,)]


def test_the_largest_size_is_compared_with_the_base_run_by_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(kind: str, count: int, nodes: int = 1) -> dict[str, float]:
        return {"cpu_s": count * 2e-6 if count == 10**5 else count * 1e-6, "grown_mb": 9.0}

    monkeypatch.setattr(growth, "cost", cost)
    figures = {figure.name: figure for figure in growth.measure_tasks(2, 5)}
    ratio = figures["divide and conquer in a task, a task of 10^5 / of 10^4"]
    assert ratio.samples == pytest.approx((2.0, 2.0))
    assert ratio.verdict == "MISSED"
    assert figures["divide and conquer in a task, 10^5: memory"].verdict == "MISSED"
    assert figures["flat in a task, 10^5: memory"].verdict == ""


def test_nodes_are_compared_with_two_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "cost", lambda kind, count, nodes=1: {"cpu_s": float(nodes)})
    *_, ratio = growth.measure_nodes(1, 8)
    assert (ratio.name, ratio.samples) == ("a task among 8 nodes / among 2", (4.0,))


def test_a_program_that_fails_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(kind: str, count: int, nodes: int = 1) -> dict[str, float]:
        raise BenchmarkError("no luck")

    monkeypatch.setattr(growth, "cost", fail)
    assert growth.main(["--repeat", "1"]) == 2
    assert capsys.readouterr().err == "benchmarks: no luck\n"
