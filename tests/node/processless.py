"""A scheduler as its node sees it, without a process: for tests of what is remembered of its tasks."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from types import SimpleNamespace
from typing import cast

from hdphrs.node.process import SchedulerProcess
from hdphrs.node.scheduler import Scheduler
from hdphrs.node.voices import Voices
from hdphrs.protocol.tasks import PROGRAM, ROOT, Origin, Spark, Task, TaskRef
from hdphrs.wire.bundle import bundle_path
from hdphrs.wire.page import Page
from hdphrs.wire.settings import Streams

STATUS = 3
"""With which its process has exited, as far as one knows."""


@contextmanager
def processless() -> Iterator[Scheduler]:
    """One, for as long as it is needed."""
    page = Page.create(1)
    ours, theirs = socket.socketpair()
    errors, writing = os.pipe()
    os.close(writing)
    tray = FileIO(os.devnull)
    ended = SimpleNamespace(returncode=STATUS, kill=lambda: None)
    process = SimpleNamespace(
        work=ours,
        tray=tray,
        line=page.line(0),
        errors=errors,
        output=None,
        pid=1,
        number=0,
        process=ended,
        how_it_ended=lambda: f"exited with status {STATUS}",
        status=lambda: ended.returncode,
    )
    with ours, theirs, tray:
        yield Scheduler(Origin(0), cast(SchedulerProcess, process), Voices("host", Streams.NONE))
    os.close(errors)
    page.close()


def handed(scheduler: Scheduler, serial: int, path: bytes) -> Spark:
    """It has got a task with this path."""
    spark = Spark(TaskRef(ROOT, PROGRAM, serial), 0, Task("f", path, b"", b""))
    scheduler.hand(serial, spark)
    return spark


def bundle(scheduler: Scheduler, serial: int) -> Spark:
    """It has got a bundle."""
    return handed(scheduler, serial, bundle_path(b"", serial))
