"""Whether a thread computes: its processor time, as another thread sees it."""

from __future__ import annotations

import time
from threading import get_ident
from time import monotonic

WINDOW_S = 5e-3
"""Over how long the use of the processor is measured."""

RESTS = 0.2
"""A thread that uses less of a processor than this rests, or waits for something."""


class ThreadClock:
    """That of the thread which makes this; another one may ask it, from time to time."""

    def __init__(self) -> None:
        # Asked of another thread, the C library may crash if that one has ended; the clock itself may not.
        ask = getattr(time, "pthread_getcpuclockid", None)
        self._clock: int | None = None if ask is None else ask(get_ident())
        self._used_s = 0.0
        self._at_s = self._since_s = monotonic()

    def rests_s(self) -> float:
        """For how long the thread has rested; one that has ended rests.  Where the system does not tell, it is how long
        it has been there."""
        now_s = monotonic()
        if self._clock is not None and now_s - self._at_s >= WINDOW_S:
            try:
                used_s = time.clock_gettime(self._clock)
            except OSError:
                used_s = self._used_s
            if used_s - self._used_s > RESTS * (now_s - self._at_s):
                self._since_s = now_s
            self._used_s, self._at_s = used_s, now_s
        return now_s - self._since_s
