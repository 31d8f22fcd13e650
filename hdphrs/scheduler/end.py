"""How a scheduler process ends, whatever tasks are suspended on its stacks.

What lives here: an end at once; and what Python does at the normal end of a process, which comes before it when the run
is over, as far as there is time (`config.EXIT_S`).  The interpreter itself is not taken down, since tasks may be
suspended in it: what they hold is not finalised.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

from hdphrs.room import NO_ROOM_STATUS
from hdphrs.wire.failing import tell_end, what_is_lacking

INTERNAL_ERROR_STATUS = 70


def fail(error: BaseException) -> NoReturn:
    """The process cannot go on because of this: end it; of what it has died, its node says if it is for want of
    something, or by Ctrl-C."""
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    if what_is_lacking(error) is not None:
        os._exit(NO_ROOM_STATUS)
    tell_end(f"scheduler process {os.getpid()}", error)
    os._exit(INTERNAL_ERROR_STATUS)


def outlast(number: int, frame: object) -> None:
    """The handler of SIGTERM: the process ends when its node wants it to."""


def leave() -> NoReturn:
    """End this process at once."""
    flush_streams()
    os._exit(0)


def conclude() -> None:
    """Do what Python does at the end of a process: wait for threads that are no daemons, call exit handlers, close what
    is open for writing."""
    _whatever_it_raises(threading._shutdown)  # type: ignore[attr-defined]
    _whatever_it_raises(atexit._run_exitfuncs)
    for opened in list(_written_to()):
        _whatever_it_raises(opened)
    flush_streams()
    _whatever_it_raises(lambda: ctypes.CDLL(None).fflush(None))


def _whatever_it_raises(call: Callable[[], object]) -> None:
    """It is the end: nobody could handle it."""
    try:
        call()
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)


def _written_to() -> Iterator[Callable[[], object]]:
    """How to close, or flush, what tasks have opened for writing: outer files before those that they write into."""
    texts: list[Any] = []
    outer: list[Any] = []
    inner: list[Any] = []
    ours = {id(stream) for stream in (sys.stdout, sys.stderr, sys.stdin, sys.__stdin__, *_STANDARD)}
    archive = getattr(sys.modules.get("zipfile"), "ZipFile", None)
    for each in gc.get_objects():
        kind = type(each)
        if archive is not None and issubclass(kind, archive):
            yield each.close
        elif issubclass(kind, io.IOBase) and id(each) not in ours and not kind.__module__.startswith("hdphrs."):
            if issubclass(kind, io.TextIOWrapper):
                texts.append(each)
            elif kind in (io.BufferedWriter, io.BufferedRandom):
                inner.append(each)
            elif not issubclass(kind, io.RawIOBase | io.BufferedReader | io.BytesIO | io.StringIO):
                outer.append(each)
    for each in texts:
        yield partial(_finish, each, "flush")
    for each in outer:
        yield partial(_finish, each, "close")
    for each in inner:
        yield partial(_finish, each, "flush")


def _finish(file: Any, how: str) -> None:
    if not file.closed:  # as it is together with one that writes into it
        getattr(file, how)()


_STANDARD = (sys.__stdout__, sys.__stderr__)
"""As the process was started with them."""


def flush_streams() -> None:
    """Show what tasks have printed; where it goes may be closed, full or broken, which is no fault of theirs."""
    for stream in (sys.stdout, sys.stderr):
        try:  # `suppress` takes longer than all the rest, and this comes after each task
            if stream is not None:
                stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
