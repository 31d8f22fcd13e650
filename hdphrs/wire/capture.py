"""What a function that is pickled by value captures.

What lives here: a look at functions, and at the classes and partials that they refer to; nothing is pickled.

A `Watch` notices when a name, a closure cell, an attribute or a default has been bound to another object.  It does not
look into lists, dicts and instances: captured data are constants.  It keeps alive only values that cannot be referred
to weakly, so that functions which refer to themselves can go.
"""

from __future__ import annotations

import dis
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from operator import attrgetter
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from hdphrs.wire.constant import Constant
from hdphrs.wire.pickler import PLAIN, Cached, by_reference
from hdphrs.wire.stand_in import receiver
from hdphrs.wire.unpickler import is_received

_MISSING = object()
_SLOTNAMES = "__slotnames__"
"""Pickle leaves this in a class when it first pickles an instance."""
_IMMUTABLE = 1 << 8
"""The flag of classes that nobody can change: the interpreter's own, and most that are written in C."""
_globals: Callable[[Any], Mapping[str, Any]] = attrgetter("__globals__")
_keywords: Callable[[Any], Mapping[str, Any]] = attrgetter("keywords")


def _defaults(function: Any) -> Mapping[str, Any]:
    return function.__kwdefaults__ or {}


def _fields(constant: Constant) -> list[Any]:
    return [getattr(constant, field.name) for field in fields(constant)]  # type: ignore[arg-type]


