"""What another host says, line by line.

What lives here: a reader of a non-blocking descriptor that hands on whole lines, and the tail of what was said for
the message about a node that did not start.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable

LINE_BYTES_MAX = 64 << 10
"""A longer line is handed on in parts."""
TAIL_LINES_MAX = 20
CHUNKS_MAX = 16
"""Read at once from a stream that does not pause; more than a pipe holds, so that nothing is left of one that has
ended."""
_CHUNK_BYTES = 64 << 10


class LineReader:
    """Reads lines from a descriptor that it does not own; each line is handed on with its newline."""

    def __init__(self, fd: int, on_line: Callable[[bytes], None]) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._on_line = on_line
        self._rest = b""

    def read(self) -> bool:
        """Hand on what there is now, up to a bound; False when the stream has ended."""
        for _ in range(CHUNKS_MAX):
            try:
                chunk = os.read(self._fd, _CHUNK_BYTES)
            except BlockingIOError:
                return True
            if not chunk:
                if self._rest:
                    self._on_line(self._rest + b"\n")
                    self._rest = b""
                return False
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                self._on_line(line + b"\n")
            if len(self._rest) > LINE_BYTES_MAX:
                self._on_line(self._rest + b"\n")
                self._rest = b""
        return True


class Tail:
    """The last lines of a stream, as text."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=TAIL_LINES_MAX)

    def add(self, line: bytes) -> None:
        text = line.decode(errors="replace").strip()
        if text:
            self._lines.append(text)

    @property
    def lines(self) -> list[str]:
        return list(self._lines)
