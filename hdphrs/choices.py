"""What a program chooses before its first call: `hdphrs.configure`, and a variable of the environment for each choice.

What lives here: which choices there are, what is a right value, which one counts, and until when it can be made.  What
does not: what follows from them.

What the program says counts before what the environment says.  Under `hdphrs run` the options of the run count
instead, and what the program says is no error and has no effect: the same program runs in either way.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final

from hdphrs.config import CONTEXTS_VARIABLE
from hdphrs.errors import UsageError
from hdphrs.records import dataclass

CORES_VARIABLE: Final = "HDPHRS_CORES"
"""As `configure(cores=...)`, and as `--cores` of `hdphrs run`."""

CORES_MAX: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One thing that can be chosen."""

    variable: str
    """Of the environment."""
    expected: str
    """What is a right value, for people."""
    is_right: Callable[[Any], bool]
    parse: Callable[[str], Any]
    """The value that a text of the environment stands for; a ValueError if it stands for none."""


def _is_cores(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= CORES_MAX


CHOICES: Final = {
    "cores": Choice(
        variable=CORES_VARIABLE,
        expected=f"a whole number from 1 to {CORES_MAX}",
        is_right=_is_cores,
        parse=int,
    ),
    "contexts": Choice(
        variable=CONTEXTS_VARIABLE,
        expected="True or False (in the environment: 1 or 0)",
        is_right=lambda value: isinstance(value, bool),
        parse=lambda text: {"1": True, "0": False}.get(text),
    ),
}
"""By name."""


class Choices:
    """The choices of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chosen: dict[str, Any] = {}
        self._settled: dict[str, Any] | None = None
        """What the run has begun with."""
        self._is_ruled = False

    def configure(self, chosen: dict[str, Any]) -> None:
        """Make choices; all of them or, if one is wrong, none.

        Raises:
            UsageError: there is no such choice, the value is not right, or the run has begun with another one.
        """
        for name, value in chosen.items():
            if name not in CHOICES:
                known = ", ".join(sorted(CHOICES))
                raise UsageError(f"configure: there is nothing named {name!r} to choose; there is: {known}")
            if not CHOICES[name].is_right(value):
                raise UsageError(f"configure: {name} must be {CHOICES[name].expected}, not {value!r}")
        with self._lock:
            if self._is_ruled:
                return
            for name, value in chosen.items():
                if self._settled is not None and self._settled.get(name, value) != value:
                    raise UsageError(
                        f"configure: {name}={value!r} comes too late: this program's run has begun with "
                        f"{name}={self._settled[name]!r}; choose before the first spawn or Executor"
                    )
            self._chosen.update(chosen)

    def value(self, name: str, default: Any) -> Any:
        """What counts, before a run begins.

        Raises:
            UsageError: the environment has something that is no right value.
        """
        if name in self._chosen:
            return self._chosen[name]
        text = os.environ.get(CHOICES[name].variable)
        if not text:
            return default
        try:
            value = CHOICES[name].parse(text)
        except ValueError:
            value = None
        if not CHOICES[name].is_right(value):
            raise UsageError(f"{CHOICES[name].variable} is {text!r}; it must be {CHOICES[name].expected}")
        return value

    def settle(self, name: str, value: Any) -> None:
        """The run begins with this, so it is too late for another choice."""
        with self._lock:
            self._settled = {**(self._settled or {}), name: value}

    def unsettle(self) -> None:
        """The run is over: what begins next may be chosen again."""
        with self._lock:
            self._settled = None

    def leave_to_others(self) -> None:
        """This process is one of a run that somebody else has begun, and decides about."""
        self._is_ruled = True


choices: Final = Choices()


def configure(*, cores: int | None = None, contexts: bool | None = None, **others: object) -> None:
    """Choose how this program runs, before its first `spawn`, `run` or `Executor`.

    What is not named, or None, stays as it is.  Under `hdphrs run`, whose options say the same, in tasks, and in
    sequential mode it has no effect.

    Args:
        cores: schedulers of the node that the program starts, one a core, from 1 to 1024; by default as many as there
            are cores that it may use.  `HDPHRS_CORES` in the environment says the same, and counts if this does not.
            An `Executor(max_workers=n)` that has a node of its own gets `n`.
        contexts: whether each task has a context of its own (context variables, `decimal`, NumPy's `errstate`, event
            loops, standard streams), which costs something where there is any; by default it has.
            `HDPHRS_CONTEXTS=0` says the same, also under `hdphrs run`.

    Raises:
        UsageError: there is no such choice, the value is not right, or the run has begun with another one.
    """
    given = {"cores": cores, "contexts": contexts, **others}
    choices.configure({name: value for name, value in given.items() if value is not None})
