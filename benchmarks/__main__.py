"""The command line of the benchmarks: runs them one after the other, and prints a table.

`peers` compares hdphrs with other systems instead (`compare/command.py`), `lines` holds it to its bounds beside them
(`lines/command.py`), `instructions` counts without a clock (`instructions.py`).
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from benchmarks import (
    cancelling,
    growth,
    instructions,
    ledger,
    overhead,
    predict,
    recovery,
    spawn_get,
    speedup,
    startup,
)
from benchmarks.compare import command as peers
from benchmarks.figures import Figure, table, write_json
from benchmarks.installed import as_installed
from benchmarks.launch import BenchmarkError
from benchmarks.lines import command as lines

BENCHMARKS = {
    "spawn_get": spawn_get.measure,
    "speedup": speedup.measure,
    "overhead": overhead.measure,
    "startup": startup.measure,
    "recovery": recovery.measure,
    "reliability": recovery.measure_reliability,
    "ledger": ledger.measure,
    "cancelling": cancelling.measure,
}

INSTALLED = ("overhead", "startup")
"""Those that are about what users install; the others are about the checkout."""

OTHERS: dict[str, Callable[[Sequence[str]], int]] = {
    "peers": peers.main,
    "lines": lines.main,
    "instructions": instructions.main,
    "growth": growth.main,
    "predict": predict.main,
}
"""Those with a command line of their own."""


def main() -> int:
    """Exit status: 0 all budgets kept, 1 a budget missed, 2 a program failed."""
    if sys.argv[1:2] and sys.argv[1] in OTHERS:
        # So that the job under way is ended too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        return OTHERS[sys.argv[1]](sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--repeat", type=int, default=5, help="samples of each figure (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures with all samples to FILE")
    parser.add_argument("--count", action="store_true", help="also count the bytecodes of spawn + get")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"no benchmark {unknown[0]}; there are {', '.join(BENCHMARKS)}")
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")

    figures: list[Figure] = []
    try:
        for name in options.names or BENCHMARKS:
            print(f"{name} ...", file=sys.stderr)
            with as_installed() if name in INSTALLED else nullcontext():
                figures += BENCHMARKS[name](options.repeat)
        if options.count:
            figures += instructions.count()
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    print(table(figures))
    if options.json:
        write_json(options.json, figures)
    return 1 if any(figure.verdict == "MISSED" for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
