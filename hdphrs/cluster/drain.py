"""Telling nodes to leave: on this host by a signal, on another by the same command at the far end of an ssh.

What lives here: finding the node processes of this user, and waiting until they are gone.  Who may signal a process is
for the operating system to say, who may log in for ssh; so there is no port, no token and no file for this (decision
10).
"""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from hdphrs.cluster.nodes import REMOTE_PYTHON, SSH_FAILED, ssh_command
from hdphrs.cluster.orphans import ending_with_us
from hdphrs.errors import StartError, UsageError
from hdphrs.room import wait_for_room
from hdphrs.wire.settings import LEAVE_SIGNAL, MEMBER, NODE_MODULE, PYTHON_VARIABLE, ROOT_NODE

_PROC = Path("/proc")

_AS_A_NODE = (
    "python={python}; "
    'for process in /proc/[0-9]*; do if [ -O "$process" ]; then '
    'found=$(tr "\\000" "\\n" < "$process/environ" | sed -n "s/^{variable}=//p"); '
    'if [ -n "$found" ]; then python=$found; fi; fi; done 2> /dev/null; '
    'exec "$python" {words}'
)
"""For a shell, on one line since some take no other: the interpreter with which `hdphrs run` has started a node of this
user there, or else that of a host for which the hosts file names none."""


def drain_here(pid: int | None, say: Callable[[str], None]) -> None:
    """Tell the nodes of this user on this host to leave, and wait until they are gone.

    Args:
        pid: that one only.

    Raises:
        UsageError: there is none, or it is a root node, which cannot leave.
    """
    if not _PROC.joinpath("self").exists() or not hasattr(os, "pidfd_open"):
        raise UsageError("drain finds nodes on Linux only; elsewhere send SIGTERM to the node process")
    found = _nodes()
    if pid is not None and pid in found and found[pid] == ROOT_NODE:
        raise UsageError(f"process {pid} is the root node of its run, which cannot leave")
    chosen = [node for node, kind in found.items() if kind == MEMBER and pid in (None, node)]
    if not chosen:
        roots = "" if ROOT_NODE not in found.values() else ", only a root node, which cannot leave"
        raise UsageError(
            f"no node of yours runs on this host{roots}" if pid is None else f"process {pid} is no node of yours"
        )
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for node in chosen:
            with suppress(ProcessLookupError):  # it has gone meanwhile
                descriptor = os.pidfd_open(node)
                stack.callback(os.close, descriptor)
                signal.pidfd_send_signal(descriptor, LEAVE_SIGNAL)
                selector.register(descriptor, selectors.EVENT_READ, node)
                say(f"told node process {node} to leave")
        while selector.get_map():
            for key, _ in selector.select():
                selector.unregister(key.fileobj)
                say(f"node process {key.data} is gone")


def drain_there(host: str, pid: int | None, ssh: Sequence[str], python: str | None) -> int:
    """Have the same done on another host; the exit status there.

    Args:
        python: the interpreter there; None for that of a node of ours which runs there, for it has hdphrs.

    Raises:
        StartError: it cannot be reached.
    """
    target = "localhost" if pid is None else f"localhost:{pid}"
    words = f"-m hdphrs drain {target}"
    find = _AS_A_NODE.format(variable=PYTHON_VARIABLE, python=REMOTE_PYTHON, words=words)
    command = ssh_command(ssh, host, f"{shlex.quote(python)} {words}" if python else f"sh -c {shlex.quote(find)}")
    try:
        run = partial(subprocess.run, command, stdin=subprocess.DEVNULL, preexec_fn=ending_with_us(), check=False)
        status = wait_for_room(run, "another process").returncode
    except OSError as error:
        raise StartError(f"cannot start {ssh[0]} to reach {host}: {error.strerror}") from error
    if status == SSH_FAILED:
        raise StartError(f"cannot reach {host} with {ssh[0]}")
    return status


def _nodes() -> dict[int, str]:
    """Process ids of this user's nodes, the oldest first, and what kind each is."""
    found = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if entry.stat().st_uid == os.getuid():
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    # Options of the interpreter may come before.
                    match words[words.index(b"-m") :] if b"-m" in words else []:
                        case [_, module, kind, *_] if module == NODE_MODULE.encode():
                            found[int(entry.name)] = kind.decode()
    return dict(sorted(found.items()))
