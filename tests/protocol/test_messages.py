"""What the messages say of themselves."""

from __future__ import annotations

from hdphrs.explore.work import task
from hdphrs.protocol import messages as msg
from hdphrs.protocol.tasks import PROGRAM, ROOT, FishId, Orphan, Outcome, Piece, RecallId, Spark, TaskRef, Verdict

REF = TaskRef(ROOT, PROGRAM, 1)
PIECE = Piece(b"p", b"check", Outcome(Verdict.VALUE, b"piece"))
ORPHAN = Orphan(b"o", b"check", ROOT)
SPARK = Spark(REF, 0, task(b"s"), pieces=(PIECE, ORPHAN))


def test_payloads_are_all_that_may_be_large() -> None:
    carried = [SPARK.task.payload, b"piece"]
    told: list[tuple[msg.Message, list[bytes]]] = [
        (msg.Schedule(FishId(1), (SPARK, SPARK)), carried * 2),
        (msg.Push(SPARK), carried),
        (msg.Result(REF, 0, Outcome(Verdict.VALUE, b"value")), [b"value"]),
        (msg.Keep((PIECE,)), [b"piece"]),
        (msg.Recalled(RecallId(1), (PIECE, ORPHAN)), [b"piece"]),
        (msg.Code(b"digest", b"code"), [b"code"]),
        (msg.Fish(FishId(1), ROOT, 1, 0.0), []),
    ]
    assert [(message, msg.payloads(message)) for message, _ in told] == told
    assert {type(message) for message, payloads in told if payloads} == set(msg.BULKY)
