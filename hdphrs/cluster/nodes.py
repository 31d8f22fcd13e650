"""The node processes as the launcher holds them: on this host, and at the far end of an ssh.

What lives here: starting, watching and ending one node.  Each node holds the other end of its leash, its standard
input; a node whose leash ends, ends itself, so nothing here has to succeed for nothing to be left.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Protocol

from hdphrs.cluster.lines import LineReader, Tail
from hdphrs.cluster.orphans import ending_with_us
from hdphrs.cluster.plan import NodePlan
from hdphrs.cluster.relay import Relay
from hdphrs.console import ERRORS, OUTPUT
from hdphrs.errors import StartError
from hdphrs.room import how_exhausted, wait_for_room
from hdphrs.wire.interpreter import interpreter_options, start_variables
from hdphrs.wire.settings import (
    JOINED_AGAIN,
    LEASH_KILL,
    MEMBER,
    NODE_MODULE,
    PYTHON_VARIABLE,
    NodeSettings,
    encode_settings,
    start_node,
)

CONNECT_S_MAX = 15
"""How long OpenSSH tries to reach a host."""
ALIVE_S = 5
ALIVE_MAX = 3
"""So often it asks a host that says nothing, and so many answers in a row may be missing, before it ends."""
REMOTE_PYTHON = "python3"

SSH_FAILED = 255
"""Exit status of an ssh that has not come to run anything."""

_CANNOT_START = (126, 127)
_SAID_LINES_MAX = 3
_NOT_INSTALLED = re.compile(r"No module named '?hdphrs\b")


class Node(Protocol):
    """A started node."""

    @property
    def label(self) -> str:
        """Such as "node on localhost (pid 123)"."""

    @property
    def returncode(self) -> int | None:
        """As of `poll`; None while it lives."""

    def poll(self) -> int | None:
        """Look whether it has ended."""

    def why_not_started(self) -> str:
        """For a node that has ended too early: what happened, in one line."""

    def kill(self) -> bool:
        """Kill the node process alone with SIGKILL (test mode); False if it is dead already."""

    def ready(self) -> None:
        """All nodes have joined: from now on its output is the program's."""

    def release(self) -> None:
        """Let go of its leash: it ends itself."""

    def destroy(self) -> None:
        """End whatever of it is still there on this host, and close everything; idempotent."""


def describe_status(returncode: int) -> str:
    """An exit status of `subprocess` in words."""
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"killed by signal {-returncode}"


