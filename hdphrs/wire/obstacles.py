"""Why a value does not travel, in the words of who wrote the program: where in it the obstacle is, and the remedy.

What lives here: the kinds of values that belong to one process, and the search for one of them in what was to travel.
It runs after pickling has failed, and only then.  It looks at objects of the user's without calling code of theirs, but
for `__repr__` of keys and the pickling of what it has found, and gives up where it would have to.
"""

from __future__ import annotations

import sys
import types
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from reprlib import repr as short
from typing import Any, Final

from hdphrs.wire.pickling import by_reference, dumps

OBJECTS_MAX: Final = 20_000
"""Objects that are looked at, the nearest first."""

ITEMS_MAX: Final = 1_000
"""Of one container."""

_LOCK = "a lock belongs to one process: make it in the function that uses it, or pass the value that it guards"
_ITERATOR = "it can be used up in one process only: pass list(...) of it, or the function that makes it"
_OPEN = "it is open in one process only: pass its name, and open it in the task"
_CONNECTION = "it is a connection of one process: open it in the task, once for each process if it is kept in a global"
_COROUTINE = (
    "it belongs to one event loop: pass the function and its arguments, and let the task run it, "
    "`asyncio.run(function(argument))`"
)

_KINDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("hdphrs.api.future", "Future", "get() it first, and pass its value"),
    ("concurrent.futures", "Future", "it belongs to the process that made it: pass its value, future.result()"),
    ("concurrent.futures", "Executor", "it belongs to the process that made it: make one in the task, or spawn there"),
    ("asyncio", "Future", "it belongs to one event loop: await it first, and pass its value"),
    ("asyncio", "AbstractEventLoop", "it belongs to one thread: let the task make its own, asyncio.run(...)"),
    ("asyncio", "Event", "it belongs to one event loop: make it in the task"),
    ("asyncio", "Lock", "it belongs to one event loop: make it in the task"),
    ("asyncio", "Queue", "it belongs to one event loop: make it in the task"),
    ("types", "CoroutineType", _COROUTINE),
    ("types", "GeneratorType", _ITERATOR),
    ("types", "AsyncGeneratorType", _COROUTINE),
    ("types", "FrameType", "it is a part of a running function: pass what is needed of it"),
    ("types", "TracebackType", "it is a part of a running function: pass traceback.format_exception(error)"),
    ("_thread", "LockType", _LOCK),
    ("_thread", "RLock", _LOCK),
    ("_thread", "_local", "it is of one process: make it in the module, and fill it in the task"),
    ("threading", "Thread", "it is of one process: start it in the task"),
    ("threading", "Condition", _LOCK),
    ("threading", "Event", _LOCK),
    ("threading", "Semaphore", _LOCK),
    ("queue", "Queue", "it is of one process: pass what is in it, and return what comes out"),
    ("_queue", "SimpleQueue", "it is of one process: pass what is in it, and return what comes out"),
    ("multiprocessing.process", "BaseProcess", "it is of one process: start it in the task"),
    ("subprocess", "Popen", "it is a child of one process: start it in the task"),
    ("io", "IOBase", _OPEN),
    ("socket", "socket", _CONNECTION),
    ("ssl", "SSLContext", "it belongs to one process: make it in the task"),
    ("sqlite3", "Connection", _CONNECTION),
    ("sqlite3", "Cursor", _CONNECTION),
    ("mmap", "mmap", _OPEN),
    ("contextvars", "Context", "it is of one process: tasks have a copy of their parent's anyway"),
    ("contextvars", "Token", "it is of one context"),
    ("weakref", "ReferenceType", "it refers to an object of one process: pass the object"),
    ("_io", "_IOBase", _OPEN),
)
"""Module, class, and what to do instead.  A module that is not loaded has no instances."""


