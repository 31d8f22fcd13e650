"""`python -m tests.foreign.programs NAME SIZE`: runs a program as its user would, and says whether it is right.

What lives here: also the list of them.  Each module has `SIZES`, `main(size)`, which is the first task, and either
`answer(size)` or `check(size, found)`.
"""

from __future__ import annotations

import sys
from importlib import import_module

import hdphrs

NAMES = (
    "alignment",
    "fft",
    "fib",
    "floorplan",
    "health",
    "nqueens",
    "sort",
    "sparselu",
    "strassen",
    "uts",
)


def main(name: str, size: str) -> int:
    """Exit status 0: the program's result is right."""
    program = import_module(f"tests.foreign.programs.{name}")
    found = hdphrs.run(program.main, program.SIZES[size])
    if hasattr(program, "check"):
        right = bool(program.check(program.SIZES[size], found))
    else:
        right = found == program.answer(program.SIZES[size])
    print(f"{name} {size}: {'right' if right else f'wrong: {found}'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
