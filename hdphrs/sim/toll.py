"""What deaths cost in runs of a benchmark: a line for each run, and the middle and the worst of all.

What lives here: text, from the accounts of `work.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from hdphrs.sim.run import RIGHT, Result

COLUMNS = (
    ("seed", 6),
    ("deaths", 6),
    ("work s", 10),
    ("lost s", 9),
    ("again s", 9),
    ("again/lost", 10),
    ("took s", 8),
    ("took/ideal", 10),
)

DEATHS = ("kills", "power losses", "ambushes", "departures")


def tell_tolls(results: Sequence[Result]) -> Iterator[str]:
    """A table of runs that went right."""
    yield " ".join(f"{name:>{width}}" for name, width in COLUMNS)
    right = [result for result in results if result.status == RIGHT]
    for result in right:
        work = result.work
        again = f"{work.recomputed_ns / work.lost_ns:10.2f}" if work.lost_ns else f"{'-':>10}"
        yield (
            f"{result.seed:6} {sum(result.tallies.get(kind, 0) for kind in DEATHS):6} {work.sequential_ns / 1e9:10.3f} "
            f"{work.lost_ns / 1e9:9.3f} {work.recomputed_ns / 1e9:9.3f} {again} {work.took_ns / 1e9:8.3f} "
            f"{work.took_ns / work.ideal_ns:10.3f}"
        )
    lossy = [result.work for result in right if result.work.lost_ns]
    if lossy:
        ratios = [work.recomputed_ns / work.lost_ns for work in lossy]
        overall = sum(work.recomputed_ns for work in lossy) / sum(work.lost_ns for work in lossy)
        yield f"again/lost: {overall:.3f} of all together, median {median(ratios):.3f}, worst {max(ratios):.3f}"
    if right:
        spans = [result.work.took_ns / result.work.ideal_ns for result in right]
        yield f"took/ideal: median {median(spans):.3f}, worst {max(spans):.3f}"
