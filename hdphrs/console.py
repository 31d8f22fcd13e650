"""What we say to a person: whole lines on the standard error, which is otherwise the program's."""

from __future__ import annotations

import contextlib
import os
import re

_STDERR = 2
_BREAK = re.compile(r"\s*[\n\r\v\f]\s*")


def plain(text: str) -> str:
    """A text from elsewhere without anything that would steer a terminal: that is shown as escape sequences."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def say(line: str) -> None:
    """Print one line, whatever breaks are in it; the write is one, so that lines of several processes do not mix."""
    with contextlib.suppress(OSError):  # closed, or nobody reads it
        os.write(_STDERR, f"hdphrs: {_BREAK.sub(' ', line.rstrip())}\n".encode(errors="backslashreplace"))
