"""Starting a run again whose program or root node has died.

What lives here: when that is done, and how often (decision 11).  What does not: telling a death from an end, which is
the launcher's.  Everything is started anew, all nodes too: those of the lost run have been ended.  The
program begins from the beginning, with the same arguments; what it need not compute again is for the ledger to say.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from hdphrs.cluster.launch import Launcher, Saboteur
from hdphrs.cluster.options import RunOptions
from hdphrs.errors import StartError

HOUR_S = 3600.0

_STDIN = 0


class Budget:
    """So many restarts within any hour."""

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._now = now
        self._taken_s: deque[float] = deque()

    def take(self) -> int | None:
        """One more: which one of this hour it is; None if there have been too many."""
        now_s = self._now()
        while self._taken_s and self._taken_s[0] <= now_s - HOUR_S:
            self._taken_s.popleft()
        if len(self._taken_s) >= self._most:
            return None
        self._taken_s.append(now_s)
        return len(self._taken_s)


def launch_again(options: RunOptions, saboteur: Saboteur | None = None) -> int:
    """Run the program from start to nothing left, and again when it is lost; must be called in the main thread.

    Args:
        saboteur: for the first time.

    Returns:
        Its exit status of the last time; -N if signal N ended it.

    Raises:
        StartError: a node could not be started, or not all joined in time; everything has been ended.
    """
    restarts_max = options.restarts_max
    budget = Budget(restarts_max)
    rewind = _rewinder()
    begun = False
    while True:
        launcher = Launcher(options, saboteur)
        try:
            status = launcher.run()
            loss, error = launcher.loss, None
        except StartError as refused:
            if not begun:
                raise
            status, loss, error = 1, str(refused), refused
        if loss is None or not restarts_max:
            return status
        begun, saboteur = True, None
        number = budget.take()
        if number is None:
            hint = f"; given up after {restarts_max} restarts within an hour"
            if error is not None:
                raise StartError(f"{error}{hint}")
            options.say(f"{loss}{hint}")
            return status
        left = "what is in the ledger is not computed again"
        if options.ledger is None:
            left = "without --ledger all is computed again"
        options.say(f"{loss}; the run starts again ({number} of at most {restarts_max} restarts in an hour), {left}")
        rewind()


def _rewinder() -> Callable[[], None]:
    """Puts the standard input back to where it is now, if it is a file; of anything else what has been read is gone."""
    try:
        offset = os.lseek(_STDIN, 0, os.SEEK_CUR) if stat.S_ISREG(os.fstat(_STDIN).st_mode) else None
    except OSError:
        offset = None

    def rewind() -> None:
        if offset is not None:
            with suppress(OSError):
                os.lseek(_STDIN, offset, os.SEEK_SET)

    return rewind
