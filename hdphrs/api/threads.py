"""Threads that tasks start: what a thread is to know of its task, it is given when it is started.

What lives here: the way into what starts threads, and where their paths are.  What does not: what a thread is given,
which is another thing in a scheduler (`scheduler/threads.py`) and in sequential mode (`sequential.py`).
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from hdphrs.contexts.apart import inherited

FIRST_THREAD: Final = 1 << 31
"""Index of the first thread that a task has started.  Tasks have no index that is so large, and what is set aside
(`seeds.py`) has no index that is so small."""

STARTERS: Final = (
    (threading, "_start_new_thread"),
    (threading, "_start_joinable_thread"),
    (_thread, "start_new_thread"),
)
"""What starts threads; which of these there are depends on the Python."""

OURS: Final = "hdphrs-"
"""How the names of our own threads begin."""

Body: TypeAlias = Callable[..., object]


def on_start(prepare: Callable[[Body], Body]) -> Callable[[], None]:
    """From now on threads are started with `prepare(body)` in the place of their bodies, but for our own.

    Returns:
        What ends that.
    """
    before = [(module, name, getattr(module, name)) for module, name in STARTERS if hasattr(module, name)]
    for module, name, start in before:
        setattr(module, name, _preparing(start, prepare))

    def undo() -> None:
        for module, name, start in before:
            setattr(module, name, start)

    return undo


def _preparing(start: Callable[..., Any], prepare: Callable[[Body], Body]) -> Callable[..., Any]:
    def start_new_thread(function: Body, *rest: Any, **options: Any) -> Any:
        thread = getattr(function, "__self__", None)
        if not (isinstance(thread, threading.Thread) and thread.name.startswith(OURS)):
            function = prepare(inherited(function))
        return start(function, *rest, **options)

    return start_new_thread


def free_in_forks(lock: Any) -> None:
    """A task may fork, and its copy start threads; whoever held a lock is not in the copy."""
    os.register_at_fork(after_in_child=lock._at_fork_reinit)
