"""Pieces: finished parts of tasks that are not finished, kept at the root for the case that they are run again.

What lives here: the root's store.  A piece names a task by its path, so a parent that is run again, elsewhere and by
whomever, finds what its children had come to (decision 8).  The root outlives all others by assumption, and so do the
pieces; which results are worth the way to it is for `worth` to say.

A piece covers what is below its path: once a task is finished, nobody runs its children again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from hashlib import blake2b

from hdphrs.config import CoreConfig
from hdphrs.protocol.tasks import KEEN, MEMO_BYTES, Orphan, Outcome, Payload, Piece, Task, Verdict

CHECK_BYTES = 16


def check_of(code: bytes, payload: Payload, memo: bytes = b"") -> bytes:
    """Digest of a call; a piece is only used where it was made by the very same one.

    In a run with a ledger the memo takes its place: it is the same in the next run too.
    """
    return memo or blake2b(b"%d %s%s" % (len(code), code, payload), digest_size=CHECK_BYTES).digest()


def check_of_task(task: Task) -> bytes:
    """Digest of a task's call."""
    return check_of(task.code, task.payload, task.memo)


def piece_of(task: Task, outcome: Outcome) -> Piece:
    """What a finished task leaves to its ancestors."""
    return Piece(task.path, check_of_task(task), outcome)


def worth(config: CoreConfig, nodes: int, outcome: Outcome) -> bool:
    """Whether to send this result to the root, for `nodes` of them do: it cost much more than the way there does."""
    return outcome.verdict is Verdict.VALUE and outcome.cost_s >= max(
        config.piece_cost_s * nodes, config.piece_byte_cost_s * len(outcome.data)
    )


def is_memo(check: bytes) -> bool:
    """Whether this check is one that the ledger knows; others are shorter."""
    return len(check) == MEMO_BYTES


def is_keen(check: bytes) -> bool:
    """Whether the task of this check, or memo, is wanted in the ledger whatever it has cost."""
    return check.startswith(KEEN) and is_memo(check)


def apart(parts: Iterable[Piece | Orphan]) -> tuple[Piece | Orphan, ...]:
    """In the order of their paths, and none below another; what is finished comes before what runs."""
    left: list[Piece | Orphan] = []
    for part in sorted(parts, key=lambda part: (part.path, isinstance(part, Orphan))):
        if not (left and part.path.startswith(left[-1].path)):
            left.append(part)
    return tuple(left)


class Pieces:
    """The store at the root, bounded: the cheapest pieces for their size go first."""

    def __init__(self, config: CoreConfig, pieces: Iterable[Piece] = ()) -> None:
        self.bytes_max: int = config.pieces_bytes_max
        """0: nothing is kept."""
        self._pieces: dict[bytes, Piece] = {}
        self._paths: list[bytes] = []
        """Sorted, so that all that is below a path is one stretch."""
        self._bytes = 0
        self.on_keep: Callable[[Piece], None] | None = None
        """Told of each piece that is kept; nothing in here depends on it."""
        self.on_discard: Callable[[Piece], None] | None = None
        """And of each that is discarded."""
        for piece in pieces:
            self.keep(piece)

    def __len__(self) -> int:
        return len(self._pieces)

    def at(self, path: bytes) -> Piece | None:
        """What the task at this path has come to."""
        return self._pieces.get(path)

    def keep(self, piece: Piece) -> None:
        """A new one; it covers others, or is covered."""
        if self._is_covered(piece.path):
            return
        self.cover(piece.path)
        self._pieces[piece.path] = piece
        if self.on_keep is not None:
            self.on_keep(piece)
        insort(self._paths, piece.path)
        self._bytes += size_of(piece)
        if self._bytes > self.bytes_max:
            self._shrink()

    def cover(self, path: bytes) -> None:
        """The task at this path is finished: forget what is below it."""
        if not self._paths:
            return
        start, end = self._below(path)
        for covered in self._paths[start:end]:
            self._bytes -= size_of(self._pieces.pop(covered))
        del self._paths[start:end]

    def discard(self, path: bytes) -> None:
        """What the task at this path has come to takes down who unpickles it: forget that."""
        piece = self._pieces.pop(path, None)
        if piece is None:
            return
        del self._paths[bisect_left(self._paths, path)]
        self._bytes -= size_of(piece)
        if self.on_discard is not None:
            self.on_discard(piece)

    def below(self, path: bytes) -> tuple[Piece, ...]:
        """What is kept of the task at this path: itself, or parts of it."""
        if not self._paths:
            return ()
        start, end = self._below(path)
        return tuple(self._pieces[found] for found in self._paths[start:end])

    def _below(self, path: bytes) -> tuple[int, int]:
        start = bisect_left(self._paths, path)
        end = start
        while end < len(self._paths) and self._paths[end].startswith(path):
            end += 1
        return start, end

    def _is_covered(self, path: bytes) -> bool:
        return any(path[:length] in self._pieces for length in range(1, len(path) + 1))

    def _shrink(self) -> None:
        """Drop the cheapest for their size, down to three quarters of the bound."""
        for piece in sorted(self._pieces.values(), key=lambda piece: piece.outcome.cost_s / size_of(piece)):
            if self._bytes <= 3 * self.bytes_max // 4:
                break
            del self._pieces[piece.path]
            self._bytes -= size_of(piece)
        self._paths = sorted(self._pieces)


def size_of(piece: Piece | Orphan) -> int:
    """What it takes, in bytes."""
    data = len(piece.outcome.data) if isinstance(piece, Piece) else 0
    return data + len(piece.path) + len(piece.check) + 100
