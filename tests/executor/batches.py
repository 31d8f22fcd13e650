"""Calls for the tests of the joblib backend; schedulers import this."""

from __future__ import annotations

import os

import joblib

import hdphrs.joblib  # noqa: F401 - it registers the backend

Found = tuple[int, list[str], list[int]]

state = "untouched"


def set_state(value: str) -> None:
    global state
    state = value


def state_here() -> str:
    return state


def nested(width: int, levels: int) -> Found:
    """The leaves of a tree of `Parallel` calls, the backends that they were made with, and where it all ran."""
    if levels == 0:
        return 1, [], [os.getpid()]
    parallel = joblib.Parallel(n_jobs=2)
    children: list[Found] = parallel(joblib.delayed(nested)(width, levels - 1) for _ in range(width))
    kinds = [type(parallel._backend).__name__, *(kind for _, kinds, _ in children for kind in kinds)]
    return sum(leaves for leaves, _, _ in children), kinds, [pid for _, _, pids in children for pid in pids]


def nested_divisions(divisor: int) -> list[int]:
    results: list[int] = joblib.Parallel(n_jobs=2)(joblib.delayed(divmod)(n, divisor) for n in range(9))
    return results


def from_a_task() -> list[int]:
    with joblib.parallel_config(backend="hdphrs"):
        results: list[int] = joblib.Parallel(n_jobs=3)(joblib.delayed(pow)(n, 2) for n in range(10))
    return results
