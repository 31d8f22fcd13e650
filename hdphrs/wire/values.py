"""Arguments, results and exceptions as payloads: bytes, or what stands for many of them (`bulk.py`).

What lives here: pickling, with errors that say which argument of which task does not travel.  Only a program and a
scheduler call this; a node process passes payloads on and never looks inside.

Pickling runs the user's code, which may raise anything, `SystemExit` included.  Whatever it raises is the outcome of
that one task.  Only what a signal handler raises goes through, as Ctrl-C does, where a program may be listening.
"""

from __future__ import annotations

import reprlib
import textwrap
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import CoroutineType
from typing import Any, Final, TypeVar

import msgpack

from hdphrs.config import FRAME_BYTES_MAX, CoreConfig
from hdphrs.errors import (
    CannotTravelError,
    ProtocolError,
    RemoteTraceback,
    TaskCrashedError,
    TaskError,
    TaskLostError,
    TaskTimeoutError,
)
from hdphrs.form import OUR_FILES
from hdphrs.protocol.tasks import Cause, Crash, Outcome, Payload, Verdict
from hdphrs.wire.bulk import BULK_BYTES_MIN, aligned, bulk_of, gather, view_of
from hdphrs.wire.exceptions import is_simple, link_end
from hdphrs.wire.framing import decode_object
from hdphrs.wire.items import pack_outcome, unpack_outcome, unpack_str
from hdphrs.wire.obstacles import obstacle_in
from hdphrs.wire.pickling import (
    PLAIN,
    PLAIN_OR_RANGE,
    dump_parts,
    dump_plain,
    dump_plain_parts,
    dumps,
    load_parts,
    loads,
)
from hdphrs.wire.signals import came_between

T = TypeVar("T")

FUNCTION_SIZE_BYTES = 4
"""In front of a function that travels with its arguments: its size."""

PAYLOAD_BYTES_MAX = FRAME_BYTES_MAX - CoreConfig().give_bytes_max - (1 << 20)
"""A call, a function or an outcome; the rest of the frame is for what surrounds it: a large spark may go to a thief
together with small ones."""

SUMMARY_ARGUMENTS_MAX = 8
"""Arguments of a call that are shown."""

TEXT_CHARS_MAX = 1 << 20
"""Of an exception's message, and of its traceback; the middle of a longer one is left out."""


Parts = tuple[bytes, Sequence[memoryview]]
"""A pickle, and the buffers that are not in it."""


def dump_arguments(
    name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], chance: bytes, function: bytes = b""
) -> Payload:
    """The payload of a call of `name`: its arguments and `chance` as a tuple, or as the list [tuple, dict, chance] if
    there are keywords.

    Args:
        chance: see `CodeBook`.
        function: pickled, if it travels in front of them.

    Raises:
        CannotTravelError: naming the argument, or their size.
    """
    try:
        pickled, buffers = dump_parts([args, dict(kwargs), chance]) if kwargs else _parts_of_tuple((*args, chance))
    except BaseException as error:
        if came_between(error):
            raise
        named = [(f"argument {i + 1}", arg) for i, arg in enumerate(args)]
        named += [(f"argument {key!r}", arg) for key, arg in kwargs.items()]
        for label, arg in named:
            _check(f"{label} of task {name} (a {_type_name(arg)})", arg)
        raise CannotTravelError(f"the arguments of task {name} do not pickle: {reason(error)}") from error
    size = len(pickled) + sum(map(len, buffers))
    if size > PAYLOAD_BYTES_MAX:
        raise too_large(f"the arguments of task {name} are", size)
    if not function:
        return _payload(pickled, buffers)
    size += FUNCTION_SIZE_BYTES + len(function)
    if size > PAYLOAD_BYTES_MAX:
        raise too_large(f"the function and the arguments of task {name} are", size)
    return with_function(function, pickled, buffers)


