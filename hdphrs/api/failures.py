"""Which of several exceptions tell of failures of their own: one failure comes along on many ways, and counts once.

What lives here: an exception is followed to those that it holds, or was raised from.  What does not: whose exceptions
these are (`waiting.py`).

Within a process an exception is known by its identity: a future is filled once, so whoever gets it, however often and
through however many scopes, gets the same object.  What a task was given as an argument, and raises, is a copy if the
task has travelled, and that task's own failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

RELATED_MAX: Final = 4096
"""Exceptions that one is followed to; so scopes in scopes take time by their number, however long such chains get."""


def distinct(error: BaseException | None, failures: Iterable[BaseException]) -> list[BaseException]:
    """The exceptions that tell all: first what the block of a scope has raised, then what its tasks have, in order.

    Left out are: what is there already; what the block has dealt with, since its own exception holds it, was raised
    while it was handled, or was a part of it; and what a task's exception holds, or was raised from.
    """
    left = {id(failure): failure for failure in failures}
    if error is not None:
        left.pop(id(error), None)
        told = _related(error, contexts=True) if left else {}
        left = {key: one for key, one in left.items() if key not in told and id(error) not in _related(one)}
    if len(left) > 1:
        for key, failure in list(left.items()):
            if key in left:
                for other in _related(failure):
                    left.pop(other, None)
    return [*([] if error is None else [error]), *left.values()]


def detach(error: BaseException, handled: BaseException | None) -> None:
    """Have an exception forget that it was raised while its caller handled this one."""
    if handled is None:
        return
    one: BaseException | None = error
    for _ in range(RELATED_MAX):
        if one is None or one is handled:
            return
        if one.__context__ is handled:
            one.__context__ = None
            return
        one = one.__context__


def _related(error: BaseException, *, contexts: bool = False) -> dict[int, BaseException]:
    """By id, the nearest exceptions that this one holds or was raised from, without itself; with `contexts`, those too
    that were handled when it was raised."""
    found = {id(error): error}
    waiting = deque([error])
    while waiting and len(found) < RELATED_MAX:
        one = waiting.popleft()
        others: list[BaseException | None] = [one.__cause__]
        if contexts:
            others.append(one.__context__)
        if isinstance(one, BaseExceptionGroup):
            others += one.exceptions
        for other in others:
            if other is not None and id(other) not in found:
                found[id(other)] = other
                waiting.append(other)
    del found[id(error)]
    return found
