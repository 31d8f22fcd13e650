"""The cluster: all hosts of a run, who knows whom, and what is a right outcome.

What lives here: joining, fences and ends, where the network, the detectors and the hosts meet.
"""

from __future__ import annotations

from hdphrs.audit.follow import Follower
from hdphrs.audit.scan import facts, scan
from hdphrs.config import CoreConfig
from hdphrs.protocol import effects as fx
from hdphrs.protocol.events import Arrived
from hdphrs.protocol.messages import Keep
from hdphrs.protocol.node import Node
from hdphrs.protocol.paths import PROGRAM_PATH
from hdphrs.protocol.tasks import PROGRAM, ROOT, Member, NodeId, Outcome, Parting, TaskRef, Verdict
from hdphrs.sim.client import Client
from hdphrs.sim.draw import Draw, stream
from hdphrs.sim.errors import Stuck, Wrong
from hdphrs.sim.host import Host
from hdphrs.sim.network import Network
from hdphrs.sim.program import TAINTED, Program
from hdphrs.sim.scheduler import Scheduler
from hdphrs.sim.silence import Silence
from hdphrs.sim.work import Accounts
from hdphrs.sim.world import World

START_NS = 5_000_000
"""A scheduler process needs up to this time to be ready."""

RETURN_NS = 20_000_000
"""A node that was cut off rests up to this time before each attempt to join again."""

GATHER_NS = 100_000_000
"""How long the program waits for its nodes."""

PATIENCE = 20
"""Where nobody has had sparks for long, fish are kept for so many times as long, but not past the deadline."""

OFFSET_NS_MAX = 10**15
"""Clocks begin anywhere."""


