"""The gain: the paper's four benchmarks on two cores, against the same code as a plain loop.

Two plain loops at once show what this machine gives to anybody who uses both cores: its ceiling.  All are timed from
outside, from the start of the process to its end, and in turn.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.figures import Budget, Figure
from benchmarks.launch import EXAMPLES, HDPHRS_RUN, BenchmarkError, launch

SIZES = {"sum_euler": "20000", "liouville": "1000000000", "queens": "14", "mandelbrot": "2000"}
"""Each 5 to 15 s of sequential work, so that starting up does not decide."""

CORES = "2"


def measure(repeat: int) -> Iterator[Figure]:
    """Seconds of the plain loop, and by what factor two cores are faster."""
    for name, size in SIZES.items():
        yield from _measure(name, size, repeat)


def _measure(name: str, size: str, repeat: int) -> Iterator[Figure]:
    example = str(EXAMPLES / f"{name}.py")
    alone_s, ratios, ceilings = [], [], []
    with tempfile.TemporaryDirectory() as folder:  # where Mandelbrot leaves its picture
        for _ in range(repeat):
            plain = [example, size, "--skeleton", "seq"]
            alone = launch(plain, Path(folder))
            with ThreadPoolExecutor(2) as pool:
                both = [run.seconds for run in pool.map(launch, [plain] * 2, [Path(folder)] * 2)]
            shared = launch([*HDPHRS_RUN, "--cores", CORES, example, size, "--skeleton", "par"], Path(folder))
            if alone.last_line != shared.last_line:
                raise BenchmarkError(f"{name} {size}: {shared.last_line} instead of {alone.last_line}")
            alone_s.append(alone.seconds)
            ratios.append(alone.seconds / shared.seconds)
            ceilings.append(2 * alone.seconds / max(both))
    yield Figure(f"{name} {size}, plain loop", "s", tuple(alone_s))
    yield Figure(f"{name} {size}, two plain loops at once", "x", tuple(ceilings))
    yield Figure(f"{name} {size}, {CORES} cores", "x", tuple(ratios), Budget(1.8, at_most=False))
