"""Code is kept as long as a task needs it, or somebody may send one that does, and no longer."""

from __future__ import annotations

from typing import Any

from hdphrs.config import CoreConfig
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.code import CodeStore, party
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, UNASKED, NodeId, Origin, Outcome, Spark, Task, TaskRef, Verdict

LARGE = bytes(1000)
OTHER = NodeId(1)
S = Origin(1)


def spark(code: bytes, slot: int = 0) -> Spark:
    return Spark(TaskRef(NodeId(0), PROGRAM, slot), 0, Task("f", b"%c" % slot, code, b""))


class Root:
    """A root node with one scheduler, that looks at its code whenever more than two functions are new."""

    def __init__(self) -> None:
        self.core = Node.root(CoreConfig(code_bytes_max=2 * (len(LARGE) + 512)), lambda n: 0)
        self.taught: set[bytes] = set()
        self.unlearned: list[bytes] = []
        self.slots = 0
        self.take(ev.SchedulerUp(S))

    def take(self, event: ev.Event) -> list[fx.Effect]:
        effects = self.core.handle(event, 0.0)
        for effect in effects:
            if isinstance(effect, fx.Teach):
                assert effect.digest not in self.taught
                self.taught.add(effect.digest)
            elif isinstance(effect, fx.Unlearn):
                self.taught.remove(effect.digest)
                self.unlearned.append(effect.digest)
            elif isinstance(effect, fx.Start):
                assert all(spark.task.code in self.taught for spark in effect.sparks)
        return effects

    def call(self, code: bytes) -> None:
        """The program has a function run once, and forgets it."""
        self.take(ev.Learned(code, LARGE))
        started = self.start(code)
        self.take(ev.Finished(S, ((started.ref, 0, Outcome(Verdict.VALUE, b"")),)))
        self.take(ev.Released(PROGRAM, (code,)))

    def start(self, code: bytes) -> Spark:
        self.slots += 1
        self.take(ev.Hungry(S, 1))
        effects = self.take(ev.Exported(PROGRAM, ((self.slots, spark(code, self.slots).task),)))
        [start] = [effect for effect in effects if isinstance(effect, fx.Start)]
        return start.sparks[0]

    def forget(self) -> None:
        """The scheduler has let go of what it was asked to."""
        if self.unlearned:
            released, self.unlearned = tuple(self.unlearned), []
            self.take(ev.Released(S, released))


def test_functions_that_come_and_go_leave_nothing() -> None:
    root = Root()
    for number in range(100):
        root.call(b"%d" % number)
        root.forget()
    assert root.core.code.size < 6 * (len(LARGE) + 512)


def test_code_of_a_task_that_runs_is_kept() -> None:
    root = Root()
    root.take(ev.Learned(b"long", LARGE))
    root.start(b"long")
    root.take(ev.Released(PROGRAM, (b"long",)))
    for number in range(20):
        root.call(b"%d" % number)
    assert b"long" in root.taught
    assert b"long" in root.core.code


def test_code_that_the_program_may_send_again_is_kept() -> None:
    root = Root()
    root.take(ev.Learned(b"often", LARGE))
    for number in range(20):
        root.call(b"%d" % number)
    assert b"often" in root.core.code
    root.start(b"often")


def test_nobody_is_asked_to_let_go_of_what_the_program_or_a_scheduler_may_send_again() -> None:
    root = Root()
    for code, origin in ((b"often", PROGRAM), (b"own", S)):
        root.take(ev.Learned(code, LARGE, origin))
        started = root.start(code)
        root.take(ev.Finished(S, ((started.ref, 0, Outcome(Verdict.VALUE, b"")),)))
    for number in range(20):
        root.call(b"%d" % number)
    assert root.unlearned
    assert not {b"often", b"own"} & {*root.unlearned}
    assert {b"often", b"own"} <= root.taught


def test_a_scheduler_that_is_asked_to_forget_may_still_send_a_task_that_needs_it() -> None:
    root = Root()
    root.call(b"own")
    for number in range(4):
        root.take(ev.Learned(b"%d" % number, LARGE))
    assert root.unlearned == [b"own"]
    task = spark(b"own", 5).task
    root.take(ev.Exported(S, ((0, task),)))  # it has not heard of it
    root.take(ev.Released(S, (b"own",)))
    for number in range(4):
        root.take(ev.Learned(b"yet more %d" % number, LARGE))
    assert b"own" in root.core.code
    root.take(ev.Hungry(S, 1))
    assert b"own" in root.taught


def test_what_a_scheduler_has_registered_is_kept_until_it_releases_it() -> None:
    root = Root()
    root.take(ev.Learned(b"own", LARGE, S))
    for number in range(10):
        root.call(b"%d" % number)
    assert b"own" in root.core.code
    root.take(ev.Released(S, (b"own",)))
    root.take(ev.Learned(b"x", LARGE))
    assert b"own" not in root.core.code


def test_a_scheduler_that_has_died_needs_nothing() -> None:
    store = CodeStore(bytes_max=100)
    store.learn(b"own", LARGE, S)
    store.forget(party(S))
    assert store.is_due
    assert store.sweep(()) == []
    assert store.size == 0
    store.release(party(S), b"own")  # it said so before it died


