"""All skeletons, in both spellings: what the package gives out when the first of them is wanted.

What lives here: imports, aliases, and the list of the names.
"""

from __future__ import annotations

from hdphrs.skeletons.buffer import fork_buffer, par_buffer, push_buffer
from hdphrs.skeletons.divide_and_conquer import (
    fork_divide_and_conquer,
    par_divide_and_conquer,
    par_divide_and_conquer_ft,
    push_divide_and_conquer,
    push_divide_and_conquer_ft,
)
from hdphrs.skeletons.map import (
    fork_map,
    fork_map_chunked,
    fork_map_sliced,
    par_map,
    par_map_chunked,
    par_map_chunked_ft,
    par_map_ft,
    par_map_sliced,
    par_map_sliced_ft,
    push_map,
    push_map_chunked,
    push_map_chunked_ft,
    push_map_ft,
    push_map_sliced,
    push_map_sliced_ft,
)
from hdphrs.skeletons.map_reduce import (
    fork_map_reduce,
    fork_map_reduce_range_thresh,
    fork_reduce,
    fork_scan,
    par_map_reduce,
    par_map_reduce_range_thresh,
    par_map_reduce_range_thresh_ft,
    par_reduce,
    par_scan,
    push_map_reduce,
    push_map_reduce_range_thresh,
    push_map_reduce_range_thresh_ft,
    push_reduce,
    push_scan,
)
from hdphrs.skeletons.search import (
    fork_decide,
    fork_enumerate,
    fork_maximise,
    par_decide,
    par_enumerate,
    par_maximise,
    push_decide,
    push_enumerate,
    push_maximise,
)
from hdphrs.skeletons.two_level import (
    par_map_two_level,
    push_map_two_level,
)

parDivideAndConquer = par_divide_and_conquer
pushDivideAndConquer = push_divide_and_conquer
forkDivideAndConquer = fork_divide_and_conquer
parDivideAndConquerFT = par_divide_and_conquer_ft
pushDivideAndConquerFT = push_divide_and_conquer_ft
parMap = par_map
pushMap = push_map
parMapFT = par_map_ft
pushMapFT = push_map_ft
parMapChunked = par_map_chunked
pushMapChunked = push_map_chunked
parMapChunkedFT = par_map_chunked_ft
pushMapChunkedFT = push_map_chunked_ft
parMapSliced = par_map_sliced
pushMapSliced = push_map_sliced
parMapSlicedFT = par_map_sliced_ft
pushMapSlicedFT = push_map_sliced_ft
parMapReduceRangeThresh = par_map_reduce_range_thresh
pushMapReduceRangeThresh = push_map_reduce_range_thresh
parMapReduceRangeThreshFT = par_map_reduce_range_thresh_ft
pushMapReduceRangeThreshFT = push_map_reduce_range_thresh_ft
par_map_local = fork_map
parMapLocal = fork_map
parMapM = par_map
pushMapM = push_map
parMapMFT = par_map_ft
pushMapMFT = push_map_ft
par_map_m = par_map
push_map_m = push_map
parMap2Level = par_map_two_level
parBuffer = par_buffer
pushBuffer = push_buffer

__all__ = [
    "forkDivideAndConquer",
    "fork_buffer",
    "fork_decide",
    "fork_divide_and_conquer",
    "fork_enumerate",
    "fork_map",
    "fork_map_chunked",
    "fork_map_reduce",
    "fork_map_reduce_range_thresh",
    "fork_map_sliced",
    "fork_maximise",
    "fork_reduce",
    "fork_scan",
    "parBuffer",
    "parDivideAndConquer",
    "parDivideAndConquerFT",
    "parMap",
    "parMap2Level",
    "parMapChunked",
    "parMapChunkedFT",
    "parMapFT",
    "parMapLocal",
    "parMapM",
    "parMapMFT",
    "parMapReduceRangeThresh",
    "parMapReduceRangeThreshFT",
    "parMapSliced",
    "parMapSlicedFT",
    "par_buffer",
    "par_decide",
    "par_divide_and_conquer",
    "par_divide_and_conquer_ft",
    "par_enumerate",
    "par_map",
    "par_map_chunked",
    "par_map_chunked_ft",
    "par_map_ft",
    "par_map_local",
    "par_map_m",
    "par_map_reduce",
    "par_map_reduce_range_thresh",
    "par_map_reduce_range_thresh_ft",
    "par_map_sliced",
    "par_map_sliced_ft",
    "par_map_two_level",
    "par_maximise",
    "par_reduce",
    "par_scan",
    "pushBuffer",
    "pushDivideAndConquer",
    "pushDivideAndConquerFT",
    "pushMap",
    "pushMapChunked",
    "pushMapChunkedFT",
    "pushMapFT",
    "pushMapM",
    "pushMapMFT",
    "pushMapReduceRangeThresh",
    "pushMapReduceRangeThreshFT",
    "pushMapSliced",
    "pushMapSlicedFT",
    "push_buffer",
    "push_decide",
    "push_divide_and_conquer",
    "push_divide_and_conquer_ft",
    "push_enumerate",
    "push_map",
    "push_map_chunked",
    "push_map_chunked_ft",
    "push_map_ft",
    "push_map_m",
    "push_map_reduce",
    "push_map_reduce_range_thresh",
    "push_map_reduce_range_thresh_ft",
    "push_map_sliced",
    "push_map_sliced_ft",
    "push_map_two_level",
    "push_maximise",
    "push_reduce",
    "push_scan",
]
