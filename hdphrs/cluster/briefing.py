"""What each node is told: from the options of the run to the settings of every node.

What lives here: secrets and certificates, addresses, the program's files for other hosts.  What comes from elsewhere:
the descriptors that the root inherits.
"""

from __future__ import annotations

import os
import socket
from dataclasses import replace

from hdphrs.choices import choices
from hdphrs.cluster.addresses import ANYWHERE, LOOPBACK, outward_addresses
from hdphrs.cluster.hosts import LOCALHOST
from hdphrs.cluster.options import RunOptions
from hdphrs.config import JOIN_DEADLINE_S
from hdphrs.records import dataclass
from hdphrs.wire.settings import Credentials, NodeSettings
from hdphrs.wire.sockets import address_of

ROOT_GRACE_S = 10.0
"""The root gives up this much later than the others: a node that cannot reach it knows better why."""

_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RootDescriptors:
    """What the root inherits."""

    program: socket.socket
    status: int
    """The pipe on which it says whom it has forked, and that all nodes have joined."""
    listener: socket.socket | None
    """None for a run of one node."""
    leashes: tuple[int, ...]
    """The reading ends of those of the nodes that it forks."""

    @property
    def numbers(self) -> list[int]:
        listener = [] if self.listener is None else [self.listener.fileno()]
        return [self.program.fileno(), self.status, *listener, *self.leashes]

    def close(self) -> None:
        """Close our copies, so that the root's death closes the last ones."""
        self.program.close()
        os.close(self.status)
        if self.listener is not None:
            self.listener.close()
        for leash in self.leashes:
            os.close(leash)


def brief_nodes(options: RunOptions, root: RootDescriptors) -> list[NodeSettings]:
    """The settings of all nodes of the plan, in its order."""
    remote = [plan.host for plan in options.nodes if plan.remote]
    credentials = _issue(len(options.nodes)) if remote else [None] * len(options.nodes)
    archive = _pack(options) if remote else None
    addresses = outward_addresses(remote) if remote else {}
    here, port = (LOOPBACK, 0) if root.listener is None else address_of(root.listener)
    # A node of this host in a run beyond it must not become known to the others as 127.0.0.1.
    addresses[LOCALHOST] = list(
        dict.fromkeys([*(a for some in addresses.values() for a in some), LOOPBACK if remote else here])
    )
    secret = os.urandom(_SECRET_BYTES)
    told = [
        NodeSettings(
            root=False,
            host=plan.host,
            slots=plan.slots,
            secret=secret,
            reliable=options.reliable,
            speculate=options.speculate,
            attempts_max=options.attempts_max,
            memory_bytes_max=options.memory_bytes_max,
            detect_after_s=options.detect_after_s,
            detect_stopped_s=options.detect_stopped_s,
            grace_s=options.grace_s,
            rejoin_s=options.rejoin_s,
            seed=options.seed + number,
            verbose=options.verbose,
            root_addresses=tuple((address, port) for address in addresses[plan.host]),
            root_host=options.nodes[0].host,
            root_slots=options.nodes[0].slots,
            bind=ANYWHERE if remote else here,
            credentials=credentials[number],
            program_path=() if plan.remote else (options.program.folder,),
            program_archive=archive if plan.remote else None,
            advice=options.advice,
            explain=options.explain,
            contexts=choices.value("contexts", True),
            prefixed=options.prefixed,
            trace=options.trace,
            ledger=options.ledger is not None,
        )
        for number, plan in enumerate(options.nodes)
    ]
    told[0] = replace(
        told[0],
        root=True,
        join_deadline_s=JOIN_DEADLINE_S + ROOT_GRACE_S,
        expected=len(options.nodes) - 1,
        program_fd=root.program.fileno(),
        status_fd=root.status,
        listen_fd=None if root.listener is None else root.listener.fileno(),
        forks=root.leashes,
        report=options.report,
        ledger_location=options.ledger,
        ledger_bytes_max=options.ledger_bytes_max,
        ledger_key=options.ledger_key,
        root_addresses=(),
        root_host="",
        root_slots=0,
    )
    return told


def _issue(count: int) -> list[Credentials]:
    from hdphrs.cluster.authority import Authority

    authority = Authority()
    return [authority.issue(number) for number in range(count)]


def _pack(options: RunOptions) -> bytes:
    from hdphrs.cluster.archive import pack_program

    archive = pack_program(options.program)
    for warning in archive.warnings:
        options.say(f"warning: {warning}")
    return archive.content
