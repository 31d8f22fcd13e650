"""The seed of a run, and what each task draws from it: `rng`, `seed`, `set_seed`, `run_seed`.

What lives here: the seed of this program, its form as bytes that travel with the arguments of each exported task, and
generators by path.  Nothing of it is touched by a program that draws nothing, but for those bytes.

Theory of operation
-------------------

A stream is named by the seed of the run and a path.  `rng` and `seed` take an index of the running task as a spawn
does, but no task comes of it; so each call has a path of its own, which is the same whenever, wherever and however
often the task runs, provided that it spawns and draws in the same order (decision 21).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from hdphrs.api.future import state
from hdphrs.config import SEED_MAX, SEED_VARIABLE
from hdphrs.errors import UsageError

if TYPE_CHECKING:
    from random import Random

F = TypeVar("F", bound=Callable[..., Any])

KEY_BYTES = 18
"""What a task needs to know to draw: whether by NumPy, for which node of the program's, and a digest of the seed."""

NODES_MAX = 256

BITS_MAX = 512
"""Of one seed."""

DRAWS_MARK = "__hdphrs_draws__"
"""An attribute of functions whose results depend on the seed of the run and on the path."""

_ASIDE_BITS = 32
_SEED_BYTES = 4

_lock = threading.Lock()
_seed: int | None = None


class Indices:
    """What a program spawns and draws, counted; any thread may."""

    def __init__(self) -> None:
        self._next = count()
        self._aside = threading.local()

    def take(self) -> int:
        """The next one."""
        # GIL: counting what a program spawns
        return next(getattr(self._aside, "next", self._next))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """See `Port.aside`; for what this thread takes."""
        outer = getattr(self._aside, "next", self._next)
        self._aside.next = count(beside(self.take()))
        try:
            yield
        finally:
            self._aside.next = outer
            if outer is self._next:
                del self._aside.next


indices: Indices = Indices()
"""Those of this program, whichever node it gets."""


def beside(index: int) -> int:
    """The first of the indices that belong to what takes this one, and needs nobody knows how many."""
    return (index + 1) << _ASIDE_BITS


def set_seed(seed: int) -> None:
    """Set the seed of this run, from which `rng` and `seed` draw, in place of the one given by `hdphrs run --seed` or
    HDPHRS_SEED, or drawn.

    Call it at the beginning of the program.

    Args:
        seed: from 0 to 2**53.

    Raises:
        UsageError: it is no such number; or the program has spawned or drawn already, with another seed; or this is a
            task of a run with another one.
    """
    global _seed
    if not _is_int(seed, 0, SEED_MAX):
        raise UsageError(f"set_seed: expected an int from 0 to 2**53, not {seed!r}")
    if state.port.is_scheduler:
        key = state.port.key()  # none while the first task is unpickled, which may import a module of the program
        if key and key[2:] != _digest(seed):
            raise UsageError("set_seed: only the program sets the seed, at its beginning; inside a task use rng()")
        return
    with _lock:
        if _seed is not None and seed != _seed:
            raise UsageError(f"set_seed: the seed of this run is {_seed} already; set it when the program begins")
        _seed = seed


def run_seed() -> int:
    """The seed of this run, so that a program can tell it: what `set_seed`, `--seed` or HDPHRS_SEED has said, else
    drawn.

    Raises:
        UsageError: inside a task, which has `seed()`; or HDPHRS_SEED is no seed.
    """
    global _seed
    if state.port.is_scheduler:
        raise UsageError("run_seed: ask in the program, and pass it on; a task has seed() of its own")
    with _lock:
        if _seed is None:
            _seed = _given_seed()
        return _seed


def run_key(node: int = 0) -> bytes:
    """What the tasks of this program need to know.

    Args:
        node: 0 for the cluster of this program, else a number for a node of an executor's own.
    """
    from importlib.util import find_spec

    seed = run_seed()
    has_numpy = find_spec("numpy") is not None
    return bytes((has_numpy, node % NODES_MAX)) + _digest(seed)


def _draws(function: F) -> F:
    setattr(function, DRAWS_MARK, True)
    return function


@overload
def rng(*, numpy: Literal[False]) -> Random: ...


@overload
def rng(*, numpy: bool | None = None) -> Any: ...


@_draws
def rng(*, numpy: bool | None = None) -> Any:
    """A new generator of random numbers for the running task, or for the program.

    Its numbers depend on the seed of the run and on the task's place in the tree of spawns, and on nothing else: not on
    the number of cores, nor on who steals what, nor on who dies.  Each call gives another generator, with numbers of
    its own; so ask once in a task, and keep it.

    Args:
        numpy: True: a `numpy.random.Generator`; False: a `random.Random`; None: the former if the program's host has
            NumPy, wherever the task runs.

    Raises:
        UsageError: NumPy is wanted and not there; or this is neither a task's thread nor the program.
    """
    key, path = _take()
    entropy = int.from_bytes(blake2b(key[1:] + path, digest_size=32, person=b"rng").digest(), "big")
    if not (key[0] if numpy is None else numpy):
        from random import Random

        return Random(entropy)
    try:
        from numpy.random import PCG64, Generator, SeedSequence
    except ImportError as error:
        from socket import gethostname

        where = "where the program runs it is" if numpy is None else "rng(numpy=True) needs it"
        raise UsageError(
            f"rng: NumPy is not installed on {gethostname()}, and {where}; "
            "install it on all hosts, or ask for rng(numpy=False)"
        ) from error
    return Generator(PCG64(SeedSequence(entropy)))


@_draws
def seed(bits: int = 32) -> int:
    """A number by which a library that draws random numbers itself can be seeded in this task.

    It depends on what `rng` depends on, and is another one with each call.

    Args:
        bits: the number is below 2**bits; 32 is what scikit-learn and NumPy's older functions take, others take 64.

    Raises:
        UsageError: `bits` is not from 1 to 512; or this is neither a task's thread nor the program.
    """
    if not _is_int(bits, 1, BITS_MAX):
        raise UsageError(f"seed: bits must be an int from 1 to {BITS_MAX}, not {bits!r}")
    key, path = _take()
    digest = blake2b(key[1:] + path, digest_size=BITS_MAX // 8, person=b"seed").digest()
    return int.from_bytes(digest, "big") >> (BITS_MAX - bits)


def _is_int(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _take() -> tuple[bytes, bytes]:
    port = state.port
    path = port.topic()
    return port.key(), path


def _digest(seed: int) -> bytes:
    return blake2b(str(seed).encode(), digest_size=KEY_BYTES - 2).digest()


def _given_seed() -> int:
    text = os.environ.get(SEED_VARIABLE)
    if text is None:
        return int.from_bytes(os.urandom(_SEED_BYTES), "big")
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(SEED_MAX)) and int(text) <= SEED_MAX):
        raise UsageError(f"{SEED_VARIABLE}: expected a number from 0 to 2**53, not {text!r}")
    return int(text)
