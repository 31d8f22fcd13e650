"""Random plays: a list of numbers becomes an interleaving of messages, work and faults.

What lives here: `Play`, shared by the property test, the seeds and the check of reproducibility.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hdphrs.audit.scan import Copy
from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import task
from hdphrs.protocol import events as ev
from hdphrs.protocol.tasks import ROOT, NodeId
from tests.protocol.stage import Stage

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
    late: int = 0
    """Threads that are placed in the middle of it all, on whatever node, dead ones too."""
    leaves: int = 0
    """Nodes that are told to leave."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Who is there, and what there is to do."""

    nodes: int = 3
    schedulers: int = 1
    sparks: int = 2
    root_works: bool = True
    """Whether the root has a scheduler; without one all work must leave it."""
    wander: bool = False
    """Nothing is run before the end: sparks are stolen, given back, and stolen again."""
    poison: bool = False
    """A spark, and the child of another, kill the scheduler that runs them."""
    unsupervised: int = 0
    limited: int = 0
    """Tasks that may run for a moment only, and one that is pinned to the last node."""
    nested: int = 0
    """So many nodes besides the root have children out when the play begins."""
    fish_max: int = 2
    parked_max: int = 2
    calm: int = 0
    """Moves between two chances of a fault."""
    speculate: bool = False
    pace: int = 0
    """Makes some links faster than others, in as many ways as there are numbers."""

    def haste(self, source: int, to: int) -> int:
        """How often a link moves."""
        return (6, 1, 12, 3)[self.pace * (8 * source + to + 1) % 13 % 4] if self.pace else 6


POISON = b"0", b"1.0"
LIMIT_S = 0.05


class Play:
    """One cluster, and every move that it could make next."""

    _made = 0
    """Moves until now."""

    def __init__(self, faults: Faults, scene: Scene) -> None:
        config = CoreConfig(
            guards_max=3,
            fish_max=scene.fish_max,
            want_max=4,
            start_max=1,
            parked_max=scene.parked_max,
            fish_deadline_s=1e6,  # nothing is lost but by a death, so no fish is ever late
            speculate=scene.speculate,
            siblings_min=1,
            straggler_s=0.0,
            straggler_ratio=0.0,
        )
        poison = POISON if scene.poison else ()
        self.stage = Stage(scene.nodes, schedulers=scene.schedulers, config=config, poison=poison)
        self.cluster: Cluster = self.stage
        self.faults = faults
        self.scene = scene
        if scene.root_works:
            self.cluster.up(0)
        for nested in range(1, 1 + scene.nested):
            self.cluster.place(nested, depth=2)
            self.cluster.settle()
            self.cluster.hungry(nested)
            self.cluster.run(nested)
        for node, host in self.cluster.hosts.items():
            if node != ROOT:
                for origin in host.schedulers:
                    self.cluster.hungry(node, origin)
        self.cluster.spawn(scene.sparks, depth=2)
        self.cluster.spawn(scene.sparks)
        self.cluster.place(scene.nodes - 1)
        self.cluster.place(scene.nodes - 1, depth=1)
        if scene.unsupervised:
            self.cluster.spawn(scene.unsupervised, supervised=False)
        first = len(self.cluster.spawned)
        limited = [task(b"%d" % slot, depth=1, timeout_s=LIMIT_S) for slot in range(first, first + scene.limited)]
        if limited:
            limited.append(task(b"%d" % (first + scene.limited), depth=1, pin=(NodeId(scene.nodes - 1),)))
            self.cluster.spawn_all(list(enumerate(limited, first)))

    def run(self, numbers: Iterable[int]) -> Stage:
        """Make one move for each number, then let everything end without further faults."""
        for number in numbers:
            moves = self.moves()
            if not moves:
                break
            moves[number % len(moves)]()
            self._made += 1
            self.stage.watch()
        self._leave_somebody()
        self.cluster.finish()
        self.stage.end()
        return self.stage

    def moves(self) -> list[Move]:
        """What may happen next, in a fixed order; messages weigh more than faults."""
        cluster = self.cluster
        root = cluster.core(0)
        haste = self.scene.haste
        faults = self.faults if self._made % (self.scene.calm + 1) == self.scene.calm else Faults()
        moves: list[Move] = []
        for source, to in cluster.links():
            moves += [lambda source=source, to=to: cluster.deliver(source, to)] * haste(source, to)  # type: ignore[misc]
        for node, host in cluster.hosts.items():
            if not host.runs or host.core.me != node:
                continue
            for origin, scheduler in host.schedulers.items():
                at = int(node), int(origin)
                if scheduler.queue:
                    if not self.scene.wander:
                        moves.append(lambda at=at: cluster.run(*at))  # type: ignore[misc]
                    if scheduler.not_started:
                        moves.append(lambda at=at: cluster.give_back(*at))  # type: ignore[misc]
                if not scheduler.hungry:  # one that has something to do may say so in time
                    moves += [lambda at=at: cluster.hungry(*at)] * (1 if scheduler.queue else 2)  # type: ignore[misc]
                copies = [*scheduler.waiting, *scheduler.queue]
                if faults.crashes and copies:
                    moves.append(lambda at=at, copy=copies[0]: self._crash(at, copy))  # type: ignore[misc]
                if faults.blameless and copies:
                    moves.append(lambda at=at, copy=copies[0]: self._blameless(at, copy))  # type: ignore[misc]
            if node == ROOT or not root.members.is_live(node):
                continue
            if faults.deaths:
                moves.append(lambda node=node: self._kill(node))  # type: ignore[misc]
                moves.append(lambda node=node: self._kill(node, told=True))  # type: ignore[misc]
            if faults.false_suspicions:
                moves.append(lambda node=node: self._accuse(node))  # type: ignore[misc]
            if faults.cuts:
                moves.append(lambda node=node: self._cut(node))  # type: ignore[misc]
            if faults.leaves:
                moves.append(lambda node=node: self._leave(node))  # type: ignore[misc]
        for node, host in cluster.hosts.items():
            if not host.alive and root.members.is_live(node):
                moves.append(lambda node=node: cluster.suspect(node))  # type: ignore[misc]
        if faults.joins:
            moves += [self._join] * 2
        if faults.late:
            moves += [lambda node=node: self._place(node) for node in cluster.hosts if self._is_place(node)]  # type: ignore[misc]
        moves.append(lambda: cluster.tick(0.03))
        return moves

    def _leave_somebody(self) -> None:
        """Somebody must be there to do the work: if no other node is left, the root gets a scheduler."""
        cluster = self.cluster
        left = [node for node in cluster.core(0).members.staying() if node not in cluster.unruled]
        if not cluster.hosts[ROOT].schedulers and not any(map(self._stays, left)):
            cluster.up(0)

    def _stays(self, node: NodeId) -> bool:
        host = self.cluster.hosts.get(node)
        return host is not None and host.runs and host.core.me is not None and not host.core.leaving.under_way

    def _kill(self, node: int, *, told: bool = False) -> None:
        self.faults.deaths -= 1
        self.cluster.kill(node)
        if told:
            self.cluster.suspect(node)

    def _leave(self, node: int) -> None:
        """With no time, some, or enough."""
        self.faults.leaves -= 1
        self.cluster.feed(node, ev.Leave((0.0, 0.2, 1e6)[self._made % 3]))

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

    def _is_place(self, node: int) -> bool:
        return node != ROOT or self.scene.root_works

    def _place(self, node: int) -> None:
        self.faults.late -= 1
        self.cluster.place(node, depth=1)
