"""Whether a thread gets on: its processor time, as another thread sees it."""

from __future__ import annotations

import time
from threading import get_ident
from time import monotonic


class ThreadClock:
    """That of the thread which makes this."""

    def __init__(self) -> None:
        # Asked of another thread, the C library may crash if that one has ended; the clock itself may not.
        ask = getattr(time, "pthread_getcpuclockid", None)
        self._clock: int | None = None if ask is None else ask(get_ident())
        self._used_s = 0.0
        self._since_s = monotonic()

    def stands_still_s(self) -> float:
        """For how long the thread has used no processor time, as far as this was asked; one that has ended uses none.
        Where the system does not tell, it is how long it has been there."""
        now_s = monotonic()
        if self._clock is not None:
            try:
                used_s = time.clock_gettime(self._clock)
            except OSError:
                used_s = self._used_s
            if used_s != self._used_s:
                self._used_s, self._since_s = used_s, now_s
        return now_s - self._since_s
