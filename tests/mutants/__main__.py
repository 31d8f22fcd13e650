"""`make mutants`: every planted bug is caught, in the model and in the core.

What lives here: the table, the counterexamples below it, and the exit status: 1 if a bug survives, or if a check fails
although nothing is planted.
"""

from __future__ import annotations

import argparse
import os
import time
from multiprocessing import get_context

from spin import mutants as models
from spin.pan import missing_tools
from tests.mutants.checks import TRACE_MAX, Caught, catch, control
from tests.mutants.expected import MODELLED
from tests.mutants.patching import planted
from tests.mutants.planted import MUTANTS

Job = tuple[str, str]
"""("core" | "model", the mutant's name); no name for the control."""

JOBS = 2


def run(job: Job) -> tuple[Job, Caught | None]:
    """One mutant of the core or the model."""
    kind, name = job
    if kind == "model":
        mutant = next(one for one in models.MUTANTS if one.name == name)
        try:
            caught = models.run(mutant)
        except models.SurvivedError:
            return job, None
        return job, Caught(caught.check, caught.check, caught.depth, tuple(caught.trace))
    if not name:
        return job, control()
    core = next(one for one in MUTANTS if one.name == name)
    with planted(core):
        return job, catch(core)


def main() -> int:
    """Run all, or those that are asked for; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    names = [mutant.name for mutant in MUTANTS]
    parser.add_argument("--only", metavar="NAME", choices=names, help="this mutant")
    parser.add_argument("--trace", metavar="NAME", choices=names, help="this mutant, with its whole counterexample")
    asked = parser.parse_args()
    one = asked.only or asked.trace
    start_s = time.monotonic()
    missing = missing_tools()
    chosen = [mutant for mutant in MUTANTS if one in (None, mutant.name)]
    jobs: list[Job] = [("core", "")]
    if not missing:
        jobs += [("model", name) for name in dict.fromkeys(MODELLED.get(m.name) for m in chosen) if name]
    jobs += [("core", mutant.name) for mutant in chosen]
    with get_context("fork").Pool(min(JOBS, os.cpu_count() or 1), maxtasksperchild=1) as pool:
        came = dict(pool.imap_unordered(run, jobs))
    if missing:
        print(f"the models are left out, for there is no {' or '.join(missing)}")
    survivors = 0
    print(f"{'mutant':24}{'core: caught by':44}{'depth':>6}  {'model: caught by':34}{'depth':>6}  it breaks")
    for mutant in chosen:
        core = came["core", mutant.name]
        modelled = MODELLED.get(mutant.name)
        model = came.get(("model", modelled)) if modelled else None
        lost = core is None or (modelled is not None and not missing and model is None)
        survivors += lost
        by_model = _cells(model, 34) if modelled and not missing else f"{'-':34}{'':>6}"
        print(f"{mutant.name:24}{_cells(core, 44)}  {by_model}  {mutant.breaks}")
    wrong = came["core", ""]
    verdict = "nothing, as it must be" if wrong is None else f"{wrong.check}: {wrong.told}"
    print(f"{'(nothing planted)':24}{verdict}")
    for mutant in chosen:
        if (caught := came["core", mutant.name]) is not None:
            _tell(mutant.name, caught, whole=asked.trace is not None)
    print(f"{len(chosen)} mutants, {survivors} survive; {time.monotonic() - start_s:.0f} s")
    return 1 if survivors or wrong is not None else 0


def _cells(caught: Caught | None, width: int) -> str:
    if caught is None:
        return f"{'SURVIVES':{width}}{'':>6}"
    depth = "" if caught.depth is None else str(caught.depth)
    return f"{caught.check[: width - 2]:{width}}{depth:>6}"


def _tell(name: str, caught: Caught, *, whole: bool) -> None:
    print(f"\n{name}: {caught.check}: {caught.told[:300]}")
    if caught.why:
        print(f"  only a scenario, since {caught.why}")
    left_out = 0 if whole else max(0, len(caught.trace) - TRACE_MAX)
    if left_out:
        print(f"  ({left_out} steps before)")
    for line in caught.trace[left_out:]:
        print(f"  {line}")


if __name__ == "__main__":
    raise SystemExit(main())
