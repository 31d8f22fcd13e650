"""The threads of numerical libraries: each scheduler has its share of the cores, and no more.

What lives here: telling OpenBLAS, MKL, BLIS, OpenMP and their like how many threads to use in this process.  They
start one for each core otherwise, in each scheduler.

Libraries look at the environment when they are loaded, so that is set before any task runs.  Those that are loaded
already, because a `.pth` file has imported them, are told through threadpoolctl and torch, if these are there.

What the user has chosen holds: a variable that is set when the scheduler starts, or that a program or a task sets, and
what a task tells a library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

OPENMP: Final = "OMP_NUM_THREADS"

FOLLOWERS: Final = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""Libraries that take `OMP_NUM_THREADS` for theirs, if this is not set: whoever has set that means them too."""

OTHERS: Final = (
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
)

LIMITED: Final = ("numpy", "scipy", "torch", "sklearn", "mkl", "numexpr")
"""Packages whose libraries threadpoolctl, or torch itself, can tell."""


class NativeThreads:
    """Those of one process."""

    def __init__(self) -> None:
        self.share: int = 0
        """How many threads a library may use; 0 as long as nothing has been said."""
        self._set: dict[str, str] = {}
        """What we have put into the environment."""

    def divide(self, cores: int, schedulers: int) -> None:
        """So many schedulers share these cores."""
        share = max(1, cores // max(1, schedulers))
        if share == self.share:
            return
        before, self.share = self.share, share
        for name in (OPENMP, *FOLLOWERS, *OTHERS):
            if self._is_ours_to_set(name):
                os.environ[name] = self._set[name] = str(share)
        if any(name in sys.modules for name in LIMITED):
            self._tell_loaded(before)

    def _is_ours_to_set(self, name: str) -> bool:
        if name in os.environ:
            return os.environ[name] == self._set.get(name)
        chosen = os.environ.get(OPENMP)
        return name not in self._set and (name not in FOLLOWERS or chosen is None or chosen == self._set.get(OPENMP))

    def _tell_loaded(self, before: int) -> None:
        """Tell libraries that are loaded; not those that somebody has told something else since we did."""
        torch = sys.modules.get("torch")
        with suppress(Exception):  # it is just being imported, or is no such module
            if torch is not None and self._is_ours(OPENMP) and before in (0, torch.get_num_threads()):
                torch.set_num_threads(self.share)
        with suppress(Exception):  # it is not installed, or does not understand a library
            for library in import_module("threadpoolctl").ThreadpoolController().lib_controllers:
                is_ours = self._is_ours(_VARIABLE_OF.get(library.internal_api, OPENMP))
                if is_ours and before in (0, library.num_threads):
                    library.set_num_threads(self.share)

    def _is_ours(self, name: str) -> bool:
        return name in self._set and os.environ.get(name) == self._set[name]


_VARIABLE_OF: Final = {"openblas": FOLLOWERS[0], "mkl": FOLLOWERS[1], "blis": FOLLOWERS[2]}
"""By the names that threadpoolctl has for libraries; others take `OPENMP`."""


native_threads: Final = NativeThreads()
"""Those of this process."""


def schedulers_here(nodes: Sequence[Sequence[Any]]) -> int:
    """How many schedulers there are on this host: of the nodes `id, host, schedulers` those of the first one's host."""
    return sum(slots for _, host, slots in nodes if host == nodes[0][1])
