"""The standard streams of a scheduler, where what its tasks print goes there as it is.

What lives here: streams that let no task fail because its words cannot be written: the disk is full, nobody reads the
pipe any more, the terminal is gone.  They are lost then, as they are where the program shows them
(`hdphrs/program/screen.py`), and one line says so.
"""

from __future__ import annotations

import io
import sys
from typing import Any, TextIO

_STDOUT = 1


def forgiving(stream: TextIO | None) -> TextIO | None:
    """The same stream, by lines, whose writes do not fail; one that is no file as it is."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    raw = _Raw(stream.fileno(), "w", closefd=False)
    raw.name = stream.name  # as Python's own have it
    text = io.TextIOWrapper(io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=True)
    text.mode = "w"  # type: ignore[misc]
    return text


class _Raw(io.FileIO):
    _is_told = False

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not self._is_told and self.fileno() == _STDOUT:
                self._is_told = True
                why = f"standard output: {error.strerror}"
                print(f"hdphrs: what tasks print cannot be shown, and is lost: {why}", file=sys.stderr)
            return len(memoryview(data).cast("B"))
