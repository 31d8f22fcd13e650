"""The victim: answers thieves from the sparkpool, with the supervisors' leave (paper, section 4.1).

What lives here: guards, that is sparks reserved for a thief until their supervisor has answered, and parked fish, that
is thieves who are kept waiting because the pool is empty.  A node that leaves gives everything away unasked, in the
same manner.

A guard is kept until the answer comes, even when its thief dies: then the spark stays, and the supervisor is told so by
an ACK in our own name.  Only the death of the supervisor releases a guard without an answer (hole R1).  Together with
request ids this leaves no reply that could hit another spark (hole R3).
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from hdphrs.config import CoreConfig
from hdphrs.protocol.code import CodeStore
from hdphrs.protocol.counters import Counters
from hdphrs.protocol.effects import Effect, Send
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.messages import Ack, Fish, NoWork, Req, Schedule
from hdphrs.protocol.quiet import Quiet
from hdphrs.protocol.schedulers import Schedulers
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import UNASKED, FishId, NodeId, RequestId, Spark
from hdphrs.records import dataclass


@dataclasses.dataclass(slots=True)
class _Catch:
    """One fish that is being answered."""

    fish: FishId
    thief: NodeId
    pending: int = 0
    """Guards whose answers are still to come."""
    answered: bool = False


@dataclass(frozen=True, slots=True)
class Guard:
    """A spark that waits for its supervisor's answer."""

    spark: Spark
    catch: _Catch


@dataclass(frozen=True, slots=True)
class _Parked:
    message: Fish
    until_s: float


