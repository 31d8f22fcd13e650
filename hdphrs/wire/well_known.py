"""Things of the standard library that plain pickle refuses, or copies though they are compared by identity.

What lives here: how each of them is made again from what it was made of, and where a sentinel is found by its name.
What does not: the picklers, which ask (`pickler.py`).

Some things have no contents, only an identity: locks and thread-locals.  As globals of the program each process has its
own; as arguments they would lose what they are for, so they are made anew only where a global is pickled.
"""

from __future__ import annotations

import builtins
import copyreg
import functools
import struct
import sys
import threading
import typing
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, Final, NewType, ParamSpec, TypeVarTuple

_LOCK: Final = type(threading.Lock())
_RLOCK: Final = type(threading.RLock())
_PLAIN_STATE: Final = getattr(object, "__getstate__", None)
_MAINS: Final = ("__main__", "__mp_main__")

_TYPE_ALIAS: Final = getattr(typing, "TypeAliasType", None)
_SENTINEL: Final = getattr(builtins, "sentinel", None)
NAMED: Final[frozenset[Any]] = frozenset({NewType, ParamSpec, TypeVarTuple, _TYPE_ALIAS, _SENTINEL} - {None})
"""Of these pickle writes only the name, which nobody finds if it is one of the main module.  (Type aliases are new in
Python 3.12, sentinels in 3.15; type variables are made again by cloudpickle.)"""

_objects: dict[int, tuple[str, str, object]] = {}
"""The bare objects that modules name, by their identity."""
_objects_of = 0
"""How many modules there were when these were looked for."""


def reduce_known(value: Any, *, is_global: bool) -> tuple[Any, ...] | None:
    """How to make a well-known thing again, as `__reduce__` says it; None for anything else.

    Args:
        is_global: whether it belongs to the globals of the program, of which each process has its own.
    """
    kind = type(value)
    if kind is FunctionType:
        return _reduce_dispatch(value) if _is_dispatch(value) else None
    if kind is struct.Struct:
        return struct.Struct, (value.format,)
    if issubclass(kind, functools.cached_property):
        state = {name: held for name, held in vars(value).items() if name != "lock"}
        return copyreg.__newobj__, (kind,), state, None, None, _set_cached_property  # type: ignore[attr-defined]
    if kind is functools.singledispatchmethod:
        return _make_dispatch_method, (value.func, _registered(value.dispatcher))
    if kind in NAMED:
        is_found = value.__module__ not in _MAINS or (
            kind is _SENTINEL and not is_global
        )  # or nowhere: then it is refused
        return None if is_found else (_make_named, (kind, *_made_of(value)))
    if is_variable(kind):
        return _reduce_variable(value, is_global=is_global)
    if kind is weakref.WeakKeyDictionary or kind is weakref.WeakValueDictionary:
        return kind, (dict(value),)
    if not is_global:
        return None
    if kind is _LOCK:
        return threading.Lock, ()
    if kind is _RLOCK:
        return threading.RLock, ()
    if issubclass(kind, threading.local):
        return _make_local, (kind,)
    return None


def sentinel_of(value: object) -> tuple[str, str] | None:
    """The module and the name of a sentinel: a bare object, or a stateless one without a way to pickle of its own, that
    a module other than the program's main one holds."""
    kind = type(value)
    if kind is object:
        return _bare(value)
    if (
        kind.__reduce_ex__ is not object.__reduce_ex__
        or kind.__reduce__ is not object.__reduce__
        or getattr(kind, "__getstate__", None) is not _PLAIN_STATE
        or hasattr(kind, "__getnewargs__")
        or hasattr(kind, "__getnewargs_ex__")
        or kind.__itemsize__
        or getattr(value, "__dict__", None)
        or any(getattr(base, "__slots__", None) for base in kind.__mro__)
        or kind.__module__ in _MAINS
    ):
        return None
    module = sys.modules.get(kind.__module__)
    if module is None:
        return None
    for name, held in list(vars(module).items()):
        if held is value:
            return module.__name__, name
    return None


