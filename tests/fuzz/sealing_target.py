"""The target that reads sealed records: what the peer has sealed, bent in any way, or anything at all.

What lives here: the input says how an honest stream is cut, and from where on it is XORed with the rest of the input,
or replaced by it.  What comes out must be the beginning of what was sealed: all of it if nothing was bent, and never a
byte of a record that was.
"""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from hdphrs.errors import ProtocolError
from hdphrs.wire.sealing import HEAD_BYTES, RECORD_BYTES_MAX, TAG_BYTES, Opener, Sealer
from tests.fuzz.mutate import mutate_bytes, pieces
from tests.fuzz.target import Outcome, Target, refused

_KEY: Final = b"k" * 32
_PARTS: Final = (b"one", b"x" * 300, b"three", b"\0" * 1200, b"end")
_SEALER: Final = Sealer(_KEY)
_RECORDS: Final = [_SEALER.seal(part) for part in _PARTS]
_STREAM: Final = b"".join(_RECORDS)
_SENT: Final = b"".join(_PARTS)


def _bend(data: bytes) -> tuple[bytes, int]:
    """What arrives, and how much of its beginning is as it was sealed."""
    where, mask = int.from_bytes(data[1:3], "big") % len(_STREAM), data[3:]
    if data and data[0] & 1:
        bent = _STREAM[:where] + mask
    else:
        flipped = bytes([a ^ b for a, b in zip(_STREAM[where:], mask, strict=False)])
        bent = _STREAM[:where] + flipped + _STREAM[where + len(flipped) :]
    same = next(
        (i for i, (a, b) in enumerate(zip(bent, _STREAM, strict=False)) if a != b), min(len(bent), len(_STREAM))
    )
    return bent, same


def _run(data: bytes) -> Outcome:
    how, data = (data[0], data[1:]) if data else (0, b"")
    bent, same = _bend(data)
    opener = Opener(_KEY)
    believed, fault = b"", None
    for piece in pieces(bent, how):
        try:
            believed += b"".join(bytes(part) for part in opener.open(piece))
        except ProtocolError as error:
            fault = error
            break
        assert len(opener._body) <= RECORD_BYTES_MAX
        assert len(opener._tag) < TAG_BYTES
        assert len(opener._head) <= HEAD_BYTES
    assert _SENT.startswith(believed)
    assert len(believed) <= same, "a record is believed that was bent"
    if bent == _STREAM:
        assert fault is None
        assert believed == _SENT
    if fault is None:
        return Outcome(bent == _STREAM, f"{len(believed)} bytes")
    with pytest.raises(ProtocolError):  # it never gets better
        opener.open(b"")
    return refused(fault)


def _seeds() -> list[bytes]:
    return [bytes([how, 0, 0, 0]) for how in (0, 1, 9)]


def _draw(rng: Random) -> bytes:
    head = bytes([rng.choice((0, 1, 9)), rng.randrange(2)])
    if rng.random() < 0.5:  # from between two records on, others
        where = sum(map(len, _RECORDS[: rng.randrange(len(_RECORDS))]))
        tail = b"".join(rng.choices(_RECORDS, k=rng.randrange(4)))
        return mutate_bytes(rng, head[:1] + b"\1" + where.to_bytes(2, "big") + tail)
    return head + rng.randrange(len(_STREAM)).to_bytes(2, "big") + rng.randbytes(rng.randrange(40))


_SEEDS: Final = _seeds()
SEALING: Final = Target("sealing", _run, lambda: list(_SEEDS), _draw)
