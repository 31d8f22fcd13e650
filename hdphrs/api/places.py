"""Nodes by what is known of them: the name of their host, or whatever else is true of them.

What lives here: `NodeInfo`, the roster of live nodes that each process has, and choosing from it.  What does not:
sending a task there, see `calls.py` and the ports; pins, see `options.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from hdphrs.errors import UsageError
from hdphrs.protocol.tasks import NODE_IDS_MAX, ROOT, NodeId
from hdphrs.records import dataclass

SHOWN_MAX: Final = 8
"""Hosts or nodes that an error names."""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What is known of a live node: `node_infos` lists it, predicates of `spawn_at` and `pin` look at it."""

    node: NodeId
    """Its id, as in `all_nodes`; no other node ever gets it."""
    host: str
    """The name of its host, as in the hosts file; `localhost` is where the program is.  Nodes may share a host."""
    slots: int
    """Its schedulers: how many tasks it runs at a time."""

    @property
    def is_root(self) -> bool:
        """Whether it is the program's own node, without which nothing goes on."""
        return self.node == ROOT

    def __str__(self) -> str:
        return f"{self.node} ({self.host})"


Where: TypeAlias = int | str | Callable[[NodeInfo], bool]
"""A node, the name of a host, or a predicate."""


def is_where(where: object) -> bool:
    """Whether this may say where a task is to run."""
    if isinstance(where, int):
        return not isinstance(where, bool) and 0 <= where < NODE_IDS_MAX
    return callable(where) or (isinstance(where, str) and bool(where))


class Roster:
    """The live nodes as one process knows them, its own first."""

    def __init__(self, infos: Iterable[NodeInfo] = ()) -> None:
        self._placed: defaultdict[NodeId, float] = defaultdict(float)
        """How often each was chosen, or should have been."""
        self.hear([[info.node, info.host, info.slots] for info in infos])

    def hear(self, told: Iterable[list[Any]]) -> None:
        """Who is alive from now on, as `[id, host, slots]` each; the host is empty if no more than the id is known."""
        nodes = list(told)
        self.ids: list[NodeId] = [node for node, _, _ in nodes]
        self.infos: tuple[NodeInfo, ...] = tuple(NodeInfo(*known) for known in nodes if known[1])

    def choose(self, where: Where, call: str) -> NodeId:
        """A node for the next task: of those that are meant, each in its turn, as `spawn_at` promises.

        Raises:
            UsageError: as `meant`.
        """
        if isinstance(where, int):
            return NodeId(where)
        me = self.ids[0]
        found = self._matching(where, call)
        share = max(self._placed[info.node] / info.slots for info in found)
        for info in found:  # one that has just joined is not to get all that comes until it has caught up
            self._placed[info.node] = max(self._placed[info.node], (share - 1) * info.slots)
        chosen = min(
            found, key=lambda info: ((self._placed[info.node] + 1) / info.slots, info.node <= me, info.node)
        ).node
        self._placed[chosen] += 1
        return chosen

    def meant(self, where: Where, call: str) -> list[NodeId]:
        """The node, those of a host, or those for which a predicate holds; at least one.

        Args:
            call: for errors, who asks.

        Raises:
            UsageError: there is none, or the predicate raises.
        """
        return [NodeId(where)] if isinstance(where, int) else [info.node for info in self._matching(where, call)]

    def _matching(self, where: str | Callable[[NodeInfo], bool], call: str) -> list[NodeInfo]:
        if isinstance(where, str):
            found = [info for info in self.infos if info.host == where]
            if not found:
                hosts = _listed(dict.fromkeys(info.host for info in self.infos))
                raise UsageError(f"{call}: there is no host {where!r} in this run now; the hosts are: {hosts}")
            return found
        found = [info for info in self.infos if _holds(where, info, call)]
        if not found:
            nodes = _listed(self.infos)
            raise UsageError(f"{call}: the predicate {_name_of(where)} holds for no node; the nodes are: {nodes}")
        return found


def _holds(predicate: Callable[[NodeInfo], bool], info: NodeInfo, call: str) -> bool:
    try:
        return bool(predicate(info))
    except Exception as error:
        sentence = f"the predicate {_name_of(predicate)} raised {type(error).__name__} for node {info}: {error}"
        raise UsageError(f"{call}: {sentence}") from error


def _name_of(predicate: Callable[..., Any]) -> str:
    return getattr(predicate, "__qualname__", None) or repr(predicate)


def _listed(things: Iterable[object]) -> str:
    names = [str(thing) for thing in things]
    more = len(names) - SHOWN_MAX
    return ", ".join(names[:SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
