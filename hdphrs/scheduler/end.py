"""How a scheduler process ends, whatever tasks are suspended on its stacks."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

INTERNAL_ERROR_STATUS = 70


def fail() -> NoReturn:
    """An error of ours: say so, and end the process."""
    sys.excepthook(*sys.exc_info())
    os._exit(INTERNAL_ERROR_STATUS)


def leave() -> NoReturn:
    """End this process at once."""
    flush_streams()
    os._exit(0)


def flush_streams() -> None:
    """Show what tasks have printed; where it goes may be closed, full or broken, which is no fault of theirs."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            if stream is not None:
                stream.flush()
