"""A process that is a copy of this one: a scheduler of its node, made before that has loaded what only nodes need, or
another node of this host, made after that.

What lives here: the child as its node holds it, with the methods of `subprocess.Popen` that are used of one; a copy
that is not its child; and how a copy becomes what a new process would be (decisions 28 and 35).
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from hdphrs.errors import StartError
from hdphrs.room import NO_ROOM_STATUS, wait_for_room
from hdphrs.wire.failing import tell_end, what_is_lacking

NOT_ENDED = 70
"""Exit status of a copy that has come back from what it was to do."""

_PID_BYTES_MAX = 32


class Fork:
    """A child process."""

    def __init__(self, live: Callable[[], NoReturn]) -> None:
        """Start it; this process must have no other thread.

        Args:
            live: what it does until it ends.  It never comes back, so nothing that it holds on its stack is ever closed
                by a finaliser: descriptors of that number are others by then.
        """
        self.returncode: int | None = None
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        gc.freeze()  # what both have stays where it is, and is shared
        self.pid: int = os.fork()
        if self.pid == 0:
            status = NOT_ENDED
            try:
                live()
            except BaseException as error:
                if what_is_lacking(error) is not None:
                    status = NO_ROOM_STATUS  # of which whoever waits for it speaks
                else:
                    tell_end(f"process {os.getpid()}", error)
            finally:
                os._exit(status)

    def wait(self) -> int:
        """Wait until it has ended, and reap it; its exit status, -N if signal N ended it."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def poll(self) -> int | None:
        """Reap it if it has ended; its exit status as of `wait`, None if it lives."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def kill(self) -> None:
        """Send it SIGKILL, if it has not been reaped."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


def fork_apart(live: Callable[[], NoReturn]) -> int:
    """Start a process that is not our child, but, when this returns, that of who takes orphans on
    (`hdphrs/cluster/orphans.py`); its process id.

    Args:
        live: as for `Fork`.

    Raises:
        StartError: the system has no room for another process, and had none for a while.
    """
    reading, writing = os.pipe()

    def leave_alone() -> NoReturn:
        try:
            said = wait_for_room(partial(Fork, live), "another node").pid
        except OSError as error:
            said = -(error.errno or 0)
        os.write(writing, b"%d" % said)
        os._exit(0)

    try:
        wait_for_room(partial(Fork, leave_alone), "another node").wait()
        os.set_blocking(reading, False)
        said = int(os.read(reading, _PID_BYTES_MAX))
    except OSError as error:  # what was to fork it may have been killed
        said = -(error.errno or 0)
    finally:
        os.close(reading)
        os.close(writing)
    if said <= 0:
        raise StartError(f"cannot start another node on this host: {os.strerror(-said)}")
    return said


def become(words: Sequence[str], keep: Sequence[int], output: int | None, errors: int) -> None:
    """Be, as far as others can see, a new process `python -m WORDS`, whose standard input is empty.

    Args:
        keep: the descriptors that it has; all others beyond the standard ones are closed.
        output: becomes its standard output, if there is one.
        errors: becomes its standard error.
    """
    if output is not None:
        os.dup2(output, 1)
    os.dup2(errors, 2)
    last = 2
    os.close(0)  # there may be room for no other descriptor, as in what this is a copy of
    for descriptor in sorted([*keep, *_perf_maps()]):
        os.closerange(last + 1, descriptor)
        last = descriptor
    os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))
    os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)  # it is 0, the lowest one that is free
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - as a new process has them
    sys.stderr = sys.stderr or open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.modules["__main__"] = ModuleType("__main__")
    _rename([sys.executable, "-m", *words])


def _perf_maps() -> list[int]:
    """Where the interpreter writes the names of functions for `perf`, if it does: it would not notice that the file is
    closed, and write into another one (`PYTHONPERFSUPPORT`, from 3.12 on)."""
    name = f"/tmp/perf-{os.getpid()}.map"
    descriptors = Path("/proc/self/fd").iterdir()
    return [int(each.name) for each in descriptors if os.path.realpath(each) == name]


def _rename(command: Sequence[str]) -> None:
    """Have the list of processes show this command line, if it is no longer than the one that is there."""
    words = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
    start, end = int(words[45]), int(words[46])  # the fields 48 and 49 of proc(5)
    line = b"\0".join([*map(os.fsencode, command), b""])
    if len(line) <= end - start:
        ctypes.memmove(start, line.ljust(end - start, b"\0"), end - start)
