"""Names without meaning: two states that differ only in them are one.

What lives here: closing the gaps in the ids of fish and requests, and the permutations of the nodes that are
there from the beginning, but the root.  Nodes that join later are told apart by their ids, as the core does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from hdphrs.explore.codec import REQUEST_BIT, Renaming, fish_base, request_base
from hdphrs.explore.freeze import MESSAGES, ids_of_host, rename_host
from hdphrs.explore.numbers import Numbers, Table
from hdphrs.protocol.tasks import NodeId

State = tuple[int, ...]
"""The numbers of the hosts, of the queues between them, and of what may still go wrong."""


class Names:
    """The names in the states of one search."""

    def __init__(self, nodes: int, alike: int, numbers: Numbers, *, symmetric: bool) -> None:
        """The first `alike` of the `nodes` are there from the beginning, the others join in the order of their ids.

        With `symmetric` false, no state stands for its permutations.
        """
        self._nodes = nodes
        self._alike = alike
        self._numbers = numbers
        self._ids = Table(self._ids_of)
        self._gaps = Table(self._gaps_of)
        self._renamed: Table = Table(lambda renaming: Table(lambda number: self._rename(number, renaming)))
        self._permutations = list(self._all_permutations()) if symmetric else []

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

    def _all_permutations(self) -> Iterator[tuple[list[int], Table]]:
        """(which part of a state comes where, the table of the new names)."""
        links = links_of(self._nodes)
        for workers in permutations(range(1, self._alike)):
            new = (0, *workers, *range(self._alike, self._nodes))
            old = [new.index(node) for node in range(self._nodes)]
            if old == list(range(self._nodes)):
                continue
            moved = [self._nodes + links.index((old[source], old[to])) for source, to in links]
            renaming = Renaming(tuple(NodeId(node) for node in new))
            yield [*old, *moved, self._nodes + len(links)], self._renamed[renaming]

    def _ids_of(self, number: int) -> int:
        """The ids that a value refers to, and the next ones if it is a host, as the number of a value."""
        return self._numbers.of("ids", self._ids_and_nexts(number))

    def _ids_and_nexts(self, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        kind, value = self._numbers.kinds[number], self._numbers.values[number]
        if kind == "host":
            core = self._numbers.host(number).core
            return tuple(sorted({*ids_of_host(value)})), (core.thief._next_fish, core.victim._next_request)
        if kind == "queue":
            frozen = self._numbers.queue(number)
            return tuple(sorted({*MESSAGES.ids(frozen)})), ()
        return (), ()

    def _gaps_of(self, numbers: tuple[int, ...]) -> Renaming | None:
        """The renaming that closes the gaps, if there are any."""
        parts: list[tuple[tuple[int, ...], tuple[int, ...]]] = [self._numbers.values[number] for number in numbers]
        used = sorted({number for ids, _ in parts for number in ids})
        nodes = [NodeId(node) for node in range(self._nodes)]
        ids: list[tuple[int, int]] = []
        for base in [base for node in nodes for base in (fish_base(node), request_base(node))]:
            own = [number for number in used if base <= number < base + REQUEST_BIT - 1]
            ids += [(number, base + rank) for rank, number in enumerate(own)]
            ids += [
                (number, base + len(own))
                for _, nexts in parts
                for number in nexts
                if base <= number < base + REQUEST_BIT
            ]
        changed = tuple((old, new) for old, new in ids if old != new)
        return Renaming(tuple(nodes), changed) if changed else None

    def _rename(self, number: int, renaming: Renaming) -> int:
        kind, value = self._numbers.kinds[number], self._numbers.values[number]
        if kind == "host":
            return self._numbers.of("host", rename_host(value, renaming))
        if kind == "queue":
            frozen = MESSAGES.rename(self._numbers.queue(number), renaming)
            return self._numbers.of("queue", tuple([self._numbers.of_message(message) for message in frozen]))
        return number


def links_of(nodes: int) -> list[tuple[int, int]]:
    """The queues in the order in which a state has them: (source, to)."""
    return [(source, to) for source in range(nodes) for to in range(nodes) if source != to]
