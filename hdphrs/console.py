"""What we say to a person: whole lines on the standard error, which is otherwise the program's."""

from __future__ import annotations

import contextlib
import os
import re

_STDERR = 2
_BREAK = re.compile(r"\s*[\n\r\v\f]\s*")


def say(line: str) -> None:
    """Print one line, whatever breaks are in it; the write is one, so that lines of several processes do not mix."""
    with contextlib.suppress(OSError):  # closed, or nobody reads it
        os.write(_STDERR, f"hdphrs: {_BREAK.sub(' ', line.rstrip())}\n".encode(errors="backslashreplace"))