class Victim:
    """What one node gives away."""

    def __init__(
        self,
        me: NodeId,
        config: CoreConfig,
        pool: Sparkpool,
        supervisor: Supervisor,
        members: Membership,
        schedulers: Schedulers,
        quiet: Quiet,
        code: CodeStore,
        counters: Counters,
    ) -> None:
        self._me = me
        self._config = config
        self._pool = pool
        self._supervisor = supervisor
        self._members = members
        self._blame_of = schedulers.blame_of
        self._is_going = members.is_going
        self._quiet = quiet
        self._code = code
        self._counters = counters
        self._guards: dict[RequestId, Guard] = {}
        self._next_request = 1
        self._parked: deque[_Parked] = deque()

    @property
    def parked(self) -> int:
        """Thieves who wait."""
        return len(self._parked)

    def guarded(self) -> Iterator[Spark]:
        """For checks of the invariants."""
        return (guard.spark for guard in self._guards.values())

    def on_fish(self, message: Fish, now: float) -> list[Effect]:
        """FISH (lines 1 to 10): give the oldest half of the pool, or keep the fish until there is something."""
        effects = self._answer(message, self._half(message))
        if effects:
            return effects
        self.stir(now, message.quiet_s)
        if len(self._parked) >= self._config.parked_max:
            return [self._nothing(message, now)]
        until_s = now + self._quiet.patience_s(now)
        if self._parked:
            self._hasten(until_s)
        self._parked.append(_Parked(message, until_s))
        return []

    def stir(self, now: float, ago_s: float = 0.0) -> None:
        """Somebody had sparks so long ago.  Those who still wait are refused sooner, if that is news: they look around
        again, and others hear of it."""
        self._quiet.end(now, ago_s)
        if self._parked:
            self._hasten(now + self._quiet.patience_s(now))

    def _hasten(self, until_s: float) -> None:
        """Nobody waits longer than that; so they are refused in the order in which they came."""
        if self._parked[-1].until_s > until_s:
            self._parked = deque(replace(parked, until_s=min(parked.until_s, until_s)) for parked in self._parked)

    def _nothing(self, message: Fish, now: float) -> Effect:
        return Send(message.thief, NoWork(message.fish, self._quiet.lasts_s(now)))

    def serve_parked(self) -> list[Effect]:
        """Answer those who wait, first come first served, while there are sparks."""
        effects: list[Effect] = []
        while self._parked and self._pool.stealable:
            message = self._parked[0].message
            answer = self._answer(message, self._half(message))
            if not answer:
                break
            self._parked.popleft()
            effects += answer
        return effects

    def evacuate(self, homes: Sequence[NodeId]) -> list[Effect]:
        """This node leaves: all that may migrate goes to `homes` in turn, as if they had asked for it."""
        effects: list[Effect] = []
        before = 0
        while self._pool.stealable != before:
            before = self._pool.stealable
            share = -(-before // len(homes))
            for home in homes:
                effects += self._answer(Fish(UNASKED, home, share, 0.0), share)
        return effects

    def forget(self, thief: NodeId) -> None:
        """It does not wait here any more."""
        self._parked = deque(parked for parked in self._parked if parked.message.thief != thief)

    def expire(self, now: float) -> list[Effect]:
        """Refuse those who have waited long enough."""
        effects: list[Effect] = []
        while self._parked and self._parked[0].until_s <= now:
            message = self._parked.popleft().message
            effects.append(self._nothing(message, now))
        return effects

    def next_deadline(self) -> float | None:
        """When the next parked fish has waited long enough."""
        return self._parked[0].until_s if self._parked else None

    def on_auth(self, request: RequestId) -> list[Effect] | None:
        """AUTH (lines 21, 22): off it goes; None if no guard waits for this answer."""
        guard = self._guards.pop(request, None)
        if guard is None:
            return None
        spark, catch = guard.spark, guard.catch
        catch.pending -= 1
        if self._is_going(catch.thief):
            self._pool.put_back([spark])
            return [Send(spark.ref.node, Ack(spark.ref, spark.replica, self._me))]
        return self._send(catch, [spark])

    def on_denied(self, request: RequestId) -> list[Effect] | None:
        """DENIED: the spark stays here; None if no guard waits for this answer."""
        guard = self._guards.pop(request, None)
        if guard is None:
            return None
        self._pool.put_back([guard.spark])
        return self._refuse(guard.catch)

    def on_obsolete(self, request: RequestId) -> list[Effect] | None:
        """OBSOLETE: the spark is finished, or a newer replica exists: drop it; None if no guard waits."""
        guard = self._guards.pop(request, None)
        return None if guard is None else self._refuse(guard.catch)

    def on_death(self, dead: NodeId) -> tuple[list[Effect], int]:
        """DEADNODE: forget the dead thief's fish, drop guarded orphans and tell their thieves (hole R1).

        Returns:
            The effects, and how many orphans there were.
        """
        self.forget(dead)
        return self.drop(lambda spark: spark.ref.node == dead)

    def drop(self, is_orphan: Callable[[Spark], bool]) -> tuple[list[Effect], int]:
        """Drop all guarded sparks that match, and tell their thieves; what comes for them later is stale.

        Returns:
            The effects, and how many there were.
        """
        orphaned = [request for request, guard in self._guards.items() if is_orphan(guard.spark)]
        effects: list[Effect] = []
        for request in orphaned:
            effects += self._refuse(self._guards.pop(request).catch)
        return effects, len(orphaned)

    def _half(self, message: Fish) -> int:
        return min(message.want, (self._pool.stealable + 1) // 2)

    def _answer(self, message: Fish, wanted: int) -> list[Effect]:
        """Give at once what needs no leave, else reserve and ask; nothing if there is nothing."""
        catch = _Catch(message.fish, message.thief, answered=message.fish == UNASKED)
        granted: list[Spark] = []
        kept: list[Spark] = []
        """Unsupervised: the thief may be one of the dead of whom we have not heard, and nobody would miss the spark."""
        requests: list[Effect] = []
        size_bytes = 0
        while (
            self._pool.stealable and len(granted) + len(requests) < wanted and size_bytes <= self._config.give_bytes_max
        ):
            spark = self._pool.take_for_thief()
            size_bytes += len(spark.task.payload)
            if spark.ref.node == self._me:
                if not self._supervisor.wants(spark):
                    continue  # finished, or a newer replica exists
                self._supervisor.authorise(spark, message.thief)
                if not spark.task.supervised:
                    spark = replace(spark, epoch=self._members.epoch)
                granted.append(spark)
            elif not spark.task.supervised:
                (granted if spark.epoch <= self._members.epoch else kept).append(spark)
            elif len(self._guards) < self._config.guards_max:
                requests.append(self._reserve(spark, catch))
            else:
                self._pool.put_back([spark])
                break
        self._pool.put_back(kept)
        if not granted:
            return requests
        return [*self._send(catch, granted), *requests]

    def _send(self, catch: _Catch, sparks: list[Spark]) -> list[Effect]:
        """SCHEDULE, and code ahead of it; what answers no fish any more, as what late guards release, goes unasked."""
        self._counters["given"] += len(sparks)
        self._counters["fish_answered"] += not catch.answered
        catch.answered = True
        schedule = Schedule(catch.fish, tuple(sparks), self._blame_of(spark.task.path for spark in sparks))
        return [*self._code.ahead(catch.thief, sparks), Send(catch.thief, schedule)]

    def _reserve(self, spark: Spark, catch: _Catch) -> Effect:
        request = RequestId(self._next_request)
        self._next_request += 1
        self._guards[request] = Guard(spark, catch)
        catch.pending += 1
        return Send(spark.ref.node, Req(request, spark.ref, spark.replica, self._me, catch.thief))

    def _refuse(self, catch: _Catch) -> list[Effect]:
        """One guard less; if it was the last and nothing was sent, the thief is told."""
        catch.pending -= 1
        if catch.pending or catch.answered or self._is_going(catch.thief):
            return []
        catch.answered = True
        return [Send(catch.thief, NoWork(catch.fish, 0.0))]
