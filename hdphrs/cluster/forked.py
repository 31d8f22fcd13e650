"""A node of this host that the root node forks, as the launcher holds it (decision 35).

What lives here: which nodes these are, and watching and ending one.  It is a child of the launcher, which takes it on
(`orphans.py`), but only it knows its process id: it says that on its leash, which here is a socket.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import suppress

from hdphrs.cluster.nodes import describe_status
from hdphrs.cluster.plan import NodePlan
from hdphrs.wire.settings import NodeSettings, encode_settings

_PID_BYTES_MAX = 32


def is_forked(plan: NodePlan, root: NodePlan) -> bool:
    """Whether this node, which is not the root, can be a copy of that."""
    return sys.platform == "linux" and not plan.remote and plan.python is None and root.python is None


class ForkedNode:
    """A node on this host.  Its output goes where ours goes."""

    def __init__(self, plan: NodePlan, settings: NodeSettings, leash: socket.socket) -> None:
        """The root has, or will have, the other end of its leash."""
        self._host = plan.host
        self._pid: int | None = None
        self._leash = leash
        self.returncode: int | None = None
        with suppress(OSError):  # the root has died already; whoever waits for it will see how
            leash.sendall(encode_settings(settings))
        leash.setblocking(False)

    @property
    def label(self) -> str:
        return f"node on {self._host} ({'forked by the root node' if self._pid is None else f'pid {self._pid}'})"

    def poll(self) -> int | None:
        self._hear()
        return self._reap(os.WNOHANG)

    def why_not_started(self) -> str:
        return f"the {self.label} ended during start-up ({describe_status(self.returncode or 0)})"

    def kill(self) -> bool:
        if self._pid is None or self.poll() is not None:
            return False
        os.kill(self._pid, signal.SIGKILL)
        return True

    def ready(self) -> None:
        """Nothing was held back."""

    def release(self) -> None:
        self._hear()
        self._leash.close()

    def destroy(self) -> None:
        if self._pid is not None and self.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
        self._reap(0)
        self.release()

    def _hear(self) -> None:
        """Who it is.  If it has not said so before its leash ends it was never forked, and the root tells why."""
        if self._pid is None and self._leash.fileno() >= 0:
            with suppress(OSError):
                self._pid = int(self._leash.recv(_PID_BYTES_MAX) or 0) or None

    def _reap(self, options: int) -> int | None:
        if self._pid is not None and self.returncode is None:
            with suppress(ChildProcessError):  # for a moment it is still another one's
                pid, status = os.waitpid(self._pid, options)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode
