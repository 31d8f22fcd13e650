"""Nothing of a peer is unpickled: a wire across every way into the unpickler.

What lives here: replacements of `pickle.loads` and its like that note who called them.  They do not raise, or not only,
since some code of ours catches everything that an unpickling may raise.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cloudpickle

from hdphrs.wire import pickling, unpickler, values

sprung: list[str] = []
"""What was called since the wire was laid; nothing, one hopes."""


class UnpicklingError(RuntimeError):
    """Something was about to be unpickled."""


@contextmanager
def laid() -> Iterator[None]:
    """Lay the wire; taken up again at the end."""
    sprung.clear()
    places: list[tuple[Any, str]] = [
        (pickle, "loads"),
        (pickle, "load"),
        (pickle, "Unpickler"),
        (pickle, "_Unpickler"),
        (cloudpickle, "loads"),
        (cloudpickle, "load"),
        (pickling, "loads"),
        (pickling, "load_parts"),
        (pickling, "load_plain"),
        (pickling, "Unpickler"),
        (unpickler, "Unpickler"),
        (values, "loads"),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name in places]
    for owner, name in places:
        setattr(owner, name, _wire(f"{owner.__name__}.{name}"))
    try:
        yield
    finally:
        for owner, name, original in before:
            setattr(owner, name, original)


def _wire(name: str) -> Any:
    def spring(*args: object, **kwargs: object) -> Any:
        if len(sprung) < 10:
            sprung.append(name)
        raise UnpicklingError(name)

    return spring