def exchange(one: CodeStore, other: CodeStore, *messages: Any) -> None:
    """What `one` sends to `other`, and what comes back, until nobody has anything to say."""
    for message in messages:
        if isinstance(message, msg.Code):
            other.receive(NodeId(0), message.digest, message.data)
        else:
            for effect in other.on_forget(NodeId(1), message.digest, message.times):
                exchange(other, one, effect.message)  # type: ignore[union-attr]


def test_two_nodes_forget_together() -> None:
    one, other = CodeStore(100), CodeStore(100)
    one.learn(b"d", LARGE)
    assert one.ahead(NodeId(1), [spark(b"d")])
    other.receive(NodeId(1), b"d", LARGE)  # each calls the other node 1
    one.release(party(PROGRAM), b"d")
    [(receiver, digest, times)] = one.sweep(())
    assert (receiver, digest, times) == (("node", 1), b"d", 1)
    exchange(one, other, msg.Forget(digest, times))
    for store in (one, other):
        assert store.sweep(()) == []
        assert store.size == 0


def test_code_that_is_sent_again_while_it_is_being_forgotten_stays_until_both_have_answered() -> None:
    one, other = CodeStore(100), CodeStore(100)
    one.learn(b"d", LARGE)
    one.ahead(NodeId(1), [spark(b"d")])
    other.receive(NodeId(1), b"d", LARGE)
    one.release(party(PROGRAM), b"d")
    [(_, _, times)] = one.sweep(())
    assert one.ahead(NodeId(1), [spark(b"d")])  # after FORGET, and overtakes it
    other.receive(NodeId(1), b"d", LARGE)
    [answer] = other.on_forget(NodeId(1), b"d", times)
    assert other.sweep(()) == []
    assert b"d" in other  # the first may have sent a task by its digest since
    assert isinstance(answer, fx.Send)
    exchange(other, one, answer.message)
    for store in (one, other):
        store.sweep(())
        assert store.size == 0


def test_forget_of_a_node_is_answered_once() -> None:
    store = CodeStore(100)
    store.receive(OTHER, b"d", LARGE)
    assert store.on_forget(OTHER, b"d", 1) == [fx.Send(OTHER, msg.Forget(b"d", 1))]
    assert store.on_forget(OTHER, b"d", 1) == []
    assert store.on_forget(OTHER, b"unknown", 1) == []


def test_code_just_received_is_there_when_its_tasks_come() -> None:
    root = Root()
    root.take(ev.Arrived(1, "b", 1, ("h", 1), 1))
    for number in range(10):
        digest = b"%d" % number
        root.take(ev.Received(OTHER, msg.Code(digest, LARGE)))
        copy = Spark(TaskRef(OTHER, S, number), 0, Task("f", b"%c" % number, digest, b""))
        root.take(ev.Received(OTHER, msg.Schedule(UNASKED, (copy,))))
    assert all(b"%d" % number in root.core.code for number in range(10))


def test_what_was_registered_and_taught_has_two_claims() -> None:
    store = CodeStore(100)
    store.learn(b"d", LARGE, S)
    store.missing(party(S), [spark(b"d")])
    store.release(party(S), b"d")
    store.sweep(())
    assert b"d" in store
    store.release(party(S), b"d")
    store.sweep(())
    assert b"d" not in store


def test_code_of_an_orphan_that_runs_is_kept() -> None:
    root = Root()
    root.take(ev.Arrived(1, "b", 1, ("h", 1), 1))
    root.take(ev.Hungry(S, 1))
    root.take(ev.Received(OTHER, msg.Code(b"d", LARGE)))
    copy = Spark(TaskRef(OTHER, S, 5), 0, Task("f", b"p", b"d", b""))
    root.take(ev.Received(OTHER, msg.Schedule(UNASKED, (copy,))))
    root.take(ev.Received(OTHER, msg.Forget(b"d", 1)))
    for number in range(10):
        root.take(ev.Learned(b"%d" % number, LARGE, Origin(7)))
        root.take(ev.Released(Origin(7), (b"%d" % number,)))
    assert b"d" in root.taught


def test_code_of_a_task_that_runs_elsewhere_is_kept() -> None:
    """Its node may die, and then it is sent again from here."""
    root = Root()
    root.take(ev.Arrived(1, "b", 1, ("h", 1), 1))
    root.take(ev.Learned(b"d", LARGE))
    root.take(ev.Placed(PROGRAM, 1, spark(b"d").task, OTHER))
    root.take(ev.Released(PROGRAM, (b"d",)))
    root.take(ev.Received(OTHER, msg.Forget(b"d", 1)))
    for number in range(10):
        root.take(ev.Learned(b"%d" % number, LARGE, Origin(7)))
        root.take(ev.Released(Origin(7), (b"%d" % number,)))
    assert b"d" in root.core.code
    root.take(ev.Suspected(OTHER))
    root.take(ev.Hungry(S, 1))
    assert b"d" in root.taught


def test_other_nodes_are_asked_to_forget_what_they_have_from_here() -> None:
    store = CodeStore(bytes_max=0)
    store.receive(OTHER, b"f", LARGE)
    forgetting = Node.root(CoreConfig(code_bytes_max=0), lambda n: 0).forgetting
    forgetting._code = store
    assert forgetting.look() == [fx.Send(OTHER, msg.Forget(b"f", 1))]
