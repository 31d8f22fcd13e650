"""The space of a search: states as small tuples of numbers, and what leads from one to the next.

What lives here: a state is one number for each host, one for each queue between two nodes, one for what may still go
wrong; each number names a value in a table.  A step changes one host and few queues, so a step is looked up: the core
is asked once for each pair of a host and an event, and every further time the answer is in a table.  This is what the
purity of the core buys.

Nothing is left out: a message, a timer, a death, its notice by the root and the news of it are steps of their own,
every queue may deliver next, and in some scopes what is quick before what may be large (decision 32).  Two states that
differ only in names are one (see `hdphrs.explore.names`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hdphrs.audit.scan import Facts, facts, scan, scan_still
from hdphrs.audit.violation import Violation
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.freeze import MESSAGES, check_fields, number_ids
from hdphrs.explore.moves import Act, Move, arrivals
from hdphrs.explore.names import Names, State, links_of
from hdphrs.explore.numbers import ABSENT, GONE, NOTHING, Numbers, Table
from hdphrs.explore.scope import Scope
from hdphrs.explore.steps import About, Outcome, Steps
from hdphrs.protocol import messages as msg
from hdphrs.protocol.tasks import ROOT, NodeId

Step = tuple[Move, Outcome | None, State, bool]
"""(move, outcome if a core was asked, raw state after it, whether it is no fault)."""

BUSY = (
    *(msg.Schedule, msg.Push, msg.Result, msg.Req, msg.Auth, msg.Denied, msg.Obsolete, msg.Ack, msg.Purge, msg.Cancel),
    *(msg.Recall, msg.Recalled, msg.Await, msg.Gone),
)
"""Messages that are about tasks."""

SEEN = (msg.Schedule, msg.Push, msg.Result, msg.Await, msg.Gone)
"""Messages that the invariants look at."""


class World(NamedTuple):
    """What may still happen by fault, how many have joined, and how far the program is."""

    deaths: int
    suspicions: int
    crashes: int
    lates: int
    leaves: int
    cancels: int
    joins: int
    placed: int


class Space:
    """All states of a scope, as far as they have been asked for."""

    def __init__(self, scope: Scope, *, symmetric: bool = True) -> None:
        """With `symmetric` false, no state stands for its permutations."""
        self.scope = scope
        self.nodes: int = scope.nodes_max
        self._links = links_of(self.nodes)
        self._link = [[-1] * self.nodes for _ in range(self.nodes)]
        for index, (source, to) in enumerate(self._links, self.nodes):
            self._link[source][to] = index
        self._numbers = numbers = Numbers(scope.config)
        self._steps = Steps(scope, numbers)
        self.outcomes: list[Outcome] = self._steps.outcomes
        self.names: Names = Names(self.nodes, scope.nodes, numbers, symmetric=symmetric)
        self._arrivals = Table(self._arrivals_of)
        self._pushed = Table(lambda key: numbers.of("queue", (*numbers.values[key[0]], key[1])))
        self._spent = Table(lambda key: numbers.of("world", numbers.values[key[0]]._replace(**{key[1]: key[2]})))
        self._busy = Table(self._is_busy)
        self._cargo = Table(self._cargo_of)
        self._verdicts = Table(self._scan)
        self._still_verdicts = Table(self._scan_still)
        self.initial: State = self.start(scope.cluster())

    # ---- what a search asks ----------------------------------------------------------------------------------

    def verdict(self, state: State) -> Violation | None:
        """What is wrong with a state, by itself."""
        cargo = self._cargo
        seen = tuple([cargo[part] for part in state])
        verdict: Violation | None = self._verdicts[seen]
        if verdict is None and state.count(NOTHING) == len(self._links):
            verdict = self._still_verdicts[seen[: self.nodes]]
        return verdict

    def is_quiet(self, state: State) -> bool:
        """Whether all futures are full, and nothing that has to do with a task is left anywhere."""
        return not any(map(self._busy.__getitem__, state))

    def expand(self, state: State) -> Iterator[Step]:
        """Everything that may happen next."""
        nodes = self.nodes
        for index, (source, to) in enumerate(self._links, nodes):
            queue = state[index]
            if queue != NOTHING and (state[to] != ABSENT or source == ROOT):  # others wait for its WELCOME
                for past, message, rest in self._arrivals[queue]:
                    for outcome in self._steps.of[state[to], source, message]:
                        after = self._applied(state, to, outcome, index, rest)
                        yield Move("deliver", to, source, outcome.choices, past), outcome, after, True
        for node in range(nodes):
            if state[node] != GONE:
                for what in self._steps.about[state[node]].acts:
                    for outcome in self._steps.of[state[node], what.word, what.about]:
                        after = self._applied(state, node, outcome)
                        yield Move(what.word, node, what.about, outcome.choices), outcome, after, True
        yield from self._deaths(state)
        yield from self._other_faults(state)

    def _other_faults(self, state: State) -> Iterator[Step]:
        world: World = self._numbers.values[state[-1]]
        if world.placed < len(self.scope.placed):
            spent = self._spent[state[-1], "placed", world.placed + 1]
            yield from self._acted(state, ROOT, Act("place", world.placed), spent, free=True)
        if world.joins < self.scope.joins and (self._steps.about[state[ROOT]].dead or not self.scope.replaces):
            spent = self._spent[state[-1], "joins", world.joins + 1]
            yield from self._acted(state, ROOT, Act("join", world.joins), spent)
        if world.crashes:
            spent = self._spent[state[-1], "crashes", world.crashes - 1]
            for node in range(self.nodes):
                if state[node] != GONE:
                    for what in self._steps.about[state[node]].crashes:
                        yield from self._acted(state, node, what, spent)
        if world.lates:
            spent = self._spent[state[-1], "lates", world.lates - 1]
            for node in range(self.nodes):
                if state[node] != GONE and self._steps.about[state[node]].fishing:
                    yield from self._acted(state, node, Act("late"), spent)
        if world.cancels:
            spent = self._spent[state[-1], "cancels", world.cancels - 1]
            for slot in self._steps.about[state[ROOT]].empty:
                yield from self._acted(state, ROOT, Act("cancel", slot), spent)
        yield from self._leaves(state)

    def _leaves(self, state: State) -> Iterator[Step]:
        world: World = self._numbers.values[state[-1]]
        for node in range(1, self.nodes):
            if state[node] in (GONE, ABSENT):
                continue
            if self._steps.about[state[node]].leaving:
                yield from self._acted(state, node, Act("over"), state[-1])
            elif world.leaves:
                spent = self._spent[state[-1], "leaves", world.leaves - 1]
                yield from self._acted(state, node, Act("leave"), spent)

    def _deaths(self, state: State) -> Iterator[Step]:
        world: World = self._numbers.values[state[-1]]
        root: About = self._steps.about[state[ROOT]]
        for node in range(1, self.nodes):
            runs, is_member = state[node] != GONE, node in root.others
            if not is_member:
                if runs and node in root.dead:
                    yield Move("halt", node), None, self._without(state, node, state[-1]), True
                continue
            if runs and world.deaths:
                spent = self._spent[state[-1], "deaths", world.deaths - 1]
                yield Move("kill", node), None, self._without(state, node, spent), False
            if not runs:
                yield from self._acted(state, ROOT, Act("suspect", node), state[-1], free=True)
            if world.suspicions:
                spent = self._spent[state[-1], "suspicions", world.suspicions - 1]
                for by in range(0 if runs else 1, self.nodes):
                    if by != node and state[by] != GONE and node in self._steps.about[state[by]].others:
                        yield from self._acted(state, by, Act("suspect", node), spent)

    def _acted(self, state: State, node: int, what: Act, world: int, *, free: bool = False) -> Iterator[Step]:
        for outcome in self._steps.of[state[node], what.word, what.about]:
            after = self._applied((*state[:-1], world), node, outcome)
            yield Move(what.word, node, what.about, outcome.choices), outcome, after, free

    def _applied(self, state: State, node: int, outcome: Outcome, index: int = 0, rest: int = 0) -> State:
        after = list(state)
        if index:
            after[index] = rest
        after[node] = outcome.host
        for to, message in outcome.sends:
            if after[to] != GONE:
                link = self._link[node][to]
                after[link] = self._pushed[after[link], message]
        for dead in outcome.fences:
            after[self._link[node][dead]] = after[self._link[dead][node]] = NOTHING
        if outcome.host == GONE:
            for source in range(self.nodes):
                if source != node:
                    after[self._link[source][node]] = NOTHING
        return tuple(after)

    def _without(self, state: State, node: int, world: int) -> State:
        """A node is gone; what it had sent is still under way."""
        after = list(state)
        after[node], after[-1] = GONE, world
        for source in range(self.nodes):
            if source != node:
                after[self._link[source][node]] = NOTHING
        return tuple(after)

    # ---- what is known of the parts of a state ---------------------------------------------------------------

    def _arrivals_of(self, number: int) -> tuple[tuple[int, int, int], ...]:
        """What may arrive next from a queue: (how many others it overtakes, message, the queue after it)."""
        queue = self._numbers.values[number]
        kinds = [frozen[0] for frozen in self._numbers.queue(number)]
        return tuple(
            (past, queue[past], self._numbers.of("queue", (*queue[:past], *queue[past + 1 :])))
            for past in arrivals(self.scope, kinds)
        )

    def _is_busy(self, number: int) -> bool:
        kind, value = self._numbers.kinds[number], self._numbers.values[number]
        if kind == "host":
            about: About = self._steps.about[number]
            return not about.idle
        if kind == "world":
            return bool(value.placed < len(self.scope.placed))
        return kind == "queue" and any(frozen[0] in BUSY for frozen in self._numbers.queue(number))

    def _cargo_of(self, number: int) -> int:
        """What the invariants see of a value, as the number of a value."""
        return self._numbers.of("cargo", self._seen_of(number))

    def _seen_of(self, number: int) -> Facts | tuple[msg.Message, ...] | None:
        kind = self._numbers.kinds[number]
        if kind == "host":
            return facts(self._numbers.host(number).core, [NodeId(node) for node in range(self.nodes)])
        if kind == "queue":
            frozen = self._numbers.queue(number)
            return tuple(MESSAGES.thaw([one for one in frozen if one[0] in SEEN]))
        return None

    def _scan(self, numbers: tuple[int, ...]) -> Violation | None:
        parts = [self._numbers.values[number] for number in numbers]
        running = {NodeId(node): told for node, told in enumerate(parts[: self.nodes]) if isinstance(told, Facts)}
        flights = [
            (NodeId(source), NodeId(to), messages)
            for (source, to), messages in zip(self._links, parts[self.nodes : -1], strict=True)
        ]
        try:
            scan(running, flights)
        except Violation as violation:
            return violation
        return None

    def _scan_still(self, numbers: tuple[int, ...]) -> Violation | None:
        parts = [self._numbers.values[number] for number in numbers]
        try:
            scan_still({NodeId(node): told for node, told in enumerate(parts) if told is not None})
        except Violation as violation:
            return violation
        return None

    # ---- live clusters ---------------------------------------------------------------------------------------

    def start(self, cluster: Cluster) -> State:
        """The state of a cluster at its beginning."""
        for host in cluster.hosts.values():
            check_fields(host.core)
        scope = self.scope
        world = World(
            scope.deaths,
            scope.suspicions,
            scope.crashes,
            scope.lates,
            scope.leaves,
            scope.cancels,
            joins=0,
            placed=0,
        )
        return self.look(cluster, self._numbers.of("world", world))

    def look(self, cluster: Cluster, world: int) -> State:
        """The state of a live cluster, but for what may still go wrong.

        It must be looked at after each move: from now on the ids of a newcomer are as in the states of this space.
        """
        for host in cluster.hosts.values():
            if host.runs:
                number_ids(host)
        there = [cluster.hosts.get(NodeId(node)) for node in range(self.nodes)]
        hosts = [self._numbers.of_host(host) if host else ABSENT for host in there]
        queues = [
            self._numbers.of_queue(cluster.in_flight(source, to)) if hosts[to] != GONE else NOTHING
            for source, to in self._links
        ]
        return (*hosts, *queues, world)
