"""The global interpreter lock: whether it is there, and where the code relies on it.

What lives here: the sentence for Pythons without it.  Each place that is right only because one thread runs at a time
is marked with a comment, `GIL:` and its name; `docs/pythons.md` lists all, and a test compares the two.
"""

from __future__ import annotations

import sys

WITHOUT = (
    "hdphrs does not run without the global interpreter lock yet: use a Python that has it, or start this one with "
    "-X gil=1 (PYTHON_GIL=1)"
)


def why_not() -> str | None:
    """Why nothing of ours starts in this process; None where the lock is there."""
    is_enabled = getattr(sys, "_is_gil_enabled", None)
    return None if is_enabled is None or is_enabled() else WITHOUT
