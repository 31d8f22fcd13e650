"""Paths: the identity of a task across re-execution.

A path is the digest of the chain of spawn indices from the program to a task.  It is the same whenever, wherever and
however often the task is made, provided that every task spawns the same children in the same order.
"""

from __future__ import annotations

from hashlib import blake2b

PATH_BYTES = 16

PROGRAM_PATH = bytes(PATH_BYTES)
"""The path of the program itself."""


def child_path(parent: bytes, index: int) -> bytes:
    """The path of the `index`-th child of the task at `parent`."""
    return blake2b(parent + index.to_bytes(8, "big"), digest_size=PATH_BYTES).digest()
