"""From a cluster of shipped cores to a state of Figure 3 (the correspondence of section 5.4).

What lives here: `abstract`, which reads the concrete state, and `assert_takes`, which holds a concrete step against a
sequence of rules.

* A copy in a pool, guarded, or handed to a scheduler that has not begun it is a spark.  One that has begun is a thread.
* The newest copy under way in a SCHEDULE still counts as being at the victim, since (migrate) fires when the thief
  receives it; an old copy, which no record tracks any more, counts as being at the thief already.
* A thread placed by `spawn_at` is a thread from the start, at its destination while the PUSH is under way.
* A supervisor's record is an empty IVar: OnNode(n) tracks {n}, InTransition(v, t) tracks {v, t}.
* A RESULT under way is a thread at its sender that is about to write.
* `dead p` is there as soon as p has died, or has been declared dead.
"""

from __future__ import annotations

from collections.abc import Iterator

from hdphrs.explore.cluster import Cluster
from hdphrs.explore.host import Host
from hdphrs.explore.work import children_of, value_of
from hdphrs.protocol import messages as msg
from hdphrs.protocol.supervisor import InTransition, OnNode, Record
from hdphrs.protocol.tasks import NodeId, Spark, Task, TaskRef
from tests.paper import machine, states
from tests.paper.states import Atom, Dead, Full, OverSpark, OverThread, State, Thread, Zombie, names_of, same
from tests.paper.terms import Bind, Eval, Get, Lam, Lit, Name, RPut, Spawn, Term, Var, root, substitute


def term_of(task: Task) -> Term:
    """M: what a synthetic task does, first spawn its children, then read them, then return its value."""
    term: Term = Eval(Lit(value_of(task.path).data))
    children = children_of(task)
    for index in reversed(range(len(children))):
        term = Bind(Get(Var(f"f{index}")), Lam(f"v{index}", term))
    for index, child in reversed(list(enumerate(children))):
        term = Bind(Spawn(term_of(child)), Lam(f"f{index}", term))
    return term


def reading(task: Task, children: list[TaskRef]) -> Term:
    """What is left of the task when it has spawned its children."""
    term = term_of(task)
    for index, child in enumerate(children):
        assert isinstance(term, Bind)
        assert isinstance(term.then, Lam)
        term = substitute(term.then.body, f"f{index}", Name(str(child)))
    return term


def abstract(cluster: Cluster) -> State:
    """The state of Figure 3 that a cluster is in."""
    declared = cluster.core(0).members
    atoms: list[Atom] = []
    for node, host in cluster.hosts.items():
        if not host.alive or declared.is_dead(node):
            atoms.append(Dead(node))
        if host.runs:
            atoms += _on(node, host)
    for (source, to), queue in cluster.queues.items():
        for message in queue:
            atoms += _under_way(cluster, source, to, message)
    for ref, outcome in cluster.delivered.items():
        if cluster.hosts[ref.node].runs:
            atoms.append(Full(str(ref), Lit(outcome.data), ref.node))
    known = {atom.ivar for atom in atoms if isinstance(atom, states.IVar)}
    for name in sorted(names_of(tuple(atoms)) - known):
        atoms.append(Zombie(name, int(name.split(".")[0])))
    return tuple(atoms)


def _body(ref: TaskRef, task: Task) -> Term:
    return root(term_of(task), str(ref))


def _on(node: NodeId, host: Host) -> Iterator[Atom]:
    core = host.core
    begun = {
        copy: (origin, list(slots))
        for origin, scheduler in host.schedulers.items()
        for copy, (_, slots) in scheduler.waiting.items()
    }
    for spark in [*core.pool, *core.reruns, *core.victim.guarded(), *core.schedulers.held()]:
        if (spark.ref, spark.replica) in begun:
            origin, slots = begun[spark.ref, spark.replica]
            children = [TaskRef(node, origin, slot) for slot in slots]
            yield Thread(root(reading(spark.task, children), str(spark.ref)), node)
        else:
            yield _waiting(spark, node)
    for ref, record in core.supervisor.records():
        yield _ivar(ref, record)


def _waiting(spark: Spark, node: NodeId) -> Atom:
    kind = Thread if spark.placed else states.Spark
    return kind(_body(spark.ref, spark.task), node)


def _ivar(ref: TaskRef, record: Record) -> Atom:
    name, body, location = str(ref), _body(ref, record.task), record.location
    if record.placed and not record.replica:
        assert isinstance(location, OnNode)
        return OverThread(name, body, location.node, ref.node)
    tracked = [location.victim, location.thief] if isinstance(location, InTransition) else [location.node]
    return OverSpark(name, body, frozenset(tracked), ref.node)


def _under_way(cluster: Cluster, source: NodeId, to: NodeId, message: msg.Message) -> Iterator[Atom]:
    match message:
        case msg.Schedule(_, sparks):
            for spark in sparks:
                yield _waiting(spark, source if _is_newest(cluster, spark) else to)
        case msg.Push(spark):
            yield _waiting(spark, to)
        case msg.Result(ref, _, outcome):
            yield Thread(RPut(Name(str(ref)), Lit(outcome.data)), source)


def _is_newest(cluster: Cluster, spark: Spark) -> bool:
    supervisor = cluster.hosts[spark.ref.node]
    record = supervisor.core.supervisor.record(spark.ref) if supervisor.runs else None
    return record is not None and record.replica == spark.replica


def assert_takes(before: State, rules: str, after: State, fresh: list[TaskRef] | None = None) -> None:
    """These rules, one after another, lead from the one state to the other; none means that nothing has changed.

    Args:
        fresh: the futures that the rules make, in order.
    """
    nodes = tuple(sorted({atom.node for atom in (*before, *after)} | {0, 1, 2, 3}))
    names = [str(ref) for ref in fresh or ()]
    reached = [before]
    for rule in rules.split():
        name = names.pop(0) if rule in ("spawn", "spawnAt") else None
        reached = [one for state in reached for one in machine.successors(state, rule, nodes, name)]
        assert reached, f"({rule}) does not apply"
    assert any(same(state, after) for state in reached), (
        f"from {_tell(before)}\nto {_tell(after)}\nis not {rules or 'no step'}"
    )


def _tell(state: State) -> str:
    """A state without its terms, for people."""
    told = []
    for atom in state:
        names = sorted(names_of((atom,)))
        where = sorted(atom.tracked) if isinstance(atom, OverSpark) else ""
        told.append(f"{type(atom).__name__} {' '.join(names)} on {atom.node} {where}".strip())
    return ", ".join(sorted(told))
