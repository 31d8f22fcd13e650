"""The page of memory that a node process shares with its schedulers.

What lives here: its layout, a line for each scheduler, and one for the node.  All sides only store and load single
bytes and words.  The root looks into the pages of nodes of its own host that have died.

    offset 0   demand byte     the node sets it when somebody is hungry, the scheduler clears it when it has exported,
                               and while it rests from exporting (decision 17)
    offset 1   careful bits    1: the scheduler runs a task whose last attempt crashed; 2: one that is run again, and
                               may find parts of it finished
    offset 2   wanted byte     whether somebody is hungry; only the node writes it
    offset 4   laid word       how often the scheduler has laid something down for the node (decision 36)
    offset 8   running word    serial number of the task on whose stack the scheduler is, 0 for none; the node reads
                               it when the scheduler has died
    offset 16  busy seconds    for how long tasks have run here, up to when the last one was set aside or ended
    offset 24  since           if one runs: since when, by the clock `time.perf_counter`, which is that of all processes
                               of a host; else 0
    offset 32  leaving byte    the scheduler has been told to end, and does what is done at the end of a process
    offset 64  label           what the scheduler unpickles just now, see `label`; the first byte is 0 for nothing

A scheduler reads the first two bytes as one number at each spawn.  The last line has three words of the node's own, see
`Totals`.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from contextlib import suppress
from enum import IntEnum
from typing import NamedTuple

from hdphrs.protocol.paths import PATH_BYTES_MAX
from hdphrs.wire.nameless import nameless

LABEL_START = 64
LINE_BYTES = 512

PAGE_NAME = "hdphrs-page"

DESCRIPTORS = "/dev/fd"
"""Where a process finds the numbers of its own."""

SPEAK = b"?"
"""Beside the page, on the control link: the helper thread is to answer the demand byte."""

LOOK = b"!"
"""It is to look at the mail: something that runs here was cancelled."""

LAID_MAX = 1 << 32

CAREFUL = 1
AGAIN = 2


class Reading(IntEnum):
    """What of a task, or of something else, a scheduler unpickles."""

    NOTHING = 0
    ARGUMENTS = 1
    """The arguments of the running task, and the function if that travels with them."""
    VALUE = 2
    """What a task has come to, for another task that waits for that."""
    FIND = 3
    """What a task of a search has found; the path is that of the search."""


class Label(NamedTuple):
    """What the page says of it."""

    reading: Reading = Reading.NOTHING
    path: bytes = b""
    name: str = ""


_LABEL_HEAD_BYTES = 3
_NAME_BYTES_MAX = LINE_BYTES - LABEL_START - _LABEL_HEAD_BYTES - PATH_BYTES_MAX


_READINGS = [bytes([reading]) for reading in Reading]


def label(reading: Reading, path: bytes = b"", name: str = "") -> bytes:
    """How a scheduler names in the page what it unpickles; a long name is cut."""
    cut = name.encode("utf-8", "replace")[:_NAME_BYTES_MAX]
    return _READINGS[reading] + bytes((len(path), len(cut))) + path + cut


NOTHING = label(Reading.NOTHING)
ARGUMENTS = label(Reading.ARGUMENTS)


class Totals(IntEnum):
    """What the node's own line says, in seconds of work."""

    BURIED = 0
    """Done by schedulers that have died."""
    AWAY = 1
    """Known on other nodes."""
    LOST = 2
    """Lost with schedulers that have died."""


class Page:
    """The mapped page; `line(n)` is the part of the n-th scheduler."""

    def __init__(self, descriptor: int, lines: int) -> None:
        self.descriptor = descriptor
        self.lines = lines
        self._map = mmap.mmap(descriptor, _size(lines))
        self._view = memoryview(self._map)
        self.totals: memoryview[float] = self._view[lines * LINE_BYTES :].cast("d")[: len(Totals)]
        """Of the node; by `Totals`."""

    @classmethod
    def create(cls, lines: int) -> Page:
        """A new page in anonymous shared memory; it has no name in any file system, and keeps its size."""
        return cls(nameless(PAGE_NAME, _size(lines)), lines)

    @classmethod
    def of_process(cls, pid: int, lines: int) -> Page | None:
        """The page of a node process of this host, which outlives it here; None if there is none to be seen."""
        folder = f"/proc/{pid}/fd"
        try:
            for number in sorted(os.listdir(folder), key=int):
                if os.readlink(f"{folder}/{number}").startswith(f"/memfd:{PAGE_NAME}"):
                    descriptor = os.open(f"{folder}/{number}", os.O_RDWR | os.O_CLOEXEC)
                    if os.fstat(descriptor).st_size == _size(lines):
                        return cls(descriptor, lines)
                    os.close(descriptor)
        except (OSError, ValueError):  # no such file system, another user's process, none at all
            pass
        return None

    def line(self, number: int) -> Line:
        """The part of the page that belongs to one scheduler."""
        start = number * LINE_BYTES
        return Line(self._view[start : start + LINE_BYTES])

    def all_lines(self) -> list[Line]:
        """Those of all schedulers."""
        return [self.line(number) for number in range(self.lines)]

    def close(self) -> None:
        """Unmap and close; the lines must not be used any more."""
        os.close(self.descriptor)

    def give_up_descriptor(self) -> None:
        """Close it, and put the null device in the place of the one that the mapping keeps: the page stays mapped, and
        what a task writes into whatever descriptors it finds does not come here."""
        page = os.fstat(self.descriptor)
        os.close(self.descriptor)
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for number in map(int, os.listdir(DESCRIPTORS)):
            with suppress(OSError):  # the one of the folder that has been listed
                if os.path.samestat(os.fstat(number), page):
                    os.dup2(null, number, inheritable=False)
        os.close(null)


