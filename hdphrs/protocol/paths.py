"""Paths: the identity of a task across re-execution.

A path is the chain of spawn indices from the program to a task.  It is the same whenever, wherever and however often
the task is made, provided that every task spawns the same children in the same order.

The path of a task begins with the paths of its ancestors: each index is a sequence of bytes of which no other is the
beginning (7 bits a byte, low ones first, all but the last marked by the high bit).  Chains that are too long are folded
into a digest; below a fold the ancestors above it cannot be seen any more, but for the first, which follows the digest.
"""

from __future__ import annotations

from hashlib import blake2b

PROGRAM_PATH = b""
"""The path of the program itself."""

PATH_BYTES_MAX = 240
"""Longer paths are folded."""

FOLD = b"\x80\x00"
"""How a folded path begins; no index does, it would be 0 with a byte too many."""

BUNDLE = b"\x81\x00"
"""How the path of a bundle begins, that is of several children of one task which travel as one: the path of the first
of them follows.  No index begins like this, it would be 1 with a byte too many."""

DIGEST_BYTES = 16

SHOWN_MAX = 8
SHOWN_FIRST = 2
SHOWN_DIGITS = 8
"""Indices of a long chain that are shown, of them at the beginning; digits of a digest."""


def first_index(path: bytes) -> bytes:
    """The beginning of a path: that of the program's task; all of it if it is folded."""
    if path.startswith(FOLD):
        return path
    for end, byte in enumerate(path, 1):
        if byte < 0x80:
            return path[:end]
    return path


def call_of(path: bytes) -> bytes:
    """The program's task that the one at this path descends from, or is, by which tasks take turns: its index; for a
    bundle of the program's calls, which are several, that bundle."""
    if path.startswith(BUNDLE):
        first = path[len(BUNDLE) :]
        call = call_of(first)
        return path if call == first else call
    if path.startswith(FOLD):
        path = path[len(FOLD) + DIGEST_BYTES :]
    for end, byte in enumerate(path, 1):
        if byte < 0x80:
            return path[:end]
    return path


def show_path(path: bytes) -> str:
    """A path for people: the indices, of a long chain the first and the last ones; of a folded one a digest."""
    if path.startswith(FOLD):
        return "#" + path[len(FOLD) :].hex()[:SHOWN_DIGITS]
    indices: list[int] = []
    index = shift = 0
    for byte in path:
        index |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            indices.append(index)
            index = shift = 0
    if len(indices) > SHOWN_MAX:
        shown = [
            *map(str, indices[:SHOWN_FIRST]),
            "\N{HORIZONTAL ELLIPSIS}",
            *map(str, indices[SHOWN_FIRST - SHOWN_MAX :]),
        ]
    else:
        shown = [*map(str, indices)]
    return ".".join(shown)


def index_of(path: bytes) -> int:
    """Of a task of the program, whose path is `first_index` of itself: which of them it is."""
    return sum((byte & 0x7F) << 7 * place for place, byte in enumerate(path))


def may_hold(bundle: bytes, path: bytes) -> bool:
    """Whether a bundle of a task's children may hold the task at this path: they have one parent, or one cannot see
    that they have not.  Bundles of the program, which have numbers of their own, hold none."""
    first = bundle.removeprefix(BUNDLE)
    if first.startswith(FOLD) or path.startswith(FOLD):
        return path.startswith(FOLD)
    parent = _parent(first)
    return parent != PROGRAM_PATH and parent == _parent(path)


def _parent(path: bytes) -> bytes:
    end = len(path) - 1
    while end > 0 and path[end - 1] >= 0x80:
        end -= 1
    return path[:end]


def child_path(parent: bytes, index: int) -> bytes:
    """The path of the `index`-th child of the task at `parent`."""
    if index < 0x80:
        path = parent + index.to_bytes(1, "big")
    else:
        indices = bytearray(parent)
        while index >= 0x80:
            indices.append(index & 0x7F | 0x80)
            index >>= 7
        indices.append(index)
        path = bytes(indices)
    if len(path) > PATH_BYTES_MAX:
        return FOLD + blake2b(path, digest_size=DIGEST_BYTES).digest() + call_of(path)
    return path
