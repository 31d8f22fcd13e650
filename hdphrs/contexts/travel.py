"""The context variables that a task hands on to those that it spawns, here and elsewhere.

What lives here: `snapshot`, which takes the caller's context, `pack` and `unpack`, by which one travels.

Theory of operation
-------------------

A child may run in this process or in another one, and nobody knows where when it is spawned.  So it gets the same in
both cases: those variables that can travel.  A variable does if another process finds it, as an attribute of a module,
and if its value pickles to no more than `VALUE_BYTES_MAX`.  The others are left behind, without a word: what a web
framework or a tracer keeps in the context of a request is no business of tasks.

Two variables that cannot be found by name hold what decides about results, and are known here: `decimal`'s context,
which is changed in place, hence copied for each child, and NumPy's `errstate`.

Only what differs from a variable's default travels, so that a process does not load `decimal` or NumPy for nothing.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from types import ModuleType
from typing import Any, Final, NamedTuple

import cloudpickle

from hdphrs.choices import choices

VALUE_BYTES_MAX: Final = 64 << 10
"""A variable whose value is larger, pickled, stays where it was set."""

KNOWN_MAX: Final = 1024
"""Variables that are remembered."""

MAINS: Final = ("__main__", "__mp_main__")

_DECIMAL: Final = "decimal_context"
"""What `decimal` calls its variable, in C and in Python."""

_NUMPY_UFUNCS: Final = ("numpy._core.umath", "numpy.core.umath")
_NUMPY_ERRSTATE: Final = "_extobj_contextvar"
_NOTHING: Final = object()

LOOPS: Final = frozenset({"asyncio", "sniffio", "anyio", "trio", "curio", "uvloop", "tornado"})
"""Packages whose variables say which event loop runs, as none does where a task begins."""

_IMMUTABLE: Final = (int, float, complex, str, bytes, bool, type(None))


class Packed(NamedTuple):
    """A variable that travels."""

    module: str
    """That holds it; or `decimal` or `numpy`, which have ways of their own."""
    name: str
    """Of the attribute; empty for those two."""
    data: bytes
    """The pickled value."""
    default: bytes = b""
    """And the pickled default, if it has one and is the program's own, which may have to be made there."""


class _Known:
    """What has been found out about a variable."""

    __slots__ = ("data", "refused", "value", "where")

    def __init__(self, where: tuple[str, str] | None) -> None:
        self.where = where
        """None if it cannot travel, whatever its value."""
        self.value: Any = _NOTHING
        """The last that has turned out to travel."""
        self.data = b""
        """Its pickle, if it cannot change."""
        self.refused: type | None = None
        """The type of the last that has not."""


_known: dict[ContextVar[Any], _Known] = {}
_named: dict[int, tuple[str, str]] = {}
"""By identity, the variables that modules hold."""
_searched = 0
"""How many modules there were when they were looked for."""
_made: dict[tuple[str, str], ContextVar[Any]] = {}
"""Stand for variables of a program that this process has not got."""


_decimals: list[ContextVar[Any] | None] = [None]
"""`decimal`'s variable, when it has been seen."""


def snapshot() -> Context:
    """The caller's context as its child gets it, which may be changed in there without harm."""
    context = copy_context()
    return handed_on(context) if context else context


def own(context: Context) -> Context:
    """A copy of what `snapshot` has taken, for a child to run in; the other stays as it is."""
    copied = context.copy()
    var = _decimals[0]
    if var is not None and (value := context.get(var)) is not None:
        copied.run(var.set, value.copy())
    return copied


def pack(context: Context | None) -> bytes:
    """What `unpack` makes the same context of elsewhere; empty if nothing is to be said."""
    if context is None or not len(context):
        return b""
    items = sorted(filter(None, (_packed(context, var, value) for var, value in list(context.items()))))
    return pickle.dumps([tuple(item) for item in items], protocol=5) if items else b""


def packed() -> bytes:
    """The caller's context, as that of a child that is certain to travel."""
    context = copy_context()
    return pack(handed_on(context)) if len(context) and choices.value("contexts", True) else b""


def unpack(data: bytes) -> Context:
    """The inverse.  A variable whose module is not here, or whose value does not unpickle, is left out."""
    context = Context()
    for module, name, pickled, default in pickle.loads(data):
        with suppress(Exception, SystemExit):
            value = pickle.loads(pickled)
            if module == "decimal" and not name:
                context.run(importlib.import_module("decimal").setcontext, value)
            elif module == "numpy" and not name:
                context.run(_set_errstate, value)
            else:
                context.run(variable(module, name, *(pickle.loads(default) if default else ())).set, value)
    return context


def variable(module: str, name: str, *default: Any) -> ContextVar[Any]:
    """The context variable that a module holds under a name; one that stands for it if that is the program's own module
    and this process has not got it."""
    if module not in MAINS:
        found = getattr(importlib.import_module(module), name, None)
        if not isinstance(found, ContextVar):
            raise LookupError(f"{module} has no context variable {name}")
        return found
    # Not by `getattr`, which may run the program's file for a name that is not here.
    found = vars(sys.modules.get(module) or ModuleType(module)).get(name)
    return found if isinstance(found, ContextVar) else stand_in(module, name, *default)


def stand_in(module: str, name: str, *default: Any) -> ContextVar[Any]:
    """Of a variable of the program: one in each process that runs its tasks."""
    made = _made.get((module, name))
    if made is None:
        made = _made[module, name] = ContextVar(name, default=default[0]) if default else ContextVar(name)
        _named[id(made)] = module, name
        _known.pop(made, None)
    return made


