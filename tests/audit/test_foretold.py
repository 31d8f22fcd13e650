"""What a core foretells, and what it does then."""

from __future__ import annotations

import pytest

from hdphrs.audit.foretold import foretell, hold_to
from hdphrs.audit.violation import Violation
from hdphrs.config import CoreConfig
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, ROOT, Crash, Origin, Outcome, Piece, Spark, Task, TaskRef, Verdict

ONE, TWO = Origin(1), Origin(2)
VALUE = Outcome(Verdict.VALUE, b"value")


def task(code: bytes = b"", *, path: bytes = b"a", pinned: bool = False) -> Task:
    return Task("f", path, code, b"", pin=(ROOT,) if pinned else ())


def a_node(*hungry: Origin) -> Node:
    node = Node.root(CoreConfig(), lambda n: 0)
    for origin in (ONE, TWO):
        node.handle(ev.SchedulerUp(origin), 0.0)
    for origin in hungry:
        node.handle(ev.Hungry(origin, 4), 0.0)
    return node


def exported(*tasks: Task, origin: Origin = PROGRAM) -> ev.Exported:
    return ev.Exported(origin, tuple(enumerate(tasks)))


def takes(node: Node, event: ev.Event) -> fx.Effect | None:
    """What is foretold, and holds."""
    foretold = foretell(node, event)
    hold_to(foretold, node.handle(event, 0.0))
    return foretold


def started(origin: Origin, task: Task) -> fx.Start:
    return fx.Start(origin, (Spark(TaskRef(ROOT, PROGRAM, 0), 0, task),))


def test_a_lone_call_goes_to_who_became_hungry_last() -> None:
    assert takes(a_node(ONE, TWO), exported(task())) == started(TWO, task())


@pytest.mark.parametrize(
    "event",
    [exported(task(), task(path=b"b")), exported(task(pinned=True)), exported(task(), origin=ONE)],
    ids=["one of two", "pinned", "a task's"],
)
def test_nothing_is_said_of(event: ev.Exported) -> None:
    assert takes(a_node(ONE, TWO), event) is None


def test_nobody_takes_a_call_while_nobody_is_hungry_or_others_wait() -> None:
    node = a_node()
    assert takes(node, exported(task())) is None
    assert takes(node, exported(task(path=b"b"))) is None


def test_code_goes_first() -> None:
    node = a_node(ONE, TWO)
    node.handle(ev.Learned(b"code", b"..."), 0.0)
    assert takes(node, exported(task(b"code"))) is None
    node.handle(ev.Finished(TWO, ((TaskRef(ROOT, PROGRAM, 0), 0, VALUE),)), 0.0)
    node.handle(ev.Hungry(TWO, 4), 0.0)
    assert takes(node, exported(task(b"code"))) == started(TWO, task(b"code"))


def test_what_has_crashed_before_runs_carefully() -> None:
    node = a_node(ONE)
    node.schedulers.caution(b"a", Crash("host", 1, "was killed"))
    assert takes(node, exported(task())) is None


def test_what_is_finished_is_not_run() -> None:
    node = a_node(ONE)
    node.pieces.keep(Piece(b"a1", b"check", VALUE))
    assert takes(node, exported(task())) is None


def test_the_first_outcome_fills_the_future() -> None:
    node = a_node(ONE)
    node.handle(exported(task()), 0.0)
    ref = TaskRef(ROOT, PROGRAM, 0)
    assert takes(node, ev.Finished(ONE, ((ref, 0, VALUE),))) == fx.Deliver(PROGRAM, 0, VALUE)
    assert not node.fills(ref, ROOT)


def test_the_outcome_of_what_was_cancelled_fills_nothing() -> None:
    node = a_node(ONE)
    node.handle(exported(task()), 0.0)
    node.handle(ev.Cancelled(PROGRAM, (0,)), 0.0)
    assert takes(node, ev.Finished(ONE, ((TaskRef(ROOT, PROGRAM, 0), 0, VALUE),))) is None


def test_nothing_starts_when_the_run_is_over() -> None:
    node = a_node(ONE)
    node.handle(ev.Terminate(), 0.0)
    assert node.taker(b"a", b"") is None
    assert not node.fills(TaskRef(ROOT, PROGRAM, 0), ROOT)


def test_who_does_something_else_breaks_an_invariant() -> None:
    first = started(ONE, task())
    hold_to(None, [])
    hold_to(first, [first, fx.Demand(wanted=True)])
    others: list[list[fx.Effect]] = [[], [fx.Demand(wanted=True), first], [started(TWO, task())]]
    for effects in others:
        with pytest.raises(Violation, match="invariant 6"):
            hold_to(first, effects)
