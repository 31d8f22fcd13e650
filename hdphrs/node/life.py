"""The life of a node process, up to the point where trio takes over.

What lives here: the start of the schedulers, so early that they get ready while this process still imports; and of
other nodes of this host, when it has imported what they need too.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import NoReturn

from hdphrs.console import say, take_leave
from hdphrs.errors import HdphrsError, StartError
from hdphrs.node.fork import become, fork_apart
from hdphrs.node.process import SchedulerProcess, start_scheduler
from hdphrs.room import lack_of, lacks_room, say_no_room, wait_for_room
from hdphrs.wire import local
from hdphrs.wire.failing import sentence_of
from hdphrs.wire.framing import encode_frame
from hdphrs.wire.nameless import nameless
from hdphrs.wire.page import Page
from hdphrs.wire.settings import FAILED, MEMBER, NODE_MODULE, PYTHON_VARIABLE, NodeSettings, read_settings
from hdphrs.wire.stacks import THREAD_STACK_BYTES, has_room
from hdphrs.wire.surroundings import AWAY_VARIABLE

_LEASH = 0


def begin() -> NoReturn:
    """Be the node whose settings come on standard input."""
    settings = None
    try:
        settings = read_settings(open(_LEASH, "rb", buffering=0, closefd=False))  # noqa: SIM115 - it is the leash
        for name in ("PYTHONSAFEPATH", PYTHON_VARIABLE):  # what is started here is to have neither
            os.environ.pop(name, None)
        if settings.program_archive is not None:
            _share_archive(settings.program_archive)
        forks = sys.platform == "linux" and has_room() and settings.program_archive is None
        status = live(settings, forks=forks)
    except HdphrsError as error:
        if isinstance(error.__cause__, OSError | MemoryError):
            _tell_end(settings, error)
        else:
            say(str(error))
        status = 1
    except BaseException as error:
        _tell_end(settings, error)
        status = 1
    take_leave()
    sys.stderr.flush()
    os._exit(status)


def _tell_end(settings: NodeSettings | None, error: BaseException) -> None:
    """Why this node ends: to those who wait for it and will say so, or else to whoever reads the standard error."""
    node = "a node" if settings is None else f"the {'root node' if settings.root else 'node'} on {settings.host}"
    sentence = sentence_of(f"{node} (process {os.getpid()})", error)
    if settings is not None and settings.status_fd is not None:
        with suppress(OSError):  # this may be what it ends by
            tell_launcher(settings, f"{FAILED} {sentence}")
        _tell_program(settings, sentence)
    elif settings is None or not _tell_program(settings, sentence):
        say(sentence)


def _tell_program(settings: NodeSettings, sentence: str) -> bool:
    if settings.program_fd is None:
        return False
    try:
        with socket.socket(fileno=settings.program_fd) as program:
            program.setblocking(False)
            program.sendall(encode_frame([[local.FAILED, sentence]]))
    except OSError:
        return False
    return True


def live(settings: NodeSettings, *, forks: bool) -> int:
    """Run this node until the run ends; the exit status.

    Args:
        forks: whether its first schedulers are forked: a new process would load again what is loaded here.
    """
    page, processes = start_crew(settings, forked=forks)
    threading.stack_size(THREAD_STACK_BYTES)

    import trio

    from hdphrs.node.career import root
    from hdphrs.node.member import member

    for leash in settings.forks:
        tell_launcher(settings, str(fork_apart(partial(_live_apart, settings, leash))))
        os.close(leash)
    _say_what_is_logged()  # not before: a node that is forked would say it as well as that of which it is a copy
    return trio.run(root if settings.root else member, settings, page, processes)


def _say_what_is_logged() -> None:
    """What the parts of this package log in a node, a person sees as lines of ours."""

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(record.getMessage())

    logger = logging.getLogger("hdphrs")
    logger.addHandler(Lines(logging.WARNING))
    logger.propagate = False


def _live_apart(settings: NodeSettings, leash: int) -> NoReturn:
    """Be another node of this host, that of this leash, in a copy of the root's process."""
    settings.forget_secrets()
    os.setsid()
    become([NODE_MODULE, MEMBER], [leash], None, 2)
    os.dup2(leash, _LEASH)
    os.close(leash)
    begin()


def _share_archive(archive: bytes) -> None:
    """Put the program's directory on the import path of the schedulers, without leaving a file behind; and tell them
    that the program is on another host."""
    descriptor = nameless("hdphrs-program")
    view = memoryview(archive)
    while view:
        view = view[os.write(descriptor, view) :]
    os.set_inheritable(descriptor, True)
    entry = f"/proc/{os.getpid()}/fd/{descriptor}"
    os.environ[AWAY_VARIABLE] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), entry]))


def start_crew(settings: NodeSettings, *, forked: bool = False) -> tuple[Page, list[SchedulerProcess]]:
    """Start one scheduler a core; with one a node can begin, and what there is no room for now its crew starts later.

    Raises:
        StartError: not even one can be started; the message says why.
    """
    start = partial(start_scheduler, forked=forked)
    processes: list[SchedulerProcess] = []
    page = Page.create(settings.slots)
    try:
        processes.append(wait_for_room(partial(start, page, 0, settings), "another process"))
        for number in range(1, settings.slots):
            processes.append(start(page, number, settings))
    except (OSError, MemoryError) as error:
        if not processes or not lacks_room(error):
            raise StartError(f"cannot start a scheduler process on {settings.host}: {lack_of(error)}") from error
        say_no_room("another process", error)
    return page, processes


def tell_launcher(settings: NodeSettings, word: str) -> None:
    """Write a line that is meant for it (`NodeSettings.status_fd`)."""
    if settings.status_fd is not None:
        with suppress(BrokenPipeError):  # the program may have ended, and the launcher with it
            os.write(settings.status_fd, f"{word}\n".encode())
