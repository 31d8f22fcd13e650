"""How a program gets its node.

What lives here: `attach`, the one mechanism.  Under `hdphrs run` the link to the root node is inherited; otherwise the
program starts a node of its own with all cores, which lives as long as the program does.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading

from hdphrs.api.future import state
from hdphrs.api.port import Port
from hdphrs.config import LEDGER_END_S
from hdphrs.program.port import ProgramPort
from hdphrs.wire.local import Link
from hdphrs.wire.settings import (
    LEDGER_VARIABLE,
    PROGRAM_FD_VARIABLE,
    NodeSettings,
    ledger_location,
    start_node,
    usable_cores,
)

FAREWELL_S = 2.0
"""How long the end of a program waits for its own node to end."""

_attaching = threading.Lock()
_attached: ProgramPort | None = None


def attach() -> Port:
    """The port of this program; started on first use, the same ever after.

    Raises:
        StartError: the node did not start; the message says why.
    """
    global _attached
    with _attaching:
        if _attached is None:
            _attached = _inherit() or _embed()
        return _attached


def _inherit() -> ProgramPort | None:
    descriptor = os.environ.pop(PROGRAM_FD_VARIABLE, None)
    if descriptor is None:
        return None
    sock = socket.socket(fileno=int(descriptor))
    os.set_inheritable(sock.fileno(), False)
    return _start(sock, None)


def _embed() -> ProgramPort:
    ours, theirs = socket.socketpair()
    ledger = ledger_location(os.environ.get(LEDGER_VARIABLE))
    with theirs:
        settings = NodeSettings(
            root=True,
            host="localhost",
            slots=usable_cores(),
            secret=os.urandom(32),
            program_fd=theirs.fileno(),
            program_path=tuple(os.path.abspath(entry) for entry in sys.path),
            ledger=ledger is not None,
            ledger_location=ledger,
        )
        process = start_node(settings, pass_fds=[theirs.fileno()])
    return _start(ours, process, FAREWELL_S if ledger is None else LEDGER_END_S)


def _start(sock: socket.socket, process: subprocess.Popen[bytes] | None, farewell_s: float = FAREWELL_S) -> ProgramPort:
    def describe_loss() -> str:
        if process is None:
            return "the root node has died, and every task of the run with it; run the program again"
        return f"the node of this program (process {process.pid}) {_how(process)}; run the program again"

    port = ProgramPort(Link(sock), describe_loss=describe_loss)

    def forget_in_fork() -> None:
        global _attached, _attaching
        if _attached is port:
            _attached = None
            _attaching = threading.Lock()
            port.abandon()
            if state.port is port:
                from hdphrs.api.port import Unattached

                state.port = Unattached(attach)

    def part() -> None:
        if _attached is port:
            port.close()
            if process is not None:
                _see_off(process, farewell_s)

    os.register_at_fork(after_in_child=forget_in_fork)
    atexit.register(part)
    port.start()
    return port


def _how(process: subprocess.Popen[bytes]) -> str:
    try:
        status = process.wait(FAREWELL_S)
    except subprocess.TimeoutExpired:
        return "does not answer any more"
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def _see_off(process: subprocess.Popen[bytes], farewell_s: float) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(farewell_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
