"""A program that draws random numbers in all ways there are, for `test_determinism.py`; prints what came of it."""

from __future__ import annotations

import sys
from concurrent.futures import wait
from hashlib import blake2b
from typing import Any

import hdphrs

WORK = int(sys.argv[1])


def draw(_: object = None) -> float:
    value: float = hdphrs.rng(numpy=False).random()
    return value


def tree(depth: int) -> list[Any]:
    """Draws before, between and after its children, which draw too."""
    generator = hdphrs.rng(numpy=False)
    drawn = [generator.random(), hdphrs.seed()]
    if depth == 0:
        end = sum(k * k for k in range(WORK))
        return [*drawn, end, generator.random()]
    children = [hdphrs.spawn(tree, depth - 1) for _ in range(3)]
    drawn.append(generator.random())
    drawn += [hdphrs.get(child) for child in reversed(children)]
    return [*drawn, generator.random(), hdphrs.seed(64)]


def square(n: int) -> int:
    return n * n


def everything() -> list[Any]:
    drawn: list[Any] = [tree(3)]
    drawn.append(hdphrs.par_map(draw, range(20)))
    drawn.append(hdphrs.push_map_sliced(5, draw, range(20)))
    drawn.append(hdphrs.par_map_chunked(7, draw, range(20)))
    drawn.append(hdphrs.par_map_chunked(None, square, range(1000)))  # nobody knows how many tasks
    drawn.append(hdphrs.push_map_sliced(None, square, range(1000)))
    drawn.append(hdphrs.par_map_two_level(square, range(10)))
    drawn.append(list(hdphrs.par_buffer(4, draw, range(10))))
    drawn.append(hdphrs.fork_map_reduce_range_thresh(3, range(20), draw, max, 0.0))
    drawn.append(hdphrs.par_enumerate(lambda n: range(n), square, int.__add__, 6, 0))
    drawn.append(hdphrs.par_decide(lambda n: range(n), lambda n: n == 3, 6) is not None)
    drawn.append(hdphrs.get(hdphrs.spawn_at(hdphrs.my_node(), draw)))
    with hdphrs.scope() as tasks:
        drawn += map(hdphrs.get, [tasks.spawn(draw), tasks.spawn(draw)])
    with hdphrs.Executor() as executor:
        calls = [executor.submit(draw) for _ in range(5)]
        drawn += executor.map(draw, range(10), chunksize=3)
        drawn += [call.result() for call in calls]
    return [*drawn, draw()]


def main() -> None:
    drawn: list[Any] = [draw(), hdphrs.run(everything), draw()]
    drawn += everything()
    with hdphrs.Executor() as executor:
        calls = []
        for _ in range(10):  # the desk and the program take turns as they like
            calls.append(executor.submit(draw))
            drawn.append(hdphrs.get(hdphrs.spawn(draw)))
        wait(calls)
        drawn += [call.result() for call in calls]
    print(f"result: {blake2b(repr(drawn).encode(), digest_size=8).hexdigest()} with {hdphrs.run_seed()}")


if __name__ == "__main__":
    main()
