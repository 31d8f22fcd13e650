"""An entry: one call and what it has come to, as bytes that prove themselves.

What lives here: the form of an entry.  Nothing of it is believed before its checksum, which covers all of it, has been
found right, and its key to be the one that was asked for; so whatever happens to a ledger, it never answers wrongly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import msgpack

from hdphrs.protocol.tasks import MEMO_BYTES

FORM: Final = 1
"""Raised with every change of what an entry's bytes mean; older entries are left alone, and not found."""

_MAGIC: Final = b"hdphrs entry %d\n" % FORM
_CHECKSUM_BYTES: Final = 16
_HEAD_BYTES: Final = len(_MAGIC) + _CHECKSUM_BYTES


class Damage(Exception):  # noqa: N818 - it never leaves the package but as a sentence
    """An entry, or the file that holds it, is not as it was written."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a store tells about an entry without opening it.  It may be wrong; the entry itself tells the truth."""

    key: bytes
    """The memo of the call."""
    top: bytes
    """Key of the program's task that this one descends from (its own, if it is the program's); empty if unknown."""
    path: bytes
    """Where it was spawned."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A call and its value."""

    key: bytes
    top: bytes
    path: bytes
    name: str
    """The function's, for people; a piece has none."""
    cost_s: float
    """What it took to compute."""
    data: bytes
    """The pickled value, or the bulk that it is in."""


def encode_entry(entry: Entry) -> bytes:
    """The entry as bytes."""
    fields = [entry.key, entry.top, entry.path, entry.name, entry.cost_s, bytes(entry.data)]
    body: bytes = msgpack.packb(fields, use_bin_type=True)
    return _MAGIC + _checksum(body) + body


def decode_entry(blob: object, key: bytes) -> Entry:
    """The entry that was asked for.

    Raises:
        Damage: these bytes are none, or that of another key.
    """
    if type(blob) is not bytes or not blob.startswith(_MAGIC):
        raise Damage("it is no entry of this ledger")
    body = blob[_HEAD_BYTES:]
    if blob[len(_MAGIC) : _HEAD_BYTES] != _checksum(body):
        raise Damage("its checksum is another")
    try:
        found_key, top, path, name, cost_s, data = msgpack.unpackb(body, raw=False, max_ext_len=0)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise Damage("it is no entry of this ledger") from error
    types = (type(found_key), type(top), type(path), type(name), type(cost_s), type(data))
    if types != (bytes, bytes, bytes, str, float, bytes) or not 0.0 <= cost_s < math.inf:
        raise Damage("it is no entry of this ledger")
    if found_key != key:
        raise Damage("it belongs to another call")
    return Entry(found_key, top, path, name, cost_s, data)


def is_key(value: object) -> bool:
    """Whether this may be a key."""
    return type(value) is bytes and len(value) == MEMO_BYTES


def _checksum(body: bytes) -> bytes:
    return blake2b(body, digest_size=_CHECKSUM_BYTES, person=b"hdphrs ledger").digest()
