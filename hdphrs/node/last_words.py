"""What a scheduler process writes to its standard error: passed on at once, and the end of it remembered.

What lives here: the node's end of the pipe.  While the process lives, the pipe is read by the node but written on by a
thread, because whoever reads this node's standard error may be slow, and must not keep its messages waiting.  `close`
does not wait for a thread: what is left of a dead process, a pipe's content at most, is written at once.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import trio

READ_BYTES = 1 << 16

REMEMBERED_BYTES_MAX = 4096
REMEMBERED_LINES_MAX = 30

STDERR = 2

OUR_FRAME = f'  File "{Path(__file__).parent.parent}/'


class LastWords:
    """The standard error of one scheduler process."""

    def __init__(self, descriptor: int) -> None:
        """
        Args:
            descriptor: the reading end of the pipe; closed by `close`.
        """
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._end = b""
        self._unwritten = b""
        """What has been read, and not passed on because the relay was cancelled just then."""

    async def relay(self) -> None:
        """Pass on what comes until all writers are gone."""
        while True:
            await trio.lowlevel.wait_readable(self._descriptor)
            data = self._read()
            if data is None:
                continue
            if not data:
                break
            self._unwritten = data
            await trio.to_thread.run_sync(_write, data)
            self._unwritten = b""

    def close(self) -> None:
        """Pass on what is left, and close the pipe."""
        _write(self._unwritten)
        while data := self._read():
            _write(data)
        os.close(self._descriptor)

    def text(self) -> str:
        """The last lines, without the frames of this package in a fatal error's stack."""
        lines = self._end.decode(errors="replace").splitlines()
        return "\n".join([line for line in lines if not line.startswith(OUR_FRAME)][-REMEMBERED_LINES_MAX:])

    def _read(self) -> bytes | None:
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return None
        self._end = (self._end + data)[-REMEMBERED_BYTES_MAX:]
        return data


def _write(data: bytes) -> None:
    view = memoryview(data)
    with suppress(OSError):  # nobody listens any more
        while view:
            view = view[os.write(STDERR, view) :]
