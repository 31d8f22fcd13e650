"""The node: all roles of one node composed into one pure state machine.

The caller's contract
---------------------

    for effect in node.handle(event, now):
        carry it out, in order

and send a `Tick` not later than `next_deadline()`.  `now` never decreases.  The driver promises:

* messages of one peer come in the order in which they were sent, each once; WELCOME comes before any other event but
  the news that the root is silent;
* a message for a node that it does not know yet is kept until it does: between different peers there is no order, so
  an ACK can be due to a supervisor whose JOINED is still on its way;
* after `Fence` nothing of that node is delivered, and the node itself is made to hear of it: the core sends it no last
  words, because to the dead nothing is sent;
* what a scheduler has said comes before the news of its death, and nothing of it after; it is up before it is hungry,
  and answers or returns only what it holds;
* the root is not told to leave, and nobody before WELCOME;
* an exception out of `handle` is a bug, after which the state is undefined: the process ends (fail-stop, hole R7).

After `Halt` the node has no more effects.

What lives here: dispatch, the flow of tasks between the roles, and `_settle`, which after each event hands out what
there is and asks for what is missing.  What does not: the rules of each role.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import assert_never

from hdphrs.config import CoreConfig
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.cancelling import Cancelling
from hdphrs.protocol.code import CodeStore
from hdphrs.protocol.effects import Deliver, Demand, Double, Effect, Fence, Halt, Send, Start, StopSchedulers, Teach
from hdphrs.protocol.leaving import Leaving
from hdphrs.protocol.limits import Limits
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.orphans import Orphanage
from hdphrs.protocol.pieces import Pieces, piece_of
from hdphrs.protocol.quiet import Quiet
from hdphrs.protocol.reruns import Reruns, whole
from hdphrs.protocol.retained import Retained
from hdphrs.protocol.schedulers import Schedulers, crashed
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.stragglers import Stragglers
from hdphrs.protocol.supervisor import Adopted, Record, Supervisor, copy_of
from hdphrs.protocol.tasks import (
    PROGRAM,
    ROOT,
    FishId,
    NodeId,
    Origin,
    Orphan,
    Outcome,
    Parting,
    Piece,
    Spark,
    Task,
    TaskRef,
    Verdict,
)
from hdphrs.protocol.thief import Thief
from hdphrs.protocol.victim import Victim

COUNTERS = (
    "tasks_started",
    "exported",
    "placed",
    "stolen",
    "given",
    "fish_sent",
    "fish_answered",
    "replicas",
    "deaths_seen",
    "leaves_seen",
    "crashes",
    "duplicates",
    "stale",
    "orphans",
    "doubled",
    "pieces",
    "cancelled",
    "timed_out",
)

PURGE_MAX = 10_000
"""Refs in one PURGE or CANCEL."""

RULINGS = (msg.Joined, msg.DeadNode, msg.Term, msg.Recalled, msg.Gone)
"""What only the root may say."""


class Node:
    """One node of the cluster; make it with `root` or `newcomer`."""

    def __init__(self, config: CoreConfig, choose: Callable[[int], int], me: NodeId | None) -> None:
        self.counters: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        self.reports: dict[NodeId, dict[str, int]] = {}
        """At the root, after TERM: the others' counters."""
        self._config = config
        self._choose = choose
        self._over = False
        """`Halt` was the last effect."""
        self._awaited: dict[NodeId, None] | None = None
        """Since TERM: nodes that have not acknowledged it."""
        self.me = me
        if me is not None:
            self._assume(me)

    @classmethod
    def root(cls, config: CoreConfig, choose: Callable[[int], int]) -> Node:
        """The node where the program starts.

        Args:
            choose: `choose(n)` is the one source of chance, a number from 0 to n - 1.
        """
        return cls(config, choose, ROOT)

    @classmethod
    def newcomer(cls, config: CoreConfig, choose: Callable[[int], int]) -> Node:
        """A node that learns who it is by WELCOME, before any other event."""
        return cls(config, choose, None)

    def _assume(self, me: NodeId) -> None:
        self.me = me
        self.members: Membership = Membership(me)
        self.pool: Sparkpool = Sparkpool()
        self.supervisor: Supervisor = Supervisor(me)
        self.schedulers: Schedulers = Schedulers(self._config, self.pool, self._is_wanted)
        self.quiet: Quiet = Quiet(self._config)
        self.thief: Thief = Thief(me, self._config, self._choose, self.quiet)
        self.victim: Victim = Victim(me, self._config, self.pool, self.supervisor, self._give, self.members, self.quiet)
        self.leaving: Leaving = Leaving(me, self.members)
        self.code: CodeStore = CodeStore()
        self.pieces: Pieces = Pieces(self._config)
        """At the root."""
        self.orphans: Orphanage = Orphanage(self.pieces, self._say)
        """At the root."""
        self.retained: Retained = Retained(self._config)
        self.cancelling: Cancelling = Cancelling(self._config, self.schedulers)
        self.reruns: Reruns = Reruns(
            self._config,
            self.members,
            self.pool,
            self.supervisor,
            self.schedulers,
            self.retained,
            self.cancelling.covers,
            self._say,
            self._answer,
            self._put_back,
        )
        self.limits: Limits = Limits()
        self.stragglers: Stragglers = Stragglers(self._config, self.supervisor)
        self._demanding = False

    # ---- the caller's side -----------------------------------------------------------------------------------

    def handle(self, event: ev.Event, now: float) -> list[Effect]:
        """Take one event; what is to be done about it."""
        if self._over:
            return []
        effects = self._dispatch(event, now)
        if self._awaited is None and self.me is not None and not _ends(effects):
            effects += self._settle(now, insist=isinstance(event, ev.Exported | ev.GivenBack))
        self._over = _ends(effects)
        return effects

    def next_deadline(self) -> float | None:
        """When `handle` wants a `Tick` at the latest; None for never."""
        if self.me is None or self._over or self._awaited is not None:
            return None
        earliest: float | None = None
        for role in (self.victim, self.thief, self.leaving, self.stragglers, self.cancelling, self.limits):
            deadline = role.next_deadline()
            if deadline is not None and (earliest is None or deadline < earliest):
                earliest = deadline
        return earliest

    def live_nodes(self) -> list[NodeId]:
        """Self, and all live nodes that do not leave."""
        return [] if self.me is None else [self.me, *self.members.staying()]

    @property
    def epoch(self) -> int:
        """Grows with every node that joins, dies or has left; 0 for a newcomer without WELCOME."""
        return 0 if self.me is None else self.members.epoch

    @property
    def roster(self) -> tuple[int, int]:
        """Changes whenever `live_nodes` does."""
        return (0, 0) if self.me is None else self.members.roster

    # ---- dispatch --------------------------------------------------------------------------------------------

    def _dispatch(self, event: ev.Event, now: float) -> list[Effect]:
        match event:
            case ev.Finished(scheduler, results):
                return self._on_finished(scheduler, results)
            case ev.Kept(pieces):
                return self.reruns.keep(pieces)
            case ev.Exported(origin, tasks):
                return self._on_exported(origin, tasks)
            case ev.Hungry(scheduler, room):
                self.schedulers.starve(scheduler, room)
                return []
            case ev.Received(sender, message):
                return self._on_received(sender, message, now)
            case ev.Placed(origin, slot, task, node):
                return self._on_placed(TaskRef(self._self(), origin, slot), task, node)
            case ev.Learned(digest, data):
                self.code.learn(digest, data)
                return []
            case ev.GivenBack(scheduler, sparks):
                self.pool.put_back(self._without_orphans(self.schedulers.give_back(scheduler, sparks)))
                return self.reruns.report(asked=False)
            case ev.SchedulerUp(scheduler):
                self.schedulers.rise(scheduler)
                return []
            case ev.SchedulerDied():
                return self._on_scheduler_died(event)
            case ev.Arrived():
                return self.members.on_arrived(event) if self._awaited is None else []  # too late
            case ev.Suspected(node):
                return self._on_suspicion(node)
            case ev.Leave(grace_s):
                assert self.me != ROOT, "the root cannot leave"
                self.thief.stop()
                return self.leaving.begin(grace_s, now)
            case ev.Tick():
                self._count("stale", self.thief.expire(now))
                return [*self.victim.expire(now), *self._end_overdue(now)]
            case ev.Terminate():
                return self._on_terminate()
            case ev.Begun(scheduler, ref, replica):
                self.limits.begin(scheduler, self.schedulers.copy(scheduler, ref, replica), now)
                return []
            case ev.Cancelled(origin, slots):
                return self._on_cancelled([TaskRef(self._self(), origin, slot) for slot in slots])
            case _:
                assert_never(event)

    def _on_received(self, sender: NodeId, message: msg.Message, now: float) -> list[Effect]:
        if not isinstance(message, msg.Welcome):
            if self.members.is_dead(sender) or not self._may_say(sender, message):
                self._count("stale")  # it is fenced, or not its part (hole R23)
                return []
            self.members.hear(sender)
        return self._take(sender, message, now)

    def _say(self, to: NodeId, message: msg.Message) -> list[Effect]:
        """Tell a node, be it this one."""
        return [Send(to, message)] if to != self.me else self._take(to, message, 0.0)

    def _take(self, sender: NodeId, message: msg.Message, now: float) -> list[Effect]:
        match message:
            case msg.Fish():
                return self.victim.on_fish(message, now)
            case msg.NoWork(fish, quiet_s):
                self.victim.stir(now, quiet_s)
                self._count("stale", not self.thief.on_nowork(fish, len(self.members.staying()), now))
                return []
            case msg.Schedule(fish, sparks):
                return self._on_schedule(sender, fish, sparks)
            case msg.Req():
                return [
                    Send(sender, self.supervisor.on_req(message, thief_is_dead=self.members.is_going(message.thief)))
                ]
            case msg.Auth(request):
                return self._replied(self.victim.on_auth(request))
            case msg.Denied(request):
                return self._replied(self.victim.on_denied(request))
            case msg.Obsolete(request):
                return self._replied(self.victim.on_obsolete(request))
            case msg.Ack(ref, replica, thief):
                return self._on_ack(ref, replica, thief)
            case msg.Cancel():
                return self._on_cancel(message)
            case msg.Purge():
                return self._on_purge(message)
            case msg.Push(spark):
                self.pool.add(spark)
                return []
            case msg.Result(ref, replica, outcome):
                return self._fill(ref, replica, outcome, sender)
            case msg.Keep(pieces):
                return self._on_keep(sender, pieces)
            case msg.Recall():
                return self.orphans.on_recall(sender, message)
            case msg.Recalled():
                return self.reruns.on_recalled(message)
            case msg.Orphans():
                return self.orphans.on_orphans(sender, message)
            case msg.Await():
                return self.orphans.on_await(message)
            case msg.Gone(ref, replica):
                return self.reruns.on_gone(ref, replica)
            case msg.Code(digest, data):
                self.code.learn(digest, data)
                self.code.knows(sender, digest)
                return []
            case msg.Welcome():
                return self._on_welcome(message)
            case msg.Joined():
                return [*self.members.on_joined(message), *self.leaving.greet(message.member.node)]
            case msg.Suspect(node):
                return self._on_suspicion(node)
            case msg.DeadNode(node, epoch, parting):
                self.members.epoch = epoch
                return self._on_dead_node(node, parting)
            case msg.Leaving(round_):
                return self._on_leaving(sender, round_)
            case msg.Noted(round_):
                self._count("stale", not self.leaving.on_noted(sender, round_))
                self.victim.forget(sender)
                return []
            case msg.Bye(parting, counters):
                self.reports[sender] = dict(counters)
                return self._on_bye(sender, parting)
            case msg.Term():
                counters = tuple(self.counters.items())
                return [StopSchedulers(), Send(ROOT, msg.TermAck(counters)), Halt()]
            case msg.TermAck(counters):
                self.reports[sender] = dict(counters)
                return self._acknowledged(sender)
            case _:
                assert_never(message)

    def _may_say(self, sender: NodeId, message: msg.Message) -> bool:
        """Everybody speaks for itself; the root alone rules, and hears accusations."""
        match message:
            case msg.Fish(_, thief):
                return thief == sender and not self.members.is_going(sender)
            case msg.Req():
                return message.victim == sender
            case msg.Suspect() | msg.Bye():
                return self.me == ROOT
            case msg.Leaving():
                return sender != ROOT
            case msg.Purge(_, refs):
                return sender == ROOT or (self.me == ROOT and all(ref.node == sender for ref in refs))
            case msg.Cancel(_, refs):
                return sender == ROOT or all(ref.node == sender for ref in refs)
            case msg.Orphans(_, orphans):
                return self.me == ROOT and all(orphan.node == sender for orphan in orphans)
            case msg.Await(ref):
                return self.me == ROOT and ref.node == sender
            case msg.Keep() | msg.Recall():
                return self.me == ROOT
            case _:
                return sender == ROOT or not isinstance(message, RULINGS)

    # ---- tasks -----------------------------------------------------------------------------------------------

    def _on_exported(self, origin: Origin, tasks: Iterable[tuple[int, Task]]) -> list[Effect]:
        me = self._self()
        crashes_of, add, register = self.schedulers.crashes_of, self.pool.add, self.supervisor.register
        left_of = self._left_of
        again: list[Spark] = []
        effects: list[Effect] = []
        exported = 0
        for slot, task in tasks:
            crashes = crashes_of(task.path)
            if self.schedulers.is_given_up(task, crashes):
                effects.append(self._deliver(TaskRef(me, origin, slot), crashed(task, crashes)))
                continue
            spark = register(TaskRef(me, origin, slot), task, crashes, left_of(origin, task.path))
            if spark.pieces:
                again.append(spark)
            elif task.pin:
                effects += self._pin(spark)
            else:
                add(spark)
            exported += 1
        self._count("exported", exported)
        self.thief.refresh()
        return effects + self.reruns.resume(again)

    def _left_of(self, origin: Origin, path: bytes) -> tuple[Piece | Orphan, ...]:
        """What is left of a new task: of the program's, what an earlier run has left to the ledger (decision 9)."""
        return self.pieces.below(path) if origin == PROGRAM else self.schedulers.left_of(origin, path)

    def _on_placed(self, ref: TaskRef, task: Task, node: NodeId) -> list[Effect]:
        crashes = self.schedulers.crashes_of(task.path)
        pieces = self._left_of(ref.origin, task.path)
        self._count("placed")
        if self.schedulers.is_given_up(task, crashes):
            return [self._deliver(ref, crashed(task, crashes))]
        if self.members.is_going(node):
            self.pool.add(self.supervisor.register(ref, task, crashes, pieces))
            return []
        if not self.members.is_live(node):
            sentence = f"spawn_at: task {task.name} was to run on node {node}, and there is no such node"
            return [self._deliver(ref, Outcome(Verdict.LOST, sentence.encode()))]
        if whole(task, pieces):
            return self.reruns.resume([self.supervisor.register(ref, task, crashes, pieces)])
        spark = self.supervisor.register_placed(ref, task, crashes, node, pieces)
        if node != self.me:
            return [*self._code_for(node, [spark]), Send(node, msg.Push(spark))]
        self.pool.add(spark)
        return []

    def _put_back(self, sparks: Sequence[Spark]) -> list[Effect]:
        """These are to be run: here, or where they are pinned."""
        effects: list[Effect] = []
        unpinned: list[Spark] = []
        for spark in sparks:
            if not spark.task.pin or spark.placed:
                unpinned.append(spark)
            elif self._is_wanted(spark):
                effects += self._pin(spark)
        self.pool.put_back(unpinned)
        return effects

    def _pin(self, spark: Spark) -> list[Effect]:
        """A task of this node that runs on certain nodes only goes to one of them."""
        task = spark.task
        homes = [node for node in task.pin if node == self.me or node in self.members.staying()]
        if not homes:
            named = ", ".join(map(str, task.pin))
            sentence = f"task {task.name} is pinned to node {named}, and there is no such node any more"
            return self._answer(spark.ref, spark.replica, Outcome(Verdict.LOST, sentence.encode()))
        node = homes[self._choose(len(homes))] if len(homes) > 1 else homes[0]
        spark = self.supervisor.pin(spark, node)
        if node != self.me:
            return [*self._code_for(node, [spark]), Send(node, msg.Push(spark))]
        self.pool.add(spark)
        return []

    def _on_schedule(self, victim: NodeId, fish: FishId, sparks: Sequence[Spark]) -> list[Effect]:
        """SCHEDULE (lines 23 to 25): into the pool with them, and the supervisors are told."""
        me = self._self()
        effects: list[Effect] = []
        makers = [spark.ref.node for spark in sparks if spark.ref.node != me]
        self.thief.on_schedule(makers[-1] if makers else victim, fish)
        for spark in sparks:
            supervisor = spark.ref.node
            if self.members.is_dead(supervisor):
                self._count("orphans")
                continue
            self.pool.add(spark)
            self._count("stolen")
            if not spark.task.supervised:
                continue
            if supervisor == me:
                effects += self._on_ack(spark.ref, spark.replica, me)
            else:
                effects.append(Send(supervisor, msg.Ack(spark.ref, spark.replica, me)))
        return effects

    def _on_ack(self, ref: TaskRef, replica: int, node: NodeId) -> list[Effect]:
        """ACK (lines 26, 27)."""
        if self.supervisor.arrived(ref, replica, node):
            return self._stop({node: [ref]}, {})
        self._count("stale", not self.supervisor.on_ack(ref, replica, node))
        return []

    def _on_finished(self, scheduler: Origin, results: Iterable[tuple[TaskRef, int, Outcome]]) -> list[Effect]:
        effects: list[Effect] = []
        finished: list[tuple[TaskRef, Task, Outcome]] = []
        for ref, replica, outcome in results:
            task = self.schedulers.finish(scheduler, ref, replica)
            self.limits.end(ref, replica)
            if not self._has_stopped(ref, replica):
                finished.append((ref, task, outcome))
                effects += self._answer(ref, replica, outcome)
        return effects + self.reruns.on_finished(finished)

    def _on_keep(self, sender: NodeId, pieces: Sequence[Piece]) -> list[Effect]:
        """KEEP, at the root."""
        self._count("pieces", len(pieces))
        return self.orphans.on_keep(sender, pieces)

    def _answer(self, ref: TaskRef, replica: int, outcome: Outcome) -> list[Effect]:
        if self.reruns.is_orphan(ref):
            self._count("orphans")
            return []
        return self._say(ref.node, msg.Result(ref, replica, outcome))

    def _fill(self, ref: TaskRef, replica: int, outcome: Outcome, source: NodeId) -> list[Effect]:
        record = self.supervisor.on_result(ref, replica)
        if record is None:
            self._count("duplicates")
            return []
        self._learn(ref, record.task, outcome, source)
        deliver = self._deliver(ref, outcome)
        return [deliver, *self._stop_losers(ref, replica, record, source)] if record.replica else [deliver]

    def _stop_losers(self, ref: TaskRef, replica: int, record: Record, source: NodeId) -> list[Effect]:
        """One of several copies has ended, and the others need not."""
        is_newest = replica == record.replica
        newest = () if is_newest else copy_of(record) or ()
        older = [node for node in record.also_on if is_newest or node != source]
        return [
            *self._stop({node: [ref] for node in newest}, {}),
            *self._stop({node: [ref] for node in older}, {}, late=True),
        ]

    def _learn(self, ref: TaskRef, task: Task, outcome: Outcome, source: NodeId) -> None:
        """What the end of a task of this node says about others."""
        self.stragglers.on_end(ref, task, outcome)
        if outcome.verdict is Verdict.CRASHED:
            self.schedulers.convict(task.path, outcome.crashes)
        if ref.origin == PROGRAM:
            self.pieces.cover(task.path)  # it is never run again
        elif not self.reruns.is_dear(task, outcome):
            self.reruns.on_filled(ref, task, outcome, ROOT if self.me == ROOT else source)  # the root is here to stay
        elif self.me == ROOT:
            self.pieces.keep(piece_of(task, outcome))

    def _deliver(self, ref: TaskRef, outcome: Outcome) -> Deliver:
        self.schedulers.sate(ref.origin)
        return Deliver(ref.origin, ref.slot, outcome)

    def _give(self, thief: NodeId, fish: FishId, sparks: list[Spark], first: bool) -> list[Effect]:
        self._count("given", len(sparks))
        self._count("fish_answered", first)
        return [*self._code_for(thief, sparks), Send(thief, msg.Schedule(fish, tuple(sparks)))]

    def _code_for(self, node: NodeId, sparks: Iterable[Spark]) -> list[Effect]:
        return [Send(node, msg.Code(digest, data)) for digest, data in self.code.missing(("node", node), sparks)]

    def _is_wanted(self, spark: Spark) -> bool:
        return spark.ref.node != self.me or self.supervisor.wants(spark)

    def _replied(self, effects: list[Effect] | None) -> list[Effect]:
        self._count("stale", effects is None)
        return effects or []

    # ---- death -----------------------------------------------------------------------------------------------

    def _on_scheduler_died(self, event: ev.SchedulerDied) -> list[Effect]:
        """The first of two levels of recovery: nothing of this is noticed outside, but for the time it takes."""
        self._count("crashes")
        origin = event.scheduler
        survivors, given_up = self.schedulers.fall(origin, event.running, None if event.blameless else event.crash)
        if event.leftover_of and not event.blameless:
            self.schedulers.caution(event.leftover_of, event.crash)
        for spark in survivors:
            self.supervisor.charge(spark)
        self.code.forget(("scheduler", origin))
        effects: list[Effect] = []
        self.stragglers.forget(origin)
        self.limits.forget(origin)
        effects += self._on_cancelled(self._below(origin, self.cancelling.paths_on(origin)))
        effects += self._disown(self.supervisor.forget(origin))
        for ref, replica, outcome in given_up:
            if not self._has_stopped(ref, replica):
                effects += self._answer(ref, replica, outcome)
        wanted = [spark for spark in self._without_orphans(survivors) if self._is_wanted(spark)]
        effects += self.reruns.on_lost(lambda copy: copy.ref.node == self.me and copy.ref.origin == origin)
        return [*effects, *self.reruns.report(asked=False), *self.reruns.ask(wanted)]

    # ---- what nobody wants any more --------------------------------------------------------------------------

    def _on_cancelled(self, refs: Iterable[TaskRef]) -> list[Effect]:
        """Nobody will read these futures: their copies vanish, or are stopped, wherever they are."""
        copies: dict[NodeId, list[TaskRef]] = {}
        older: dict[NodeId, list[TaskRef]] = {}
        orphans: dict[NodeId, list[bytes]] = {}
        for ref in refs:
            record = self.supervisor.cancel(ref)
            if record is None:
                continue
            self._count("cancelled")
            self.stragglers.drop(ref)
            if ref.origin == PROGRAM:
                self.pieces.cover(record.task.path)  # it is never run again
            if isinstance(record.location, Adopted):
                orphans.setdefault(record.location.node, []).append(record.task.path)
            nodes = copy_of(record)
            for node in self.members.live() if nodes is None else nodes:
                copies.setdefault(node, []).append(ref)
            for node in record.also_on:
                older.setdefault(node, []).append(ref)
        return [*self._stop(copies, orphans), *self._stop(older, {}, late=True)]

    def _stop(
        self, copies: Mapping[NodeId, list[TaskRef]], orphans: Mapping[NodeId, list[bytes]], *, late: bool = False
    ) -> list[Effect]:
        """Tell nodes which copies nobody wants any more.

        Args:
            late: not before they have heard of a death of which we have heard: the dead may have sent them.
        """
        effects: list[Effect] = []
        for node in dict.fromkeys((*copies, *orphans)):
            refs, paths = copies.get(node, []), orphans.get(node, [])
            for start in range(0, 0 if self.members.is_dead(node) else max(len(refs), len(paths)), PURGE_MAX):
                end = start + PURGE_MAX
                message = msg.Cancel(node, tuple(refs[start:end]), tuple(paths[start:end]))
                effects += self._say(ROOT if late and node != self.me else node, message)
        return effects

    def _on_cancel(self, message: msg.Cancel) -> list[Effect]:
        """CANCEL: at the root on its way, or where the copies are."""
        if message.node != self.me:
            return [Send(message.node, message)] if self.members.is_live(message.node) else []
        refs, paths = frozenset(message.refs), frozenset(message.orphans)

        def is_cancelled(spark: Spark) -> bool:
            return spark.ref in refs or (spark.task.path in paths and self.reruns.is_orphan(spark.ref))

        self.reruns.purge(is_cancelled)
        guarded = [spark for spark in self.victim.guarded() if is_cancelled(spark)]
        effects, _ = self.victim.drop(is_cancelled)
        for spark in guarded:  # its supervisor, which lives, may wait for an ACK, and AUTH finds nothing here now
            assert not self.members.is_dead(spark.ref.node), "what the dead supervised is guarded no more"
            effects += self._say(spark.ref.node, msg.Ack(spark.ref, spark.replica, self._self()))
        effects += self.cancelling.stop(is_cancelled)
        return effects + self.reruns.report(asked=False)

    def _end_overdue(self, now: float) -> list[Effect]:
        """Tasks that have run for longer than they may: their futures fail, and they are stopped as if cancelled."""
        late = [spark for spark in self.limits.overdue(now) if not self.cancelling.covers(spark)]
        if not late:
            return []
        self._count("timed_out", len(late))
        effects: list[Effect] = []
        for spark in late:
            task = spark.task
            sentence = f"task {task.name} has run for {task.timeout_s:g} s on node {self.me}, as long as it may"
            outcome = Outcome(Verdict.TIMED_OUT, sentence.encode())
            if task.supervised and spark.ref.origin != PROGRAM:
                # its parent may be lost with the scheduler that it does not leave, and must not run it again
                effects += self.reruns.keep([piece_of(task, outcome)])
            effects += self._answer(spark.ref, spark.replica, outcome)
        copies = frozenset((spark.ref, spark.replica) for spark in late)
        effects += self.cancelling.stop(lambda spark: (spark.ref, spark.replica) in copies)
        return effects + self.reruns.report(asked=False)

    def _below(self, origin: Origin, paths: tuple[bytes, ...]) -> list[TaskRef]:
        """Of the futures of one scheduler, those of tasks below these."""
        return [
            ref
            for ref, record in (self.supervisor.records() if paths else ())
            if ref.origin == origin and record.task.path.startswith(paths)
        ]

    def _has_stopped(self, ref: TaskRef, replica: int) -> bool:
        """A scheduler has no part in this copy any more; whether nobody wants its outcome."""
        if not self.cancelling.end(ref, replica):
            return False
        self.reruns.acquit(ref)
        return True

    def _disown(self, copies: Mapping[NodeId, list[TaskRef]]) -> list[Effect]:
        """Nobody waits for these copies any more."""
        effects: list[Effect] = []
        for node, refs in copies.items():
            if node == self.me:
                self._count("orphans", self.reruns.disown(refs))
                continue
            for start in range(0, len(refs), PURGE_MAX):
                effects += self._say(ROOT, msg.Purge(node, tuple(refs[start : start + PURGE_MAX])))
        return effects + self.reruns.report(asked=False)

    def _on_purge(self, message: msg.Purge) -> list[Effect]:
        """PURGE: at the root on its way, or at the node where the orphans are."""
        if message.node == self.me:
            self._count("orphans", self.reruns.disown(message.refs))
            return self.reruns.report(asked=True)
        if not self.members.is_live(message.node):
            return []
        self.orphans.expect([message.node])
        return [Send(message.node, message)]

    def _without_orphans(self, sparks: list[Spark]) -> list[Spark]:
        """Of sparks that schedulers had, those that somebody waits for."""
        sparks = [spark for spark in sparks if not self._has_stopped(spark.ref, spark.replica)]
        wanted = self.reruns.without_orphans(sparks)
        self._count("orphans", len(sparks) - len(wanted))
        return wanted

    def _on_suspicion(self, node: NodeId) -> list[Effect]:
        if node == ROOT:
            return [Halt("it has lost the root node")] if self.me != ROOT else []
        effects = self.members.accuse(node)
        if effects is None:
            return []
        if self._awaited is not None:
            return self._acknowledged(node)
        return [*effects, *self._on_dead_node(node)] if self.me == ROOT else effects

    def _on_dead_node(self, dead: NodeId, parting: Parting = Parting.DIED) -> list[Effect]:
        """DEADNODE (lines 28 to 36): the second level of recovery.  Of a node that has left too: it may have gone
        before it was done, and what was about to be sent to it is where it was, under a record that names it."""
        if dead == self.me:
            return [Halt("declared dead while it was stopped or cut off", rejoin=True)]
        self.members.bury(dead)
        self._count("deaths_seen" if parting is Parting.DIED else "leaves_seen")
        self.code.forget(("node", dead))
        self.thief.on_death(dead)
        self.leaving.on_death(dead)
        self._count("orphans", self.reruns.purge(lambda spark: spark.ref.node == dead))
        effects, orphans = self.victim.on_death(dead)
        self._count("orphans", orphans)
        effects += self.reruns.on_lost(lambda copy: copy.other == dead)
        effects += self.reruns.report(asked=self.me != ROOT)
        if self.me == ROOT:
            effects += self.orphans.on_death(dead, self.members.others())
        effects += self._settle_cancelled(dead)
        recreated, lost = self.supervisor.on_death(dead, parting)
        effects += self.reruns.ask(recreated)
        remaining = sum(self.supervisor.wants(spark) for spark in recreated)
        self._count("replicas", remaining)
        for ref, task, outcome in lost:
            self._learn(ref, task, outcome, self._self())
            effects.append(self._deliver(ref, outcome))
        return [Fence(dead, remaining, parting), *effects]

    def _settle_cancelled(self, dead: NodeId) -> list[Effect]:
        """Of cancelled tasks that were on their way, the other end is where they are, if anywhere.

        It may have accepted what the dead victim had sent, until it has heard of this death: so it hears of the
        cancellation from the root too, and later.  If the thief is dead, the victim has had our leave before this.
        """
        effects: list[Effect] = []
        for ref, node, is_thief in self.supervisor.settled(dead):
            effects += self._say(ROOT if is_thief else node, msg.Cancel(node, (ref,)))
        return effects

    def _on_leaving(self, leaver: NodeId, round_: int) -> list[Effect]:
        """LEAVING: nothing is given to it any more, nor asked of it; what it gives is welcome."""
        self.members.let_go(leaver)
        self.thief.on_death(leaver)
        self.victim.forget(leaver)
        return [Send(leaver, msg.Noted(round_))]

    def _on_bye(self, leaver: NodeId, parting: Parting) -> list[Effect]:
        if self._awaited is not None:
            return self._acknowledged(leaver)
        return [*self.members.rule(leaver, parting), *self._on_dead_node(leaver, parting)]

    # ---- joining and ending ----------------------------------------------------------------------------------

    def _on_welcome(self, message: msg.Welcome) -> list[Effect]:
        assert self.me is None, "WELCOME comes first, and once"
        self._assume(message.you)
        return self.members.on_welcome(message)

    def _on_terminate(self) -> list[Effect]:
        if self._awaited is not None:
            return []
        self._awaited = dict.fromkeys(self.members.others())
        effects: list[Effect] = [Send(node, msg.Term()) for node in self._awaited]
        effects.append(StopSchedulers())
        return effects if self._awaited else [*effects, Halt()]

    def _acknowledged(self, node: NodeId) -> list[Effect]:
        if self._awaited is None or node not in self._awaited:
            return []
        del self._awaited[node]
        return [] if self._awaited else [Halt()]

    # ---- the flow --------------------------------------------------------------------------------------------

    def _settle(self, now: float, *, insist: bool) -> list[Effect]:
        """Feed the hungry, then the thieves who wait, then look elsewhere; ask the schedulers for more if needed."""
        effects: list[Effect] = []
        pool, schedulers = self.pool, self.schedulers
        leaving = self.leaving.under_way
        if self.pool.stealable:
            self.victim.stir(now)  # before anybody gets them
        if leaving and self._holds_something():
            self.leaving.stir()
        if schedulers.hungry and len(pool):
            effects += self._hand_out(threads_only=leaving)
        if self.victim.parked:
            effects += self.victim.serve_parked()
        if leaving:
            effects += self._evacuate()
        if len(self.cancelling):
            effects += self.cancelling.look(now)
        hungry = schedulers.hungry and not leaving and not len(pool)
        if hungry:
            fish = self.thief.hunt(self.members.staying(), now)
            self._count("fish_sent", len(fish))
            effects += fish
        idle = hungry or (self.victim.parked > 0 and not pool.stealable)
        late = self.stragglers.look(now, idle=idle and not leaving)
        if late:
            return effects + self._double(late) + self._settle(now, insist=insist)
        wanted = leaving or idle
        if wanted != self._demanding or (wanted and insist):
            self._demanding = wanted
            effects.append(Demand(wanted))
        return [*effects, *self._part(now)] if leaving else effects

    def _hand_out(self, *, threads_only: bool) -> list[Effect]:
        """Tasks for the hungry."""
        effects: list[Effect] = []
        handed, given_up = self.schedulers.assign(threads_only=threads_only)
        for origin, sparks in handed:
            self._count("tasks_started", len(sparks))
            for digest, data in self.code.missing(("scheduler", origin), sparks):
                effects.append(Teach(origin, digest, data))
            effects.append(Start(origin, tuple(sparks)))
        for ref, replica, outcome in given_up:
            effects += self._answer(ref, replica, outcome)
        return effects

    def _double(self, stragglers: Iterable[TaskRef]) -> list[Effect]:
        """Start these once more."""
        effects: list[Effect] = []
        for ref in stragglers:
            spark = self.supervisor.double(ref)
            self._count("doubled")
            effects.append(Double(ref, spark.replica, spark.task.name))
            self.pool.add(spark)
        return effects

    def _evacuate(self) -> list[Effect]:
        if not self.pool.stealable:
            return []
        homes = self.members.staying()
        first = self._choose(len(homes))
        return self.victim.evacuate([*homes[first:], *homes[:first]])

    def _part(self, now: float) -> list[Effect]:
        effects, parting = self.leaving.proceed(now, holds=self._holds_something())
        if parting is None:
            return effects
        return [*effects, StopSchedulers(), Send(ROOT, msg.Bye(parting, tuple(self.counters.items()))), Halt()]

    def _holds_something(self) -> bool:
        guarded = any(True for _ in self.victim.guarded())
        waiting = any(True for _ in self.reruns)
        return bool(len(self.pool) or guarded or waiting or self.schedulers.busy or len(self.supervisor))

    def _self(self) -> NodeId:
        assert self.me is not None, "WELCOME comes before any other event"
        return self.me

    def _count(self, name: str, amount: int = 1) -> None:
        self.counters[name] += amount


def _ends(effects: list[Effect]) -> bool:
    return bool(effects) and isinstance(effects[-1], Halt)
