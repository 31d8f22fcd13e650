"""How a program gets its node.

What lives here: `attach`, the one mechanism.  Under `hdphrs run` the link to the root node is inherited; otherwise the
program starts a node of its own with all cores, which lives as long as the program does.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import threading

from hdphrs.api.future import state
from hdphrs.api.port import Unattached
from hdphrs.errors import HdphrsError
from hdphrs.oom import OomWitness, memory_word
from hdphrs.program.embedded import EmbeddedNode
from hdphrs.program.port import ProgramPort
from hdphrs.wire.files import out_of_the_way
from hdphrs.wire.local import Link
from hdphrs.wire.settings import PROGRAM_FD_VARIABLE, usable_cores

_attaching = threading.Lock()
_beginning: ProgramPort | None = None
"""The port while it waits for its node: who was interrupted then goes on with this one, and no other."""
_attached: ProgramPort | None = None
_embedded: EmbeddedNode | None = None
"""The program's own node, if it has started one."""


def attach() -> ProgramPort:
    """The port of this program; started on first use, the same ever after.

    Raises:
        StartError: the node did not start; the message says why.
    """
    global _attached, _beginning
    with _attaching:
        if _attached is None:
            if _beginning is None:
                _beginning = _inherit() or _embed()
            try:
                _beginning.start()
            except HdphrsError:
                _beginning = None
                raise
            _attached, _beginning = _beginning, None
        return _attached


def shared_port(slots: int | None) -> ProgramPort | None:
    """The port to the cluster that this program runs on, or to its own node if that has `slots` schedulers (None: it
    matters not how many); None if there is neither."""
    if _attached is None and PROGRAM_FD_VARIABLE in os.environ:
        attach()
    enough = _embedded is None or slots is None or slots <= _embedded.slots
    return _attached if enough else None


def _inherit() -> ProgramPort | None:
    descriptor = os.environ.pop(PROGRAM_FD_VARIABLE, None)
    if descriptor is None:
        return None
    sock = socket.socket(fileno=out_of_the_way(int(descriptor)))
    witness = OomWitness()

    def describe_loss() -> str:
        why = f"; it may have been killed {memory_word(port.held_bytes)}" if witness.has_risen() else ""
        return f"the root node has died, and every task of the run with it{why}; run the program again"

    port = ProgramPort(Link(sock), describe_loss=describe_loss)
    return _watch(port, None)


def _embed() -> ProgramPort:
    global _embedded
    _embedded = EmbeddedNode(usable_cores())
    return _watch(_embedded.port, _embedded)


def _watch(port: ProgramPort, node: EmbeddedNode | None) -> ProgramPort:
    def forget_in_fork() -> None:
        global _attached, _attaching, _beginning, _embedded
        if port in (_attached, _beginning):
            _attached = _beginning = _embedded = None
            _attaching = threading.Lock()
            port.abandon()
            if state.port is port:
                state.port = Unattached(attach)

    def part() -> None:
        if _attached is not port:
            return  # a fork
        try:
            if node is None:
                port.close()
            else:
                node.end()
        except KeyboardInterrupt:  # the program has ended: what is left is not waited for
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if node is not None:
                node.kill()

    os.register_at_fork(after_in_child=forget_in_fork)
    atexit.register(part)
    return port
