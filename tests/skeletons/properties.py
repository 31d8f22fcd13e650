"""What each skeleton must compute: the same as a line of plain Python, whatever it is given.

Each property runs in sequential mode (`test_properties.py`), and on clusters of one to four nodes, of which one is
killed (`on_nodes.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import accumulate
from typing import Any, TypeAlias

from hypothesis import given, seed, settings
from hypothesis import strategies as st

import hdphrs
from hdphrs.skeletons import walk

Runner = Callable[..., Any]
"""`runner(main, *args)`: the value of `main(*args)`, run as the first task of a program."""
Check = Callable[[Runner, int, int], None]
"""`check(runner, examples, number)`: try a property on so many examples, others for each number."""
Tree: TypeAlias = "int | list[Tree]"

PROPERTIES: dict[str, Check] = {}


def prop(**drawn: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Check]:
    """Register a property of a runner and of what is drawn."""

    def register(body: Callable[..., None]) -> Check:
        def check(runner: Runner, examples: int, number: int) -> None:
            def one(**values: Any) -> None:
                body(runner, **values)

            settled = settings(max_examples=examples, deadline=None, database=None)(one)
            seed(number)(given(**drawn)(settled))()

        PROPERTIES[body.__name__] = check
        return check

    return register


def variants(*names: str) -> st.SearchStrategy[Any]:
    """Any of these skeletons."""
    return st.sampled_from([getattr(hdphrs, name) for name in names])


def five(name: str) -> st.SearchStrategy[Any]:
    """Any variant of a pattern of the paper's."""
    return variants(f"par_{name}", f"push_{name}", f"fork_{name}", f"par_{name}_ft", f"push_{name}_ft")


def three(name: str) -> st.SearchStrategy[Any]:
    """Any variant of another pattern."""
    return variants(f"par_{name}", f"push_{name}", f"fork_{name}")


def _count(length: int, step: int) -> list[int]:
    return [(index * step) % 97 - 48 for index in range(length)]


few = st.lists(st.integers(), max_size=12)
items = st.one_of(few, st.builds(_count, st.integers(0, 400), st.integers(1, 96)))
grains = st.one_of(st.none(), st.integers(1, 500))
words = st.lists(st.text("abc", max_size=2), max_size=150)
trees = st.recursive(st.integers(), lambda children: st.lists(children, max_size=4), max_leaves=25)


def square(number: int) -> int:
    return number * number


def spelled(number: int) -> str:
    return f"<{number}>"


def add(left: Any, right: Any) -> Any:
    """Of strings and lists: associative, and not commutative, so that every order counts."""
    return left + right


def farm(number: int) -> int:
    """A function that spawns."""
    return hdphrs.get(hdphrs.spawn(square, number)) + sum(hdphrs.par_map(square, range(number % 3)))


@prop(skeleton=five("map"), given_items=few)
def a_map(run: Runner, skeleton: Any, given_items: list[int]) -> None:
    assert run(skeleton, square, given_items) == [square(item) for item in given_items]


@prop(skeleton=five("map"), given_items=few)
def a_map_whose_function_spawns(run: Runner, skeleton: Any, given_items: list[int]) -> None:
    assert run(skeleton, farm, given_items) == [
        square(item) + sum(square(other) for other in range(item % 3)) for item in given_items
    ]


@prop(skeleton=five("map_chunked"), chunk=grains, given_items=items)
def a_map_in_chunks(run: Runner, skeleton: Any, chunk: int | None, given_items: list[int]) -> None:
    assert run(skeleton, chunk, square, given_items) == [square(item) for item in given_items]


@prop(skeleton=five("map_sliced"), tasks=grains, given_items=items)
def a_map_in_slices(run: Runner, skeleton: Any, tasks: int | None, given_items: list[int]) -> None:
    assert run(skeleton, tasks, square, given_items) == [square(item) for item in given_items]


@prop(skeleton=variants("par_map_two_level", "push_map_two_level"), given_items=few)
def a_map_on_two_levels(run: Runner, skeleton: Any, given_items: list[int]) -> None:
    assert run(skeleton, square, given_items) == [square(item) for item in given_items]


def is_leaf(tree: Tree) -> bool:
    return isinstance(tree, int)


def children_of(tree: list[Tree]) -> list[Tree]:
    return tree


def spell_node(tree: list[Tree], children: list[str]) -> str:
    return f"{len(tree)}({' '.join(children)})"


def spell(tree: Tree) -> str:
    """The plain recursion."""
    return spelled(tree) if isinstance(tree, int) else spell_node(tree, [spell(child) for child in tree])


@prop(skeleton=five("divide_and_conquer"), tree=trees)
def divide_and_conquer(run: Runner, skeleton: Any, tree: Tree) -> None:
    assert run(skeleton, is_leaf, children_of, spell_node, spelled, tree) == spell(tree)


