"""Synthetic tasks: what is run in a cluster of bare cores.

What lives here: tasks whose payload says how they go on.  Their values follow from their paths, so a result can be
checked wherever the task was run, and however often.
"""

from __future__ import annotations

from hdphrs.protocol.tasks import PROGRAM, Crash, NodeId, Outcome, Spark, Task, TaskRef, Verdict

CODE = b"digest of f"
CRASH = Crash("host", 4711, "killed by SIGSEGV")
CHILDREN = 2

COST_S = 100.0
"""What each task costs: enough for the root to keep its result, if it keeps any."""


def task(
    path: bytes = b"p",
    *,
    depth: int = 0,
    children: int = CHILDREN,
    supervised: bool = True,
    name: str = "f",
    code: bytes = CODE,
    timeout_s: float = 0.0,
    pin: tuple[NodeId, ...] = (),
) -> Task:
    """A task that spawns so many children, down to `depth` levels."""
    return Task(name, path, code, bytes([depth, children]), supervised, timeout_s=timeout_s, pin=pin)


def children_of(parent: Task) -> list[Task]:
    """What a task spawns before it ends; nothing if it is a leaf."""
    depth, children = parent.payload
    return [
        task(b"%s.%d" % (parent.path, index), depth=depth - 1, children=children, code=parent.code)
        for index in range(children if depth else 0)
    ]


def spark(node: int = 0, slot: int = 0, *, replica: int = 0, supervised: bool = True) -> Spark:
    """A spark of a future on `node`."""
    ref = TaskRef(NodeId(node), PROGRAM, slot)
    return Spark(ref, replica, task(b"%d.%d" % (node, slot), supervised=supervised))


def value_of(path: bytes) -> Outcome:
    """What running the task at this path gives, whoever runs it."""
    return Outcome(Verdict.VALUE, b"value of " + path, (), COST_S)
