"""Stand-ins for nodes: scripts in the place of the interpreter, which do as they are told.

They are named by `python=` in the hosts file, so the launcher starts them as it starts a node.
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from tests.cluster.support import environment, write_executable

TOLD = """import os, select, signal, socket, sys
from hdphrs.wire import local
from hdphrs.wire.settings import read_settings
from hdphrs.wire.sockets import address_of
settings = read_settings(open(0, "rb", buffering=0, closefd=False))
"""
"""Reads its settings."""

JOINED = """
if settings.root:
    os.write(settings.status_fd, b"ready\\n")
    os.close(settings.status_fd)
    link = socket.socket(fileno=settings.program_fd)
    local.Link(link).send([local.READY, True, False])
"""
"""Lets the program begin, if it is the root."""

SERVES = """
over = os.path.join(os.path.dirname(sys.argv[0]), "over")
if settings.root:
    over = os.open(over, os.O_RDWR)
    while link.recv(1024):
        pass
else:
    waits = select.poll()
    for descriptor in (0, os.open(over, os.O_RDONLY | os.O_NONBLOCK)):
        waits.register(descriptor, select.POLLIN)
    waits.poll()
"""
"""Ends with the program if it is the root, else with its leash, or with the root, which it hears from nobody but the
pipe that the root has open."""

OBEDIENT = TOLD + JOINED + SERVES


def interpreter(folder: Path, name: str, *arguments: str) -> Path:
    """An executable that starts our interpreter in the environment of the test with this folder, which ssh loses.

    Args:
        arguments: for the interpreter, before those that the launcher gives.
    """
    variables = environment(folder).items()
    settings = " ".join(f"{variable}={shlex.quote(value)}" for variable, value in variables)
    command = shlex.join([sys.executable, *arguments])
    return write_executable(folder / name, f'#!/bin/sh\nexport {settings}\nexec {command} "$@"\n')


def stand_in(folder: Path, name: str, text: str) -> Path:
    """An interpreter that runs this script, whatever it is told to run."""
    script = folder / f"{name}.script"
    script.write_text(text)
    with suppress(FileExistsError):
        os.mkfifo(folder / "over")
    return interpreter(folder, name, os.fspath(script))
