"""One of the paper's benchmarks with tasks that wait, or compute, for a time that is fixed.

hdphrs run --local-nodes 9 --cores 1 benchmarks/programs/paced.py queens --tasks 5000 --cost 0.01 --skeleton push

If they wait, nine nodes on two cores go on like nine machines; if they compute (`--compute`), for so much processor
time, it does not matter how fast the machine is just now.  The trees, and how the work is spread over them, are those
of the simulator (`hdphrs/sim/paper.py`); `--cost` is the mean cost of a task that does not divide, in seconds.  Prints
the sum of all work, as JSON with the seconds that it all took.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

import hdphrs
from hdphrs.sim.paper import BENCHMARKS, tree_of

Problem: TypeAlias = "int | list[Problem]"
"""The work of a task, or of its children."""

FLAT = ("sum_euler", "liouville")


def problem_of(fans: Iterator[int], work: Iterator[int]) -> list[Problem]:
    """The problems of a tree, level by level; the first one has all others in it."""
    problems: list[Problem] = []
    divided: list[tuple[list[Problem], int]] = []
    for fan, units in zip(fans, work, strict=True):
        if fan:
            children: list[Problem] = []
            divided.append((children, fan))
            problems.append(children)
        else:
            problems.append(units)
    below = iter(problems[1:])
    for children, fan in divided:
        children += [next(below) for _ in range(fan)]
    return problems[:1]


def is_work(problem: Problem) -> bool:
    return isinstance(problem, int)


def parts(problem: Problem) -> list[Problem]:
    assert isinstance(problem, list)
    return problem


def combine(problem: Problem, sums: list[int]) -> int:
    return sum(sums)


def wait(unit_s: float, problem: Problem) -> int:
    """The task that does the work."""
    assert isinstance(problem, int)
    time.sleep(problem * unit_s)
    return problem


def compute(unit_s: float, problem: Problem) -> int:
    """The same, with a core."""
    assert isinstance(problem, int)
    end_s = time.thread_time() + problem * unit_s
    while time.thread_time() < end_s:
        pass
    return problem


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--skeleton", choices=["par", "push"], default="par")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--cost", type=float, default=0.02)
    parser.add_argument("--compute", action="store_true")
    options = parser.parse_args()
    fans, work = tree_of(options.name, options.tasks)
    unit_s = options.cost * fans.count(0) / sum(work)
    do = partial(compute if options.compute else wait, unit_s)
    (problem,) = problem_of(iter(fans), iter(work))
    started_s = time.perf_counter()
    if options.name in FLAT:
        share = hdphrs.par_map_sliced if options.skeleton == "par" else hdphrs.push_map_sliced
        total = sum(hdphrs.run(share, len(parts(problem)), do, parts(problem)))
    else:
        conquer = hdphrs.par_divide_and_conquer if options.skeleton == "par" else hdphrs.push_divide_and_conquer
        total = hdphrs.run(conquer, is_work, parts, combine, do, problem)
    assert total == sum(work)
    facts = {"tasks": len(fans), "work_s": sum(work) * unit_s, "took_s": time.perf_counter() - started_s}
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