class LocalNode:
    """A node on this host.  Its output goes where ours goes."""

    def __init__(self, plan: NodePlan, settings: NodeSettings, pass_fds: Sequence[int] = ()) -> None:
        """Start it.

        Raises:
            StartError: there is no such interpreter.
        """
        python = plan.python or sys.executable
        try:
            self._process = start_node(settings, python=python, pass_fds=pass_fds)
        except OSError as error:
            raise StartError(f"{plan.host}: cannot start {python}: {how_exhausted(error)}") from error
        kind = "root node" if settings.root else "node"
        self.label: str = f"{kind} on {plan.host} (pid {self._process.pid})"

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def poll(self) -> int | None:
        return self._process.poll()

    def why_not_started(self) -> str:
        return f"the {self.label} ended during start-up ({describe_status(self._process.returncode)})"

    def kill(self) -> bool:
        if self._process.poll() is not None:
            return False
        self._process.kill()
        return True

    def ready(self) -> None:
        """Nothing was held back."""

    def release(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    def destroy(self) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.release()


class RemoteNode:
    """A node on another host, or an account of this one, behind an ssh.

    All three streams of the ssh are pipes to us: OpenSSH makes its descriptors non-blocking, which must not happen to
    those that the program shares.
    """

    def __init__(
        self,
        plan: NodePlan,
        settings: NodeSettings,
        ssh: Sequence[str],
        selector: selectors.BaseSelector,
        relay: Relay,
    ) -> None:
        """Start the ssh; its streams are served by callbacks, the `data` of their keys in `selector`.

        Args:
            relay: takes what the node says once all have joined.

        Raises:
            StartError: there is no such command.
        """
        self.host: str = plan.host
        self.is_back: bool = False
        """It has said that it has joined the run again."""
        self._was_killed = False
        self._python = plan.python or REMOTE_PYTHON
        self._ssh = ssh[0]
        self._selector = selector
        self._relay = relay
        self._ready = False
        self._tail = Tail()
        self.label: str = f"node on {plan.host}"
        try:
            # In a session of its own it has no terminal: Ctrl-C does not reach it, and it cannot ask for anything.

            def start() -> subprocess.Popen[bytes]:
                return subprocess.Popen(
                    ssh_command(ssh, plan.host, node_command(self._python)),
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    preexec_fn=ending_with_us(),
                )

            self._process = wait_for_room(start, "another process")
        except OSError as error:
            raise StartError(f"cannot start {self._ssh} to reach {plan.host}: {error.strerror}") from error
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._leash = self._process.stdin
        os.set_blocking(self._leash.fileno(), False)
        self._unsent = memoryview(encode_settings(settings))
        selector.register(self._leash, selectors.EVENT_WRITE, self._write)
        self._outputs = {
            self._process.stdout: (OUTPUT, LineReader(self._process.stdout.fileno(), self._pass_output)),
            self._process.stderr: (ERRORS, LineReader(self._process.stderr.fileno(), self._pass_error)),
        }
        for stream in self._outputs:
            selector.register(stream, selectors.EVENT_READ, self._read)

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def poll(self) -> int | None:
        return self._process.poll()

    @property
    def is_disconnected(self) -> bool:
        """The ssh has ended because its connection has, or the node was killed; but not by `kill`."""
        return self.returncode == SSH_FAILED and not self._was_killed

    def why_not_started(self) -> str:
        self._read()
        status = describe_status(self._process.returncode)
        said = self._tail.lines
        if self._process.returncode == SSH_FAILED:
            return f"cannot reach {self.host} with {self._ssh}: " + ("; ".join(said[-_SAID_LINES_MAX:]) or status)
        if self._process.returncode in _CANNOT_START:
            return (
                f"{self.host}: cannot start {self._python}: {said[-1] if said else status} "
                f"(name another one with python=PATH in the hosts file)"
            )
        ours = [line.removeprefix("hdphrs: ") for line in said if line.startswith("hdphrs: ")]
        reason = (ours or said or ["it said nothing"])[-1]
        if _NOT_INSTALLED.search(reason):
            return f"{self.host}: hdphrs is not installed for {self._python}"
        return f"{self.host}: the node ended during start-up ({status}): {reason}"

    def kill(self) -> bool:
        if self._process.poll() is not None or self._leash.closed:
            return False
        self._was_killed = True
        self._unsent = memoryview(bytes(self._unsent) + LEASH_KILL)
        self._write()
        return True

    def ready(self) -> None:
        self._ready = True

    def release(self) -> None:
        if not self._leash.closed:
            self._unregister(self._leash)
            self._leash.close()

    def destroy(self) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.release()
        for stream, (_, reader) in self._outputs.items():
            reader.read()  # of a dead one, a pipe's content at most
            self._unregister(stream)
            stream.close()
        self._outputs.clear()

    def _write(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._leash.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unsent = memoryview(b"")  # it is dead; its exit status tells why
        self._unregister(self._leash)

    def _read(self) -> None:
        for stream, (to, reader) in self._outputs.items():
            if (not self._ready or self._relay.has_room(to, stream, self._read)) and not reader.read():
                self._unregister(stream)

    def _unregister(self, stream: object) -> None:
        with contextlib.suppress(KeyError, ValueError):  # not registered any more, or closed
            self._selector.unregister(stream)  # type: ignore[arg-type]

    def _pass_output(self, line: bytes) -> None:
        if self._ready:
            self._relay.put(OUTPUT, line)
        else:
            self._tail.add(line)

    def _pass_error(self, line: bytes) -> None:
        if not self._ready and JOINED_AGAIN in line:
            self._ready = self.is_back = True
        if self._ready:
            self._relay.put(ERRORS, f"[{self.host}] ".encode() + line)
        else:
            self._tail.add(line)


def node_command(python: str) -> str:
    """What starts a node there, for a shell: an interpreter as this one is."""
    told = {**start_variables(), PYTHON_VARIABLE: python}
    variables = [f"{name}={value}" for name, value in told.items()]
    words = [*variables, python, *interpreter_options(), "-m", NODE_MODULE, MEMBER]
    return " ".join(map(shlex.quote, words))


def ssh_command(ssh: Sequence[str], host: str, command: str) -> list[str]:
    """Run a command, the text of one for a shell, on `host`: with one ssh that never asks for anything, and that ends
    when the host is out of reach.  Options that are among the words of `ssh` count before ours.
    """
    options = []
    if os.path.basename(ssh[0]) == "ssh":
        chosen = {
            "BatchMode": "yes",
            "ConnectTimeout": CONNECT_S_MAX,
            "ServerAliveInterval": ALIVE_S,
            "ServerAliveCountMax": ALIVE_MAX,
        }
        options = ["-T", *(word for name, value in chosen.items() for word in ("-o", f"{name}={value}"))]
    # `env` is the same in every login shell, and the home directory there must not be on the module path.
    return [*ssh, *options, host, f"exec env PYTHONSAFEPATH=1 {command}"]
