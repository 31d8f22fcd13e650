"""The command line `python -m hdphrs.node KIND`, started by hdphrs itself: settings come on standard input."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress

from hdphrs.errors import HdphrsError
from hdphrs.wire.files import allow_many
from hdphrs.wire.settings import read_settings

STACK_BYTES = 512 << 20
"""Stack of a scheduler's main thread: a task may recurse through spawn and get as deep as plain recursion would.  Only
what is used is ever allocated."""


def main() -> None:
    """Run one node; never returns."""
    try:
        settings = read_settings(open(0, "rb", buffering=0, closefd=False))  # noqa: SIM115 - it is the leash
        os.environ.pop("PYTHONSAFEPATH", None)
        with suppress(ValueError, OSError):
            hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
            limit = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
            resource.setrlimit(resource.RLIMIT_STACK, (limit, hard))
        allow_many()
        if settings.program_archive is not None:
            _share_archive(settings.program_archive)
        from hdphrs.node.life import live

        status = live(settings)
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
