"""The command line `python -m hdphrs.node KIND`, started by hdphrs itself: settings come on standard input."""

from __future__ import annotations

import os
import signal
import sys

from hdphrs.console import say
from hdphrs.gil import why_not
from hdphrs.wire.failing import tell_end
from hdphrs.wire.files import allow_many, occupy_standard


def main() -> None:
    """Run one node; never returns."""
    occupy_standard()
    if (sentence := why_not()) is not None:
        say(sentence)
        sys.exit(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until it is obeyed (`orders.py`)
    allow_many()  # first, since others look at that when they are loaded
    try:
        from hdphrs.node.life import begin
    except (OSError, ImportError, MemoryError) as error:
        tell_end(f"a node (process {os.getpid()})", error)
        sys.exit(1)
    begin()


main()
