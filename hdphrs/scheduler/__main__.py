"""The command line by which a node process starts a scheduler: `python -m hdphrs.scheduler` and what it is told, see
`process.py`.
"""

from __future__ import annotations

import os
import sys

from hdphrs.gil import why_not
from hdphrs.scheduler.process import serve
from hdphrs.wire.files import occupy_standard


def main() -> None:
    """Run one scheduler until its node ends it."""
    node = os.getppid()
    occupy_standard()
    if (sentence := why_not()) is not None:
        sys.exit(f"hdphrs: {sentence}")
    os.environ.pop("PYTHONSAFEPATH", None)
    path = os.environ.pop("HDPHRS_PROGRAM_PATH", "")
    serve(sys.argv[1:], path.split(os.pathsep), node)


main()
