"""In random plays every step of the cluster is a sequence of rules of Figure 5 (sections 5.1 and 5.4).

The concrete states before and after each move are abstracted (`abstraction.py`), and for each task the rules that lead
from the one to the other are searched for.  Four rules are ours; it can be seen that they are needed:

* `discard`: a spark or thread that has not begun disappears on a live node, because its IVar is on a dead one (R1) or
  tracks another copy (OBSOLETE, section 4.3).  If its IVar is full, it may as well have been run, says Figure 5 (R17);
* `recover_thread_as_spark`: the right side of (recover_spark) for a thread (R9);
* `track_late`: an ACK arrives when its spark has been converted, or has died with its node.  (track) is for sparks
  only, so in Figure 5 it would have to come before (convert) or (kill_spark), which it may; the message needs longer.
* `migrate_late`: an old copy leaves, by an AUTH that was under way while the newest one filled its IVar.  (migrate)
  needs the IVar to be empty, so in Figure 5 it comes before (rput_empty_spark).

What is left out: tasks with children, deaths of schedulers, and broken links, of which the figure knows nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import CODE, task
from hdphrs.protocol import events as ev
from hdphrs.protocol.messages import Auth, Req
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import NodeId, Origin
from tests.paper.abstraction import abstract
from tests.paper.machine import successors
from tests.paper.states import (
    Dead,
    Full,
    IVar,
    OverSpark,
    OverThread,
    Spark,
    State,
    Thread,
    names_of,
    same,
)
from tests.protocol.play import Faults, Play, Scene

NODES = (0, 1, 2, 3, 4)
STEPS_MAX = 5
RUN = "eval bind normalize"
MACROS = (
    *("track", "migrate", f"convert {RUN}", RUN),
    *("rput_empty_thread gc_thread", "rput_empty_spark gc_thread", "rput_full gc_thread", "rput_zombie gc_thread"),
    *("kill_spark", "kill_thread", "kill_ivar", "gc_ivar", "recover_spark"),
)
"""Rules that are taken together: what a scheduler does at once, and a write with the end of its thread."""

OURS = ("recover_thread_as_spark", "track_late", "migrate_late", "discard")


def steps(state: State, rule: str) -> Iterator[State]:
    """One step by a rule of the figure, or by one of ours."""
    if rule == "discard":
        for atom in state:
            if isinstance(atom, Spark | Thread) and _is_replaceable(state, atom):
                yield tuple(other for other in state if other is not atom)
    elif rule == "track_late":
        for atom in state:
            if isinstance(atom, OverSpark):
                rest = tuple(other for other in state if other is not atom)
                for node in sorted(atom.tracked):
                    if any(isinstance(other, Thread | Dead) and other.node == node for other in rest):
                        yield (*rest, OverSpark(atom.ivar, atom.term, frozenset([node]), atom.node))
    elif rule == "migrate_late":
        for atom in state:
            if isinstance(atom, Spark) and any(isinstance(other, Full) for other in state):
                rest = tuple(other for other in state if other is not atom)
                for node in NODES:
                    yield (*rest, Spark(atom.term, node))
    elif rule == "recover_thread_as_spark":
        for atom in state:
            if isinstance(atom, OverThread) and Dead(atom.at) in state and atom.at != atom.node:
                rest = tuple(other for other in state if other is not atom)
                here = frozenset([atom.node])
                yield (*rest, OverSpark(atom.ivar, atom.term, here, atom.node), Spark(atom.term, atom.node))
    else:
        yield from successors(state, rule, NODES)


def _is_replaceable(state: State, copy: Spark | Thread) -> bool:
    (ivar,) = (atom for atom in state if isinstance(atom, IVar))
    if Dead(ivar.node) in state:
        return True
    others = [atom for atom in state if isinstance(atom, Spark | Thread) and atom is not copy]
    return isinstance(ivar, OverSpark) and any(other.node in ivar.tracked for other in others)


def path(before: State, after: State) -> list[str]:
    """The shortest sequence of rules from the one state of a task to the other, with as few of ours as need be."""
    for macros in (MACROS, MACROS + OURS):
        found = _path(before, after, macros)
        if found is not None:
            return found
    raise AssertionError(f"no rules lead from {before} to {after}")


def _path(before: State, after: State, macros: tuple[str, ...]) -> list[str] | None:
    useful = (frozenset(NODES), _tracked(after))  # an old copy moves while all nodes are tracked for a moment
    frontier: list[tuple[State, list[str]]] = [(before, [])]
    seen = [before]
    for _ in range(STEPS_MAX + 1):
        further: list[tuple[State, list[str]]] = []
        for state, taken in frontier:
            if same(state, after):
                return taken
            for macro in macros:
                reached = [state]
                for rule in macro.split():
                    reached = [one for middle in reached for one in steps(middle, rule)]
                for one in reached:
                    if macro == "track" and _tracked(one) not in useful:
                        continue
                    if not any(same(one, other) for other in seen):
                        seen.append(one)
                        further.append((one, [*taken, macro]))
        frontier = further
    return None


def _tracked(state: State) -> frozenset[int] | None:
    return next((atom.tracked for atom in state if isinstance(atom, OverSpark)), None)


def rules_between(before: State, after: State) -> list[str]:
    """The rules of all tasks that a move has touched."""
    dead = tuple(atom for atom in after if isinstance(atom, Dead))
    assert all(atom in dead for atom in before if isinstance(atom, Dead))
    taken = ["dead"] * (len(dead) - sum(isinstance(atom, Dead) for atom in before))
    for name in sorted(names_of(before) | names_of(after)):
        one, other = _of(before, name), _of(after, name)
        if not same(one, other):
            taken += path(one + dead, other + dead)
    return taken


def _of(state: State, name: str) -> State:
    return tuple(atom for atom in state if not isinstance(atom, Dead) and name in names_of((atom,)))


class LeafPlay(Play):
    """A random play of tasks without children, of several supervisors."""

    def __init__(self, faults: Faults, *, wander: bool) -> None:
        config = CoreConfig(guards_max=2, fish_max=2, want_max=3, start_max=1, parked_max=2)
        self.cluster = Cluster(4, config=config, choose=None)
        self.faults = faults
        self.scene = Scene(4, wander=wander)
        self.cluster.up(0)
        self.cluster.spawn(3)
        for node in (1, 2):
            children = tuple((slot, task(b"%d.%d" % (node, slot))) for slot in range(2))
            self.cluster.feed(node, ev.Learned(CODE, b"def f"))
            self.cluster.feed(node, ev.Exported(Origin(1), children))
            self.cluster.place(node)
        for node in (1, 2, 3):
            self.cluster.hungry(NodeId(node))


def rules_of_plays(seeds: int) -> dict[str, int]:
    """How often each rule is taken in so many plays."""
    taken: dict[str, int] = {}
    for seed in range(seeds):
        draw = random.Random(seed)
        play = LeafPlay(Faults(deaths=2, false_suspicions=1, joins=1), wander=seed % 2 == 0)
        state = abstract(play.cluster)
        for _ in range(150):
            moves = play.moves()
            moves[draw.randrange(len(moves))]()
            before, state = state, abstract(play.cluster)
            for macro in rules_between(before, state):
                for rule in macro.split():
                    taken[rule] = taken.get(rule, 0) + 1
    return taken


def test_every_step_of_random_plays_is_a_sequence_of_rules() -> None:
    """And all rules are taken; `discard` is needed so rarely that it has a scenario in `test_correspondence.py`."""
    taken = rules_of_plays(50)
    rules = ["dead", "recover_thread_as_spark", "track_late", *(rule for macro in MACROS for rule in macro.split())]
    assert [rule for rule in rules if rule not in taken] == []


def test_move_that_was_not_tracked_is_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: AUTH is given, and the record forgotten."""

    def careless(self: Supervisor, message: Req, *, thief_is_dead: bool) -> Auth:
        return Auth(message.request)

    monkeypatch.setattr(Supervisor, "on_req", careless)
    monkeypatch.setattr(Cluster, "_check", lambda self: None)
    with pytest.raises(AssertionError, match="no rules lead"):
        rules_of_plays(40)
