"""Signals as readable bytes.

What lives here: the pipe that wakes the launcher's loop when a signal arrives.  A signal that our caller ignores (as
nohup does) stays ignored, so that the program inherits that too; the others have handlers in Python, which a started
process does not inherit.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def wakened_by_signals(on_signal: Callable[[int], None], numbers: tuple[int, ...]) -> Iterator[int]:
    """Handle these signals and SIGCHLD while the block runs; yields the descriptor that they make readable.

    Args:
        on_signal: called in the main thread with each of `numbers` that arrives; SIGCHLD only wakes.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            on_signal(number)

    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    earlier_fd = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    earlier = {}
    for number in (signal.SIGCHLD, *numbers):
        if number == signal.SIGCHLD or signal.getsignal(number) != signal.SIG_IGN:
            earlier[number] = signal.signal(number, handle)
    try:
        yield reading
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(earlier_fd)
        os.close(reading)
        os.close(writing)


def end_as_if_killed_by(number: int) -> None:
    """End this process by the signal that ended the program, so that a shell sees what happened."""
    import resource

    # One core file, the program's, is enough.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # A signal that is blocked here, or whose default is to be ignored, has not ended us.
    os._exit(128 + number)
