"""A value that takes down who unpickles it is charged to its task, by path, and to nobody else (decision 40)."""

from __future__ import annotations

from dataclasses import replace

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import CODE, CRASH, task, value_of
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Deliver, Effect, Send, Start
from hdphrs.protocol.paths import BUNDLE, FOLD, PATH_BYTES_MAX, child_path, may_hold
from hdphrs.protocol.pieces import Pieces, piece_of
from hdphrs.protocol.tasks import (
    PROGRAM,
    ROOT,
    Blame,
    Cause,
    Crash,
    NodeId,
    Origin,
    Orphan,
    Outcome,
    Piece,
    RecallId,
    Task,
    TaskRef,
    Verdict,
)
from tests.protocol.scenes import record_of

READ = replace(CRASH, cause=Cause.VALUE)
N1, N2 = NodeId(1), NodeId(2)


def call(*path: int) -> Task:
    """A leaf at this path."""
    return task(bytes(path))


def read(origin: int, *path: int, blameless: bool = False) -> ev.SchedulerDied:
    """A scheduler has died of this task's value."""
    return ev.SchedulerDied(Origin(origin), None, READ, blameless, read_of=bytes(path))


def parent() -> tuple[Cluster, TaskRef]:
    """One node; its first scheduler runs a task of the program."""
    cluster = Cluster(1, checked=False)
    cluster.up(0)
    (ref,) = cluster.spawn_all([(0, call(0))])
    cluster.hungry(0)
    return cluster, ref


def again(cluster: Cluster, origin: int, *path: int) -> None:
    """The scheduler dies of this value; another one is there, and gets the parent."""
    cluster.feed(0, read(origin, *path))
    cluster.up(0)
    cluster.hungry(0, origin + 1)


def spawned(cluster: Cluster, origin: int, *children: Task) -> list[Effect]:
    """The parent, there, spawns these."""
    return cluster.feed(0, ev.Exported(Origin(origin), tuple(enumerate(children))))


def test_the_child_whose_value_was_read_is_charged_and_neither_its_parent_nor_who_waits_beside_it() -> None:
    cluster, ref = parent()
    (other,) = cluster.spawn_all([(1, call(1))])
    spawned(cluster, 1, call(0, 0), call(0, 1))
    cluster.feed(0, read(1, 0, 1))
    core = cluster.core(0)
    assert {spark.ref: spark.crashes for spark in core.pool} == {ref: (), other: ()}
    assert record_of(cluster, ref).crashes == ()
    assert core.schedulers.crashes_of(bytes([0, 1])) == (READ,)
    cluster.up(0)
    cluster.hungry(0, 2)
    spawned(cluster, 2, call(0, 0), call(0, 1))
    assert [spark.crashes for spark in core.pool if spark.ref.origin == 2] == [(), (READ,)]


def test_it_is_given_up_when_its_value_has_been_read_as_often_as_it_has_attempts() -> None:
    cluster, _ = parent()
    for origin in range(1, cluster.config.attempts_max + 1):
        assert not [one for one in spawned(cluster, origin, call(0, 0)) if isinstance(one, Deliver)]
        again(cluster, origin, 0, 0)
    (told,) = (one for one in spawned(cluster, 4, call(0, 0), call(0, 1)) if isinstance(one, Deliver))
    assert told == Deliver(Origin(4), 0, Outcome(Verdict.CRASHED, b"f", (READ,) * 3))


def test_one_that_is_placed_is_given_up_too_and_after_as_many_attempts_as_itself_has() -> None:
    cluster, _ = parent()
    again(cluster, 1, 0, 0)
    (told,) = cluster.feed(0, ev.Placed(Origin(2), 0, replace(call(0, 0), attempts=1), ROOT))
    assert told == Deliver(Origin(2), 0, Outcome(Verdict.CRASHED, b"f", (READ,)))


def test_a_reader_that_is_killed_from_outside_is_charged_to_nobody() -> None:
    cluster, _ = parent()
    effects = cluster.feed(0, read(1, 0, 0, blameless=True))
    assert cluster.core(0).schedulers.crashes_of(bytes([0, 0])) == ()
    assert not [one for one in effects if isinstance(one, Send)]


def test_a_bundle_that_may_hold_it_comes_back_so_that_it_comes_alone() -> None:
    """Whoever gets a bundle with crashes sends it back; one that is given up is opened, and sent again call by call."""
    for attempts, expected in ((1, [(READ,), ()]), (3, [()])):
        cluster, _ = parent()
        for origin in range(1, attempts + 1):
            again(cluster, origin, 0, 7)
        spawned(cluster, attempts + 1, task(BUNDLE + bytes([0, 3])), task(BUNDLE + bytes([1, 3])))
        assert [spark.crashes for spark in cluster.core(0).pool if spark.ref.origin] == expected


