"""What the simulator says of many cores, and how far it can be believed: `python -m benchmarks predict`.

What lives here: the simulator's cluster is given the delays that are measured here; its times are compared with those
of real runs, the same trees of tasks on as many local nodes of one core; then it is asked about more nodes.  Real tasks
wait instead of computing (`programs/paced.py`), so many nodes on a few cores go on like as many machines.

The simulated node processes take no time for a message.  `python -m benchmarks growth` says what a task costs all
processes that it passes through; where the root's node has more to do than a core can, no number of nodes helps.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.compare.report import figure as digits
from benchmarks.launch import HDPHRS_RUN, PROGRAMS, BenchmarkError, launch
from hdphrs.sim.draw import SHAPES
from hdphrs.sim.paper import PROFILE
from hdphrs.sim.run import RIGHT, simulate

NAMES = ("sum_euler", "liouville", "queens", "mandelbrot")
SKELETONS = {"par": "lazy", "push": "eager"}
REAL_NODES = (1, 2)
MANY_NODES = (16, 64, 256)

COST_S = 0.05
"""Mean, of a task that does not divide."""

TASKS_PER_NODE = 40
"""About as many as the paper has for a core (Table 4)."""

REAL_TASKS = 100
"""In a real run."""

TRIPS = "300"
HOPS = 4
"""Between a scheduler and its node, in a round trip."""

ERROR_MAX = 0.1
"""Of a prediction, by what was measured."""


class Delays(NamedTuple):
    """Of this machine, in microseconds."""

    local_us: int
    """From a scheduler to its node, or back."""
    latency_us: int
    """From a node to another."""


class Compared(NamedTuple):
    """One program, predicted and run."""

    name: str
    skeleton: str
    nodes: int
    predicted_s: float
    measured_s: float

    @property
    def error(self) -> float:
        """By how much of the measured time the prediction is off."""
        return self.predicted_s / self.measured_s - 1


class Predicted(NamedTuple):
    """One program on many nodes."""

    name: str
    skeleton: str
    nodes: int
    tasks: int
    took_s: float
    speedup: float

    @property
    def efficiency(self) -> float:
        """The share of the ideal."""
        return self.speedup / self.nodes


def measure_delays() -> Delays:
    """As two idle nodes show them."""
    command = [*HDPHRS_RUN, "--local-nodes", "2", "--cores", "1", str(PROGRAMS / "node_trip.py"), TRIPS]
    trips = json.loads(launch(command).last_line)
    away_us = max(0.0, trips["median_us"] - trips["own_us"])
    return Delays(max(1, round(trips["own_us"] / HOPS)), max(1, round(away_us / 2)))


def predict(name: str, skeleton: str, nodes: int, tasks: int, delays: Delays, cost_s: float = COST_S) -> Predicted:
    """By one simulated run.

    Raises:
        BenchmarkError: the simulation went wrong.
    """
    numbers = PROFILE | delays._asdict() | {"shape": SHAPES.index(name), "nodes": nodes, "tasks": tasks}
    result = simulate(0, **numbers | {"cost_us": round(cost_s * 1e6), "eager": int(skeleton == "push")})
    if result.status != RIGHT:
        raise BenchmarkError(f"simulated {name}, {skeleton}, {nodes} nodes: {result.told}")
    work = result.work
    return Predicted(name, skeleton, nodes, tasks, work.took_ns / 1e9, work.sequential_ns / work.took_ns)


def compare(name: str, skeleton: str, nodes: int, delays: Delays, cost_s: float = COST_S) -> Compared:
    """A prediction with a real run."""
    options = ["--local-nodes", str(nodes), "--cores", "1"]
    sizes = ["--skeleton", skeleton, "--tasks", str(REAL_TASKS), "--cost", str(cost_s)]
    run = launch([*HDPHRS_RUN, *options, str(PROGRAMS / "paced.py"), name, *sizes])
    predicted = predict(name, skeleton, nodes, REAL_TASKS, delays, cost_s)
    return Compared(name, skeleton, nodes, predicted.took_s, json.loads(run.last_line)["took_s"])


def markdown(delays: Delays, compared: Sequence[Compared], predicted: Sequence[Predicted]) -> str:
    """Two tables."""
    lines = [
        f"Delays: {delays.local_us} µs from a scheduler to its node, {delays.latency_us} µs from node to node.",
        "",
    ]
    lines += ["| | nodes | predicted, s | measured, s | off by |", "|---|---|---|---|---|"]
    for row in compared:
        times = f"{digits(row.predicted_s)} | {digits(row.measured_s)} | {100 * row.error:+.1f} %"
        lines.append(f"| {row.name}, {SKELETONS[row.skeleton]} | {row.nodes} | {times} |")
    lines += ["", "| speed-up (share of the ideal) |" + "".join(f" {nodes} nodes |" for nodes in _nodes(predicted))]
    lines.append("|---|" + "---|" * len(_nodes(predicted)))
    for name, skeleton in dict.fromkeys((row.name, row.skeleton) for row in predicted):
        cells = [row for row in predicted if (row.name, row.skeleton) == (name, skeleton)]
        told = " | ".join(f"{digits(row.speedup)} ({row.efficiency:.2f})" for row in cells)
        lines.append(f"| {name}, {SKELETONS[skeleton]} | {told} |")
    return "\n".join(lines) + "\n"


def _nodes(predicted: Sequence[Predicted]) -> list[int]:
    return list(dict.fromkeys(row.nodes for row in predicted))


def _cases(nodes: Sequence[int]) -> Iterator[tuple[str, str, int]]:
    return ((name, skeleton, number) for skeleton in SKELETONS for name in NAMES for number in nodes)


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 all predictions that were tested are near enough, 1 one is not, 2 a program failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks predict", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--real", type=_numbers, default=list(REAL_NODES), help="nodes of real runs (default 1,2)")
    parser.add_argument("--nodes", type=_numbers, default=list(MANY_NODES), help="to predict (default 16,64,256)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all of it to FILE")
    options = parser.parse_args(arguments)
    try:
        delays = measure_delays()
        compared = [_told(compare(*case, delays)) for case in _cases(options.real)]
        predicted = [
            _told(predict(name, skeleton, nodes, TASKS_PER_NODE * nodes, delays))
            for name, skeleton, nodes in _cases(options.nodes)
        ]
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    print(markdown(delays, compared, predicted))
    if options.json:
        options.json.write_text(json.dumps(_document(delays, compared, predicted), indent=2) + "\n")
    return int(any(abs(row.error) > ERROR_MAX for row in compared))


def _told(row: Any) -> Any:
    print(row, file=sys.stderr, flush=True)
    return row


def _document(delays: Delays, compared: Sequence[Compared], predicted: Sequence[Predicted]) -> dict[str, Any]:
    return {
        "delays": delays._asdict(),
        "compared": [row._asdict() | {"error": row.error} for row in compared],
        "predicted": [row._asdict() | {"efficiency": row.efficiency} for row in predicted],
    }


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"not numbers of nodes: {text!r}")
    return numbers
