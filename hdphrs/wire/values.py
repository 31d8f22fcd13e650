"""Arguments, results and exceptions as bytes.

What lives here: pickling, with errors that say which argument of which task does not travel.  Only a program and a
scheduler call this; a node process passes the bytes on and never looks inside.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any

import cloudpickle
import msgpack

from hdphrs.errors import (
    CannotTravelError,
    RemoteTraceback,
    TaskCrashedError,
    TaskError,
    TaskLostError,
)
from hdphrs.protocol.tasks import Outcome, Verdict

PICKLE_PROTOCOL = 5
PACKAGE = str(Path(__file__).parent.parent)

_PLAIN = frozenset({int, float, complex, str, bytes, bool, NoneType})
"""Types that the plain pickler treats exactly as cloudpickle would, and much faster."""


def dump(value: object) -> bytes:
    """Pickle anything, functions and classes of `__main__` by value."""
    if type(value) in _PLAIN:
        return pickle.dumps(value, PICKLE_PROTOCOL)
    return cloudpickle.dumps(value, PICKLE_PROTOCOL)  # type: ignore[no-any-return]


load: Callable[[bytes], Any] = pickle.loads


def dump_arguments(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """Pickle the arguments of a call of `name`: a tuple, or the list [tuple, dict] if there are keywords.

    Raises:
        CannotTravelError: naming the argument.
    """
    try:
        if kwargs:
            return cloudpickle.dumps([args, dict(kwargs)], PICKLE_PROTOCOL)  # type: ignore[no-any-return]
        if _PLAIN.issuperset(map(type, args)):
            return pickle.dumps(args, PICKLE_PROTOCOL)
        return cloudpickle.dumps(args, PICKLE_PROTOCOL)  # type: ignore[no-any-return]
    except Exception as error:
        named = [(f"argument {i + 1}", arg) for i, arg in enumerate(args)]
        named += [(f"argument {key!r}", arg) for key, arg in kwargs.items()]
        for label, arg in named:
            _check(f"{label} of task {name} (a {_type_name(arg)})", arg)
        raise CannotTravelError(f"the arguments of task {name} do not pickle: {reason(error)}") from error


def dump_result(name: str, value: object) -> Outcome:
    """The outcome of a task that has returned `value`; an error that says so if that does not pickle."""
    try:
        return Outcome(Verdict.VALUE, dump(value))
    except Exception as error:
        refusal = CannotTravelError(
            f"the result of task {name} (a {_type_name(value)}) does not pickle: {reason(error)}"
        )
        return dump_error(name, refusal)


def dump_error(name: str, error: BaseException) -> Outcome:
    """The outcome of a task that has raised.

    Holds the pickled exception if it pickles, and always its name and its formatted traceback, without our own frames.
    """
    text = "".join(_formatted(error))
    try:
        pickled = cloudpickle.dumps(error, PICKLE_PROTOCOL)
    except Exception:
        pickled = None
    return Outcome(Verdict.RAISED, msgpack.packb([pickled, name, _type_name(error), _one_line(str(error)), text]))


def load_outcome(outcome: Outcome) -> tuple[bool, Any]:
    """(True, value) or (False, exception).  Never raises, whatever the unpickling does."""
    match outcome.verdict:
        case Verdict.VALUE:
            try:
                return True, load(outcome.data)
            except Exception as error:
                return False, CannotTravelError(f"a result does not unpickle here: {reason(error)}")
        case Verdict.RAISED:
            return False, _load_error(outcome.data)
        case Verdict.CRASHED:
            attempts = "; ".join(f"on {c.host}, process {c.pid} {c.how}" for c in outcome.crashes)
            return False, TaskCrashedError(
                f"task {outcome.data.decode()} took down its process {len(outcome.crashes)} times, and is given up: "
                f"{attempts}"
            )
        case Verdict.LOST:
            return False, TaskLostError(outcome.data.decode())


def _load_error(data: bytes) -> BaseException:
    pickled, name, type_name, message, text = msgpack.unpackb(data)
    error: BaseException | None = None
    if pickled is not None:
        try:
            candidate = load(pickled)
        except Exception:
            candidate = None
        if isinstance(candidate, BaseException):
            error = candidate
    if error is None:
        error = TaskError(f"task {name} raised {type_name}: {message} (that exception does not pickle)")
    error.__cause__ = RemoteTraceback(text)
    return error


def _formatted(error: BaseException) -> list[str]:
    described = traceback.TracebackException.from_exception(error, compact=True)
    seen: traceback.TracebackException | None = described
    while seen is not None:
        kept = [frame for frame in seen.stack if not frame.filename.startswith(PACKAGE)]
        seen.stack = traceback.StackSummary.from_list(kept)
        seen = seen.__cause__ or seen.__context__
    return list(described.format())


def _check(label: str, value: object) -> None:
    try:
        cloudpickle.dumps(value, PICKLE_PROTOCOL)
    except Exception as error:
        raise CannotTravelError(f"{label} does not pickle: {reason(error)}") from error


def reason(error: BaseException) -> str:
    if isinstance(error, CannotTravelError):
        return str(error)
    return f"{type(error).__name__}: {_one_line(str(error))}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