def test_bundles_hold_children_of_one_parent_and_those_of_the_program_nothing_that_is_charged() -> None:
    long = bytes(PATH_BYTES_MAX)
    folded, large = child_path(long, 3), child_path(child_path(b"", 1), 300)
    assert folded.startswith(FOLD)
    assert may_hold(BUNDLE + child_path(b"\x01", 5), child_path(b"\x01", 300))
    assert may_hold(BUNDLE + large, child_path(b"\x01", 5))
    assert may_hold(BUNDLE + folded, child_path(long, 4))
    assert not may_hold(BUNDLE + folded, b"\x01\x02")
    assert not may_hold(BUNDLE + b"\x01\x02", b"\x01\x02\x03")
    assert not may_hold(BUNDLE + b"\x05", b"\x06")


# ---- pieces --------------------------------------------------------------------------------------------------


def piece(*path: int) -> Piece:
    return piece_of(call(*path), value_of(bytes(path)))


def test_a_piece_that_has_taken_down_its_reader_is_not_handed_out_but_one_whose_task_has_crashed_is() -> None:
    """The root may get it once more, from whoever has computed it meanwhile."""
    cluster, ref = parent()
    core = cluster.core(0)
    core.schedulers.charge(bytes([0, 1]), (CRASH,))
    cluster.feed(0, ev.SchedulerDied(Origin(1), None, CRASH, blameless=True))
    for kept in (piece(0, 0), piece(0, 1), piece(0, 2)):
        core.pieces.keep(kept)
    cluster.up(0)
    cluster.hungry(0, 2)
    cluster.feed(0, read(2, 0, 0))
    core.pieces.keep(piece(0, 0))
    core.orphans._running[bytes([0, 3])] = {ROOT: Orphan(bytes([0, 3]), b"check", ROOT)}
    core.schedulers.charge(bytes([0, 3]), (READ,))
    cluster.feed(0, ev.SchedulerDied(Origin(9), None, CRASH))
    (spark,) = core.pool
    core.pool.take()
    core.pool.put_back([replace(spark, pieces=core.orphans.left_of(bytes([0])))])
    cluster.up(0)
    (start,) = (one for one in cluster.hungry(0, 3) if isinstance(one, Start))
    (handed,) = start.sparks
    assert (handed.ref, [part.path[1] for part in handed.pieces]) == (ref, [1, 2, 3])


def test_the_root_forgets_what_has_taken_down_its_reader_and_tells_the_ledger() -> None:
    told: list[Piece] = []
    pieces = Pieces(CoreConfig())
    pieces.discard(b"nothing")
    pieces.on_discard = told.append
    for kept in (piece(0, 0), piece(0, 1)):
        pieces.keep(kept)
    pieces.discard(bytes([0, 1]))
    assert (pieces.below(bytes([0])), told) == ((piece(0, 0),), [piece(0, 1)])
    pieces.on_discard = None
    pieces.discard(bytes([0, 0]))
    assert (len(pieces), pieces._bytes, pieces.below(b"")) == (0, 0, ())


def far() -> Cluster:
    """Three nodes; a thread of the root runs on node 1."""
    cluster = Cluster(3, checked=False)
    cluster.feed(0, ev.Placed(PROGRAM, 0, Task("f", bytes([0]), CODE, b"arguments"), N1))
    cluster.settle()
    cluster.hungry(1)
    return cluster


def test_the_root_is_told_before_it_is_asked_what_is_left() -> None:
    cluster = far()
    messages = [effect.message for effect in cluster.feed(1, read(1, 0, 0)) if isinstance(effect, Send)]
    assert [type(message) for message in messages] == [msg.Discard, msg.Recall]
    assert messages[0] == msg.Discard(bytes([0, 0]), (READ,))
    cluster.core(0).pieces.keep(piece(0, 0))
    cluster.settle()
    assert len(cluster.core(0).pieces) == 0
    assert cluster.core(0).schedulers.crashes_of(bytes([0, 0])) == (READ,)


def test_without_pieces_the_root_is_not_told() -> None:
    cluster = Cluster(2, config=CoreConfig(pieces_bytes_max=0), checked=False)
    assert not [effect for effect in cluster.feed(1, read(1, 0, 0)) if isinstance(effect, Send)]
    assert cluster.core(1).schedulers.crashes_of(bytes([0, 0])) == (READ,)


def test_whoever_runs_the_parent_again_learns_it_from_the_root_even_if_the_reader_s_node_has_died() -> None:
    cluster = far()
    cluster.feed(1, read(1, 0, 0))
    cluster.settle()
    cluster.kill(1)
    cluster.suspect(1)
    cluster.settle()
    blame = (Blame(bytes([0, 0]), (READ,)),)
    effects = cluster.feed(0, ev.Received(N2, msg.Recall(RecallId(7), (bytes([0]),))))
    assert effects == [Send(N2, msg.Recalled(RecallId(7), (), blame))]
    cluster.settle()
    assert cluster.core(2).schedulers.blame_of([bytes([0])]) == blame


def test_only_the_root_hears_of_it() -> None:
    cluster = far()
    crashes: tuple[Crash, ...] = (READ,)
    assert cluster.feed(2, ev.Received(N1, msg.Discard(bytes([0, 0]), crashes))) == []
    assert cluster.core(2).schedulers.crashes_of(bytes([0, 0])) == ()
