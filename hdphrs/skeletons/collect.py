"""Waiting for the tasks of a skeleton: all of them, or none.

What lives here: `collect`, with which every skeleton gets the results of its tasks.  When one of them fails the others
are cancelled: nobody would ask for their results.  It is always the first in order whose exception counts, whatever the
others have come to by then.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeVar

from hdphrs.api.future import Future, get
from hdphrs.errors import UsageError

R = TypeVar("R")


def collect(futures: Iterable[Future[R]]) -> list[R]:
    """Start all, then get all, in order; if one cannot be started, those that were are cancelled."""
    started: list[Future[R]] = []
    try:
        started.extend(futures)
        return [get(future) for future in started]
    except BaseException:
        give_up(started)
        raise


def give_up(futures: Iterable[Future[Any]]) -> None:
    """Cancel those that are not full yet."""
    for future in futures:
        with suppress(UsageError):  # another thread collects what somebody has dropped: they end by themselves
            future.cancel()
