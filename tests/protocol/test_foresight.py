"""What a core foretells, and what it does then."""

from __future__ import annotations

import pytest

from hdphrs.audit.foretold import foretell, hold_to
from hdphrs.audit.violation import Violation
from hdphrs.config import CoreConfig
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol.messages import Push, Result, Welcome
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import (
    PROGRAM,
    ROOT,
    Crash,
    Member,
    NodeId,
    Origin,
    Outcome,
    Piece,
    Spark,
    Task,
    TaskRef,
    Verdict,
)

ONE, TWO = Origin(1), Origin(2)
OTHER = NodeId(1)
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
    node.schedulers.charge(b"a", (Crash("host", 1, "was killed"),))
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


def test_a_thread_goes_to_who_became_hungry_last_unless_its_sender_is_dead() -> None:
    node = a_node(ONE, TWO)
    node.handle(ev.Arrived(1, "host", 1, ("host", 1), 1), 0.0)
    threads = [Spark(TaskRef(OTHER, ONE, slot), 0, task(path=b"%d" % slot), placed=True) for slot in (1, 2)]
    assert takes(node, ev.Received(OTHER, Push(threads[0]))) == fx.Start(TWO, (threads[0],))
    node.handle(ev.Suspected(OTHER), 0.0)
    assert takes(node, ev.Received(OTHER, Push(threads[1]))) is None


def test_a_node_on_its_leave_starts_no_thread_that_it_has_not_seen() -> None:
    node = Node.newcomer(CoreConfig(), lambda n: 0)
    hosts = tuple(Member(NodeId(number), "host", 1, ("host", 1), 1) for number in (0, 1))
    node.handle(ev.Received(ROOT, Welcome(OTHER, 1, hosts, ())), 0.0)
    node.handle(ev.SchedulerUp(ONE), 0.0)
    node.handle(ev.Hungry(ONE, 4), 0.0)
    thread = Spark(TaskRef(ROOT, ONE, 0), 0, task(), placed=True)
    assert node.host(ROOT, thread) == ONE
    node.handle(ev.Leave(10.0), 0.0)
    assert node.host(ROOT, thread) is None


def test_the_result_of_another_node_fills_a_future_once() -> None:
    node = a_node(ONE)
    node.handle(ev.Arrived(1, "host", 1, ("host", 1), 1), 0.0)
    node.handle(ev.Placed(ONE, 0, task(), OTHER), 0.0)
    result = ev.Received(OTHER, Result(TaskRef(ROOT, ONE, 0), 0, VALUE))
    assert takes(node, result) == fx.Deliver(ONE, 0, VALUE)
    assert takes(node, result) is None


def test_nothing_starts_when_the_run_is_over() -> None:
    node = a_node(ONE)
    node.handle(ev.Terminate(), 0.0)
    assert node.taker(b"a", b"") is None
    assert node.host(OTHER, Spark(TaskRef(OTHER, ONE, 0), 0, task(), placed=True)) is None
    assert not node.fills(TaskRef(ROOT, PROGRAM, 0), ROOT)


def test_who_does_something_else_breaks_an_invariant() -> None:
    first = started(ONE, task())
    hold_to(None, [])
    hold_to(first, [first, fx.Demand(wanted=True)])
    others: list[list[fx.Effect]] = [[], [fx.Demand(wanted=True), first], [started(TWO, task())]]
    for effects in others:
        with pytest.raises(Violation, match="invariant 6"):
            hold_to(first, effects)
