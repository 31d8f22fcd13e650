"""What a core makes of messages that name nothing it knows: late ones, or those of a peer of another mind."""

from __future__ import annotations

import pytest

from hdphrs.protocol import effects as fx
from hdphrs.protocol import messages as msg
from hdphrs.protocol.rights import RULINGS
from hdphrs.protocol.tasks import ROOT, FishId, NodeId, Origin, Outcome, RecallId, RequestId, TaskRef, Verdict
from tests.fuzz.core_target import SITUATIONS, STALE, hear, member

OTHER = NodeId(2)
NOBODY = NodeId(99)
UNKNOWN = TaskRef(NodeId(0), Origin(7), 12345)
NOTHING = RequestId((1 << 64) - 1)

LATE: dict[type[msg.Message], tuple[msg.Message, str | None]] = {
    msg.NoWork: (msg.NoWork(FishId(999), 0.0), "stale"),
    msg.Auth: (msg.Auth(NOTHING), "stale"),
    msg.Denied: (msg.Denied(NOTHING), "stale"),
    msg.Obsolete: (msg.Obsolete(NOTHING), "stale"),
    msg.Ack: (msg.Ack(UNKNOWN, 7, NOBODY), "stale"),
    msg.Result: (msg.Result(UNKNOWN, 0, Outcome(Verdict.VALUE, b"")), "duplicates"),
    msg.Joined: (msg.Joined(99, member(99)), "stale"),
    msg.DeadNode: (msg.DeadNode(NOBODY, 99), "stale"),
    msg.Term: (msg.Term(), "stale"),
    msg.Purge: (msg.Purge(NodeId(1), (UNKNOWN,)), "stale"),
    msg.Recalled: (msg.Recalled(RecallId(7), ()), "stale"),
    msg.Gone: (msg.Gone(UNKNOWN, 0), "stale"),
    msg.Suspect: (msg.Suspect(NOBODY), None),
    msg.Noted: (msg.Noted(7), "stale"),
    msg.TermAck: (msg.TermAck((("stolen", 1),)), None),
}
"""With the counter that tells of it."""

ANSWERED: dict[type[msg.Message], msg.Message] = {
    msg.Req: msg.Req(RequestId(5), UNKNOWN, 0, OTHER, NOBODY),
    msg.Fish: msg.Fish(FishId(9), OTHER, 0, 0.1),
    msg.Leaving: msg.Leaving(7),
}


def test_every_message_that_may_be_late_is_here() -> None:
    assert LATE.keys() | ANSWERED.keys() == set(STALE)
    assert set(RULINGS) < set(STALE)


@pytest.mark.parametrize("situation", SITUATIONS[:2], ids=lambda made: made.__name__)
@pytest.mark.parametrize("kind", LATE, ids=lambda kind: kind.__name__)
def test_late_message_is_ignored_and_counted(situation: object, kind: type[msg.Message]) -> None:
    core = situation()  # type: ignore[operator]  # parametrize knows no types
    message, counter = LATE[kind]
    if kind is msg.Suspect and core.me != ROOT:
        counter = "stale"  # only the root hears accusations
    before = dict(core.counters)
    assert hear(core, OTHER, message) == []
    assert core.counters == before | ({counter: before[counter] + 1} if counter else {})


@pytest.mark.parametrize("situation", SITUATIONS[:2], ids=lambda made: made.__name__)
def test_leave_that_is_told_again_is_noted_again(situation: object) -> None:
    core = situation()  # type: ignore[operator]
    for _ in range(2):
        assert hear(core, OTHER, ANSWERED[msg.Leaving]) == [fx.Send(OTHER, msg.Noted(7))]


@pytest.mark.parametrize("situation", SITUATIONS[:2], ids=lambda made: made.__name__)
def test_request_for_an_unknown_task_is_answered_obsolete(situation: object) -> None:
    core = situation()  # type: ignore[operator]
    assert hear(core, OTHER, ANSWERED[msg.Req]) == [fx.Send(OTHER, msg.Obsolete(RequestId(5)))]


@pytest.mark.parametrize("want", [0, (1 << 64) - 1])
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda made: made.__name__)
def test_fish_that_wants_nothing_or_everything_is_served(situation: object, want: int) -> None:
    core = situation()  # type: ignore[operator]
    hear(core, OTHER, msg.Fish(FishId(9), OTHER, want, 0.1))
