"""What the simulator says of many cores: what it is asked, what it is compared with, and how that is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import predict
from benchmarks.launch import BenchmarkError
from benchmarks.predict import Compared, Delays, Predicted

DELAYS = Delays(local_us=20, latency_us=100)


def test_a_prediction_is_the_simulated_speed_up_on_so_many_nodes() -> None:
    one = predict.predict("queens", "par", 1, 40, DELAYS)
    four = predict.predict("queens", "par", 4, 40, DELAYS)
    assert 0.9 < one.efficiency <= 1.0
    assert one.took_s > four.took_s
    assert 2.0 < four.speedup <= 4.0


def test_slower_links_are_slower_in_the_prediction() -> None:
    near = predict.predict("sum_euler", "push", 4, 40, DELAYS)
    far = predict.predict("sum_euler", "push", 4, 40, Delays(20, 100_000))
    assert far.took_s > near.took_s + 0.1


def test_the_error_is_what_the_prediction_is_off_by() -> None:
    assert Compared("queens", "par", 2, 1.1, 1.0).error == pytest.approx(0.1)


@pytest.mark.slow
def test_a_real_run_on_one_node_takes_about_as_long_as_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "REAL_TASKS", 10)
    compared = predict.compare("liouville", "par", 1, DELAYS, cost_s=0.02)
    assert compared.predicted_s == pytest.approx(0.2, rel=0.1)
    assert compared.measured_s > 0.19


@pytest.mark.slow
def test_delays_are_those_of_two_idle_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "TRIPS", "5")
    assert min(predict.measure_delays()) >= 1


def test_all_of_it_is_told_and_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(predict, "measure_delays", lambda: DELAYS)
    monkeypatch.setattr(predict, "compare", lambda name, skeleton, nodes, delays: Compared(name, skeleton, nodes, 1, 2))
    monkeypatch.setattr(
        predict, "predict", lambda name, skeleton, nodes, tasks, delays: Predicted(name, skeleton, nodes, tasks, 2, 8)
    )
    assert predict.main(["--real", "2", "--nodes", "16,64", "--json", str(tmp_path / "all.json")]) == 1
    told = capsys.readouterr().out
    assert "| queens, eager | 2 | 1 | 2 | -50.0 % |" in told
    assert "| mandelbrot, lazy | 8 (0.50) | 8 (0.12) |" in told
    stored = json.loads((tmp_path / "all.json").read_text())
    assert len(stored["compared"]) == 8
    assert stored["predicted"][0]["efficiency"] == 0.5


def test_a_failure_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> Delays:
        raise BenchmarkError("no luck")

    monkeypatch.setattr(predict, "measure_delays", fail)
    assert predict.main([]) == 2
    assert capsys.readouterr().err == "benchmarks: no luck\n"


@pytest.mark.parametrize("numbers", ["", "0", "two", "1,-2"])
def test_bad_numbers_of_nodes_are_refused(numbers: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        predict.main(["--nodes", numbers])
    assert "not numbers of nodes" in capsys.readouterr().err
