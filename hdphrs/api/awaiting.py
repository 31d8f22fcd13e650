"""`await future`: waiting for a future in an event loop.

What lives here: how asyncio and trio are told that a future is full, and what their cancellation means for it.  What
does not: who completes the future meanwhile, which is the port's business (`Port.attend`).
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any, TypeVar

from hdphrs.api.future import Future, get, state
from hdphrs.errors import UsageError

T = TypeVar("T")


async def wait_for(future: Future[T]) -> T:
    """The value of a future, or what its task has raised."""
    if not future.done():
        if _in_trio():
            await _in_trio_until_full(future)
        elif _in_asyncio():
            await _in_asyncio_until_full(future)
        else:
            raise UsageError(
                "await: only asyncio and trio can wait for a Future; elsewhere call hdphrs.get in another thread"
            )
    return get(future)


def _in_asyncio() -> bool:
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


def _in_trio() -> bool:
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return not _is_in_asyncio_task()


def _is_in_asyncio_task() -> bool:
    """Of two loops in one thread, trio as the guest of asyncio, it is asyncio's task that runs if there is one."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None and asyncio.current_task() is not None


async def _in_asyncio_until_full(future: Future[Any]) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    full = loop.create_future()

    def fill() -> None:
        if not full.done():
            full.set_result(None)

    def call() -> None:
        with suppress(RuntimeError):  # the loop has been closed: nobody waits any more
            loop.call_soon_threadsafe(fill)

    state.port.attend(future, call)
    try:
        await full
    except asyncio.CancelledError:
        future.cancel()
        raise


async def _in_trio_until_full(future: Future[Any]) -> None:
    trio: Any = sys.modules["trio"]
    token, task = trio.lowlevel.current_trio_token(), trio.lowlevel.current_task()
    waits = True

    def resume() -> None:
        nonlocal waits
        if waits:
            waits = False
            trio.lowlevel.reschedule(task)

    def call() -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(resume)

    def abort(_: object) -> Any:
        nonlocal waits
        waits = False
        future.cancel()
        return trio.lowlevel.Abort.SUCCEEDED

    state.port.attend(future, call)
    await trio.lowlevel.wait_task_rescheduled(abort)
