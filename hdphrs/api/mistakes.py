"""What a caller has probably meant who gives something else than a future, and what to write instead.

What lives here: sentences for errors, made when one has been found; nothing here runs in a program without a mistake.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from inspect import isawaitable
from reprlib import repr as short
from typing import Any

from hdphrs.api.future import Future
from hdphrs.errors import UsageError


def no_future(value: object, call: str = "get") -> UsageError:
    """The error of a call that takes one future, and was given this."""
    return UsageError(f"{call}: {_remedy(value)}")


def futures_of(values: Any, call: str) -> Iterator[Future[Any]]:
    """The futures that a call was given, each once, in order.

    Raises:
        UsageError: these are none.
    """
    if isinstance(values, Future) or not isinstance(values, Iterable):
        raise UsageError(f"{call}: it takes several futures, as a list of what spawn has returned, not {short(values)}")
    seen = set()
    for value in values:
        if not isinstance(value, Future):
            raise UsageError(f"{call}: among the futures is something else: {_remedy(value)}")
        if value not in seen:
            seen.add(value)
            yield value


def _remedy(value: object) -> str:
    if isinstance(value, Future):
        return "this Future was not made by spawn; only spawn and spawn_at make futures that have a value"
    if _is_of(value, "concurrent.futures", "Future"):
        return "this is a future of concurrent.futures, not of hdphrs: its value is future.result()"
    if _is_of(value, "asyncio", "Future") or isawaitable(value):
        return f"{short(value)} is awaited, `await ...`; a task of hdphrs is what spawn returns"
    if isinstance(value, list | tuple | set | frozenset | dict) or hasattr(value, "__next__"):
        return (
            f"it takes one future, not a {type(value).__name__}; for several write "
            "[hdphrs.get(future) for future in futures], and hdphrs.as_completed gives them as they come"
        )
    if callable(value):
        return f"{short(value)} is a function, and no future: write hdphrs.get(hdphrs.spawn(function, argument))"
    return f"it takes a future, as spawn returns it, not {short(value)}"


def _is_of(value: object, module: str, name: str) -> bool:
    """Whether it is an instance of a class of a module that may not have been loaded."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)