def with_function(function: bytes, pickled: bytes, buffers: Sequence[memoryview] = ()) -> Payload:
    """The payload of a call whose function travels in front of its arguments."""
    return gather(len(function).to_bytes(FUNCTION_SIZE_BYTES, "big") + function, pickled, buffers)


def load_payload(payload: Payload) -> Any:
    """What was pickled: a value, or the arguments of a call whose function does not travel with them."""
    return loads(payload) if len(payload) < BULK_BYTES_MIN else load_parts(view_of(payload))


def load_call(payload: Payload, load_function: Callable[[bytes], T]) -> tuple[T, Any]:
    """The function in front of the arguments, as `load_function` makes it of its pickle, and these."""
    is_large = len(payload) >= BULK_BYTES_MIN
    view = view_of(payload) if is_large else memoryview(payload)
    end = _end_of_function(view)
    function = load_function(bytes(view[FUNCTION_SIZE_BYTES:end]))
    return function, load_parts(view, aligned(end)) if is_large else loads(payload[end:])


def arguments_of(code: bytes, payload: Payload) -> bytes:
    """The arguments, as they are in the payload of a task with this code."""
    data = bytes(payload)
    if code:
        return data
    end = _end_of_function(data)
    return data[aligned(end) if len(data) >= BULK_BYTES_MIN else end :]


def _end_of_function(payload: bytes | memoryview) -> int:
    return FUNCTION_SIZE_BYTES + int.from_bytes(payload[:FUNCTION_SIZE_BYTES], "big")


def _parts_of_tuple(values: tuple[Any, ...]) -> Parts:
    return (dump_plain(values), ()) if PLAIN_OR_RANGE.issuperset(map(type, values)) else dump_parts(values)


def _payload(pickled: bytes, buffers: Sequence[memoryview]) -> Payload:
    return pickled if len(pickled) < BULK_BYTES_MIN and not buffers else gather(b"", pickled, buffers)


def too_large(what: str, size: int) -> CannotTravelError:
    """The error about something whose pickle does not fit into a frame; `what` ends in a verb."""
    return CannotTravelError(
        f"{what} {_bytes(size)} pickled; the limit is {_bytes(PAYLOAD_BYTES_MAX)}; pass large data by reference "
        "(a file, a URL) or in smaller pieces"
    )


def dump_result(name: str, value: object, cost_s: float = 0.0) -> Outcome:
    """The outcome of a task that has returned `value` after so long; an error that says so if that does not travel."""
    try:
        pickled, buffers = (dump_plain(value), ()) if type(value) in PLAIN else dump_parts(value)
    except BaseException as error:
        refusal = CannotTravelError(
            f"the result of task {name} (a {_type_name(value)}) does not pickle: {reason(error)}{obstacle_in(value)}"
        )
        if isinstance(value, CoroutineType):
            value.close()  # else its end is a warning that it was never awaited
        return dump_error(name, refusal)
    if not buffers and len(pickled) < BULK_BYTES_MIN:  # as nearly all are
        return Outcome(Verdict.VALUE, pickled, (), cost_s)
    size = len(pickled) + sum(map(len, buffers))
    if size > PAYLOAD_BYTES_MAX:
        return dump_error(name, too_large(f"the result of task {name} (a {_type_name(value)}) is", size))
    return Outcome(Verdict.VALUE, _payload(pickled, buffers), (), cost_s)


def pack_result(name: str, value: object) -> list[object]:
    """`dump_result`, packed by `items.pack_outcome`."""
    if type(value) in PLAIN:
        data = dump_plain(value)
        if len(data) < BULK_BYTES_MIN:
            return [0, data, [], 0.0, 0.0]
    return pack_outcome(dump_result(name, value))


def load_packed(packed: Any) -> tuple[bool, Any]:
    """`load_outcome` of what `items.pack_outcome` has packed, in this very installation."""
    verdict, data, *_ = packed
    if verdict == 0 and len(data) < BULK_BYTES_MIN:
        try:
            return True, loads(data)
        except BaseException as error:
            if came_between(error):
                raise
            return False, _does_not_unpickle(error)
    return load_outcome(unpack_outcome(packed))


