"""The life of a scheduler process, which its node has started afresh or forked from itself.

What lives here: `serve`, and what the process asks of the operating system before.  It is told, in words:

    LINES LINE MODE LEDGER MEMORY VOICE EXPLAIN CONTEXTS WORK CONTROL TRAY PAGE TRACKER

VOICE is 0 if the standard streams go where they go, 1 if the error, 2 if both are for the program.  The last five are
inherited descriptors: the link for work, the one for requests to the helper thread, the tray, the shared page of
LINES lines, of which LINE is this scheduler's, and the pipe to the node's resource tracker.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from io import FileIO
from typing import NoReturn

from hdphrs.api import future as fast
from hdphrs.choices import choices
from hdphrs.scheduler.end import outlast
from hdphrs.scheduler.native_threads import native_threads
from hdphrs.scheduler.resource_tracker import share as share_tracker
from hdphrs.scheduler.streams import forgiving
from hdphrs.wire.files import out_of_the_way
from hdphrs.wire.local import Link
from hdphrs.wire.manager_proxies import take_first_key
from hdphrs.wire.page import Page
from hdphrs.wire.search_path import extend_path
from hdphrs.wire.settings import usable_cores
from hdphrs.wire.stacks import THREAD_STACK_BYTES
from hdphrs.wire.tray import Tray

SWITCH_INTERVAL_S = 0.0003
"""How long a task may keep the helper thread waiting whenever that wants the interpreter."""

KEPT_BLOCK_BYTES = 4 * 2**20
"""Blocks of up to this size, and twice as many bytes of free ones, stay with the process (decision 37)."""

OOM_SCORE = "/proc/self/oom_score_adj"
OOM_SCORE_MIN = 500
"""Of the scale on which the kernel chooses, from -1000 to 1000; a process may raise its own without any right."""

PR_SET_PDEATHSIG = 1
SIGKILL = 9


def die_with(node: int) -> None:
    """Have the kernel kill this process when its node's is gone, even in a long C call that holds the GIL (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
        if os.getppid() != node or node == 1:
            os._exit(0)


def die_first() -> None:
    """Have the kernel, if it ends a process for want of memory, rather take this one than the node or the program,
    which nothing replaces.  What tasks start inherits it (Linux)."""
    with suppress(OSError, ValueError):  # another kernel, or a file system that shows none of this
        with open(OOM_SCORE, "r+") as file:
            if int(file.read()) < OOM_SCORE_MIN:
                file.write(str(OOM_SCORE_MIN))


def hear_ctrl_c() -> None:
    """As a process does that was started afresh: its node does otherwise, and has forked it, or started it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def outlast_sigterm() -> None:
    """A host that goes down sends SIGTERM to all of its processes; what runs here may end within the node's grace
    (decision 10).  It is not ignored, for that the children of tasks would inherit.
    """
    signal.signal(signal.SIGTERM, outlast)
    install = signal.signal  # before it is replaced (`handlers.py`)
    os.register_at_fork(after_in_child=lambda: install(signal.SIGTERM, signal.SIG_DFL))


def keep_freed_memory() -> None:
    """Have the C library give less back to the system, which takes longer to give it again than most tasks to use it.

    The GNU one learns from the largest block that has been freed, unless the user has told it what to do
    (`MALLOC_TRIM_THRESHOLD_` and others); to have had one that nobody has written to costs nothing.
    """
    bytes(KEPT_BLOCK_BYTES)


def limit_memory(bytes_max: int) -> None:
    """Have allocations beyond `bytes_max` fail, so that a task gets a MemoryError before the kernel kills it."""
    import resource

    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    resource.setrlimit(kind, (bytes_max, resource.getrlimit(kind)[1]))


def _part_with(*links: socket.socket | FileIO) -> None:
    """A copy of this process, which a task has made, has no part in them."""
    for link in links:
        with suppress(OSError):  # the task may have closed them before
            link.close()


def serve(words: Sequence[str], path: Sequence[str], node: int) -> NoReturn:
    """Run one scheduler until its node ends it; if there is no room for what it needs, end with `NO_ROOM_STATUS`.

    Args:
        words: what it is told.
        path: where the program's modules are.
        node: the process id of its node.
    """
    die_with(node)
    die_first()
    outlast_sigterm()
    hear_ctrl_c()
    try:
        _serve(words, path)
    except BaseException as error:
        from hdphrs.scheduler.end import fail

        fail(error)


def _serve(words: Sequence[str], path: Sequence[str]) -> NoReturn:
    extend_path(filter(None, path))
    lines, line, mode, ledger, memory, voice, explain, contexts, work, control, tray, page, tracker = words
    if sys.version_info >= (3, 14):  # the stack of C would push what the task has said out of its last words
        faulthandler.enable(all_threads=False, c_stack=False)
    else:
        faulthandler.enable(all_threads=False)
    keep_freed_memory()
    take_first_key()
    if int(memory):
        limit_memory(int(memory))
    native_threads.divide(usable_cores(), int(lines))
    from hdphrs.scheduler.hub import Hub  # takes long, if this process was not forked
    from hdphrs.scheduler.notice import notice
    from hdphrs.wire.stand_in import receiver

    links = [socket.socket(fileno=out_of_the_way(int(descriptor))) for descriptor in (work, control)]
    pipe = FileIO(out_of_the_way(int(tray)), "w")
    os.register_at_fork(after_in_child=partial(_part_with, *links, pipe))
    share_tracker(out_of_the_way(int(tracker)))
    mapped = Page(int(page), int(lines))
    mapped.give_up_descriptor()
    crew = mapped.all_lines()
    shared = crew[int(line)]
    receiver.begin()
    sys.argv = ["hdphrs.scheduler"]
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    threading.stack_size(THREAD_STACK_BYTES)
    sys.stdout = sys.__stdout__ = forgiving(sys.stdout)  # type: ignore[assignment,misc]
    sys.stderr = sys.__stderr__ = forgiving(sys.stderr)  # type: ignore[assignment,misc]
    hub = Hub(
        Link(links[0], Tray(pipe, shared)),
        links[1],
        shared,
        reliable=mode == "reliable",
        ledger=ledger == "1",
        explain=explain == "1",
        others=[one for one in crew if one is not shared],
    )
    fast.state.port = hub.port
    choices.leave_to_others()
    hub.voice.install(out=int(voice) > 1, err=int(voice) > 0)
    fast.demand = shared.flags
    if contexts == "1":
        notice.install()
    hub.serve()
