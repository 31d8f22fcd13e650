"""Which entries of a ledger are believed, and those that are not.

What lives here: `Seal`, through which all entries go on their way to a store and back.  With a key, what is written
carries a signature that only who has the key can make, and what carries none, or a wrong one, is as if it were not
there: this is found out before anything of the entry is looked at, let alone unpickled (decision 42).
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Final

from hdphrs.ledger.entry import Damage, Entry, decode_entry, encode_entry
from hdphrs.ledger.store import Complain

_MAGIC: Final = b"hdphrs signed entry 1\n"
_SIGNATURE_BYTES: Final = sha256().digest_size
_HEAD_BYTES: Final = len(_MAGIC) + _SIGNATURE_BYTES


class Seal:
    """What one run believes of one ledger."""

    def __init__(self, where: str, key: bytes | None, complain: Complain) -> None:
        """
        Args:
            where: names the ledger in messages.
            key: signs entries; None believes all that are sound, whether they are signed or not.
            complain: takes a sentence about each entry that is damaged.
        """
        self._where = where
        self._key = key
        self._complain = complain
        self.unsigned: int = 0
        """Entries that were not believed, because they were not signed with the key."""

    def close(self, entry: Entry) -> bytes:
        """The entry as it is stored."""
        blob = encode_entry(entry)
        return blob if self._key is None else _MAGIC + _sign(self._key, entry.key, blob) + blob

    def open(self, key: object, blob: object) -> Entry | None:
        """The entry of a call as it was stored; None if it is not believed, or damaged.

        Args:
            key: the memo of the call.
            blob: what has been found in its place.
        """
        try:
            if not isinstance(key, bytes):
                raise Damage("it has no key")
            if self._key is None:
                is_signed = isinstance(blob, bytes) and blob.startswith(_MAGIC)
                return decode_entry(blob[_HEAD_BYTES:] if is_signed else blob, key)  # type: ignore[index]
            if not isinstance(blob, bytes) or not _is_signed(self._key, key, blob):
                self.unsigned += 1
                return None
            return decode_entry(blob[_HEAD_BYTES:], key)
        except Damage as damage:
            self._complain(f"an entry of {self._where} is damaged ({damage}) and is not used")
            return None


def _is_signed(secret: bytes, key: bytes, blob: bytes) -> bool:
    signature = blob[len(_MAGIC) : _HEAD_BYTES]
    return blob.startswith(_MAGIC) and hmac.compare_digest(signature, _sign(secret, key, blob[_HEAD_BYTES:]))


def _sign(secret: bytes, key: bytes, blob: bytes) -> bytes:
    """Of an entry in its place: it is right for no other call."""
    return hmac.digest(secret, _MAGIC + len(key).to_bytes(4, "big") + key + blob, "sha256")