def _does_not_unpickle(error: BaseException) -> CannotTravelError:
    return CannotTravelError(f"a result does not unpickle here: {reason(error)}")


def dump_error(name: str, error: BaseException) -> Outcome:
    """The outcome of a task that has raised.

    Holds the pickled exception if it travels, what is plain of it if the rest may not unpickle, and always its name and
    its formatted traceback, without our own frames.
    """
    pickled: bytes | None = None
    spare: bytes | None = None
    flaw = "that exception does not pickle"
    try:
        pickled = dumps(error)
    except BaseException as obstacle:
        flaw = f"{flaw}: {reason(obstacle)}"
    if pickled is None or not is_simple(error):
        with suppress(BaseException):
            spare = dump_plain_parts(error)
    texts = [_clean(name), _clean(_type_name(error)), _one_line(_clean(_text(error))), _clean(_formatted(error))]
    room = PAYLOAD_BYTES_MAX - sum(map(_utf8_size, texts))
    if pickled is not None and len(pickled) > room:
        flaw = f"that exception is {_bytes(len(pickled))} pickled, the limit is {_bytes(PAYLOAD_BYTES_MAX)}"
        pickled = None
    if spare is not None and len(spare) + len(pickled or b"") > room:
        spare = None
    return Outcome(Verdict.RAISED, bulk_of(msgpack.packb([pickled, spare, *texts, _clean(flaw)])))


def load_outcome(outcome: Outcome) -> tuple[bool, Any]:
    """(True, value) or (False, exception), whatever the unpickling does.

    Raises:
        BaseException: what a signal handler has raised meanwhile; the outcome can be loaded again.
    """
    match outcome.verdict:
        case Verdict.VALUE:
            try:
                return True, load_payload(outcome.data)
            except BaseException as error:
                if came_between(error):
                    raise
                return False, _does_not_unpickle(error)
        case Verdict.RAISED:
            return False, _load_error(bytes(outcome.data))
        case Verdict.CRASHED:
            return False, _crash_error(_decoded(outcome.data), outcome.crashes)
        case Verdict.LOST:
            return False, TaskLostError(_decoded(outcome.data))
        case Verdict.TIMED_OUT:
            return False, TaskTimeoutError(_decoded(outcome.data))