class Cluster:
    """Nodes 0 (the root), 1, ... of one run."""

    def __init__(self, seed: int, drawn: Draw, world: World) -> None:
        self.world = world
        self.drawn = drawn
        self.program: Program = Program(drawn, stream(seed, "program"))
        self.accounts: Accounts = Accounts(self.program)
        self.config: CoreConfig = _config(drawn, self.program)
        self.cores: dict[NodeId, Node] = {}
        self.follower: Follower = Follower(self.cores)
        self.network: Network = Network(world, drawn, self.follower, stream(seed, "network"))
        self.silence: Silence = Silence(world, self.network, drawn, stream(seed, "silence"))
        self.retired: list[Node] = []
        """Cores of hosts that have ended."""
        self.deaths: int = 0
        """Nodes that were declared dead, or have left something behind."""
        self._seed = seed
        self._chance = stream(seed, "cluster")
        self._sampling = stream(seed, "sampling")
        self._joining: dict[int, Host] = {}
        """By ticket."""
        self._tickets = 0
        self._started: dict[NodeId, None] = {}
        self.root: Host = self._host(Node.root(self.config, stream(seed, "chooser 0").randrange))
        self.network.hosts[ROOT] = self.root
        self.cores[ROOT] = self.root.core
        self.client: Client = Client(self)

    def start(self) -> None:
        """Nodes join, and the program begins when they have."""
        self.epoch_changed(self.root)
        for _ in range(self.drawn.nodes - 1):
            self.join()
        self.world.post(GATHER_NS, self.client.start)

    def start_ns(self) -> int:
        """How long a scheduler process needs until it is ready."""
        return self._chance.randrange(START_NS)

    def is_sampled(self) -> bool:
        """Whether somebody looks while a task runs that is worth keeping."""
        return self._sampling.randrange(100) < self.drawn.sampled_pct

    def others(self) -> list[Host]:
        """Members that run, but for the root."""
        return [host for host in self.network.hosts.values() if host.up and not host.is_root]

    def judge(self, number: int, outcome: Outcome) -> None:
        """Raise if a future may not be filled with this."""
        program = self.program
        right = program.outcomes[number]
        lost = outcome.verdict is Verdict.LOST
        if outcome.verdict in (Verdict.LOST, Verdict.CRASHED):
            self.world.tally(outcome.verdict.name)
        if lost or outcome.data == TAINTED:
            if self.deaths and program.may_lose[number] and not (lost and program.supervised[number]):
                return
        elif outcome.verdict is Verdict.CRASHED:
            enough = len(outcome.crashes) >= self.config.attempts_max
            if enough and (program.poison[number] or program.deadly[number]):
                return
        elif outcome == right:
            return
        raise Wrong(f"task {number} gives {outcome}; evaluated by itself it gives {right}")

    # ---- joining ---------------------------------------------------------------------------------------------

    def join(self, _: object = None) -> None:
        """A newcomer, or a node that was cut off under a new name, knocks at the root's door."""
        self._tickets += 1
        ticket = self._tickets
        self._joining[ticket] = self._host(
            Node.newcomer(self.config, stream(self._seed, f"chooser {ticket}").randrange)
        )
        arrived = Arrived(ticket, "host", self.drawn.cores, ("host", ticket), ticket)
        self.world.post(self.drawn.latency_us * 1000 + self._chance.randrange(1000), self._arrive, arrived)

    def _arrive(self, arrived: Arrived) -> None:
        self.root.when_running(self.root.feed, arrived)

    def admit(self, ticket: int, member: Member) -> None:
        """Effect `Admit` of the root."""
        host = self._joining.pop(ticket)
        host.node = member.node
        self.network.hosts[member.node] = host
        self.cores[member.node] = host.core
        host.known[ROOT] = None
        self.network.acquaint(self.root, member.node)

    def connect(self, host: Host, node: NodeId) -> None:
        """Effect `Connect`."""
        self.network.acquaint(host, node)
        peer = self.network.hosts[node]
        if not peer.up:
            self.silence.find_refused(host, peer)
        elif not self.silence.hears(host, peer):
            self.silence.watch(host, peer)

    def epoch_changed(self, host: Host) -> None:
        """A node has joined or died, as this host knows; at first: it is a member itself."""
        if host.node not in self._started:
            self._started[host.node] = None
            self.world.post(self.start_ns(), host.when_up, host.crew.start_all)
        if host.is_root and len(host.core.live_nodes()) >= self.drawn.nodes:
            self.world.post(0, self.client.start)

    def _host(self, core: Node) -> Host:
        skew_ppm = self.drawn.skew_ppm
        rate_ppm = 1_000_000 + self._chance.randint(-skew_ppm, skew_ppm)
        return Host(self, core, self.drawn.cores, rate_ppm, self._chance.randrange(OFFSET_NS_MAX))

    # ---- fences and ends -------------------------------------------------------------------------------------

    def fence(self, host: Host, effect: fx.Fence) -> None:
        """Effect `Fence`: both ends hear no more of each other, and the dead one, if it runs, finds out."""
        self.network.fence(host, effect.node)
        peer = self.network.hosts[effect.node]
        if host.is_root:
            self.deaths += effect.parting is not Parting.LEFT_NOTHING
            self.world.tally(effect.parting.name.lower())
        if peer.up and effect.parting is Parting.DIED:
            if host.is_root:
                self.world.tally("declared dead alive")
            self.silence.watch(peer, host)
            self.knock(host, peer)

    def knock(self, host: Host, peer: Host) -> None:
        """The higher id dials; whoever has fenced it says so."""
        if peer.node in host.fenced and peer.node > host.node:
            self.world.post(2 * self.network.link(peer, host).latency_ns, self._refuse, (host, peer))

    def _refuse(self, pair: tuple[Host, Host]) -> None:
        host, peer = pair
        if host.up and not host.stalled and not self.network.is_cut(host, peer):
            peer.when_running(peer.end, fx.Halt("declared dead", rejoin=not peer.is_leaving))

    def stall(self, host: Host, *, with_schedulers: bool) -> None:
        """SIGSTOP."""
        host.stall(with_schedulers=with_schedulers)
        self.silence.watched_by_all(host)

    def go_on(self, host: Host) -> None:
        """SIGCONT."""
        if not host.up:
            return
        host.go_on()
        if host.stalled or not host.up:
            return
        self.network.release_all(host)
        self.silence.forgive(host)
        for other in list(self.network.hosts.values()):
            self.silence.resumed(other, host)
            self.knock(host, other)

    def mend(self, sender: Host, receiver: Host) -> None:
        """A cut is over."""
        self.network.mend(sender, receiver)
        self.silence.resumed(receiver, sender)
        self.knock(sender, receiver)
        self.knock(receiver, sender)

    def ended(self, host: Host, halt: fx.Halt, *, in_the_middle: bool) -> None:
        """A process is gone."""
        if halt.reason is not None:
            if host.is_root:
                raise Wrong(f"the root ends: {halt.reason}")
            if ROOT in host.suspected:
                self.world.tally("lost the root")
        self.retired.append(host.core)
        self.forget(host)
        self.network.die(host, in_the_middle=in_the_middle)
        if halt.reason is not None or host.is_leaving:
            if host.crew.started:
                self.accounts.add_cores(self.world.now_ns, -self.drawn.cores)
            for scheduler in host.crew.schedulers.values():
                self.lose(scheduler)
        if in_the_middle:
            self.silence.watched_by_all(host)
        else:
            self.silence.refuse(host)
        if halt.rejoin and self.drawn.returns:
            self._return(host)
        self.world.over = not any(other.up for other in self.network.hosts.values())

    def _return(self, host: Host) -> None:
        """This host tries to reach the root again and again, and joins as a new node when it can."""
        if not self.root.up:
            return
        pause_ns = self._chance.randrange(RETURN_NS)
        if self.network.is_cut(host, self.root):
            self.world.post(pause_ns, self._return, host)
        else:
            self.world.tally("returns")
            self.world.post(pause_ns, self.join)

    def forget(self, host: Host) -> None:
        """Its core takes no part any more."""
        self.cores.pop(host.node, None)
        self.follower.died(host.node)

    def lose(self, scheduler: Scheduler) -> None:
        """A scheduler process has died, and what it had said has been heard, or is lost too."""
        if not scheduler.computed_ns:
            return
        kept = [piece.path for piece in self.root.core.pieces.below(PROGRAM_PATH)]
        for _, to, messages in self.network.flights():
            if to == ROOT:
                kept += [piece.path for message in messages if isinstance(message, Keep) for piece in message.pieces]
        self.accounts.lose(scheduler.computed_ns, kept, self._is_alive)

    def _is_alive(self, ref: TaskRef) -> bool:
        host = self.network.hosts[ref.node]
        if not host.up:
            return False
        scheduler = host.crew.schedulers.get(ref.origin)
        return ref.origin == PROGRAM or (scheduler is not None and not scheduler.dead)

    # ---- the end of the run ----------------------------------------------------------------------------------

    def leftovers(self) -> list[str]:
        """What is not yet put away, anywhere."""
        left: list[str] = []
        for node, core in self.cores.items():
            if core.me is None:
                left.append(f"node {node} has not got its WELCOME")
                continue
            left += [f"{spark.ref}#{spark.replica} is in the pool of node {node}" for spark in core.pool]
            left += [f"{spark.ref}#{spark.replica} is guarded on node {node}" for spark in core.victim.guarded()]
            left += [
                f"{spark.ref}#{spark.replica} is with a scheduler of node {node}" for spark in core.schedulers.held()
            ]
            left += [f"{spark.ref}#{spark.replica} waits for pieces on node {node}" for spark in core.reruns]
            left += [f"node {node} waits for {core.supervisor.vanishing} cancelled tasks"] * core.supervisor.vanishing
            left += [f"the future {ref} is empty, its task {record}" for ref, record in core.supervisor.records()]
        return left

    def look(self, _: object = None) -> None:
        """Hold the whole cluster against the invariants, once.

        Raises:
            Violation: it is in a state in which it must never be.
        """
        known = list(self.network.hosts)
        nodes = {node: facts(core, known) for node, core in self.cores.items() if core.me is not None}
        if ROOT in nodes:
            accused = {node for host in self.network.hosts.values() if host.up for node in host.suspected}
            scan(nodes, self.network.flights(), accused)

    def give_up(self, _: None) -> None:
        """Nothing that runs right runs as long as this.

        Raises:
            Stuck: always.
        """
        told = [f"{self.client.unfilled} futures of the program are empty"] if self.client.unfilled else []
        told += [f"node {host.node} runs" for host in self.network.hosts.values() if host.up]
        told += self.leftovers()
        raise Stuck("no end long after the last fault: " + "; ".join(told[:12]))