def reduce(var: ContextVar[Any], *, is_global: bool) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
    """How a pickle refers to a variable; None if no process would find it.

    Args:
        is_global: what is pickled is the global of the program that holds it.
    """
    where = _where(var)
    if where is None:
        return None
    make = stand_in if is_global and where[0] in MAINS else variable
    return make, (*where, *default_of(var))


def handed_on(context: Context) -> Context:
    """Of a copy of the caller's context what its child gets: nothing that cannot travel, and copies of what is changed
    in place."""
    is_whole = True
    for var, value in context.items():
        if var is not _decimals[0] and not _is_decimal(var, value) and not _travels(var, value):
            is_whole = False
    if not is_whole:
        kept, context = context, Context()
        for var, value in kept.items():
            if var is _decimals[0] or _travels(var, value):
                context.run(var.set, value)
    decimals = _decimals[0]
    if decimals is not None and (value := context.get(decimals)) is not None:
        context.run(decimals.set, _without_flags(value))
    return context


def _travels(var: ContextVar[Any], value: Any) -> bool:
    """Whether a variable with this value does; a value that has done so once is not asked again."""
    known = _known.get(var) or _know(var)
    if known.where is None or known.refused is type(value):
        return False
    if known.value is value:
        return True
    if _is_errstate(known.where):
        known.value = value
        return True
    data = _pickled(value)
    if data is None:
        if not isinstance(value, list | tuple | dict | set | frozenset):
            known.refused = type(value)
        return False
    known.value = value
    known.data = data if type(value) in _IMMUTABLE else b""
    return True


def _know(var: ContextVar[Any]) -> _Known:
    if len(_known) >= KNOWN_MAX:
        _known.clear()
    known = _known[var] = _Known(_where(var))
    return known


def _packed(context: Context, var: ContextVar[Any], value: Any) -> Packed | None:
    if _is_decimal(var, value):
        return None if _is_default(value) else Packed("decimal", "", pickle.dumps(_without_flags(value), protocol=5))
    if not _travels(var, value):
        return None
    known = _known[var]
    assert known.where is not None
    if _is_errstate(known.where):
        said = context.copy().run(_errstate)
        if said == Context().run(_errstate):
            return None
        return Packed("numpy", "", cloudpickle.dumps(said, protocol=5))
    default = default_of(var)
    if any(one is value for one in default):
        return None
    data = known.data or _pickled(value)
    standard = _pickled(default) if default and known.where[0] in MAINS else None
    return None if data is None else Packed(*known.where, data, standard or b"")


def _pickled(value: Any) -> bytes | None:
    """None if it does not pickle, or is too large."""
    try:
        data: bytes = cloudpickle.dumps(value, protocol=5)
    except Exception:
        return None
    return data if len(data) <= VALUE_BYTES_MAX else None


def default_of(var: ContextVar[Any]) -> tuple[Any, ...]:
    """The variable's default, if it has one: no attribute shows it."""
    try:
        return (Context().run(var.get),)
    except LookupError:
        return ()


def _where(var: ContextVar[Any]) -> tuple[str, str] | None:
    """The module that holds a variable, and the attribute.  All are looked at once, and again when others have come.

    The program comes last: what it has imported from a module of its own, that module has in every process.
    """
    global _searched
    if id(var) not in _named and len(sys.modules) != _searched:
        _searched = len(sys.modules)
        for other, place in _variables_of_modules():
            _named.setdefault(id(other), place)
            _kept.append(other)
    if id(var) not in _named:
        for module in MAINS:
            for name, value in list(vars(sys.modules.get(module) or ModuleType(module)).items()):
                if value is var:
                    return module, name
    found = _named.get(id(var))
    return None if found is None or found[0].partition(".")[0] in LOOPS else found


_kept: list[ContextVar[Any]] = []
"""Those in `_named`, whose identities must stay theirs."""


def _variables_of_modules() -> Iterator[tuple[ContextVar[Any], tuple[str, str]]]:
    for module_name, module in list(sys.modules.items()):
        if module_name in MAINS or not isinstance(module, ModuleType):
            continue
        for name, value in list(vars(module).items()):
            if type(value) is ContextVar and id(value) not in _named:
                yield value, (module_name, name)


# ---- decimal, and NumPy 2 ----------------------------------------------------------------------------------------


def _is_decimal(var: ContextVar[Any], value: Any) -> bool:
    if var.name != _DECIMAL or not hasattr(value, "clear_flags"):
        return False
    _decimals[0] = var
    return True


def _without_flags(context: Any) -> Any:
    copied = context.copy()
    copied.clear_flags()
    return copied


def _is_default(context: Any) -> bool:
    """Whether a process that sets nothing has the same.  (`DefaultContext` may have been changed in this one.)"""
    kind, decimal = type(context), sys.modules[type(context).__module__]
    traps = [decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow]
    default = kind(28, decimal.ROUND_HALF_EVEN, -999999, 999999, 1, 0, [], traps)
    return repr(_without_flags(context)) == repr(default)


def _is_errstate(where: tuple[str, str]) -> bool:
    return where[1] == _NUMPY_ERRSTATE and where[0].startswith("numpy")


def _errstate() -> tuple[Any, ...]:
    import numpy

    return numpy.geterr(), numpy.geterrcall(), numpy.getbufsize()


def _set_errstate(said: tuple[Any, ...]) -> None:
    import numpy

    errors, call, size = said
    numpy.seterr(**errors)
    numpy.seterrcall(call)
    numpy.setbufsize(size)