def summary(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """The arguments of a call, shortened, for people."""
    texts = [_short(value) for value in args]
    texts += [f"{name}={_short(value)}" for name, value in kwargs.items()]
    return _clean(", ".join(texts[:SUMMARY_ARGUMENTS_MAX]) + (", ..." if len(texts) > SUMMARY_ARGUMENTS_MAX else ""))


def _short(value: object) -> str:
    try:
        return reprlib.repr(value)
    except Exception as obstacle:
        return f"<a {_type_name(value)}, whose __repr__ raised {_type_name(obstacle)}>"


_TOOK_DOWN: Final = {
    Cause.RUN: "took down its process {}, and is given up",
    Cause.ARGUMENTS: "is given up, its arguments kill the process that unpickles them, {}",
    Cause.VALUE: "is given up, its value kills the process that reads it, {}",
}
_MEANWHILE: Final = {
    Cause.RUN: "while it ran",
    Cause.ARGUMENTS: "while its arguments were unpickled",
    Cause.VALUE: "while its value was read",
}


def _crash_error(name: str, crashes: Sequence[Crash]) -> TaskCrashedError:
    """One line that says it all, and a note with the last words of each attempt, which tracebacks show."""
    arguments = next((crash.arguments for crash in reversed(crashes) if crash.arguments), None)
    call = name if arguments is None else f"{name}({arguments})"
    causes = {crash.cause for crash in crashes}
    if len(causes) == 1:
        (cause,) = causes
        ends = [f"on {crash.host}, process {crash.pid} {crash.how}" for crash in crashes]
        what = _TOOK_DOWN[cause].format("once" if len(crashes) == 1 else f"{len(crashes)} times")
    else:
        ends = [f"on {crash.host}, process {crash.pid} {crash.how} {_MEANWHILE[crash.cause]}" for crash in crashes]
        what = f"took down {len(crashes)} processes, and is given up"
    error = TaskCrashedError(f"task {call} {what}: {'; '.join(ends)}", tuple(crashes))
    for crash in crashes:
        if crash.words:
            words = textwrap.indent(crash.words, "    ")
            error.add_note(f"process {crash.pid} on {crash.host} {crash.how}; the end of its standard error:\n{words}")
    return error


def _load_error(data: bytes) -> BaseException:
    try:
        pickled, spare, *texts = decode_object(data)
        for one in (pickled, spare):
            if one is not None and not isinstance(one, bytes):
                raise ValueError(f"the pickle of an exception is no {type(one).__name__}")
        name, type_name, message, text, flaw = map(unpack_str, texts)
    except (ProtocolError, TypeError, ValueError) as obstacle:
        return TaskError(f"a task raised an exception, of which nothing legible has arrived: {reason(obstacle)}")
    error: BaseException | None = None
    if pickled is not None:
        error, flaw = _loaded_error(pickled)
    if error is None and spare is not None:
        error, _ = _loaded_error(spare)
        if error is not None:
            BaseException.add_note(error, f"hdphrs: only what is plain of this exception has arrived: {flaw}")
    if error is None:
        error = TaskError(f"task {name} raised {type_name}: {message} ({flaw})")
    link_end(error, RemoteTraceback(text))
    return error


def _loaded_error(pickled: bytes) -> tuple[BaseException | None, str]:
    """The exception, or None and why there is none."""
    try:
        candidate = loads(pickled)
    except BaseException as obstacle:
        if came_between(obstacle):
            raise
        return None, f"that exception does not unpickle here: {reason(obstacle)}"
    if isinstance(candidate, BaseException):
        return candidate, ""
    return None, f"that exception unpickles to a {_type_name(candidate)}"


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace")


def _formatted(error: BaseException) -> str:
    """The traceback; formatting it runs code of the user's, which may fail."""
    try:
        described = traceback.TracebackException.from_exception(error, compact=True)
        waiting: list[traceback.TracebackException | None] = [described]
        while waiting:
            here = waiting.pop()
            if here is not None:
                kept = [frame for frame in here.stack if not frame.filename.startswith(OUR_FILES)]
                here.stack = traceback.StackSummary.from_list(kept)
                waiting += [here.__cause__, here.__context__, *(here.exceptions or ())]
        return "".join(described.format())
    except BaseException as obstacle:
        return f"{_type_name(error)}: {_text(error)} (its traceback cannot be formatted: {reason(obstacle)})\n"


def _check(label: str, value: object) -> None:
    try:
        dumps(value)
    except BaseException as error:
        if came_between(error):
            raise
        raise CannotTravelError(f"{label} does not pickle: {reason(error)}{obstacle_in(value)}") from error


def reason(error: BaseException) -> str:
    if isinstance(error, CannotTravelError):
        return str(error)
    return f"{_type_name(error)}: {_one_line(_text(error))}"


def _text(error: BaseException) -> str:
    """`str(error)`, whatever its class does."""
    try:
        return str(error)
    except BaseException as obstacle:
        if came_between(obstacle):
            raise
        return f"<its __str__ raised {_type_name(obstacle)}>"


def _clean(text: str) -> str:
    """The text, of bounded length and without surrogates, so that it becomes UTF-8."""
    if len(text) > TEXT_CHARS_MAX:
        text = f"{text[: TEXT_CHARS_MAX // 2]} ... {text[-TEXT_CHARS_MAX // 2 :]}"
    return text.encode("utf-8", "backslashreplace").decode()


def _utf8_size(text: str) -> int:
    return len(text.encode())


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _bytes(size: int) -> str:
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