_LEAVING = 32
"""Offset of that byte."""


def _size(lines: int) -> int:
    return (lines + 1) * LINE_BYTES


class Line:
    """One scheduler's part of the page."""

    def __init__(self, view: memoryview) -> None:
        self.flags: ctypes.c_uint16 = ctypes.c_uint16.from_buffer(view)
        """True when a spawn should export: to ask a memoryview takes four times as long."""
        self._bytes = view
        self._laid = view[4:8].cast("I")
        self._running = view[8:16].cast("Q")
        self._seconds = view[16:32].cast("d")
        self._unpickles = NOTHING
        """As the scheduler has said last."""

    @property
    def demand(self) -> bool:
        """Whether the node wants sparks."""
        return self._bytes[0] != 0

    @demand.setter
    def demand(self, wanted: bool) -> None:
        self._bytes[0] = wanted

    @property
    def wanted(self) -> bool:
        """Whether somebody is hungry, asked or not."""
        return self._bytes[2] != 0

    def post(self) -> None:
        """The node's part: something has been written to the link."""
        self._bytes[3] = True

    def want(self, wanted: bool) -> None:
        """The node's part: somebody is hungry, or nobody."""
        self._bytes[2] = wanted
        self._bytes[0] = wanted

    @property
    def mail(self) -> bool:
        """Whether the node has written something to the link since this was cleared: a look costs no system call."""
        return self._bytes[3] != 0

    def take_mail(self) -> None:
        """The scheduler is about to look; what is written from now on is mail again."""
        self._bytes[3] = False

    @property
    def laid(self) -> int:
        """How often the scheduler has laid something down, in a word."""
        return self._laid[0]

    def lay(self) -> None:
        """The scheduler's part: it has once more."""
        self._laid[0] = (self._laid[0] + 1) % LAID_MAX

    @property
    def careful(self) -> bool:
        """Whether every child is to be exported at once."""
        return self._bytes[1] & CAREFUL != 0

    @property
    def is_calm(self) -> bool:
        """Whether the running task is neither careful nor asked at each spawn."""
        return self._bytes[1] == 0

    def run(self, serial: int, *, careful: bool, again: bool) -> None:
        """The task of this serial number is on the stack from now on, and how it runs; 0 for none."""
        self._running[0] = serial
        self._bytes[1] = careful * CAREFUL + again * AGAIN

    def again(self) -> None:
        """The running task is to be asked at each spawn.  (One step as far as other threads are concerned.)"""
        self._bytes[1] |= AGAIN  # GIL: setting a bit of the page

    @property
    def running(self) -> int:
        """Serial number of the running task, 0 for none."""
        return self._running[0]

    def unpickle(self, label: bytes) -> bytes:
        """The scheduler's part, in its main thread: it unpickles this from now on, see `label`.

        To unpickle runs code of the user's, which may spawn and wait: so one load may come in the middle of another.

        Returns:
            What it unpickled before, mostly nothing, which is to be said again afterwards.
        """
        before, self._unpickles = self._unpickles, label
        self._bytes[LABEL_START : LABEL_START + len(label)] = label
        return before

    @property
    def unpickles(self) -> Label:
        """What the scheduler unpickles; a dead one did that when it died.  Nothing, if a task has written there."""
        reading, *sizes = self._bytes[LABEL_START : LABEL_START + _LABEL_HEAD_BYTES]
        if reading >= len(_READINGS):
            return Label()
        start = LABEL_START + _LABEL_HEAD_BYTES
        middle, end = start + sizes[0], start + sum(sizes)
        name = bytes(self._bytes[middle:end]).decode(errors="ignore")
        return Label(Reading(reading), bytes(self._bytes[start:middle]), name)

    @property
    def busy_s(self) -> float:
        """For how long tasks have run."""
        return self._seconds[0]

    @property
    def since_s(self) -> float:
        """Since when one runs, 0 for none."""
        return self._seconds[1]

    def ran(self, busy_s: float, since_s: float) -> None:
        """For how long tasks have run, and since when another one does, 0 for none."""
        self._seconds[0] = busy_s
        self._seconds[1] = since_s

    def busy_up_to(self, now_s: float) -> float:
        """For how long tasks have run, the running one included."""
        since_s = self.since_s
        return self.busy_s + (max(0.0, now_s - since_s) if since_s else 0.0)

    @property
    def leaving(self) -> bool:
        """Whether the scheduler is at what is done at the end of a process."""
        return self._bytes[_LEAVING] != 0

    def leave(self) -> None:
        """The scheduler's part: it is, from now on."""
        self._bytes[_LEAVING] = True

    def clear(self) -> None:
        """Make the line ready for a new scheduler."""
        self._bytes[:] = bytes(LINE_BYTES)
