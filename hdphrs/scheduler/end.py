"""How a scheduler process ends, whatever tasks are suspended on its stacks."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

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


def leave() -> NoReturn:
    """End this process at once."""
    flush_streams()
    os._exit(0)


def flush_streams() -> None:
    """Show what tasks have printed; where it goes may be closed, full or broken, which is no fault of theirs."""
    for stream in (sys.stdout, sys.stderr):
        try:  # `suppress` takes longer than all the rest, and this comes after each task
            if stream is not None:
                stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
