"""The digests under which the program's surroundings are registered, as code is (`code.py`); what they are, only the
layers above know (decision 48).
"""

from __future__ import annotations

SURROUNDINGS = b"surroundings "
"""What the digests of surroundings begin with; the number of the version follows, so that newer ones compare as
greater."""

VERSION_BYTES = 8


def surroundings_digest(version: int) -> bytes:
    """The digest under which a version of the surroundings is registered; they count from 1."""
    return SURROUNDINGS + version.to_bytes(VERSION_BYTES, "big")


def is_surroundings(digest: bytes) -> bool:
    """Whether this is the digest of surroundings, and not that of a function."""
    return digest.startswith(SURROUNDINGS)
