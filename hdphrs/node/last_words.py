"""A standard stream of a scheduler process, as its node reads it: passed on at once, and the end of it remembered.

What lives here: the node's end of the pipe.  What is not for the program (`voices.py`) is written on by an outlet
(`hdphrs/console.py`), because whoever reads this node's own streams may be slow, and must not keep its messages
waiting: the scheduler waits instead.  What is left of a dead process, a pipe's content at most, is dropped if there is
no room for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import trio

from hdphrs.console import ERRORS, outlet
from hdphrs.form import OUR_FILES

READ_BYTES = 1 << 16

DRAINED_BYTES_MAX = 1 << 20
"""More than a pipe holds: who goes on writing, as a child that a task has left behind may, is not waited for."""

REMEMBERED_BYTES_MAX = 4096
REMEMBERED_LINES_MAX = 30

LOOK_S = 0.05
"""How often it is looked whether there is room, while whoever reads our stream is slow."""

OUR_FRAMES = tuple(f'  File "{files}' for files in OUR_FILES)


def for_nobody(data: bytes) -> bool:
    """Where the program does not want it."""
    return False


class LastWords:
    """The standard error of one scheduler process, or its standard output."""

    def __init__(self, descriptor: int, *, to: int = ERRORS, for_program: Callable[[bytes], bool] = for_nobody) -> None:
        """
        Args:
            descriptor: the reading end of the pipe; closed by `close`.
            to: the descriptor of ours to which it is written on, unless
            for_program: takes it, and says so.
        """
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._outlet = outlet(to)
        self._for_program = for_program
        self._end = b""
        self._unwritten = b""
        """What has been read, and not passed on, because there is no room yet."""

    async def relay(self) -> None:
        """Pass on what comes until all writers are gone."""
        while True:
            await trio.lowlevel.wait_readable(self._descriptor)
            data = self._read()
            if data is None:
                continue
            if not data:
                break
            if self._for_program(data):
                continue
            self._unwritten = data
            while self._unwritten and not self._outlet.has_room:
                await trio.sleep(LOOK_S)
            self._pass_on_unwritten()

    def drain(self) -> None:
        """Pass on what is there, whether there is room or not: the run ends."""
        self._pass_on_unwritten()
        self._drain(self._outlet.put)

    def close(self) -> None:
        """Pass on what is left, if there is room for it, and close the pipe."""
        self._outlet.offer(self._unwritten)
        self._drain(self._outlet.offer)
        os.close(self._descriptor)

    def remember(self, data: bytes) -> None:
        """This has been written to the same stream, and has come in another way."""
        self._end = (self._end + data)[-REMEMBERED_BYTES_MAX:]

    def text(self) -> str:
        """The last lines, without the frames of this package in a fatal error's stack."""
        lines = self._end.decode(errors="replace").splitlines()
        return "\n".join([line for line in lines if not line.startswith(OUR_FRAMES)][-REMEMBERED_LINES_MAX:])

    def _pass_on_unwritten(self) -> None:
        data, self._unwritten = self._unwritten, b""
        self._outlet.put(data)

    def _drain(self, pass_on: Callable[[bytes], None]) -> None:
        left_bytes = DRAINED_BYTES_MAX
        while left_bytes > 0 and (data := self._read()):
            left_bytes -= len(data)
            if not self._for_program(data):
                pass_on(data)

    def _read(self) -> bytes | None:
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return None
        self.remember(data)
        return data
