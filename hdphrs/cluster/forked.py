"""A node of this host that the root node forks, as the launcher holds it (decision 35).

What lives here: which nodes these are, and watching and ending one.  It is a child of the launcher, which takes it on
(`orphans.py`), and hears from the root which process it is.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from hdphrs.cluster.nodes import describe_status
from hdphrs.cluster.plan import NodePlan
from hdphrs.wire.settings import NodeSettings, encode_settings


def can_be_forked(plan: NodePlan, root: NodePlan) -> bool:
    """Whether this node, which is not the root, may be a copy of that."""
    return sys.platform == "linux" and not plan.remote and plan.python is None and root.python is None


class ForkedNode:
    """A node on this host.  Its output goes where ours goes."""

    def __init__(self, plan: NodePlan, settings: NodeSettings, leash: int) -> None:
        """The root is to have the other end of its leash, a pipe, which is still open here too: so its settings, a few
        kilobytes, can be written before anybody reads them."""
        self._host = plan.host
        self._pid: int | None = None
        self._leash = open(leash, "wb", buffering=0)  # noqa: SIM115 - for as long as the node lives
        self._leash.write(encode_settings(settings))
        self.returncode: int | None = None

    def begin(self, pid: int) -> None:
        """The root has forked it."""
        self._pid = pid

    @property
    def label(self) -> str:
        return f"node on {self._host} ({'forked by the root node' if self._pid is None else f'pid {self._pid}'})"

    def poll(self) -> int | None:
        """Look whether it has ended; one that has not begun has not."""
        return self._wait(os.WNOHANG)

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
        self._leash.close()

    def destroy(self) -> None:
        self.release()
        if self._pid is not None and self.poll() is None:
            for end in (os.killpg, os.kill):  # it may not have come to lead a group
                with suppress(ProcessLookupError):
                    end(self._pid, signal.SIGKILL)
        self._wait(0)

    def _wait(self, options: int) -> int | None:
        if self._pid is not None and self.returncode is None:
            pid, status = os.waitpid(self._pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode
