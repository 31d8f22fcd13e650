"""The space of a search: states as small tuples of numbers, and what leads from one to the next.

What lives here: a state is one number for each host, one for each queue between two nodes, one for what may still go
wrong; each number names a value in a table.  A step changes one host and few queues, so a step is looked up: the core
is asked once for each pair of a host and an event, and every further time the answer is in a table.  This is what the
purity of the core buys.

Two states that differ only in names are one: ids of fish and requests are renumbered when there are gaps, and of all
permutations of the nodes but the root the one with the smallest tuple stands for all.
Nothing else is left out: a death, its notice by the root and the news of it are steps of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any, NamedTuple

from hdphrs.audit.scan import Facts, facts, scan
from hdphrs.audit.violation import Violation
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.freeze import (
    MESSAGES,
    REQUEST_BIT,
    Renaming,
    check_fields,
    fish_base,
    freeze_host,
    ids_of_host,
    number_ids,
    rename_host,
    request_base,
    thaw_host,
)
from hdphrs.explore.host import Host
from hdphrs.explore.moves import CRASHES, Act, Move, act, acts_of, receive
from hdphrs.explore.scope import Scope
from hdphrs.protocol import effects as fx
from hdphrs.protocol import messages as msg
from hdphrs.protocol.tasks import ROOT, NodeId

State = tuple[int, ...]
GONE = 0
"""The number of a host that takes no events any more."""
NOTHING = 1
"""The number of an empty queue."""

BUSY = (msg.Schedule, msg.Push, msg.Result, msg.Req, msg.Auth, msg.Denied, msg.Obsolete, msg.Ack, msg.Purge)
"""Messages that are about tasks."""

NAMED = {msg.Obsolete: "obsolete", msg.Denied: "denied"}
"""Messages that count as something that a search has met."""


class World(NamedTuple):
    """What may still happen by fault, and how far the program is."""

    deaths: int
    suspicions: int
    crashes: int
    lates: int
    placed: int


class Outcome:
    """What one host does with one event; the same for all states in which it happens."""

    __slots__ = ("broken", "choices", "fences", "host", "labels", "met", "sends")

    def __init__(self, choices: tuple[int, ...]) -> None:
        self.choices = choices
        self.host = GONE
        self.sends: tuple[tuple[int, int], ...] = ()
        """(to, number of the message)."""
        self.fences: tuple[int, ...] = ()
        self.labels: tuple[str, ...] = ()
        self.broken: Exception | None = None
        self.met = 0
        """In how many transitions."""


class Table(dict[Any, Any]):
    """A table that asks for what it does not have yet."""

    def __init__(self, ask: Any) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, key: Any) -> Any:
        value = self[key] = self._ask(key)
        return value


class _Chance:
    """A chooser that follows a script, and then takes the first; it knows what else there was."""

    def __init__(self, script: tuple[int, ...]) -> None:
        self._script = script
        self._taken: list[tuple[int, int]] = []

    def __call__(self, options: int) -> int:
        at = len(self._taken)
        choice = self._script[at] if at < len(self._script) else 0
        self._taken.append((choice, options))
        return choice

    @property
    def taken(self) -> tuple[int, ...]:
        """What was chosen."""
        return tuple(choice for choice, _ in self._taken)

    def following(self) -> tuple[int, ...] | None:
        """The next script, in order; None after the last."""
        taken = list(self._taken)
        while taken:
            choice, options = taken.pop()
            if choice + 1 < options:
                return (*(before for before, _ in taken), choice + 1)
        return None


class _About(NamedTuple):
    """What a search wants to know of a host again and again."""

    acts: tuple[Act, ...]
    crashes: tuple[Act, ...]
    others: frozenset[NodeId]
    dead: frozenset[NodeId]
    fishing: bool
    idle: bool


class Space:
    """All states of a scope, as far as they have been asked for."""

    def __init__(self, scope: Scope, *, symmetric: bool = True) -> None:
        """With `symmetric` false, no state stands for its permutations."""
        self.scope = scope
        self.nodes = scope.nodes
        self._values: list[Any] = [None, ()]
        self._numbers: dict[tuple[str, Any], int] = {("gone", None): GONE, ("queue", ()): NOTHING}
        self._kinds: list[str] = ["gone", "queue"]
        self._messages: list[Any] = []
        self._message_numbers: dict[Any, int] = {}
        self._links = [(s, t) for s in range(self.nodes) for t in range(self.nodes) if s != t]
        self._link = [[-1] * self.nodes for _ in range(self.nodes)]
        for index, (source, to) in enumerate(self._links):
            self._link[source][to] = self.nodes + index
        self.outcomes: list[Outcome] = []
        self._steps = Table(self._step)
        self._heads = Table(self._head)
        self._pushed = Table(self._push)
        self._about = Table(self._tell)
        self._busy = Table(self._is_busy)
        self._ids = Table(self._ids_of)
        self._gaps = Table(self._gaps_of)
        self._cargo = Table(self._cargo_of)
        self._verdicts = Table(self._scan)
        self._spent = Table(lambda key: self._number("world", self._values[key[0]]._replace(**{key[1]: key[2]})))
        self._renamed: Table = Table(lambda renaming: Table(lambda number: self._rename(number, renaming)))
        self._permutations = list(self._all_permutations()) if symmetric else []
        self.initial = self.start(scope.cluster())

    # ---- what a search asks ----------------------------------------------------------------------------------

    def canonical(self, raw: State) -> State:
        """The state that stands for this one."""
        best = state = self.numbered(raw)
        for order, table in self._permutations:
            other = tuple([table[state[index]] for index in order])
            if other < best:
                best = other
        return best

    def numbered(self, raw: State) -> State:
        """The same state without gaps in its ids."""
        ids = self._ids
        gaps = self._gaps[tuple([ids[part] for part in raw])]
        return raw if gaps is None else tuple(map(self._renamed[gaps].__getitem__, raw))

    def verdict(self, state: State) -> Violation | None:
        """What is wrong with a state, by itself."""
        cargo = self._cargo
        verdict: Violation | None = self._verdicts[tuple([cargo[part] for part in state])]
        return verdict

    def is_quiet(self, state: State) -> bool:
        """Whether all futures are full, and nothing that has to do with a task is left anywhere."""
        return not any(map(self._busy.__getitem__, state))

    def expand(self, state: State) -> Iterator[tuple[Move, Outcome | None, State, bool]]:
        """Everything that may happen next: (move, outcome, raw state after it, whether it is no fault)."""
        nodes = self.nodes
        for index, (source, to) in enumerate(self._links, nodes):
            queue = state[index]
            if queue != NOTHING:
                message, rest = self._heads[queue]
                for outcome in self._steps[state[to], source, message]:
                    after = self._applied(state, to, outcome, index, rest)
                    yield Move("deliver", to, source, outcome.choices), outcome, after, True
        for node in range(nodes):
            if state[node] != GONE:
                for what in self._about[state[node]].acts:
                    for outcome in self._steps[state[node], what.word, what.about]:
                        after = self._applied(state, node, outcome)
                        yield Move(what.word, node, what.about, outcome.choices), outcome, after, True
        yield from self._deaths(state)
        world: World = self._values[state[-1]]
        if world.placed < len(self.scope.placed):
            spent = self._spent[state[-1], "placed", world.placed + 1]
            yield from self._acted(state, ROOT, Act("place", world.placed), spent, free=True)
        if world.crashes:
            spent = self._spent[state[-1], "crashes", world.crashes - 1]
            for node in range(nodes):
                if state[node] != GONE:
                    for what in self._about[state[node]].crashes:
                        yield from self._acted(state, node, what, spent)
        if world.lates:
            spent = self._spent[state[-1], "lates", world.lates - 1]
            for node in range(nodes):
                if state[node] != GONE and self._about[state[node]].fishing:
                    yield from self._acted(state, node, Act("late"), spent)

    def _deaths(self, state: State) -> Iterator[tuple[Move, Outcome | None, State, bool]]:
        world: World = self._values[state[-1]]
        root: _About = self._about[state[ROOT]]
        for node in range(1, self.nodes):
            runs, is_member = state[node] != GONE, node in root.others
            if not is_member:
                if runs:
                    yield Move("halt", node), None, self._without(state, node, state[-1]), True
                continue
            if runs and world.deaths:
                spent = self._spent[state[-1], "deaths", world.deaths - 1]
                yield Move("kill", node), None, self._without(state, node, spent), False
            if not runs:
                yield from self._acted(state, ROOT, Act("suspect", node), state[-1], free=True)
            if world.suspicions:
                spent = self._spent[state[-1], "suspicions", world.suspicions - 1]
                for by in range(self.nodes):
                    if (
                        by != node
                        and (runs or by != ROOT)
                        and state[by] != GONE
                        and node in self._about[state[by]].others
                    ):
                        yield from self._acted(state, by, Act("suspect", node), spent)

    def _acted(
        self, state: State, node: int, what: Act, world: int, *, free: bool = False
    ) -> Iterator[tuple[Move, Outcome, State, bool]]:
        for outcome in self._steps[state[node], what.word, what.about]:
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

    # ---- the tables ------------------------------------------------------------------------------------------

    def _number(self, kind: str, value: Any) -> int:
        number = self._numbers.get((kind, value))
        if number is None:
            number = self._numbers[kind, value] = len(self._values)
            self._values.append(value)
            self._kinds.append(kind)
        return number

    def _message(self, frozen: Any) -> int:
        number = self._message_numbers.get(frozen)
        if number is None:
            number = self._message_numbers[frozen] = len(self._messages)
            self._messages.append(frozen)
        return number

    def _host(self, number: int, chance: _Chance) -> Host:
        return thaw_host(self._values[number], self.scope.config, chance)

    def _step(self, key: tuple[int, Any, int]) -> tuple[Outcome, ...]:
        number, word, about = key
        outcomes: list[Outcome] = []
        script: tuple[int, ...] | None = ()
        while script is not None:
            chance = _Chance(script)
            host = self._host(number, chance)
            effects: list[fx.Effect] = []
            broken: Exception | None = None
            try:
                if isinstance(word, str):
                    effects = act(host, Act(word, about), self.scope)
                else:
                    (message,) = MESSAGES.thaw((self._messages[about],))
                    effects = receive(host, NodeId(word), message, self.scope)
            except Exception as error:  # whatever it is: the core must not raise
                broken = error
            outcome = Outcome(chance.taken)
            outcome.broken = broken
            if broken is None:
                self._note(outcome, host, effects)
            outcomes.append(outcome)
            script = chance.following()
        self.outcomes += outcomes
        return tuple(outcomes)

    def _note(self, outcome: Outcome, host: Host, effects: list[fx.Effect]) -> None:
        if host.runs:
            outcome.host = self._number("host", freeze_host(host))
        sends = [effect for effect in effects if isinstance(effect, fx.Send)]
        outcome.sends = tuple(
            (send.to, self._message(frozen))
            for send, frozen in zip(sends, MESSAGES.freeze([send.message for send in sends]), strict=True)
        )
        outcome.fences = tuple(effect.node for effect in effects if isinstance(effect, fx.Fence))
        counted = [name for name, count in host.core.counters.items() if count]
        sent = [NAMED[type(send.message)] for send in sends if type(send.message) in NAMED]
        outcome.labels = (*counted, *sent)

    def _head(self, number: int) -> tuple[int, int]:
        first, *rest = self._values[number]
        return first, self._number("queue", tuple(rest))

    def _push(self, key: tuple[int, int]) -> int:
        return self._number("queue", (*self._values[key[0]], key[1]))

    def _tell(self, number: int) -> _About:
        host = self._host(number, _Chance(()))
        core = host.core
        known = [NodeId(node) for node in range(self.nodes)]
        return _About(
            acts=tuple(acts_of(host, gives=self.scope.gives)),
            crashes=tuple(
                Act(word, origin)
                for origin, scheduler in host.schedulers.items()
                if scheduler.queue or scheduler.waiting
                for word in CRASHES[: 2 + (len(scheduler.queue) + len(scheduler.waiting) > 1)]
            ),
            others=frozenset(core.members.others()),
            dead=frozenset(node for node in known if core.members.is_dead(node)),
            fishing=core.thief.out > 0,
            idle=host.is_idle,
        )

    def _is_busy(self, number: int) -> bool:
        kind, value = self._kinds[number], self._values[number]
        if kind == "host":
            about: _About = self._about[number]
            return not about.idle
        if kind == "world":
            return bool(value.placed < len(self.scope.placed))
        return kind == "queue" and any(self._messages[message][0] in BUSY for message in value)

    # ---- names -----------------------------------------------------------------------------------------------

    def _ids_of(self, number: int) -> int:
        """The ids that a value refers to, and the next ones if it is a host, as the number of a value."""
        return self._number("ids", self._ids_and_nexts(number))

    def _ids_and_nexts(self, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        kind, value = self._kinds[number], self._values[number]
        if kind == "host":
            core = self._host(number, _Chance(())).core
            return tuple(sorted({*ids_of_host(value)})), (core.thief._next_fish, core.victim._next_request)
        if kind == "queue":
            frozen = [self._messages[message] for message in value]
            return tuple(sorted({*MESSAGES.ids(frozen)})), ()
        return (), ()

    def _gaps_of(self, numbers: tuple[int, ...]) -> Renaming | None:
        """The renaming that closes the gaps, if there are any."""
        parts: list[tuple[tuple[int, ...], tuple[int, ...]]] = [self._values[number] for number in numbers]
        used = sorted({number for ids, _ in parts for number in ids})
        after = {fish_base(NodeId(n)) for n in range(self.nodes)} | {request_base(NodeId(n)) for n in range(self.nodes)}
        ids: list[tuple[int, int]] = []
        for base in sorted(after):
            own = [number for number in used if base <= number < base + REQUEST_BIT - 1]
            ids += [(number, base + rank) for rank, number in enumerate(own)]
            ids += [
                (number, base + len(own))
                for _, nexts in parts
                for number in nexts
                if base <= number < base + REQUEST_BIT
            ]
        changed = tuple((old, new) for old, new in ids if old != new)
        return Renaming(tuple(NodeId(node) for node in range(self.nodes)), changed) if changed else None

    def _rename(self, number: int, renaming: Renaming) -> int:
        kind, value = self._kinds[number], self._values[number]
        if kind == "host":
            return self._number("host", rename_host(value, renaming))
        if kind == "queue":
            frozen = MESSAGES.rename([self._messages[message] for message in value], renaming)
            return self._number("queue", tuple([self._message(message) for message in frozen]))
        return number

    def _all_permutations(self) -> Iterator[tuple[list[int], Table]]:
        for workers in permutations(range(1, self.nodes)):
            new = (0, *workers)
            old = [new.index(node) for node in range(self.nodes)]
            if old == list(range(self.nodes)):
                continue
            links = [self._link[old[source]][old[to]] for source, to in self._links]
            renaming = Renaming(tuple(NodeId(node) for node in new))
            yield [*old, *links, self.nodes + len(links)], self._renamed[renaming]

    # ---- the invariants --------------------------------------------------------------------------------------

    def _cargo_of(self, number: int) -> int:
        """What the invariants see of a value, as the number of a value."""
        return self._number("cargo", self._seen_of(number))

    def _seen_of(self, number: int) -> Facts | tuple[msg.Message, ...] | None:
        kind, value = self._kinds[number], self._values[number]
        if kind == "host":
            core = self._host(number, _Chance(())).core
            return facts(core, [NodeId(node) for node in range(self.nodes)])
        if kind == "queue":
            frozen = [self._messages[message] for message in value]
            return tuple(MESSAGES.thaw([one for one in frozen if one[0] in (msg.Schedule, msg.Push, msg.Result)]))
        return None

    def _scan(self, numbers: tuple[int, ...]) -> Violation | None:
        parts = [self._values[number] for number in numbers]
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

    # ---- live clusters ---------------------------------------------------------------------------------------

    def start(self, cluster: Cluster) -> State:
        """The state of a cluster at its beginning; from now on its ids are as in the states of this space."""
        for host in cluster.hosts.values():
            check_fields(host.core)
            number_ids(host)
        scope = self.scope
        world = World(scope.deaths, scope.suspicions, scope.crashes, scope.lates, 0)
        return self.look(cluster, self._number("world", world))

    def look(self, cluster: Cluster, world: int) -> State:
        """The state of a live cluster, but for what may still go wrong."""
        hosts = [self._number("host", freeze_host(host)) if host.runs else GONE for host in cluster.hosts.values()]
        queues = [
            self._number("queue", tuple([self._message(one) for one in MESSAGES.freeze(cluster.in_flight(*link))]))
            if hosts[link[1]] != GONE
            else NOTHING
            for link in self._links
        ]
        return (*hosts, *queues, world)
