"""Scenarios: a way through a scope as a text that people read and the tests replay.

What lives here: writing, reading and replaying them.  A replay goes through none of the search's tables: it drives a
`Cluster` of live cores, checks the invariants after every event, and at the end that everything ends.

    # whatever is to be said
    scope nested
    hungry 1.1
    deliver 1 -> 0 choose 1
    deliver 0 -> 1 past 1
    kill 2
    suspect 2 by 0

`hungry`, `run`, `give`, `crash`, `crash-outer`, `kill-scheduler` and `crash-reader` name a scheduler; `rested`,
`refuse` and `late` are timers of a node; `place` is the next task that the program places, `join` the next newcomer
that the root lets in,
`cancel` a future that the program cancels;
`halt` is a node that learns that it was declared dead, `leave` one that is told to leave, `over` the end of its time.
After `past` comes how many others a message overtakes, after `choose` the numbers that the core's chooser answers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable

from hdphrs.audit.violation import Violation
from hdphrs.errors import UsageError
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.moves import GRACE_S, SCHEDULER_WORDS, TIMERS, Move, arrivals, blamed, make_due, read_by, slow_down
from hdphrs.explore.scope import SCOPES, Scope
from hdphrs.protocol import events as ev
from hdphrs.protocol.tasks import PROGRAM, ROOT, NodeId, Origin

STEPS_MAX = 1_000
"""Rounds in which what is left must end; in a scope that is a small task."""

NEXT = ("place", "join", "cancel")
"""Words of the root that number what they are about."""

LINE = re.compile(
    r"""(?: deliver\ (?P<source>\d+)\ ->\ (?P<to>\d+)(?:\ past\ (?P<past>\d+))?
          | (?P<scheduler_word>[a-z-]+)\ (?P<node>\d+)\.(?P<origin>\d+)
          | suspect\ (?P<accused>\d+)\ by\ (?P<by>\d+)
          | (?P<next>place|join|cancel)\ (?P<index>\d+)
          | (?P<word>[a-z-]+)\ (?P<alone>\d+)
        )(?:\ choose(?P<choices>(?:\ \d+)+))?""",
    re.VERBOSE,
)


class Chooser:
    """Answers what a scenario says; beyond that by chance, always the same."""

    def __init__(self) -> None:
        self.script: list[int] = []
        self._random = random.Random("scenario")

    def __call__(self, options: int) -> int:
        return self.script.pop(0) if self.script else self._random.randrange(options)


def write(scope: Scope, told: str, moves: Iterable[Move]) -> str:
    """A scenario as text."""
    lines = [f"# {line}" for line in told.splitlines()]
    return "\n".join([*lines, f"scope {scope.name}", *map(_line, moves), ""])


def read(text: str) -> tuple[Scope, list[Move]]:
    """A scenario from its text.

    Raises:
        UsageError: a line is none; tells which.
    """
    scope: Scope | None = None
    moves: list[Move] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        if scope is None:
            name = line.removeprefix("scope ")
            if line == name or name not in SCOPES:
                raise UsageError(f"line {number}: expected `scope` and one of {', '.join(SCOPES)}, not {line!r}")
            scope = SCOPES[name]
            continue
        moves.append(_move(number, line))
    if scope is None:
        raise UsageError("a scenario begins with its scope")
    return scope, moves


def replay(scope: Scope, moves: Iterable[Move], tell: Callable[[str], None] = lambda _: None) -> Cluster:
    """Drive a live cluster along a scenario, and then on without further faults until everything has ended.

    Args:
        tell: called with a line for each move.

    Raises:
        Violation: an invariant does not hold; or AssertionError out of the core.
        UsageError: the cluster cannot move as the scenario says.
    """
    chooser = Chooser()
    cluster = scope.cluster(chooser)
    cluster.check()
    cluster.checked = True
    for number, move in enumerate(moves, 1):
        chooser.script = list(move.choices)
        told = _line(move)
        if move.word == "deliver" and (waiting := cluster.in_flight(move.about, move.node)[move.past :]):
            told += f"    # {waiting[0]}"
        tell(told)
        if not _is_possible(cluster, scope, move):
            raise UsageError(f"move {number}, {_line(move)!r}, is not possible there")
        play(cluster, scope, move)
    chooser.script = []
    tell("no further faults")
    cluster.finish(STEPS_MAX)
    for node, host in cluster.hosts.items():
        if host.runs and not host.is_idle:
            raise Violation(5, f"everything has ended, but node {node} keeps something of a task")
    return cluster


def play(cluster: Cluster, scope: Scope, move: Move) -> None:
    """One move."""
    node, origin = move.node, Origin(move.about)
    match move.word:
        case "deliver":
            if node in cluster.hosts:
                slow_down(cluster.core(node), cluster.in_flight(move.about, node)[move.past], scope)
            cluster.deliver(move.about, node, move.past)
        case "run":
            cluster.run(node, origin)
        case "give":
            cluster.give_back(node, origin)
        case "hungry":
            cluster.hungry(node, origin)
        case "crash" | "crash-outer" | "kill-scheduler":
            running = blamed(cluster.hosts[NodeId(node)], origin, move.word)
            cluster.crash(node, origin, running, blameless=move.word == "kill-scheduler")
        case "crash-reader":
            cluster.crash(node, origin, None, read_of=read_by(cluster.hosts[NodeId(node)], origin))
        case "kill":
            cluster.kill(node)
        case "halt":
            cluster.outcast(node)
        case "suspect":
            cluster.feed(node, ev.Suspected(NodeId(move.about)))
        case "leave":
            cluster.feed(node, ev.Leave(GRACE_S))
        case "place":
            slot, placed, at = scope.placed[move.about]
            cluster.place_one(at, slot, placed)
        case "join":
            cluster.join()
        case "cancel":
            cluster.cancel(move.about)
        case timer:
            make_due(cluster.core(node), timer)
            cluster.feed(node, ev.Tick())


def _is_possible(cluster: Cluster, scope: Scope, move: Move) -> bool:
    host = cluster.hosts.get(NodeId(move.node))
    if host is None:
        return _is_possible_before_welcome(cluster, move)
    if not host.runs:
        return False
    scheduler = host.schedulers.get(Origin(move.about))
    match move.word:
        case "deliver":
            return move.past in arrivals(scope, [type(one) for one in cluster.in_flight(move.about, move.node)])
        case "run":
            return scheduler is not None and bool(scheduler.queue)
        case "give":
            return scheduler is not None and bool(scheduler.not_started)
        case "hungry":
            return scheduler is not None and not scheduler.hungry
        case "crash" | "crash-outer" | "kill-scheduler":
            return scheduler is not None and bool(scheduler.queue or scheduler.waiting)
        case "crash-reader":
            return scheduler is not None and bool(scheduler.resumed)
        case "rested":
            return host.core.thief._resting_until_s is not None
        case "refuse":
            return host.core.victim.parked > 0
        case "late":
            return host.core.thief.out > 0
        case "leave":
            return move.node != ROOT and not host.core.leaving.under_way
        case "over":
            return host.core.leaving.under_way
        case "place":
            return move.about < len(scope.placed)
        case "join":
            return move.about < scope.joins
        case "cancel":
            return (PROGRAM, move.about) in host.awaited
        case "suspect":
            return move.about in cluster.hosts
        case _:
            return True


def _is_possible_before_welcome(cluster: Cluster, move: Move) -> bool:
    members = cluster.core(ROOT).members
    match move.word:
        case "deliver":
            return move.about == ROOT and bool(cluster.in_flight(ROOT, move.node))
        case "kill":
            return members.is_live(NodeId(move.node))
        case "halt":
            return members.is_dead(NodeId(move.node))
        case _:
            return False


def _line(move: Move) -> str:
    if move.word == "deliver":
        line = f"deliver {move.about} -> {move.node}" + (f" past {move.past}" if move.past else "")
    elif move.word in SCHEDULER_WORDS:
        line = f"{move.word} {move.node}.{move.about}"
    elif move.word == "suspect":
        line = f"suspect {move.about} by {move.node}"
    elif move.word in NEXT:
        line = f"{move.word} {move.about}"
    else:
        line = f"{move.word} {move.node}"
    return " ".join([line, "choose", *map(str, move.choices)]) if move.choices else line


def _move(number: int, line: str) -> Move:
    match = LINE.fullmatch(line)
    words = match.groupdict() if match else {}
    choices = tuple(int(choice) for choice in (words.get("choices") or "").split())
    if words.get("source"):
        return Move("deliver", int(words["to"]), int(words["source"]), choices, int(words["past"] or 0))
    if words.get("scheduler_word") in SCHEDULER_WORDS:
        return Move(words["scheduler_word"], int(words["node"]), int(words["origin"]), choices)
    if words.get("accused"):
        return Move("suspect", int(words["by"]), int(words["accused"]), choices)
    if words.get("next"):
        return Move(words["next"], ROOT, int(words["index"]), choices)
    if words.get("word") in (*TIMERS, "kill", "halt", "leave"):
        return Move(words["word"], int(words["alone"]), 0, choices)
    raise UsageError(f"line {number}: there is no move {line!r}")
