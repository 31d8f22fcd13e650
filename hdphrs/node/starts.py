"""Starting the schedulers of a node while it is at work: at once, after a pause, or as soon as there is room.

What lives here: `Starts`.  What does not: how long the pauses are (`restart_policy.py`), what a scheduler is once it
runs (`crew.py`), and how a process is started (`process.py`).
"""

from __future__ import annotations

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

    def __init__(self, page: Page, settings: NodeSettings) -> None:
        self._page = page
        self._settings = settings
        self._policy = RestartPolicy()
        self._lacks_room = False
        """The user has been told that there is no room."""

    def pause_s(self, process: SchedulerProcess, *, ready: bool, lived_s: float, words: str) -> float:
        """How long the place of a process that has ended waits for the next one.

        Args:
            process: has been reaped.
            ready: whether it was ever ready.
            lived_s: how long after its start it has ended.
            words: what it said last on its standard error.

        Raises:
            StartError: none can be started at this place; the message says why.
        """
        end = End.READY if ready else _end(process)
        pause_s = self._policy.pause_s(process.number, end, lived_s)
        if pause_s is None:
            said = words.strip().rpartition("\n")[2]
            raise self._refusal(process.number, process.how_it_ended() + (f": {said}" if said else ""))
        if end is End.NO_ROOM and not self._lacks_room:
            self._tell_lack(RuntimeError("a scheduler process cannot start its threads"))
        return pause_s

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
        self._lacks_room = False
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


def replaced(pause_s: float) -> str:
    """For people: when it is replaced."""
    return "it is replaced" + (f" in {pause_s:.1f} s" if pause_s >= REPORTED_PAUSE_S else "")


def is_from_outside(process: SchedulerProcess) -> bool:
    """Whether a process that has been reaped may have been killed by something else."""
    return process.process.returncode in OUTSIDE


def _end(process: SchedulerProcess) -> End:
    if process.process.returncode == NO_ROOM_STATUS:
        return End.NO_ROOM
    return End.KILLED if is_from_outside(process) else End.FAILED
