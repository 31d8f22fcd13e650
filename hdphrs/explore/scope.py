"""Scopes: how much of everything there is in one search.

What lives here: the bounds, by name.  Within them a search leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster, first
from hdphrs.explore.work import task
from hdphrs.protocol.tasks import NodeId, Task

NARROW = CoreConfig(
    fish_max=1,
    want_max=1,
    guards_max=1,
    start_max=1,
    parked_max=1,
    park_s=1.0,
    park_max_s=1.0,
    backoff_max_s=0.001,
    pieces_bytes_max=0,
)
"""One of everything, and no pieces."""


@dataclass(frozen=True, slots=True)
class Job:
    """One task of the program: it spawns one child on each level below it."""

    depth: int = 0
    at: int | None = None
    """Placed on this node by `spawn_at`; otherwise a spark."""
    supervised: bool = True
    limited: bool = False
    """Whether it may run for so long only; in a search that is over at any moment, or never."""
    pin: tuple[int, ...] = ()
    """It runs on these nodes only."""


LIMIT_S = 1000.0


@dataclass(frozen=True, slots=True)
class Scope:
    """The bounds of one search."""

    name: str
    told: str
    """What it is for, in a few words."""
    program: tuple[Job, ...]
    """What the program spawns, in this order; sparks at the beginning, placed tasks at any time."""
    nodes: int = 3
    root_works: bool = False
    """Whether the root has a scheduler too; every other node has one."""
    deaths: int = 0
    suspicions: int = 0
    """Nodes that are declared dead and go on until they hear of it, and news of a death by way of another node."""
    crashes: int = 0
    """Deaths of schedulers."""
    reads: bool = False
    """Whether they die of values of children that they have just got, and in no other way."""
    leaves: int = 0
    """Nodes that are told to leave; their time is over at any moment, or never."""
    cancels: int = 0
    """Futures that the program cancels, at any time."""
    gives: bool = False
    """Whether schedulers give back tasks that they have not started."""
    early: bool = False
    """Whether schedulers say that they are hungry while they still have tasks, too."""
    rests: bool = False
    """Whether refusals are quick, so that thieves rest; otherwise a refused thief asks at once again."""
    joins: int = 0
    """Newcomers, one at most: they are let in at any time, and their ids follow those of the nodes."""
    replaces: bool = False
    """Whether a newcomer comes only after a death that the root has ruled on."""
    overtakes: bool = False
    """Whether what a steal consists of overtakes what may have a large payload; in others nothing has one."""
    lates: int = 0
    """Fish that are given up while they are still on their way."""
    config: CoreConfig = NARROW
    must: tuple[str, ...] = ()
    """What a search must have met, or it has proved nothing."""

    @property
    def nodes_max(self) -> int:
        """How many nodes there are when all newcomers have joined."""
        return self.nodes + self.joins

    @property
    def placed(self) -> tuple[tuple[int, Task, NodeId], ...]:
        """The tasks that the program places, at any time: (slot, task, node)."""
        return tuple(
            (slot, self._task(slot, job), NodeId(job.at)) for slot, job in enumerate(self.program) if job.at is not None
        )

    def cluster(self, choose: Callable[[int], int] = first) -> Cluster:
        """A cluster at the beginning of the search: all have joined, the sparks are in the pool of the root."""
        cluster = Cluster(self.nodes, config=self.config, choose=choose, checked=False)
        if self.root_works:
            cluster.up(0)
        sparks = [(slot, self._task(slot, job)) for slot, job in enumerate(self.program) if job.at is None]
        cluster.spawn_all(sparks)
        return cluster

    def _task(self, slot: int, job: Job) -> Task:
        return task(
            b"%d" % slot,
            depth=job.depth,
            children=1,
            code=b"",
            supervised=job.supervised,
            timeout_s=LIMIT_S if job.limited else 0.0,
            pin=tuple(map(NodeId, job.pin)),
        )


WIDE = replace(NARROW, fish_max=2, want_max=2, guards_max=2, start_max=2, parked_max=2)
CAREFUL = replace(NARROW, attempts_max=2)
PIECES = replace(NARROW, pieces_bytes_max=1 << 20)
DOUBLE = replace(NARROW, speculate=True, straggler_s=0.0, straggler_ratio=0.0, siblings_min=1)
RETAINED = replace(PIECES, piece_cost_s=1e6)
STEALING = ("stolen", "given", "replicas", "deaths_seen", "stale")
REPLIES = ("denied", "obsolete")

SCOPES: dict[str, Scope] = {
    scope.name: scope
    for scope in (
        Scope(
            "guards",
            "two sparks, given back and stolen again; 1 death",
            (Job(), Job()),
            deaths=1,
            gives=True,
            early=True,
            must=(*STEALING, *REPLIES),
        ),
        Scope(
            "orphans",
            "a nested task, given back; 1 death",
            (Job(1),),
            deaths=1,
            gives=True,
            early=True,
            must=(*STEALING, *REPLIES, "orphans", "duplicates"),
        ),
        Scope(
            "one",
            "a spark, given back; the root works; 2 deaths",
            (Job(),),
            root_works=True,
            deaths=2,
            gives=True,
            early=True,
            must=(*STEALING, *REPLIES, "duplicates"),
        ),
        Scope(
            "placed",
            "a nested task placed on node 1; the root works; 1 death",
            (Job(1, at=1),),
            root_works=True,
            deaths=1,
            must=("stolen", "given", "replicas", "placed", "orphans"),
        ),
        Scope(
            "late",
            "two sparks, given back; a fish is given up while it is under way; 1 death",
            (Job(), Job()),
            deaths=1,
            gives=True,
            lates=1,
            overtakes=True,
            must=(*STEALING, *REPLIES, "duplicates"),
        ),
        Scope(
            "crash",
            "a nested task; a scheduler dies; 1 death",
            (Job(1),),
            deaths=1,
            crashes=1,
            early=True,
            overtakes=True,
            must=(*STEALING, "crashes", "orphans", "duplicates", "denied"),
        ),
        Scope(
            "crashes",
            "a nested task; the root works; a scheduler dies",
            (Job(1),),
            root_works=True,
            crashes=1,
            overtakes=True,
            must=("stolen", "given", "crashes", "orphans", "duplicates", "stale"),
        ),
        Scope(
            "poison",
            "a nested task that is given up after two crashes of schedulers",
            (Job(1),),
            crashes=3,
            config=CAREFUL,
            must=("stolen", "given", "crashes", "crashed"),
        ),
        Scope(
            "reading",
            "a nested task whose child's value takes down two schedulers that read it; the root works",
            (Job(1),),
            root_works=True,
            crashes=2,
            reads=True,
            overtakes=True,
            config=replace(PIECES, attempts_max=2),
            must=("stolen", "given", "crashes", "crashed", "pieces"),
        ),
        Scope(
            "suspected",
            "a nested task; the root works; a living node is declared dead, or the news comes from a third; 1 death",
            (Job(1),),
            root_works=True,
            deaths=1,
            suspicions=1,
            overtakes=True,
            must=(*STEALING, "orphans"),
        ),
        Scope(
            "returning",
            "a nested task, given back; the root works; 1 death",
            (Job(1),),
            root_works=True,
            deaths=1,
            gives=True,
            overtakes=True,
            must=(*STEALING, *REPLIES, "orphans", "duplicates"),
        ),
        Scope(
            "resting",
            "two sparks, one of them nested; the root works; refused thieves rest; 2 deaths",
            (Job(1), Job()),
            root_works=True,
            deaths=2,
            rests=True,
            overtakes=True,
            must=(*STEALING, "denied", "orphans", "duplicates"),
        ),
        Scope(
            "nested",
            "two sparks, one of them nested, given back and stolen again; the root works; 2 deaths",
            (Job(1), Job()),
            root_works=True,
            deaths=2,
            gives=True,
            must=(*STEALING, *REPLIES, "orphans", "duplicates"),
        ),
        Scope(
            "four",
            "four nodes; a nested task, given back; 1 death",
            (Job(1),),
            nodes=4,
            deaths=1,
            gives=True,
            must=(*STEALING, *REPLIES, "orphans", "duplicates"),
        ),
        Scope(
            "joining",
            "a newcomer; a nested task placed on it, the child given back and stolen again",
            (Job(1, at=3),),
            joins=1,
            gives=True,
            must=("joins", "strangers", "stolen", "given", "placed", "exported"),
        ),
        Scope(
            "newcomer",
            "a newcomer after a death; a nested task placed on it, the child given back and stolen again; 1 death",
            (Job(1, at=3),),
            joins=1,
            replaces=True,
            deaths=1,
            gives=True,
            must=("joins", "stolen", "given", "placed", "exported", "deaths_seen", "denied"),
        ),
        Scope(
            "replacing",
            "a newcomer after a death; a nested task, given back; 1 death",
            (Job(1),),
            joins=1,
            replaces=True,
            deaths=1,
            gives=True,
            must=(*STEALING, *REPLIES, "joins", "orphans", "duplicates"),
        ),
        Scope(
            "pieces",
            "a nested task, and what is left of it; the root works; 2 deaths",
            (Job(1),),
            root_works=True,
            deaths=2,
            config=PIECES,
            must=("stolen", "given", "replicas", "deaths_seen", "orphans", "pieces"),
        ),
        Scope(
            "kept",
            "a nested task, and what is left of it; a scheduler dies, 1 death",
            (Job(1),),
            root_works=True,
            deaths=1,
            crashes=1,
            config=PIECES,
            must=(*STEALING, "orphans", "crashes", "pieces"),
        ),
        Scope(
            "leaving",
            "a nested task, given back; a node leaves, in time or not",
            (Job(1),),
            leaves=1,
            gives=True,
            early=True,
            must=("stolen", "given", "leaves_seen", "left", "left_nothing", "denied"),
        ),
        Scope(
            "unsupervised",
            "a spark that nobody supervises, given back; the root works; a node leaves, in time or not",
            (Job(supervised=False),),
            root_works=True,
            leaves=1,
            gives=True,
            must=("stolen", "given", "leaves_seen", "left", "left_nothing", "lost"),
        ),
        Scope(
            "parting",
            "a nested task; the root works; a node leaves, in time or not; 1 death",
            (Job(1),),
            root_works=True,
            leaves=1,
            deaths=1,
            must=(*STEALING, "orphans", "leaves_seen", "left", "left_nothing"),
        ),
        Scope(
            "retained",
            "a nested task, and what others retain of it; the root works; a scheduler dies, 1 death",
            (Job(1),),
            root_works=True,
            deaths=1,
            crashes=1,
            config=RETAINED,
            must=(*STEALING, "orphans", "crashes", "pieces"),
        ),
        Scope(
            "doubling",
            "two sparks, and the second is started once more; the root works; 1 death",
            (Job(), Job()),
            root_works=True,
            deaths=1,
            gives=True,
            config=DOUBLE,
            must=(*STEALING, "doubled", "obsolete", "duplicates"),
        ),
        Scope(
            "cancelling",
            "a nested task that the program cancels, given back; 1 death",
            (Job(1),),
            deaths=1,
            cancels=1,
            gives=True,
            early=True,
            must=(*STEALING, *REPLIES, "orphans", "duplicates", "cancelled", "cancel", "cancel by way of the root"),
        ),
        Scope(
            "stopping",
            "a nested task that the program cancels, and what is left of it; a scheduler dies, 1 death",
            (Job(1),),
            deaths=1,
            crashes=1,
            cancels=1,
            config=PIECES,
            must=(*STEALING, "orphans", "crashes", "pieces", "cancelled", "cancel"),
        ),
        Scope(
            "losing",
            "two sparks, the second is started once more, and the program cancels one",
            (Job(), Job()),
            gives=True,
            cancels=1,
            config=DOUBLE,
            overtakes=True,
            must=("stolen", "given", "doubled", "cancelled", "cancel"),
        ),
        Scope(
            "limited",
            "a nested task that may run too long, given back; 1 death",
            (Job(1, limited=True),),
            deaths=1,
            gives=True,
            early=True,
            must=(*STEALING, *REPLIES, "orphans", "timed_out"),
        ),
        Scope(
            "overrun",
            "a nested task that may run too long, and what is left of it; a scheduler dies",
            (Job(1, limited=True),),
            crashes=1,
            config=PIECES,
            must=("stolen", "given", "orphans", "crashes", "pieces", "timed_out"),
        ),
        Scope(
            "pinned",
            "a nested task that is pinned to two mortal nodes; the root works; 2 deaths",
            (Job(1, pin=(1, 2)),),
            root_works=True,
            deaths=2,
            must=("stolen", "given", "replicas", "deaths_seen", "orphans", "lost"),
        ),
        Scope(
            "wide",
            "two sparks, given back; two fish, guards and tasks at a time; 1 death",
            (Job(), Job()),
            deaths=1,
            gives=True,
            config=WIDE,
            must=(*STEALING, *REPLIES, "duplicates"),
        ),
    )
}
