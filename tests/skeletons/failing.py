"""The program that `test_failing.py` runs on clusters: whose exception is raised when several tasks fail.

Items are numbers.  Which fail, and how long each takes, is drawn anew each round; the exception tells the item.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from time import monotonic, sleep
from typing import Any

import hdphrs
from hdphrs.skeletons.slices import slice_list

LONG_S = 4e-3
DEADLINE_S = 60.0


class BrokenItemError(Exception):
    """What a task raises for an item."""


class Draw:
    """The items of one round."""

    def __init__(self, chance: Random, count: int) -> None:
        failing = {chance.randrange(count) for _ in range(chance.randint(2, 5))}
        self.items = [(item, chance.choice((0.0, 0.0, LONG_S)), item in failing) for item in range(count)]
        self.first = min(failing)

    def first_slice(self, slices: int) -> int:
        """The first one that fails, slice after slice."""
        return next(item for part in slice_list(slices, self.items) for item, _, fails in part if fails)


Item = tuple[int, float, bool]


def work(item: Item) -> int:
    """What a task does for an item."""
    number, takes_s, fails = item
    if takes_s:
        sleep(takes_s)
    if fails:
        raise BrokenItemError(number)
    return number


def split(items: list[Item]) -> list[list[Item]]:
    middle = len(items) // 2
    return [items[:middle], items[middle:]]


def is_single(items: list[Item]) -> bool:
    return len(items) == 1


def solve(items: list[Item]) -> int:
    return work(items[0])


def combine(items: list[Item], parts: list[int]) -> int:
    return max(parts)


def scoped(items: list[Item]) -> None:
    with hdphrs.scope() as tasks:
        for item in items:
            tasks.spawn(work, item)


def executed(chunksize: int, items: list[Item]) -> list[int]:
    with hdphrs.Executor() as executor:
        return list(executor.map(work, items, chunksize=chunksize))


def below(items: list[Item], node: int) -> Iterator[int]:
    """A binary tree over the items in depth-first order: a chain of nodes, with leaves between."""
    if node < len(items) - 1:
        yield node + 1


def valued(items: list[Item], node: int) -> int:
    return work(items[node])


def ranged(do: Any, items: list[Item]) -> int:
    return do(2, range(len(items)), partial(valued, items), max, 0)  # type: ignore[no-any-return]


def reduced(do: Any, chunk: int | None, items: list[Item]) -> int:
    return do(work, max, items, 0, chunk=chunk)  # type: ignore[no-any-return]


def streamed(do: Any, items: list[Item]) -> list[int]:
    return list(do(5, work, items))


def walked(do: Any, depth: int | None, items: list[Item]) -> int:
    return do(partial(below, items), partial(valued, items), max, 0, 0, depth=depth)  # type: ignore[no-any-return]


Pattern = Callable[[list[Item]], object]


def patterns() -> Iterator[tuple[str, Pattern, int | None]]:
    """All patterns: name, what it does, and how many slices it deals its items out to."""
    for prefix in ("par", "push", "fork"):
        own = {name.removeprefix(f"{prefix}_"): getattr(hdphrs, name) for name in hdphrs.__all__}
        yield f"{prefix}_map_sliced", partial(own["map_sliced"], 4, work), 4
        others: dict[str, Pattern] = {
            "map": partial(own["map"], work),
            "map_chunked": partial(own["map_chunked"], 3, work),
            "map_chunked by the clock": partial(own["map_chunked"], None, work),
            "map_sliced by the clock": partial(own["map_sliced"], None, work),
            "divide_and_conquer": partial(own["divide_and_conquer"], is_single, split, combine, solve),
            "map_reduce_range_thresh": partial(ranged, own["map_reduce_range_thresh"]),
            "map_reduce": partial(reduced, own["map_reduce"], 3),
            "map_reduce by the clock": partial(reduced, own["map_reduce"], None),
            "buffer": partial(streamed, own["buffer"]),
            "enumerate": partial(walked, own["enumerate"], 3),
            "enumerate by the clock": partial(walked, own["enumerate"], None),
        }
        for name, do in others.items():
            yield f"{prefix}_{name}", do, None
    yield "par_map_two_level", partial(hdphrs.par_map_two_level, work), None
    yield "push_map_two_level", partial(hdphrs.push_map_two_level, work), None
    yield "Executor.map", partial(executed, 1), None
    yield "Executor.map in chunks", partial(executed, 3), None
    yield "scope", scoped, None


def outcome(do: Pattern, items: list[Item]) -> str:
    """What the caller gets; returned, not raised, so that it says which it was."""
    try:
        do(items)
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return repr(error)
    return "nothing"


def check(runner: Callable[..., Any], chance: Random) -> None:
    for name, do, slices in patterns():
        draw = Draw(chance, 200 if "clock" in name and chance.random() < 0.2 else chance.randint(3, 24))
        expected = draw.first if slices is None else draw.first_slice(slices)
        got = runner(outcome, do, draw.items)
        assert got == f"BrokenItemError({expected})", f"{name} raised {got} and not that of {expected} for {draw.items}"


def directly(main: Callable[..., Any], *args: Any) -> Any:
    return main(*args)


def main() -> None:
    expected, seed = int(sys.argv[1]), int(sys.argv[2])
    chance = Random(seed)
    print("begun", len(hdphrs.all_nodes()), flush=True)
    began_s = monotonic()
    while True:
        alive = len(hdphrs.all_nodes())
        check(hdphrs.run, chance)
        check(directly, chance)
        if alive == expected:
            print(f"result: {alive} nodes")
            break
        assert monotonic() - began_s < DEADLINE_S, "nobody has died"


if __name__ == "__main__":
    main()
