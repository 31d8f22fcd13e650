"""Random plays: a list of numbers becomes an interleaving of messages, work and faults.

What lives here: `Play`, shared by the property test, the seeds and the check of reproducibility.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hdphrs.config import CoreConfig
from hdphrs.protocol.tasks import ROOT
from tests.protocol.harness import Cluster, Copy

Move = Callable[[], object]


@dataclass(slots=True)
class Faults:
    """How much may go wrong."""

    deaths: int = 0
    false_suspicions: int = 0
    cuts: int = 0
    crashes: int = 0
    blameless: int = 0
    joins: int = 0


class Play:
    """One cluster, and every move that it could make next."""

    def __init__(
        self, faults: Faults, *, nodes: int = 3, schedulers: int = 1, sparks: int = 2, wander: bool = False
    ) -> None:
        """With `wander` nothing is run before the end: sparks are stolen, given back, and stolen again."""
        config = CoreConfig(guards_max=2, fish_max=2, want_max=3, start_max=1, parked_max=2)
        self.cluster = Cluster(nodes, schedulers=schedulers, config=config, choose=None)
        self.faults = faults
        self.wander = wander
        self.cluster.up(0)
        for node, host in self.cluster.hosts.items():
            if node != ROOT:
                for origin in host.schedulers:
                    self.cluster.hungry(node, origin)
        self.cluster.spawn(sparks, depth=2)
        self.cluster.spawn(sparks)
        self.cluster.place(nodes - 1)
        self.cluster.place(nodes - 1, depth=1)

    def run(self, numbers: Iterable[int]) -> Cluster:
        """Make one move for each number, then let everything end without further faults."""
        for number in numbers:
            moves = self.moves()
            if not moves:
                break
            moves[number % len(moves)]()
        self.cluster.finish()
        return self.cluster

    def moves(self) -> list[Move]:
        """What may happen next, in a fixed order; messages weigh more than faults."""
        cluster = self.cluster
        root = cluster.core(0)
        moves: list[Move] = []
        for source, to in cluster.links():
            moves += [lambda source=source, to=to: cluster.deliver(source, to)] * 6  # type: ignore[misc]
        for node, host in cluster.hosts.items():
            if not host.runs or host.core.me != node:
                continue
            for origin, scheduler in host.schedulers.items():
                at = int(node), int(origin)
                if scheduler.queue:
                    if not self.wander:
                        moves.append(lambda at=at: cluster.run(*at))  # type: ignore[misc]
                    moves.append(lambda at=at: cluster.give_back(*at))  # type: ignore[misc]
                elif not scheduler.hungry:
                    moves += [lambda at=at: cluster.hungry(*at)] * 2  # type: ignore[misc]
                copies = [*scheduler.waiting, *scheduler.queue]
                if self.faults.crashes and copies:
                    moves.append(lambda at=at, copy=copies[0]: self._crash(at, copy))  # type: ignore[misc]
                if self.faults.blameless and copies:
                    moves.append(lambda at=at, copy=copies[0]: self._blameless(at, copy))  # type: ignore[misc]
            if node == ROOT or not root.members.is_live(node):
                continue
            if self.faults.deaths:
                moves.append(lambda node=node: self._kill(node))  # type: ignore[misc]
                moves.append(lambda node=node: self._kill(node, told=True))  # type: ignore[misc]
            if self.faults.false_suspicions:
                moves.append(lambda node=node: self._accuse(node))  # type: ignore[misc]
            if self.faults.cuts:
                moves.append(lambda node=node: self._cut(node))  # type: ignore[misc]
        for node, host in cluster.hosts.items():
            if not host.alive and root.members.is_live(node):
                moves.append(lambda node=node: cluster.suspect(node))  # type: ignore[misc]
        if self.faults.joins:
            moves.append(self._join)
        moves.append(lambda: cluster.tick(0.03))
        return moves

    def _kill(self, node: int, *, told: bool = False) -> None:
        self.faults.deaths -= 1
        self.cluster.kill(node)
        if told:
            self.cluster.suspect(node)

    def _accuse(self, node: int) -> None:
        self.faults.false_suspicions -= 1
        accuser = next(
            (n for n, h in self.cluster.hosts.items() if n not in (node, ROOT) and h.runs and h.core.me == n), ROOT
        )
        self.cluster.suspect(node, accuser)

    def _cut(self, node: int) -> None:
        """The link between this node and the next living one breaks; both ends tell the root."""
        others = [n for n in self.cluster.core(node).members.others() if n > node and n in self.cluster.hosts]
        others = [other for other in others if self.cluster.hosts[other].runs]
        if others:
            self.faults.cuts -= 1
            other = others[0]
            self.cluster.unruled += [node, other]  # type: ignore[list-item]
            self.cluster.cut(node, other)
            self.cluster.suspect(other, node)
            if self.cluster.hosts[other].runs:
                self.cluster.suspect(node, other)

    def _crash(self, at: tuple[int, int], copy: Copy) -> None:
        self.faults.crashes -= 1
        self.cluster.crash(*at, copy)

    def _blameless(self, at: tuple[int, int], copy: Copy) -> None:
        self.faults.blameless -= 1
        self.cluster.crash(*at, copy, blameless=True)

    def _join(self) -> None:
        self.faults.joins -= 1
        self.cluster.join()
