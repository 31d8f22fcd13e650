"""What we say to a person: whole lines on the standard error, which is otherwise the program's."""

from __future__ import annotations

import contextlib
import os

_STDERR = 2


def say(line: str) -> None:
    """Print one line; the write is one, so that lines of several processes do not mix."""
    with contextlib.suppress(OSError):  # closed, or nobody reads it
        os.write(_STDERR, f"hdphrs: {' '.join(line.split())}\n".encode(errors="backslashreplace"))
