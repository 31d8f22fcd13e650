"""A node that a process starts for itself, alone on this host, and ends when it needs it no more.

What lives here: `EmbeddedNode`, its process and the port to it.  Who needs one, and for how long, is `attach.py`'s
business.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

from hdphrs.choices import choices
from hdphrs.config import EXIT_S, LEDGER_END_S
from hdphrs.console import say
from hdphrs.errors import LedgerError, StartError
from hdphrs.gil import why_not
from hdphrs.oom import OomWitness, memory_word
from hdphrs.program.port import ProgramPort
from hdphrs.room import how_exhausted
from hdphrs.wire.files import identity, occupy_standard, out_of_the_way
from hdphrs.wire.local import Link
from hdphrs.wire.settings import (
    ADVICE_VARIABLE,
    DETECT_STOPPED_VARIABLE,
    LEDGER_KEY_VARIABLE,
    LEDGER_VARIABLE,
    OUTPUT_VARIABLE,
    NodeSettings,
    ledger_location,
    prefixed_streams,
    read_ledger_key,
    start_node,
    stopped_s,
    usable_cores,
)

FAREWELL_S = 2.0
"""How long whoever ends its node waits for the end, beside what its schedulers may take."""


class EmbeddedNode:
    """A root node without others, as a child of this process."""

    def __init__(self, slots: int, number: int = 0) -> None:
        """Start its process with so many schedulers; `port.start()` waits until it is ready.

        Args:
            number: as for `ProgramPort`.

        Raises:
            StartError: the system has no room for it, or this Python has no lock.
        """
        if (sentence := why_not()) is not None:
            raise StartError(sentence)
        occupy_standard(inherited=False)
        self.slots = slots
        self._witness = OomWitness()
        try:
            self._start(slots, number)
        except OSError as error:
            raise StartError(f"cannot start a node for this program: {how_exhausted(error)}") from error

    def _start(self, slots: int, number: int) -> None:
        ledger, key = _ledger()
        contexts = choices.value("contexts", True)
        choices.settle("contexts", contexts)
        pair, theirs = socket.socketpair()
        ours = socket.socket(fileno=out_of_the_way(pair.detach()))
        with theirs:
            settings = NodeSettings(
                root=True,
                host="localhost",
                slots=slots,
                secret=os.urandom(32),
                program_fd=theirs.fileno(),
                program_path=tuple(os.path.abspath(entry) for entry in sys.path),
                ledger=ledger is not None,
                ledger_location=ledger,
                ledger_key=key,
                detect_stopped_s=stopped_s(os.environ.get(DETECT_STOPPED_VARIABLE)),
                contexts=contexts,
                advice=os.environ.get(ADVICE_VARIABLE) != "0",
                prefixed=prefixed_streams(os.environ.get(OUTPUT_VARIABLE), for_people=_is_for_people()),
            )
            try:
                self._process = start_node(settings, pass_fds=[theirs.fileno()])
            except OSError:
                ours.close()
                raise
        assert self._process.stdin is not None
        self._leash = out_of_the_way(os.dup(self._process.stdin.fileno()))
        self._leash_identity = identity(self._leash)
        self._process.stdin.close()
        self._farewell_s = EXIT_S + (FAREWELL_S if ledger is None else LEDGER_END_S)
        self.port: ProgramPort = ProgramPort(Link(ours), describe_loss=self._describe_loss, number=number)

    def end(self) -> None:
        """Tell it that the program has ended, and see it off."""
        self.port.close()
        if identity(self._leash) == self._leash_identity is not None:  # else the program has closed it
            os.close(self._leash)
        try:
            self._process.wait(self._farewell_s)
        except subprocess.TimeoutExpired:
            self.kill()
        self.port.release()

    def kill(self) -> None:
        """End it at once, and whatever runs there."""
        self._process.kill()
        self._process.wait()

    def describe_end(self) -> str:
        """What has become of its process, which has ended, or does not answer."""
        return f"the node of this program (process {self._process.pid}) {self._how()}"

    def _describe_loss(self) -> str:
        return f"{self.describe_end()}, and every task that was there is lost; the next call starts another node"

    def _how(self) -> str:
        try:
            status = self._process.wait(FAREWELL_S)
        except subprocess.TimeoutExpired:
            return "does not answer any more"
        if status >= 0:
            return f"ended with status {status}"
        killed = f"was killed by {signal.Signals(-status).name}"
        if status == -signal.SIGKILL and self._witness.has_risen():
            return f"{killed}, {memory_word(self.port.held_bytes)}"
        return killed


def chosen_cores() -> int:
    """How many schedulers a node of this program has: as many as are chosen, or else one for each core that it may
    use.

    Raises:
        UsageError: the environment has something that is no number of them.
    """
    cores: int = choices.value("cores", None) or usable_cores()
    return cores


def settled_cores() -> int:
    """The same, for a run that begins now, which no other choice can change any more."""
    cores = chosen_cores()
    choices.settle("cores", cores)
    return cores


def _ledger() -> tuple[str | None, bytes | None]:
    """The ledger that the environment names, and the key in the file that it names; no ledger without a key that is
    wanted, since then its entries would be believed unsigned."""
    location, path = ledger_location(os.environ.get(LEDGER_VARIABLE)), os.environ.get(LEDGER_KEY_VARIABLE)
    if location is None or not path:
        return location, None
    try:
        return location, read_ledger_key(path)
    except LedgerError as error:
        say(f"{error}; this run goes on without its ledger")
        return None, None


def _is_for_people() -> bool:
    """Whether what this program prints goes to a terminal, a notebook, or whoever has put his own stream there."""
    try:
        return sys.stdout is not None and (sys.stdout.fileno() != 1 or os.isatty(1))
    except (OSError, ValueError, AttributeError):
        return True
