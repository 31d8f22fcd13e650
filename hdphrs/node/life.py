"""The life of a node process, up to the point where trio takes over.

What lives here: the start of the schedulers, so early that they get ready while this process still imports.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from hdphrs.node.process import SchedulerProcess, start_scheduler
from hdphrs.wire.page import Page
from hdphrs.wire.stacks import THREAD_STACK_BYTES

if TYPE_CHECKING:
    from hdphrs.wire.settings import NodeSettings


def live(settings: NodeSettings, *, forks: bool) -> int:
    """Run this node until the run ends; the exit status.

    Args:
        forks: whether its first schedulers are forked: a new process would load again what is loaded here.
    """
    page, processes = start_crew(settings, forked=forks)
    threading.stack_size(THREAD_STACK_BYTES)

    import trio

    from hdphrs.node.career import member, root

    return trio.run(root if settings.root else member, settings, page, processes)


def start_crew(settings: NodeSettings, *, forked: bool = False) -> tuple[Page, list[SchedulerProcess]]:
    """Start one scheduler a core."""
    page = Page.create(settings.slots)
    return page, [start_scheduler(page, number, settings, forked=forked) for number in range(settings.slots)]


def say(sentence: str) -> None:
    """Print one line for the user."""
    print(f"hdphrs: {sentence}", file=sys.stderr, flush=True)
