"""Moves: everything that can happen next, with a word for each.

What lives here: the words, what they do to a host, and which of them a host is ready for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hdphrs.audit.scan import Copy
from hdphrs.explore.freeze import number_ids
from hdphrs.explore.host import Host
from hdphrs.explore.scope import Scope
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, NodeId, Origin

ROOM = 16
"""What a hungry scheduler of a search asks for; the configuration bounds it further."""
SLOTS = 1
"""Schedulers of a newcomer."""


CRASHES = ("crash", "kill-scheduler", "crash-outer")
"""How a scheduler dies: by the innermost task on its stack, by nobody's fault, by the outermost."""

READER = "crash-reader"
"""By the value of a child that it has just got: the first child of the task that has waited for it."""

SCHEDULER_WORDS = ("hungry", "run", "give", *CRASHES, READER)
TIMERS = ("rested", "refuse", "late", "over", "overrun")
GRACE_S = 1.0
"""Of a node that leaves; in a search it is over when the search says so."""


class Move(NamedTuple):
    """One step of a search."""

    word: str
    node: int
    about: int = 0
    """The sender of what is delivered, the scheduler, the accused node, the next task of the program or newcomer, a
    future of the program."""
    choices: tuple[int, ...] = ()
    """What `choose` answered on the way."""
    past: int = 0
    """How many others what is delivered overtakes."""


class Act(NamedTuple):
    """What happens to one host, but for messages."""

    word: str
    about: int = 0
    """The scheduler, the accused node, the next task of the program, the next newcomer, or a future of the program."""


def arrivals(scope: Scope, kinds: Sequence[type[msg.Message]]) -> list[int]:
    """Which of the messages of a queue may arrive next: where things overtake, each that could have a large payload may
    have one.

    There is no code in a search, which nothing that needs it overtakes.
    """
    places = [0] if kinds else []
    if scope.overtakes and kinds and kinds[0] in msg.BULKY:
        for place, kind in enumerate(kinds[1:], 1):
            if kind in msg.QUICK:
                places.append(place)
                if kind not in msg.BULKY:
                    break  # the others keep their order
    return places


def acts_of(host: Host, scope: Scope) -> list[Act]:
    """What a host is ready for, whatever the others do; faults are not among it."""
    core = host.core
    acts: list[Act] = []
    for origin, scheduler in host.schedulers.items():
        if scheduler.queue:
            acts.append(Act("run", origin))
            if scope.gives and scheduler.not_started:
                acts.append(Act("give", origin))
        if not scheduler.hungry and (scope.early or not scheduler.queue):
            acts.append(Act("hungry", origin))
    if core.thief._resting_until_s is not None:
        acts.append(Act("rested"))
    if core.victim.parked:
        acts.append(Act("refuse"))
    if len(core.limits):
        acts.append(Act("overrun"))
    return acts


def act(host: Host, what: Act, scope: Scope) -> list[fx.Effect]:
    """Let it happen.

    A timer fires when it is told to, whatever the clock says: so it may fire at any moment.
    """
    origin = Origin(what.about)
    match what.word:
        case "run":
            return host.run(origin)
        case "give":
            return host.give_back(origin)
        case "hungry":
            return host.starve(origin, ROOM)
        case "crash" | "crash-outer" | "kill-scheduler":
            effects = host.crash(origin, blamed(host, origin, what.word), blameless=what.word == "kill-scheduler")
            return [*effects, *host.up()]
        case "crash-reader":
            effects = host.crash(origin, None, blameless=False, read_of=read_by(host, origin))
            return [*effects, *host.up()]
        case "place":
            slot, placed, node = scope.placed[what.about]
            return host.take(ev.Placed(PROGRAM, slot, placed, node))
        case "join":
            return host.admit(what.about, SLOTS)
        case "cancel":
            return host.cancel(what.about)
        case "leave":
            return host.take(ev.Leave(GRACE_S))
        case "suspect":
            return host.take(ev.Suspected(NodeId(what.about)))
        case word if word in TIMERS:
            make_due(host.core, what.word)
            return host.take(ev.Tick())
        case _:
            raise AssertionError(f"there is no move {what.word}")


def receive(host: Host, sender: NodeId, message: msg.Message, scope: Scope) -> list[fx.Effect]:
    """A message arrives; with its WELCOME a newcomer becomes a node, and starts its scheduler."""
    slow_down(host.core, message, scope)
    effects = host.take(ev.Received(sender, message))
    if isinstance(message, msg.Welcome):
        number_ids(host)
        effects += host.up()
    return effects


def blamed(host: Host, origin: Origin, word: str) -> Copy | None:
    """On whose stack a scheduler dies."""
    scheduler = host.schedulers[origin]
    copies = [*scheduler.waiting, *scheduler.queue]
    return {"crash": copies[-1], "crash-outer": copies[0]}.get(word)


def deaths_of(host: Host, scope: Scope) -> tuple[Act, ...]:
    """How its schedulers may die."""
    if scope.reads:
        return tuple(Act(READER, origin) for origin, scheduler in host.schedulers.items() if scheduler.resumed)
    return tuple(
        Act(word, origin)
        for origin, scheduler in host.schedulers.items()
        if scheduler.queue or scheduler.waiting
        for word in CRASHES[: 2 + (len(scheduler.queue) + len(scheduler.waiting) > 1)]
    )


def read_by(host: Host, origin: Origin) -> bytes:
    """The path of the child whose value a scheduler reads when it dies of that."""
    scheduler = host.schedulers[origin]
    parent = scheduler.queue[next(reversed(scheduler.resumed))]
    return b"%s.0" % parent.task.path


def slow_down(core: Node, message: msg.Message, scope: Scope) -> None:
    """Let a refusal be a slow one, after which no thief rests; unless in this scope they do."""
    if isinstance(message, msg.NoWork) and not scope.rests:
        out = core.thief._out
        if message.fish in out:
            out[message.fish] = replace(out[message.fish], at_s=-scope.config.park_s)


def make_due(core: Node, word: str) -> None:
    """Let one timer be due at the time 0, and no other."""
    thief, parked = core.thief, core.victim._parked
    if word == "rested":
        thief._resting_until_s = 0.0
    elif word == "refuse":
        parked[0] = replace(parked[0], until_s=0.0)
    elif word == "over":
        core.leaving._until_s = 0.0
    elif word == "overrun":
        copy, running = next(iter(core.limits._running.items()))
        core.limits._running[copy] = replace(running, until_s=0.0)
    else:
        late_s = -thief._config.fish_deadline_s
        thief._out = {fish: replace(sent, at_s=late_s) for fish, sent in thief._out.items()}
