"""What we say to a person: whole lines on the standard error, which is otherwise the program's.

What lives here: those lines, and `Outlet`, by which a process writes to a stream that it has inherited.  Whoever reads
that may be slow, or not read at all; that holds up a thread of the outlet, and nothing else (decision 45).
"""

from __future__ import annotations

import os
import re
import select
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic

OUTPUT = 1
ERRORS = 2

WAITING_BYTES_MAX = 1 << 18
"""What waits to be written to a stream that nobody reads."""
HEARD_S_MAX = 0.1
"""How long whoever says a line waits until it is written.  Nearly always it is so at once, and what several processes
say is shown in the order in which it has happened; not again while nobody reads."""
FAREWELL_S_MAX = 0.5
"""How long the end of a process waits for whoever reads what it has said."""

_BREAK = re.compile(r"\s*[\n\r\v\f]\s*")
_PIECE_BYTES = select.PIPE_BUF
"""Written at once; a pipe does not mix it with what others write."""


class Outlet:
    """Writes to one descriptor, in a thread that is there as long as something waits to be written."""

    def __init__(self, descriptor: int, on_change: Callable[[], None] | None = None) -> None:
        """
        Args:
            on_change: called, in the thread, when there is room again after `has_room` has said no, and when all is
                written.
        """
        self._descriptor = descriptor
        self._on_change = on_change
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._writes = False
        self._lacked_room = False
        self._dropped = 0
        self._is_stuck = False
        self.written: int = 0
        """Pieces that somebody, or nobody any more, has taken."""

    @property
    def is_empty(self) -> bool:
        """Whether all is written."""
        return not self._waiting

    @property
    def has_room(self) -> bool:
        """Whether it is time to read what is to be `put`."""
        with self._changed:
            self._lacked_room = self._waiting_bytes >= WAITING_BYTES_MAX
            return not self._lacked_room

    def put(self, data: bytes) -> None:
        """Have this written, whether there is room or not."""
        if not data:
            return
        with self._changed:
            self._waiting.append(data)
            self._waiting_bytes += len(data)
            if self._writes:
                return
            self._writes = True
            try:
                threading.Thread(target=self._write, name="hdphrs-outlet", daemon=True).start()
            except RuntimeError:  # the system has no room for a thread: as long as this blocks nobody
                self._write(for_s=0.0)

    def offer(self, data: bytes) -> None:
        """Have lines written if there is room, or else count them; waits for a moment until it is done."""
        if self.has_room:
            self.put(data)
        else:
            with self._changed:
                self._dropped += data.count(b"\n")
        if not self._is_stuck:
            self._is_stuck = not self.flush(HEARD_S_MAX)

    def flush(self, within_s: float) -> bool:
        """Wait until all is written; False if it is not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, within_s)

    def _write(self, for_s: float | None = None) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._writes = False
                    break
                data = self._waiting[0]
            for start in range(0, len(data), _PIECE_BYTES):
                if not self._write_piece(memoryview(data)[start : start + _PIECE_BYTES], for_s):
                    break
                self.written += 1
                self._is_stuck = False
            with self._changed:
                self._waiting.popleft()
                self._waiting_bytes -= len(data)
                has_room = self._lacked_room and self._waiting_bytes <= WAITING_BYTES_MAX // 2
                self._lacked_room = self._lacked_room and not has_room
                is_empty = not self._waiting
                dropped, self._dropped = (self._dropped, 0) if is_empty else (0, self._dropped)
                self._changed.notify_all()
            if dropped:
                _outlets[ERRORS].put(_line(f"{dropped} lines are missing here: nobody read them in time"))
            if (has_room or is_empty) and self._on_change is not None:
                self._on_change()

    def _write_piece(self, piece: memoryview, for_s: float | None) -> bool:
        """False if it cannot be written within that time; what nobody can read any more counts as written."""
        try:
            while piece:
                if for_s is not None and not self._is_writable(for_s):
                    return False
                try:
                    piece = piece[os.write(self._descriptor, piece) :]
                except BlockingIOError:  # somebody has made it so, for all who share it
                    self._is_writable(for_s)
        except OSError:  # closed, full, or nobody reads it
            pass
        return True

    def _is_writable(self, for_s: float | None) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return bool(poll.poll(None if for_s is None else for_s * 1e3))


_outlets = {descriptor: Outlet(descriptor) for descriptor in (OUTPUT, ERRORS)}


def outlet(descriptor: int) -> Outlet:
    """That of the standard output (1) or error (2) of this process."""
    return _outlets[descriptor]


def plain(text: str) -> str:
    """A text from elsewhere without anything that would steer a terminal: that is shown as escape sequences."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def say(line: str) -> None:
    """Print one line, whatever breaks are in it; the write is one, so that lines of several processes do not mix."""
    _outlets[ERRORS].offer(_line(line))


def take_leave(within_s: float = FAREWELL_S_MAX) -> None:
    """Wait until all that this process has said is written, or nobody has read any of it for so long; it ends now."""
    taken = -1
    while taken != (taken := sum(each.written for each in _outlets.values())):
        end_s = monotonic() + within_s
        for each in _outlets.values():
            each.flush(max(0.0, end_s - monotonic()))


def _line(line: str) -> bytes:
    return f"hdphrs: {_BREAK.sub(' ', line.rstrip())}\n".encode(errors="backslashreplace")