def obstacle_in(value: object) -> str:
    """A sentence about the first thing in `value` that never travels, after a semicolon; empty if none is found."""
    kinds = list(_known_kinds())
    seen: set[int] = set()
    waiting: deque[tuple[str, object]] = deque([("", value)])
    kept: list[object] = []  # what is looked at stays, so that no other object gets its id
    while waiting and len(seen) < OBJECTS_MAX:
        where, found = waiting.popleft()
        if id(found) in seen:
            continue
        seen.add(id(found))
        kept.append(found)
        remedy = next((remedy for kind, remedy in kinds if isinstance(found, kind)), None)
        if remedy is not None and not _travels(found):
            return f"; {where.strip() or 'it'} is a {_name_of(type(found))}: {remedy}"
        if type(found).__module__ == "itertools" and sys.version_info >= (3, 14):
            return f"; {where.strip() or 'it'} is an itertools.{type(found).__name__}: {_ITERATOR}"
        waiting.extend(_parts(where, found))
    return ""


def _travels(value: object) -> bool:
    """Some of these kinds do, in some states."""
    try:
        dumps(value)
    except Exception:
        return False
    return True


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def _known_kinds() -> Iterator[tuple[type, str]]:
    for module, name, remedy in _KINDS:
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type):
            yield kind, remedy


def _parts(where: str, value: object) -> Iterator[tuple[str, object]]:
    """What a value holds, and where."""
    kind = type(value)
    if kind in (str, bytes, int, float, bool, types.NoneType) or isinstance(value, types.ModuleType):
        return
    if isinstance(value, dict):
        for key, item in islice(list(value.items()), ITEMS_MAX):
            yield f"{where}[{short(key)}]", item
            yield f"{where} (a key)", key
    elif isinstance(value, list | tuple | deque):
        for place, item in enumerate(islice(list(value), ITEMS_MAX)):
            yield f"{where}[{place}]", item
    elif isinstance(value, set | frozenset):
        for item in islice(list(value), ITEMS_MAX):
            yield f"{where} (an item)", item
    elif isinstance(value, partial):
        yield f"{where}.func", value.func
        yield from _parts(f"{where}.args", value.args)
        yield from _parts(f"{where}.keywords", value.keywords)
    elif isinstance(value, types.MethodType):
        yield f"{where}.__self__", value.__self__
    elif isinstance(value, types.FunctionType):
        yield from _captured(where, value)
    elif isinstance(value, type):
        if not by_reference(value):
            for name, item in list(vars(value).items()):
                yield f"{where}.{name}", item
    elif kind in (map, filter, zip, enumerate, reversed):
        return
    yield from _attributes(where, value)


def _captured(where: str, function: types.FunctionType) -> Iterator[tuple[str, object]]:
    """What goes along with a function that travels by value: captured names, defaults, and globals."""
    if by_reference(function):
        return
    name = function.__qualname__
    for captured, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield f"the name {captured!r}, which {name} captures,", cell.cell_contents
        except ValueError:  # not bound yet
            continue
    yield from ((f"a default of {name}", item) for item in function.__defaults__ or ())
    yield from ((f"the default of {key!r} of {name}", item) for key, item in (function.__kwdefaults__ or {}).items())
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        for used in code.co_names:
            if used in function.__globals__:
                yield f"the global {used!r}, which {name} uses,", function.__globals__[used]


def _attributes(where: str, value: object) -> Iterator[tuple[str, object]]:
    """Of an instance, without running descriptors of the user's."""
    if isinstance(value, type | types.FunctionType):
        return
    try:
        own: Any = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = {}
    if isinstance(own, Mapping):
        for name, item in islice(list(own.items()), ITEMS_MAX):
            yield f"{where}.{name}", item
    for cls in type(value).__mro__:
        for name, member in list(vars(cls).items()):
            if isinstance(member, types.MemberDescriptorType) and cls.__module__ != "builtins":
                try:
                    yield f"{where}.{name}", member.__get__(value)
                except AttributeError:
                    continue
