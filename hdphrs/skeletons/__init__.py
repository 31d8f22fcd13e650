"""Patterns over `spawn` and `get` (paper section 3.2): with these a program needs neither.

The names follow PEP 8; the paper's spellings are the same objects.  `par_*` are lazy: tasks wait to be
stolen.  `push_*` are eager: tasks are placed on all nodes in turn, the caller's included.  A name that ends
in `_ft` (`FT`) is supervised even in a run with `--unreliable`.
"""

from __future__ import annotations

from hdphrs.skeletons.divide_and_conquer import (
    par_divide_and_conquer,
    par_divide_and_conquer_ft,
    push_divide_and_conquer,
    push_divide_and_conquer_ft,
)
from hdphrs.skeletons.map import (
    par_map_sliced,
    par_map_sliced_ft,
    push_map_sliced,
    push_map_sliced_ft,
)

parMapSliced = par_map_sliced
pushMapSliced = push_map_sliced
parMapSlicedFT = par_map_sliced_ft
pushMapSlicedFT = push_map_sliced_ft
parDivideAndConquer = par_divide_and_conquer
pushDivideAndConquer = push_divide_and_conquer
parDivideAndConquerFT = par_divide_and_conquer_ft
pushDivideAndConquerFT = push_divide_and_conquer_ft

__all__ = [
    "parDivideAndConquer",
    "parDivideAndConquerFT",
    "parMapSliced",
    "parMapSlicedFT",
    "par_divide_and_conquer",
    "par_divide_and_conquer_ft",
    "par_map_sliced",
    "par_map_sliced_ft",
    "pushDivideAndConquer",
    "pushDivideAndConquerFT",
    "pushMapSliced",
    "pushMapSlicedFT",
    "push_divide_and_conquer",
    "push_divide_and_conquer_ft",
    "push_map_sliced",
    "push_map_sliced_ft",
]
