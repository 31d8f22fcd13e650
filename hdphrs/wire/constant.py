"""A mark for what travels with functions and never changes.

What lives here: the mark alone, so that whoever is marked need not load what pickles (`capture.py` looks at it).
"""

from __future__ import annotations


class Constant:
    """Base of what travels with a function and whose fields are never bound anew; they are looked at as if they were
    captured."""

    __slots__ = ()
