"""The entry point.

It loads little: until what the commands need is loaded, Ctrl-C ends the process as it ends one that is not Python's,
without a traceback of ours.
"""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

from hdphrs.wire.files import occupy_standard


def main() -> NoReturn:
    """Run the command line of this process, and end with its exit status."""
    heeds_interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeds_interrupts:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    occupy_standard()
    from hdphrs.cli.group import run_command_line

    try:
        if heeds_interrupts:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status = run_command_line()
    except KeyboardInterrupt:  # just before the command has begun, or after its end
        status = -signal.SIGINT
    if isinstance(status, int) and status < 0:
        from hdphrs.cluster.signals import end_as_if_killed_by

        end_as_if_killed_by(-status)
    sys.exit(status)
