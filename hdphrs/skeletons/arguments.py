"""What callers pass to a skeleton: checks, and several iterables as one.

A mistake shows where it was made, not in some task far away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from hdphrs.api.future import named_after_first
from hdphrs.api.memo import mark_skeleton
from hdphrs.errors import UsageError

T = TypeVar("T")


def check_count(skeleton: str, name: str, value: object) -> None:
    """Raise `UsageError` unless `value` is a positive int."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{skeleton}: {name} must be a positive int, not {value!r}")


def check_grain(skeleton: str, name: str, value: object) -> None:
    """Raise `UsageError` unless `value` is a positive int, or None for what is to be found out."""
    if value is not None:
        check_count(skeleton, name, value)


def check_callable(skeleton: str, **values: object) -> None:
    """Raise `UsageError` unless each of these, by name, can be called."""
    for name, value in values.items():
        if not callable(value):
            raise UsageError(f"{skeleton}: {name} must be callable, not {value!r}")


def check_iterable(skeleton: str, name: str, value: Iterable[T]) -> Iterator[T]:
    """An iterator over it; raises `UsageError` unless `value` can be iterated over."""
    try:
        return iter(value)
    except TypeError:
        raise UsageError(f"{skeleton}: {name} must be iterable, not {value!r}") from None


def check_items(skeleton: str, name: str, value: Iterable[T]) -> list[T]:
    """The items as a list; raises `UsageError` unless `value` can be iterated over."""
    return list(check_iterable(skeleton, name, value))


def check_flag(skeleton: str, name: str, value: object) -> None:
    """Raise `UsageError` unless `value` is a bool."""
    if not isinstance(value, bool):
        raise UsageError(f"{skeleton}: {name} must be True or False, not {value!r}")


@named_after_first
def call_with(function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """The task, where there are several iterables: one call, with an item of each."""
    return function(*arguments)


def side_by_side(
    skeleton: str,
    function: Callable[..., T],
    items: Iterable[Any],
    more: tuple[Iterable[Any], ...],
    strict: bool,
) -> tuple[Callable[[Any], T], Iterator[Any]]:
    """What is mapped over what: a function of one argument, and an iterator, as `map` has it for several iterables.

    Raises:
        UsageError: one of them cannot be iterated over, or `strict` is no bool; from the iterator, that one of them is
            shorter than another, though `strict`.
    """
    check_flag(skeleton, "strict", strict)
    first = check_iterable(skeleton, "items", items)
    if not more:
        return function, first
    others = [
        check_iterable(skeleton, f"the {ordinal(place)} of the items", each) for place, each in enumerate(more, 2)
    ]
    mark_skeleton(task := partial(call_with, function), function)
    return task, _rows(skeleton, [first, *others], strict)


def ordinal(place: int) -> str:
    """As in a sentence: 2nd, 3rd, 4th."""
    return f"{place}" + {2: "nd", 3: "rd"}.get(place, "th")


def _rows(skeleton: str, columns: list[Iterator[Any]], strict: bool) -> Iterator[tuple[Any, ...]]:
    rows = zip(*columns, strict=strict)
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except ValueError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # an iterable of the user's has raised it
            raise UsageError(f"{skeleton}: the iterables are not of one length, and strict is True ({error})") from None
