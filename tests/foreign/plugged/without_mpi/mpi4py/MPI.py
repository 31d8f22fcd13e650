"""The communicators of a single process."""

from __future__ import annotations


class Comm:
    """Of one process."""

    def Get_size(self) -> int:  # noqa: N802 - theirs
        return 1

    def Get_rank(self) -> int:  # noqa: N802
        return 0


COMM_WORLD = COMM_SELF = Comm()


def get_vendor() -> tuple[str, tuple[int, int, int]]:
    """Nobody's."""
    return "none", (0, 0, 0)


def Get_version() -> tuple[int, int]:  # noqa: N802
    """Of the standard that the tests may expect."""
    return 4, 0
