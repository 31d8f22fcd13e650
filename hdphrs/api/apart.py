"""One call of a user's function among several in one task, as if it were a task of its own (decision 49).

What lives here: `call_apart`, for skeletons whose tasks have many items.  How they are cut into tasks may depend on a
clock, so an item must not see what another one has set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hdphrs.api import future as fast

T = TypeVar("T")


def call_apart(function: Callable[..., T], *args: object) -> T:
    """`function(*args)`; what it sets of the task's context, loops and streams is gone afterwards."""
    if fast.isolates:
        return fast.isolation.call_item(function, args)
    try:
        return function(*args)
    finally:
        if fast.isolates:  # since a moment ago
            fast.isolation.renew_item()
