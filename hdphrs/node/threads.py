"""Calls that block, in threads beside trio; if there is no room for a thread now, they wait until there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

from hdphrs.room import PAUSE_MIN_S, lacks_room, longer, say_no_room

T = TypeVar("T")


async def run_in_thread(
    action: Callable[[], T], *, abandon_on_cancel: bool = False, limiter: trio.CapacityLimiter | None = None
) -> T:
    """What `trio.to_thread.run_sync` does, as soon as there is room for a thread.

    Args:
        action: what is to be done in the thread, once.
        abandon_on_cancel: whether a cancellation need not wait for its end.
        limiter: how many may be under way.
    """
    begun = False

    def begin() -> T:
        nonlocal begun
        begun = True
        return action()

    pause_s = PAUSE_MIN_S
    said = False
    while True:
        try:
            return await trio.to_thread.run_sync(begin, abandon_on_cancel=abandon_on_cancel, limiter=limiter)
        except (RuntimeError, MemoryError) as error:
            if begun or not lacks_room(error):
                raise
            if not said:
                said = True
                say_no_room("another thread", error)
        await trio.sleep(pause_s)
        pause_s = longer(pause_s)
