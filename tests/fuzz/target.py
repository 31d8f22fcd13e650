"""What a fuzz target is, and what counts as a finding.

What lives here: the type that all targets share, and `examine`, which feeds one input to one target under guard.  A
target takes bytes only, so that every input can be told in hex and tried again.
"""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from hdphrs.errors import HdphrsError
from hdphrs.wire.framing import EXPANSION_MAX
from tests.fuzz import tripwire

INPUT_BYTES_MAX: Final = 1 << 16
"""Longer inputs are cut."""

ALLOWANCE_BYTES: Final = 512 << 10
"""What a target may allocate for the shortest of inputs; a packer of msgpack takes half of it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an input was received."""

    accepted: bool
    what: str
    """The kind of what was accepted, or the complaint without its numbers."""


@dataclass(frozen=True, slots=True)
class Target:
    """Some code of ours that reads what others wrote."""

    name: str
    run: Callable[[bytes], Outcome]
    """Raises whatever the code raises that it should not, or AssertionError when the result is wrong."""
    seeds: Callable[[], list[bytes]]
    """Valid inputs, the same each time."""
    draw: Callable[[Random], bytes]
    """A valid input, made a little wrong."""
    unpickles: bool = False
    """It is code that runs after authentication, and may unpickle."""
    measured_every: int = 1
    """Inputs of which one is measured: measuring is slow."""
    expansion_max: int = 2 * EXPANSION_MAX
    """Bytes that it may allocate for each byte of its input."""


class Finding(Exception):  # noqa: N818 - it is what we look for
    """An input that does what no input may do."""

    def __init__(self, target: Target, data: bytes, what: str) -> None:
        super().__init__(what)
        self.data = data
        self.target = target

    def __str__(self) -> str:
        return f"{self.args[0]}\n  input: {self.data.hex()}\n  rerun with: {self.rerun}"

    @property
    def rerun(self) -> str:
        """The line that tries this input again."""
        return f"python -m tests.fuzz --target {self.target.name} --input {self.data.hex()}"


def refused(error: HdphrsError) -> Outcome:
    """The outcome of an input that was refused as it should be, unless memory had run out over it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            raise cause
        cause = cause.__cause__
    return Outcome(False, re.sub(r"\d+(,\d+)*", "#", str(error))[:80])


def examine(target: Target, data: bytes, *, measured: bool) -> Outcome:
    """Feed one input to a target.

    Args:
        measured: watch what it allocates, too.

    Raises:
        Finding: an exception that is not ours, an unpickling, more memory than such an input may take.
    """
    if measured:
        tracemalloc.start()
    try:
        outcome = target.run(data)
        taken = tracemalloc.get_traced_memory()[1] if measured else 0
    except Exception as error:
        raise Finding(target, data, f"{type(error).__name__}: {error}") from error
    finally:
        if measured:
            tracemalloc.stop()
    if tripwire.sprung and not target.unpickles:
        raise Finding(target, data, f"unpickled: {tripwire.sprung}")
    allowed = ALLOWANCE_BYTES + target.expansion_max * len(data)
    if taken > allowed:
        raise Finding(target, data, f"{len(data)} bytes made it allocate {taken:,}, more than {allowed:,}")
    return outcome
