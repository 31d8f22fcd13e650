"""The user's program as a process.

It shares our terminal, process group and standard streams, so it is to its user what `python prog.py` would be.  A
pipe whose other end only we hold is its leash: when we are gone, however that came about, it ends too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from hdphrs.config import SEED_VARIABLE
from hdphrs.errors import StartError
from hdphrs.program.entry import Entry
from hdphrs.room import lack_of, wait_for_room
from hdphrs.wire.interpreter import interpreter_options
from hdphrs.wire.settings import LEASH_FD_VARIABLE, PROGRAM_FD_VARIABLE, SEQUENTIAL_VARIABLE
from hdphrs.wire.stacks import room_for_children

_OURS = (PROGRAM_FD_VARIABLE, LEASH_FD_VARIABLE, SEQUENTIAL_VARIABLE)
_SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""Keeps `python -m` from importing out of the current directory; the program's own directory comes instead."""


def forget_outer_run() -> None:
    """Take the variables of a run that this process itself is part of out of the environment."""
    for name in _OURS:
        os.environ.pop(name, None)


def program_command(program: Entry, args: tuple[str, ...]) -> list[str]:
    """The command line of the process that runs the program as `__main__`, in an interpreter with our options."""
    warnings = [f"-W{option}" for option in sys.warnoptions]
    return [sys.executable, *interpreter_options(), *warnings, "-m", "hdphrs.program", *program.words, *args]


def start_program(program: Entry, args: tuple[str, ...], seed: int, link: int, leash: int) -> subprocess.Popen[bytes]:
    """Start the program; it waits until the root says on `link` that all nodes are there.

    Args:
        seed: of the random numbers that it draws.
        link: the descriptor of its socket to the root node.
        leash: the reading end of its leash.

    Raises:
        StartError: it cannot be started, or there was no room for it for a while.
    """
    told = {SEED_VARIABLE: str(seed), PROGRAM_FD_VARIABLE: str(link), LEASH_FD_VARIABLE: str(leash)}
    command = program_command(program, args)

    def start() -> subprocess.Popen[bytes]:
        earlier = _block_interrupts()
        try:
            return subprocess.Popen(command, pass_fds=(link, leash), env=os.environ | _SAFE_PATH | told)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, earlier)

    try:
        return wait_for_room(start, "another process")
    except OSError as error:
        raise StartError(f"cannot start the program: {lack_of(error)}") from error


def run_sequentially(program: Entry, args: tuple[str, ...], seed: int) -> None:
    """Become the program, without any node."""
    forget_outer_run()
    command = program_command(program, args)
    _block_interrupts()
    with room_for_children():  # as deep as the stack of a scheduler, which runs the tasks elsewhere
        os.execve(command[0], command, os.environ | _SAFE_PATH | {SEED_VARIABLE: str(seed), SEQUENTIAL_VARIABLE: "1"})


def _block_interrupts() -> set[int]:
    """Block SIGINT in this thread, and in what it starts: there it waits until the process can end without a word.
    Returns what was blocked before."""
    return signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