class Watch:
    """The captured bindings of a callable, as they were when this was made."""

    __slots__ = ("_parts",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._parts: list[_Function | _Names] = []
        spaces: dict[int, tuple[FunctionType, set[str]]] = {}
        seen: set[int] = set()
        waiting: list[Any] = [function]
        while waiting:
            here = waiting.pop()
            if type(here) in PLAIN or id(here) in seen:
                continue
            seen.add(id(here))
            kind = type(here)  # rather than isinstance, which asks a proxy for its __class__
            if kind is FunctionType:
                if not by_reference(here):
                    self._parts.append(_Function(here))
                    if receiver.holds(here.__globals__):
                        continue  # what tasks make of the globals of their process stays there
                    names = _global_names(here.__code__)
                    spaces.setdefault(id(here.__globals__), (here, set()))[1].update(names)
                    waiting.extend(here.__globals__[name] for name in names if name in here.__globals__)
                    waiting.extend(_captured(here))
                    if here.__kwdefaults__:
                        self._parts.append(_Names(here, _defaults, here.__kwdefaults__))
                    if vars(here):
                        self._parts.append(_Names(here, vars, vars(here)))
            elif issubclass(kind, type):
                if not here.__flags__ & _IMMUTABLE and not by_reference(here) and not is_received(here):
                    self._parts.append(_Names(here, vars, vars(here)))
                    waiting.extend((*vars(here).values(), *here.__bases__, type(here)))
            elif issubclass(kind, partial):
                if here.keywords:
                    self._parts.append(_Names(here, _keywords, here.keywords))
                waiting.extend((here.func, *here.args, *here.keywords.values()))
            elif issubclass(kind, Constant):
                waiting.extend(_fields(here))
            elif issubclass(kind, Cached):
                if not by_reference(here):
                    waiting.append(here.__wrapped__)
            elif issubclass(kind, MethodType):
                waiting.extend((here.__func__, here.__self__))
            elif issubclass(kind, staticmethod | classmethod):
                waiting.append(here.__func__)
            elif issubclass(kind, property):
                waiting.extend((here.fget, here.fset, here.fdel))
            else:
                waiting.append(kind)
        self._parts += [_Names(owner, _globals, names) for owner, names in spaces.values() if names]

    def holds(self) -> bool:
        """Whether every binding is still the same."""
        for part in self._parts:  # noqa: SIM110 - a generator costs more than the whole check
            if not part.holds():
                return False
        return True


class _Function:
    """What belongs to one function object."""

    __slots__ = ("attributes", "cells", "code", "defaults", "function", "keywords")

    def __init__(self, function: FunctionType) -> None:
        self.function = weakref.ref(function)
        self.code = function.__code__
        self.defaults = function.__defaults__
        self.keywords = len(function.__kwdefaults__ or ())
        self.attributes = len(vars(function))
        self.cells = tuple(_hold(value) for value in _cells(function)) if function.__closure__ else ()

    def holds(self) -> bool:
        function = self.function()
        if (
            function is None
            or function.__code__ is not self.code
            or function.__defaults__ is not self.defaults
            or len(function.__kwdefaults__ or ()) != self.keywords
            or len(function.__dict__) != self.attributes
        ):
            return False
        return not self.cells or all(map(_same, self.cells, _cells(function)))


class _Names:
    """What some names of a namespace are bound to."""

    __slots__ = ("count", "owner", "strong", "view", "weak")

    def __init__(
        self, owner: Any, view: Callable[[Any], Mapping[str, Any]], names: Mapping[str, Any] | set[str]
    ) -> None:
        self.owner = weakref.ref(owner)
        self.view = view
        space = view(owner)
        self.count = len(space) - (_SLOTNAMES in space) if isinstance(names, Mapping) else None
        held = [(name, _hold(space.get(name, _MISSING))) for name in names if name != _SLOTNAMES]
        self.strong = tuple((name, value) for name, value in held if type(value) is not _Weak)
        self.weak = tuple((name, value) for name, value in held if type(value) is _Weak)

    def holds(self) -> bool:
        owner = self.owner()
        if owner is None:
            return False
        space = self.view(owner)
        find = space.get
        for name, value in self.strong:
            if find(name, _MISSING) is not value:
                return False
        for name, reference in self.weak:
            value = find(name)
            if value is None or value is not reference():
                return False
        return self.count is None or self.count == len(space) - (_SLOTNAMES in space)


class _Weak(weakref.ref[Any]):
    __slots__ = ()


def _hold(value: Any) -> Any:
    if type(value) in PLAIN or value is _MISSING:
        return value
    try:
        return _Weak(value)
    except TypeError:
        return value


def _same(held: Any, value: Any) -> bool:
    return (value is not None and held() is value) if type(held) is _Weak else held is value


def _cells(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # it is still empty
            value = _MISSING
        yield value


def _captured(function: FunctionType) -> Iterator[Any]:
    """The values that a function object itself holds: all but the globals."""
    yield from _cells(function)
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from vars(function).values()


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _global_names(code: CodeType) -> set[str]:
    return {
        instruction.argval
        for part in _codes(code)
        for instruction in dis.get_instructions(part)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }


def _rebinds(code: CodeType) -> bool:
    """Whether the code binds a global or a closure cell."""
    return any(
        instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
        or (instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in part.co_freevars)
        for part in _codes(code)
        for instruction in dis.get_instructions(part)
    )


def is_constant(value: object, seen: frozenset[int] = frozenset()) -> bool:
    """Whether nothing that `value` holds can change, so that two tasks may share it."""
    kind = type(value)
    if kind in PLAIN or isinstance(value, ModuleType | BuiltinFunctionType) or value is _MISSING or id(value) in seen:
        return True
    seen |= {id(value)}
    if isinstance(value, FunctionType):
        if by_reference(value):
            return True
        return not _rebinds(value.__code__) and all(is_constant(held, seen) for held in _captured(value))
    if isinstance(value, type):
        return by_reference(value)
    if kind is partial:
        assert isinstance(value, partial)
        return all(is_constant(held, seen) for held in (value.func, *value.args, *value.keywords.values()))
    if issubclass(kind, Constant):
        assert isinstance(value, Constant)
        return all(is_constant(held, seen) for held in _fields(value))
    if kind is tuple or kind is frozenset:
        assert isinstance(value, tuple | frozenset)
        return all(is_constant(held, seen) for held in value)
    return False
