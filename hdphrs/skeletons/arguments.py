"""Checks of what callers pass to a skeleton: a mistake shows where it was made, not in some task far away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

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
