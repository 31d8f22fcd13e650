"""Starting the schedulers of a node while it is at work: at once, after a pause, or as soon as there is room.

What lives here: `Starts`.  What does not: how long the pauses are (`restart_policy.py`), what a scheduler is once it
runs (`crew.py`), and how a process is started (`process.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from hdphrs.errors import StartError
from hdphrs.node.process import SchedulerProcess, start_scheduler
from hdphrs.node.restart_policy import FAILURES_MAX, OUTSIDE, End, RestartPolicy
from hdphrs.room import NO_ROOM_STATUS, PAUSE_MIN_S, lack_of, lacks_room, longer, say_no_room
from hdphrs.wire.page import Page
from hdphrs.wire.settings import NodeSettings

REPORTED_PAUSE_S = 0.1
"""A user is told of pauses that are as long."""


class Starts:
    """Of the schedulers of one node."""

    def __init__(self, page: Page, settings: NodeSettings, say: Callable[[str], None]) -> None:
        """
        Args:
            say: prints a line for the user.
        """
        self._say = say
        self._page = page
        self._settings = settings
        self._policy = RestartPolicy()
        self._lacks_room = False
        """The user has been told that there is no room."""

    def pause_s(self, process: SchedulerProcess, end: str, *, ready: bool, lived_s: float, words: str) -> float:
        """How long the place of a process that has ended waits for the next one; the user is told of both.

        Args:
            process: has been reaped.
            end: how it has ended, for people.
            ready: whether it was ever ready.
            lived_s: how long after its start it has ended.
            words: what it said last on its standard error.

        Raises:
            StartError: none can be started at this place; the message says why.
        """
        kind = End.READY if ready else _end(process)
        pause_s = self._policy.pause_s(process.number, kind, lived_s)
        if pause_s is None:
            said = words.strip().rpartition("\n")[2]
            raise self._refusal(process.number, process.how_it_ended() + (f": {said}" if said else ""))
        if kind is End.NO_ROOM:
            self._tell_lack(RuntimeError("a scheduler process needs more than there is"))
        else:
            when = f" in {pause_s:.1f} s" if pause_s >= REPORTED_PAUSE_S else ""
            self._say(f"{end}; it is replaced{when}")
        return pause_s

    def succeeded(self) -> None:
        """A scheduler is ready, so there is room."""
        self._lacks_room = False

    def start(self, number: int) -> SchedulerProcess | None:
        """Start a scheduler at a place; None if there is no room for a process now, or something else is in the way for
        the first few times.

        Raises:
            StartError: something else has been in the way too often.
        """
        try:
            process = start_scheduler(self._page, number, self._settings)
        except (OSError, MemoryError) as error:
            if lacks_room(error):
                self._tell_lack(error)
            elif self._policy.pause_s(number, End.FAILED, 0.0) is None:
                raise self._refusal(number, lack_of(error)) from error
            return None
        return process

    async def start_later(self, number: int, pause_s: float) -> SchedulerProcess:
        """Start a scheduler at a place after a pause, and try again after longer and longer ones.

        Raises:
            StartError: as for `start`.
        """
        pause_s = max(pause_s, PAUSE_MIN_S)
        while True:
            await trio.sleep(pause_s)
            process = self.start(number)
            if process is not None:
                return process
            pause_s = longer(pause_s)

    def _refusal(self, number: int, why: str) -> StartError:
        place = f"scheduler {number} on {self._settings.host}"
        return StartError(f"{place} could not be started {FAILURES_MAX} times one after the other; the last one {why}")

    def _tell_lack(self, error: BaseException) -> None:
        if not self._lacks_room:
            self._lacks_room = True
            say_no_room("another process", error)


def is_from_outside(process: SchedulerProcess) -> bool:
    """Whether a process has ended, and may have been killed by something else."""
    return process.status() in OUTSIDE


def _end(process: SchedulerProcess) -> End:
    if process.status() == NO_ROOM_STATUS:
        return End.NO_ROOM
    return End.KILLED if is_from_outside(process) else End.FAILED
