"""The node: all roles of one node composed into one pure state machine.

The caller's contract
---------------------

    for effect in node.handle(event, now):
        carry it out, in order

and send a `Tick` not later than `next_deadline()`.  `now` never decreases.  The driver promises:

* messages of one peer come each once, and in the order in which they were sent; but what a steal consists of
  (`messages.QUICK`) and has no large payload may come before one that has, and before what was sent after that, though
  no SCHEDULE before a CODE (decision 32).  WELCOME comes before any other event but the news that the root is silent;
* a message for a node that it does not know yet is kept until it does: between different peers there is no order, so
  an ACK can be due to a supervisor whose JOINED is still on its way;
* after `Fence` nothing of that node is delivered, and the node itself is made to hear of it: the core sends it no last
  words, because to the dead nothing is sent;
* what a scheduler has said comes before the news of its death, and nothing of it after; it is up before it is hungry,
  and answers or returns only what it holds;
* the root is not told to leave, and nobody before WELCOME;
* an exception out of `handle` is a bug, after which the state is undefined: the process ends (fail-stop, hole R7).

After `Halt` the node has no more effects.

What lives here: the roles of a node, and who of them hears what; and how a node begins and ends.  What does not: the
rules of each role; and what they do together: `intake.py`, `flow.py`, `outcomes.py`, `unwanted.py`, `recovery.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

from hdphrs.config import CoreConfig
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.cancelling import Cancelling
from hdphrs.protocol.code import CodeStore, party
from hdphrs.protocol.counters import COUNTERS, Counters
from hdphrs.protocol.effects import Effect, Halt, Send, StopSchedulers
from hdphrs.protocol.fairness import Fairness
from hdphrs.protocol.flow import Flow
from hdphrs.protocol.foresight import Foresight
from hdphrs.protocol.forgetting import Forgetting
from hdphrs.protocol.homes import Homes
from hdphrs.protocol.intake import Intake
from hdphrs.protocol.leaving import Leaving
from hdphrs.protocol.limits import Limits
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.orphans import Orphanage
from hdphrs.protocol.outcomes import Outcomes
from hdphrs.protocol.pieces import Pieces
from hdphrs.protocol.quiet import Quiet
from hdphrs.protocol.recovery import Recovery
from hdphrs.protocol.reruns import Reruns
from hdphrs.protocol.retained import Retained
from hdphrs.protocol.rights import may_say
from hdphrs.protocol.schedulers import Schedulers
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.stragglers import Stragglers
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import ROOT, NodeId, Origin, Parting, Spark, TaskRef
from hdphrs.protocol.thief import Thief
from hdphrs.protocol.unwanted import Unwanted
from hdphrs.protocol.victim import Victim

News = (
    msg.Welcome | msg.Joined | msg.Suspect | msg.DeadNode | msg.Leaving | msg.Noted | msg.Bye | msg.Term | msg.TermAck
)
"""Messages about nodes."""


class Node:
    """One node of the cluster; make it with `root` or `newcomer`."""

    def __init__(self, config: CoreConfig, choose: Callable[[int], int], me: NodeId | None) -> None:
        self.counters: Counters = dict.fromkeys(COUNTERS, 0)
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
        """It is known who we are: make the roles."""
        config, counters, say = self._config, self.counters, self._say
        self.me = me
        self.members: Membership = Membership(me)
        self.code: CodeStore = CodeStore(config.code_bytes_max)
        self.pool: Sparkpool = Sparkpool()
        self.supervisor: Supervisor = Supervisor(me)
        self.schedulers: Schedulers = Schedulers(config, self.pool, self.supervisor.is_wanted)
        self.quiet: Quiet = Quiet(config)
        self.thief: Thief = Thief(me, config, self._choose, self.quiet)
        self.victim: Victim = Victim(
            me, config, self.pool, self.supervisor, self.members, self.schedulers, self.quiet, self.code, counters
        )
        self.leaving: Leaving = Leaving(me, self.members)
        self.pieces: Pieces = Pieces(config)
        """At the root."""
        self.orphans: Orphanage = Orphanage(self.pieces, say, self.schedulers.blame_of)
        """At the root."""
        self.retained: Retained = Retained(config)
        self.cancelling: Cancelling = Cancelling(config, self.schedulers)
        self.limits: Limits = Limits()
        self.stragglers: Stragglers = Stragglers(config, self.supervisor)
        self._connect()

    def _connect(self) -> None:
        """Make those that lie between others, and keep nothing or little themselves."""
        choose, counters, say = self._choose, self.counters, self._say
        members, code, pool = self.members, self.code, self.pool
        supervisor, schedulers, leaving = self.supervisor, self.schedulers, self.leaving
        thief, victim, pieces, orphans = self.thief, self.victim, self.pieces, self.orphans
        cancelling, limits, stragglers = self.cancelling, self.limits, self.stragglers
        self.homes: Homes = Homes(members, choose, pool, supervisor, code, say)
        is_stopping, put_back = cancelling.covers, self.homes.put_back
        self.reruns: Reruns = Reruns(
            self._config, members, pool, supervisor, schedulers, self.retained, is_stopping, say, counters, put_back
        )
        reruns = self.reruns
        self.intake: Intake = Intake(
            members, pool, supervisor, schedulers, thief, pieces, reruns, self.homes, counters, say
        )
        self.unwanted: Unwanted = Unwanted(
            members, supervisor, victim, reruns, cancelling, limits, stragglers, pieces, orphans, counters, say
        )
        unwanted = self.unwanted
        self.outcomes: Outcomes = Outcomes(
            members, supervisor, schedulers, reruns, limits, stragglers, pieces, unwanted, counters
        )
        outcomes = self.outcomes
        self.recovery: Recovery = Recovery(
            members, supervisor, schedulers, thief, victim, leaving, code, orphans, reruns, unwanted, outcomes, counters
        )
        self.forgetting: Forgetting = Forgetting(pool, supervisor, schedulers, victim, reruns, code)
        self.fairness: Fairness = Fairness(self._config, pool, schedulers, code, counters)
        self.foresight: Foresight = Foresight(members, supervisor, schedulers, leaving, code, pieces)
        self.flow: Flow = Flow(
            members,
            choose,
            pool,
            supervisor,
            schedulers,
            thief,
            victim,
            leaving,
            code,
            cancelling,
            reruns,
            stragglers,
            counters,
        )

    # ---- the caller's side -----------------------------------------------------------------------------------

    def handle(self, event: ev.Event, now: float) -> list[Effect]:
        """Take one event; what is to be done about it."""
        if self._over:
            return []
        effects = self._dispatch(event, now)
        if self._awaited is None and self.me is not None and not (effects and _ends(effects)):
            effects += self.flow.settle(now, insist=isinstance(event, _BRINGS))
            if self._config.fair_s and not (effects and _ends(effects)):
                effects += self.fairness.settle(now, leaving=self.leaving.under_way)
        self._over = bool(effects) and _ends(effects)
        return effects

    def taker(self, path: bytes, code: bytes) -> Origin | None:
        """See `Foresight.taker`."""
        return None if self._over or self._awaited is not None else self.foresight.taker(path, code)

    def host(self, sender: NodeId, thread: Spark) -> Origin | None:
        """See `Foresight.host`."""
        return None if self._over or self._awaited is not None else self.foresight.host(sender, thread)

    def fills(self, ref: TaskRef, source: NodeId) -> bool:
        """See `Foresight.fills`."""
        return not self._over and self.foresight.fills(ref, source)

    def next_deadline(self) -> float | None:
        """When `handle` wants a `Tick` at the latest; None for never."""
        if self.me is None or self._over or self._awaited is not None:
            return None
        earliest: float | None = None
        for role in (
            self.victim,
            self.thief,
            self.leaving,
            self.stragglers,
            self.cancelling,
            self.limits,
            self.fairness,
        ):
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
                self.fairness.stir()
                return self.outcomes.on_finished(scheduler, results)
            case ev.Hungry(scheduler, room):
                self.schedulers.starve(scheduler, room)
                return []
            case ev.Exported(origin, tasks):
                return self.intake.on_exported(origin, tasks)
            case ev.Kept(pieces):
                return self.reruns.keep(pieces)
            case ev.Received(sender, message):
                return self._on_received(sender, message, now)
            case ev.Placed(origin, slot, task, node):
                return self.intake.on_placed(TaskRef(self._self(), origin, slot), task, node)
            case ev.Learned(digest, data, origin):
                self.code.learn(digest, data, origin)
                return self.forgetting.look(digest)
            case ev.Released(origin, digests):
                for digest in digests:
                    self.code.release(party(origin), digest)
                return self.forgetting.look()
            case ev.GivenBack(scheduler, sparks):
                self.pool.put_back(self.unwanted.without_orphans(self.schedulers.give_back(scheduler, sparks)))
                return self.reruns.report(asked=False)
            case ev.SchedulerUp(scheduler):
                self.schedulers.rise(scheduler)
                return []
            case ev.SchedulerDied():
                return self.recovery.on_scheduler_died(event)
            case ev.Arrived():
                return self.members.on_arrived(event) if self._awaited is None else []  # too late
            case ev.Suspected(node):
                return self._on_suspicion(node)
            case ev.Leave(grace_s):
                assert self.me != ROOT, "the root cannot leave"
                self.thief.stop()
                return self.leaving.begin(grace_s, now)
            case ev.Crowded(is_crowded):
                if self.me is not None:
                    self.schedulers.is_crowded = is_crowded
                    self.fairness.stir()
                return []
            case ev.Tick():
                self._count("stale", self.thief.expire(now))
                return [*self.victim.expire(now), *self.unwanted.end_overdue(now)]
            case ev.Terminate():
                return self._on_terminate()
            case ev.Begun(scheduler, ref, replica):
                self.limits.begin(scheduler, self.schedulers.copy(scheduler, ref, replica), now)
                return []
            case ev.Cancelled(origin, slots):
                return self.unwanted.cancel([TaskRef(self._self(), origin, slot) for slot in slots])
            case _:
                assert_never(event)

    def _on_received(self, sender: NodeId, message: msg.Message, now: float) -> list[Effect]:
        if not isinstance(message, msg.Welcome):
            if self.members.is_dead(sender) or not may_say(self.members, sender, message):
                self._count("stale")  # it is fenced, or not its part (hole R23)
                return []
            self.members.hear(sender)
        return self._take(sender, message, now)

    def _say(self, to: NodeId, message: msg.Message) -> list[Effect]:
        """Tell a node, be it this one."""
        return [Send(to, message)] if to != self.me else self._take(to, message, 0.0)

    def _take(self, sender: NodeId, message: msg.Message, now: float) -> list[Effect]:
        match message:
            case msg.Result(ref, replica, outcome):  # first, since each of the program's comes through here
                return self.outcomes.fill(ref, replica, outcome, sender)
            case msg.Fish():
                return self.victim.on_fish(message, now)
            case msg.NoWork(fish, quiet_s):
                self.victim.stir(now, quiet_s)
                self._count("stale", not self.thief.on_nowork(fish, len(self.members.staying()), now))
                return []
            case msg.Schedule(fish, sparks, blame):
                return self.intake.on_schedule(sender, fish, sparks, blame)
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
                return self.unwanted.on_cancel(message)
            case msg.Purge():
                return self.unwanted.on_purge(message)
            case msg.Push(spark):
                self.pool.add(spark)
                return []
            case msg.Keep(pieces):
                self._count("pieces", len(pieces))
                return self.orphans.on_keep(sender, pieces)
            case msg.Discard(path, crashes):
                self.schedulers.charge(path, crashes)
                self.pieces.discard(path)
                return []
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
                self.code.receive(sender, digest, data)
                return self.forgetting.look(digest)
            case msg.Forget(digest, times):
                return [*self.code.on_forget(sender, digest, times), *self.forgetting.look()]
            case _:
                return self._take_news(sender, message)

    def _take_news(self, sender: NodeId, message: News) -> list[Effect]:
        """What is about nodes, and no task."""
        match message:
            case msg.Welcome():
                return self._on_welcome(message)
            case msg.Joined():
                return [*self.members.on_joined(message), *self.leaving.greet(message.member.node)]
            case msg.Suspect(node):
                return self._on_suspicion(node)
            case msg.DeadNode(node, epoch, parting):
                self.members.epoch = epoch
                if node == self.me:
                    return [self._cut_off("it was declared dead while it was stopped or cut off")]
                return self.recovery.on_dead_node(node, parting)
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

    # ---- what concerns several roles -------------------------------------------------------------------------

    def _on_ack(self, ref: TaskRef, replica: int, node: NodeId) -> list[Effect]:
        """ACK (lines 26, 27)."""
        if self.supervisor.arrived(ref, replica, node):
            return self.unwanted.stop({node: [ref]}, {})
        self._count("stale", not self.supervisor.on_ack(ref, replica, node))
        return []

    def _replied(self, effects: list[Effect] | None) -> list[Effect]:
        self._count("stale", effects is None)
        return effects or []

    def _on_suspicion(self, node: NodeId) -> list[Effect]:
        if node == ROOT:
            return [self._cut_off("it has lost the root node")] if self.me != ROOT else []
        effects = self.members.accuse(node)
        if effects is None:
            return []
        if self._awaited is not None:
            return self._acknowledged(node)
        return [*effects, *self.recovery.on_dead_node(node)] if self.me == ROOT else effects

    def _on_leaving(self, leaver: NodeId, round_: int) -> list[Effect]:
        """LEAVING: nothing is given to it any more, nor asked of it; what it gives is welcome."""
        self.members.let_go(leaver)
        self.thief.on_death(leaver)
        self.victim.forget(leaver)
        return [Send(leaver, msg.Noted(round_))]

    def _on_bye(self, leaver: NodeId, parting: Parting) -> list[Effect]:
        if self._awaited is not None:
            return self._acknowledged(leaver)
        return [*self.members.rule(leaver, parting), *self.recovery.on_dead_node(leaver, parting)]

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

    def _cut_off(self, reason: str) -> Halt:
        """The run goes on without this node, which comes back as a new one, unless it was about to go anyway."""
        return Halt(reason, rejoin=self.me is None or not self.leaving.under_way)

    def _acknowledged(self, node: NodeId) -> list[Effect]:
        if self._awaited is None or node not in self._awaited:
            return []
        del self._awaited[node]
        return [] if self._awaited else [Halt()]

    def _self(self) -> NodeId:
        assert self.me is not None, "WELCOME comes before any other event"
        return self.me

    def _count(self, name: str, amount: int = 1) -> None:
        self.counters[name] += amount


_BRINGS: Final = (ev.Exported, ev.GivenBack)
"""Events that bring sparks; a union would be made anew each time."""


def _ends(effects: list[Effect]) -> bool:
    return isinstance(effects[-1], Halt)