def _config(drawn: Draw, program: Program) -> CoreConfig:
    return CoreConfig(
        attempts_max=drawn.attempts_max,
        fish_max=drawn.fish_max,
        want_max=drawn.want_max,
        start_max=drawn.start_max,
        guards_max=drawn.guards_max,
        parked_max=drawn.parked_max,
        give_bytes_max=drawn.give_bytes_max,
        # with less, two poisoned tasks would make the node forget each other's crashes for ever
        remembered_crashes_max=max(drawn.remembered_crashes_max, program.blamable + drawn.crashes),
        piece_cost_s=drawn.piece_cost_us / 1e6,
        pieces_bytes_max=drawn.pieces_bytes_max,
        code_bytes_max=drawn.code_bytes_max,
        fair_s=drawn.fair_us / 1e6,
        cancel_grace_s=drawn.cost_us / 1e6,
        speculate=bool(drawn.speculate),
        straggler_s=drawn.cost_us / 1e6,
        siblings_min=2,
        park_s=drawn.park_ms / 1000,
        park_max_s=max(drawn.park_ms, min(PATIENCE * drawn.park_ms, drawn.fish_deadline_ms)) / 1000,
        fish_deadline_s=drawn.fish_deadline_ms / 1000,
        backoff_max_s=drawn.backoff_max_ms / 1000,
    )