@prop(
    skeleton=five("map_reduce_range_thresh"),
    threshold=st.integers(1, 40),
    first=st.integers(-50, 50),
    length=st.integers(0, 60),
    step=st.sampled_from([1, 3, -2]),
)
def a_map_reduce_over_a_range(run: Runner, skeleton: Any, threshold: int, first: int, length: int, step: int) -> None:
    numbers = range(first, first + length * step, step)
    assert run(skeleton, threshold, numbers, spelled, add, "^") == reduce(add, map(spelled, numbers), "^")


@prop(skeleton=three("map_reduce"), chunk=grains, given_items=items)
def a_map_reduce(run: Runner, skeleton: Any, chunk: int | None, given_items: list[int]) -> None:
    def program() -> Any:
        return skeleton(spelled, add, given_items, "^", chunk=chunk)

    assert run(program) == reduce(add, map(spelled, given_items), "^")


@prop(skeleton=three("reduce"), chunk=grains, given_items=words)
def a_reduction(run: Runner, skeleton: Any, chunk: int | None, given_items: list[str]) -> None:
    def program() -> Any:
        return skeleton(add, given_items, "^", chunk=chunk)

    assert run(program) == reduce(add, given_items, "^")


@prop(skeleton=three("scan"), chunk=grains, given_items=words)
def a_scan(run: Runner, skeleton: Any, chunk: int | None, given_items: list[str]) -> None:
    def program() -> Any:
        return skeleton(add, given_items, chunk=chunk)

    assert run(program) == list(accumulate(given_items, add))


@prop(skeleton=three("buffer"), size=st.integers(1, 20), ordered=st.booleans(), given_items=few)
def a_buffer(run: Runner, skeleton: Any, size: int, ordered: bool, given_items: list[int]) -> None:
    def program() -> list[int]:
        return list(skeleton(size, square, given_items, ordered=ordered))

    results = run(program)
    expected = [square(item) for item in given_items]
    assert (results if ordered else sorted(results)) == (expected if ordered else sorted(expected))


# ---- searches ------------------------------------------------------------------------------------------------

Sack: TypeAlias = tuple[int, int, int]
"""Of a knapsack: items decided on, their value, the room that is left."""

Goods: TypeAlias = list[tuple[int, int]]
"""What there is to pack: value and weight."""

BOUNDED = ["", "bounded", "descending"]
depths = st.one_of(st.none(), st.integers(1, 4))
goods = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), max_size=7)


def packed(things: Goods, sack: Sack) -> list[Sack]:
    """The sacks with one decision more."""
    walk.SPLIT_S = walk.LISTEN_S = 0.0  # wherever this runs: small trees are to be split too
    index, value, room = sack
    if index == len(things):
        return []
    more, weight = things[index]
    taken = [(index + 1, value + more, room - weight)] if weight <= room else []
    return [*taken, (index + 1, value, room)]


def worth(things: Goods, sack: Sack) -> int | None:
    return sack[1] if sack[0] == len(things) else None


def at_best(things: Goods, sack: Sack) -> int:
    """If everything that is left fitted in."""
    return sack[1] + sum(value for value, _ in things[sack[0] :])


def all_sacks(things: Goods, sack: Sack) -> list[Sack]:
    """The whole tree in depth-first order."""
    return [sack, *(below for child in packed(things, sack) for below in all_sacks(things, child))]


def written(sack: Sack) -> str:
    return f"{sack} "


def is_worth(things: Goods, value: int, sack: Sack) -> bool:
    return worth(things, sack) == value


@prop(skeleton=three("enumerate"), things=goods, room=st.integers(0, 30), depth=depths)
def an_enumeration(run: Runner, skeleton: Any, things: Goods, room: int, depth: int | None) -> None:
    def program() -> str:
        return str(skeleton(partial(packed, things), written, add, (0, 0, room), "^", depth=depth))

    assert run(program) == reduce(add, map(written, all_sacks(things, (0, 0, room))), "^")


@prop(skeleton=three("decide"), things=goods, room=st.integers(0, 30), wanted=st.integers(0, 60), depth=depths)
def a_decision(run: Runner, skeleton: Any, things: Goods, room: int, wanted: int, depth: int | None) -> None:
    found = partial(is_worth, things, wanted)

    def program() -> Any:
        return skeleton(partial(packed, things), found, (0, 0, room), depth=depth)

    answers = list(filter(found, all_sacks(things, (0, 0, room))))
    answer = run(program)
    assert answer in answers if answers else answer is None


@prop(skeleton=three("maximise"), things=goods, room=st.integers(0, 30), bounded=st.sampled_from(BOUNDED), depth=depths)
def an_optimisation(run: Runner, skeleton: Any, things: Goods, room: int, bounded: str, depth: int | None) -> None:
    def program() -> Any:
        bound = partial(at_best, things) if bounded else None
        functions = partial(packed, things), partial(worth, things), bound
        return skeleton(*functions, (0, 0, room), descending=bounded == "descending", depth=depth)

    solutions = [sack for sack in all_sacks(things, (0, 0, room)) if sack[0] == len(things)]
    value, sack = run(program)
    assert value == max(solution[1] for solution in solutions) == sack[1]
    assert sack in solutions
