"""Scopes in which tasks fail, and what is to come out of them: in sequential mode, in a program and in a task alike.

As a program it checks itself on a cluster.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import hdphrs
from hdphrs import get, run, scope, spawn, wait

LIMIT_S = 600.0
"""A task that may run for so long only never runs in place."""

Leaf = Callable[[str], None]
Pattern = Callable[[Leaf], object]


def near(word: str) -> None:
    raise RuntimeError(word)


@hdphrs.task(timeout=LIMIT_S)
def far(word: str) -> None:
    raise RuntimeError(word)


def got(leaf: Leaf) -> None:
    with scope() as tasks:
        get(tasks.spawn(leaf, "a"))


def not_got(leaf: Leaf) -> None:
    with scope() as tasks:
        tasks.spawn(leaf, "a")


def got_twice(leaf: Leaf) -> None:
    with scope() as tasks:
        future = tasks.spawn(leaf, "a")
        try:
            get(future)
        except RuntimeError:
            get(future)


def got_as_it_comes(leaf: Leaf) -> None:
    with scope() as tasks:
        for future in hdphrs.as_completed([tasks.spawn(leaf, "a")]):
            get(future)


def got_as_any(leaf: Leaf) -> None:
    with scope() as tasks:
        hdphrs.get_any([tasks.spawn(leaf, "a")])


def raised_from(leaf: Leaf) -> None:
    with scope() as tasks:
        try:
            get(tasks.spawn(leaf, "a"))
        except RuntimeError as error:
            raise KeyError("x") from error


def raised_from_nothing(leaf: Leaf) -> None:
    with scope() as tasks:
        try:
            get(tasks.spawn(leaf, "a"))
        except RuntimeError:
            raise KeyError("x") from None


def raised_meanwhile(leaf: Leaf) -> None:
    with scope() as tasks:
        try:
            get(tasks.spawn(leaf, "a"))
        except RuntimeError:
            dict[str, int]()["x"]


def held_in_a_group(leaf: Leaf) -> None:
    with scope() as tasks:
        raise ExceptionGroup("of mine", list(collected([tasks.spawn(leaf, word) for word in "ab"])))


def collected(futures: list[hdphrs.Future[None]]) -> Iterator[RuntimeError]:
    for future in futures:
        try:
            get(future)
        except RuntimeError as error:
            yield error


def group_of(leaf: Leaf) -> None:
    raise ExceptionGroup("of mine", [RuntimeError("a"), KeyError("b")])


@hdphrs.task(timeout=LIMIT_S)
def group_from_afar(leaf: Leaf) -> None:
    group_of(leaf)


def raised_as_a_group(leaf: Leaf) -> None:
    with scope() as tasks:
        get(tasks.spawn(group_from_afar if leaf is far else group_of, leaf))


def raised_out_of_a_group(leaf: Leaf) -> None:
    with scope() as tasks:
        [group] = [error for error in [outcome_of(tasks.spawn(group_of, leaf))] if isinstance(error, ExceptionGroup)]
        raise group.exceptions[1]


def outcome_of(future: hdphrs.Future[None]) -> BaseException | None:
    try:
        get(future)
    except Exception as error:
        return error
    return None


def scopes_in_a_scope(leaf: Leaf) -> None:
    with scope() as outer:
        first = outer.spawn(leaf, "a")
        with scope() as inner:
            second = inner.spawn(leaf, "b")
            wait([first, second])
            get(first)


def one_beside_the_other(leaf: Leaf) -> None:
    with scope() as tasks:
        wait([tasks.spawn(leaf, word) for word in "ab"])


def block_beside_a_task(leaf: Leaf) -> None:
    with scope() as tasks:
        wait([tasks.spawn(leaf, "a")])
        raise KeyError("x")


def second_after_the_first_was_caught(leaf: Leaf) -> None:
    with scope() as tasks:
        futures = [tasks.spawn(leaf, "a")]
        try:
            get(futures[0])
        except RuntimeError:
            futures.append(tasks.spawn(leaf, "b"))
        get(futures[1])


def interrupted(leaf: Leaf) -> None:
    with scope() as tasks:
        wait([tasks.spawn(leaf, "a")])
        raise KeyboardInterrupt


def left(leaf: Leaf) -> None:
    with scope() as tasks:
        wait([tasks.spawn(leaf, "a")])
        raise SystemExit(3)


def nested(leaf: Leaf, levels: int) -> None:
    with scope() as tasks:
        get(tasks.spawn(nested, leaf, levels - 1) if levels else tasks.spawn(leaf, "a"))


@hdphrs.task(timeout=LIMIT_S)
def nested_afar(leaf: Leaf, levels: int) -> None:
    with scope() as tasks:
        get(tasks.spawn(nested_afar, leaf, levels - 1) if levels else tasks.spawn(leaf, "a"))


def deep(leaf: Leaf) -> None:
    nested_afar(leaf, 8) if leaf is far else nested(leaf, 60)


EXPECTED: dict[Pattern, str] = {
    got: "RuntimeError('a')",
    not_got: "RuntimeError('a')",
    got_twice: "RuntimeError('a')",
    got_as_it_comes: "RuntimeError('a')",
    got_as_any: "RuntimeError('a')",
    raised_from: "KeyError('x')",
    raised_from_nothing: "KeyError('x')",
    raised_meanwhile: "KeyError('x')",
    held_in_a_group: "[RuntimeError('a'), RuntimeError('b')]",
    raised_as_a_group: "[RuntimeError('a'), KeyError('b')]",
    raised_out_of_a_group: "KeyError('b')",
    scopes_in_a_scope: "[RuntimeError('a'), RuntimeError('b')]",
    one_beside_the_other: "[RuntimeError('a'), RuntimeError('b')]",
    block_beside_a_task: "[KeyError('x'), RuntimeError('a')]",
    second_after_the_first_was_caught: "[RuntimeError('b'), RuntimeError('a')]",
    interrupted: "KeyboardInterrupt()",
    left: "SystemExit(3)",
    deep: "RuntimeError('a')",
}


def told(error: BaseException, seen: set[int] | None = None) -> str:
    """The exception, and all that it holds, none of it twice."""
    seen = set() if seen is None else seen
    assert id(error) not in seen, "a group holds an exception twice"
    seen.add(id(error))
    if isinstance(error, BaseExceptionGroup):
        return f"[{', '.join(told(one, seen) for one in error.exceptions)}]"
    return repr(error)


def outcome(pattern: Pattern, leaf: Leaf) -> str:
    try:
        pattern(leaf)
    except BaseException as error:
        return told(error)
    return "nothing"


def size(leaf: Leaf, levels: int) -> tuple[int, int]:
    """How long the traceback of a failure becomes on its way, as text; and how large the failure is, pickled."""
    try:
        run(nested_afar, leaf, levels)
    except RuntimeError as error:
        return len(str(error.__cause__)), len(pickle.dumps(error))
    raise AssertionError("nothing is raised")


def check(run: Callable[..., Any]) -> None:
    for pattern, expected in EXPECTED.items():
        for leaf in (near, far):
            got = run(outcome, pattern, leaf)
            assert got == expected, f"{pattern.__name__}, {leaf.__name__}: {got}, and not {expected}"


def directly(main: Callable[..., Any], *args: Any) -> Any:
    return main(*args)


def main() -> None:
    check(directly)
    check(run)
    assert get(spawn(outcome, one_beside_the_other, far)) == EXPECTED[one_beside_the_other]
    text, pickled = size(near, 5)
    longer, larger = size(near, 10)
    assert longer < 2.5 * text, (text, longer)
    assert larger == pickled, (pickled, larger)
    print("result: right")


if __name__ == "__main__":
    main()
