"""The command line `python -m hdphrs.node KIND`, started by hdphrs itself: settings come on standard input."""

from __future__ import annotations

import os
import sys

from hdphrs.errors import HdphrsError
from hdphrs.wire.files import allow_many


def main() -> None:
    """Run one node; never returns."""
    allow_many()  # first, since others look at that when they are loaded
    from hdphrs.node.life import live
    from hdphrs.wire.settings import read_settings
    from hdphrs.wire.stacks import has_room

    try:
        settings = read_settings(open(0, "rb", buffering=0, closefd=False))  # noqa: SIM115 - it is the leash
        os.environ.pop("PYTHONSAFEPATH", None)
        if settings.program_archive is not None:
            _share_archive(settings.program_archive)
        forks = sys.platform == "linux" and has_room() and settings.program_archive is None
        status = live(settings, forks=forks)
    except HdphrsError as error:
        print(f"hdphrs: {error}", file=sys.stderr)
        status = 1
    sys.stderr.flush()
    os._exit(status)


def _share_archive(archive: bytes) -> None:
    """Put the program's directory on the import path of the schedulers, without leaving a file behind."""
    descriptor = os.memfd_create("hdphrs-program", 0)
    os.write(descriptor, archive)
    os.set_inheritable(descriptor, True)
    entry = f"/proc/{os.getpid()}/fd/{descriptor}"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), entry]))


main()