def load_sentinel(module: str, name: str) -> object:
    """The sentinel that a module names."""
    __import__(module)
    return getattr(sys.modules[module], name)


def _bare(value: object) -> tuple[str, str] | None:
    global _objects_of
    if len(sys.modules) != _objects_of:
        _objects_of = len(sys.modules)
        for label, module in list(sys.modules.items()):
            if type(module) is ModuleType and label not in _MAINS:
                for name, held in list(vars(module).items()):
                    if type(held) is object:
                        _objects.setdefault(id(held), (label, name, held))
    found = _objects.get(id(value))
    return None if found is None else found[:2]


def _made_of(value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """With which arguments one of `NAMED` is made again."""
    kind, name = type(value), value.__name__
    if kind is NewType:
        return (name, value.__supertype__), {}
    if kind is _SENTINEL:
        return (name,), {"repr": repr(value)}
    if kind is _TYPE_ALIAS:
        return (name, value.__value__), {"type_params": value.__type_params__}
    more = {"default": value.__default__} if sys.version_info >= (3, 13) and value.has_default() else {}
    if kind is ParamSpec:
        names = ("bound", "covariant", "contravariant", "infer_variance")
        more |= {name: getattr(value, f"__{name}__") for name in names if hasattr(value, f"__{name}__")}
    return (name,), more


def _make_named(kind: Callable[..., Any], args: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """It takes its module from the globals of its caller, and some let nobody change that."""
    return eval("kind(*args, **more)", {"__name__": _MAINS[0], "kind": kind, "args": args, "more": more})


def is_variable(kind: type) -> bool:
    """Whether these are context variables.  (Told by name: a scheduler notices when what has them is loaded.)"""
    return kind.__name__ == "ContextVar" and kind.__module__ == "_contextvars"


def _reduce_variable(variable: Any, *, is_global: bool) -> tuple[Any, ...] | None:
    """By its name, where others find it; else another one takes the place of a global."""
    from hdphrs.contexts import travel  # not before there is a variable: a scheduler notices when that is loaded

    known = travel.reduce(variable, is_global=is_global)
    return (_make_variable, (variable.name, *travel.default_of(variable))) if known is None and is_global else known


def _make_variable(name: str, *default: Any) -> Any:
    from contextvars import ContextVar

    return ContextVar(name, default=default[0]) if default else ContextVar(name)


def _is_dispatch(function: FunctionType) -> bool:
    return (
        function.__globals__ is vars(functools)
        and type(vars(function).get("registry")) is MappingProxyType
        and "dispatch" in vars(function)
    )


def _registered(function: Any) -> list[tuple[type, Callable[..., Any]]]:
    return [(cls, made) for cls, made in function.registry.items() if cls is not object]


def _reduce_dispatch(function: Any) -> tuple[Any, ...]:
    known = {"registry", "dispatch", "register", "_clear_cache", "__wrapped__"}
    attributes = {name: value for name, value in vars(function).items() if name not in known}
    return _make_dispatch, (function.registry[object], _registered(function), attributes)


def _make_dispatch(
    function: Callable[..., Any], registered: Iterable[tuple[type, Callable[..., Any]]], attributes: Mapping[str, Any]
) -> Any:
    dispatch = functools.singledispatch(function)
    for cls, made in registered:
        dispatch.register(cls, made)
    vars(dispatch).update(attributes)
    return dispatch


def _make_dispatch_method(
    function: Callable[..., Any], registered: Iterable[tuple[type, Callable[..., Any]]]
) -> functools.singledispatchmethod[Any]:
    method = functools.singledispatchmethod(function)
    for cls, made in registered:
        method.dispatcher.register(cls, made)
    return method


def _set_cached_property(value: functools.cached_property[Any], state: Mapping[str, Any]) -> None:
    vars(value).update(state)
    if sys.version_info < (3, 12):
        value.lock = threading.RLock()  # type: ignore[attr-defined]


def _make_local(kind: type[threading.local]) -> threading.local:
    return kind.__new__(kind)
