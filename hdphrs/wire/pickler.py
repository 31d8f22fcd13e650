"""What all picklers of hdphrs have in common: cloudpickle, with what a distributed program needs beyond it.

- `functools.lru_cache` wrappers of by-value modules travel, which cloudpickle would take for importable names; the copy
  starts empty.
- Exceptions that are frozen dataclasses travel; plain pickle can take them apart, but not put them together again.
- Sentinels stay themselves, and things of the standard library that pickle refuses are made again (`well_known.py`).
- Code keeps the name of its file, so that tracebacks show its lines.

What does not live here: how functions and classes of the program's main module travel, which the two picklers decide
(`definitions.py`, `pickling.py`).
"""

from __future__ import annotations

import functools
import io
import pickle
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, NoneType
from typing import TYPE_CHECKING, Any, Final

import cloudpickle
from cloudpickle import cloudpickle as internals

from hdphrs.wire.exceptions import Exceptions
from hdphrs.wire.manager_proxies import is_proxy, reduce_proxy
from hdphrs.wire.well_known import NAMED, load_sentinel, reduce_known, sentinel_of

if TYPE_CHECKING:  # cloudpickle is not typed
    CloudPickler = pickle.Pickler
else:
    CloudPickler = cloudpickle.Pickler

PICKLE_PROTOCOL = 5

PLAIN = frozenset({int, float, complex, str, bytes, bool, NoneType})
"""Types that the plain pickler treats exactly as cloudpickle would, and much faster; they are immutable, too."""

Cached = functools._lru_cache_wrapper

MAIN: Final = "__main__"
MAINS: Final = (MAIN, "__mp_main__")
"""What the main module is called: the second is multiprocessing's name for it."""


def is_by_value(module: str) -> bool:
    """Whether what this module defines travels by value."""
    if module in MAINS:
        return True
    by_value = cloudpickle.list_registry_pickle_by_value()
    return bool(by_value) and any(f"{module}.".startswith(f"{name}.") for name in by_value)


def by_reference(named: object) -> bool:
    """Whether a function or class pickles as a name that other processes import."""
    module_name = getattr(named, "__module__", None)
    if not isinstance(module_name, str) or is_by_value(module_name):
        return False
    found: Any = sys.modules.get(module_name)
    for part in str(getattr(named, "__qualname__", "")).split("."):
        found = getattr(found, part, None)
    return found is named


class BasePickler(CloudPickler):
    """Asks those derived from it how what the main module names travels.

    A cached function that calls itself needs care: the wrapper is made from the function, which refers to the wrapper.
    So the function is pickled hollow first, then the wrapper, and then the function's state as part of the wrapper's.
    """

    is_global = False
    """Whether it pickles globals of the program."""

    def __init__(
        self,
        file: io.BytesIO,
        protocol: int,
        buffer_callback: Callable[[pickle.PickleBuffer], bool] | None,
        exceptions: Exceptions | None = None,
    ) -> None:
        super().__init__(file, protocol, buffer_callback=buffer_callback)
        self._exceptions = exceptions or Exceptions()
        self._begun: set[int] = set()
        self._hollow: set[int] = set()
        self._instances: dict[type, bool] = {}
        """Kinds of which nothing special is known, and whether a stateless instance of one may be a sentinel."""

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        may_be_sentinel = self._instances.get(kind)
        if may_be_sentinel is not None:
            return self._reduce_instance(obj, may_be_sentinel)
        if kind is Cached or kind is FunctionType or issubclass(kind, type):
            return self._reduce_named(obj, kind)
        if kind is CodeType:
            return _reduce_code(obj)
        if issubclass(kind, BaseException):
            return self._exceptions.reduce(obj)
        if is_proxy(kind):
            return reduce_proxy(obj)
        if kind in NAMED:
            return self._link_sentinel(obj) or reduce_known(obj, is_global=self.is_global) or NotImplemented
        known = reduce_known(obj, is_global=self.is_global)
        if known is not None:
            return known
        self._instances[kind] = may_be_sentinel = getattr(kind, "__reduce_ex__", None) is object.__reduce_ex__
        return self._reduce_instance(obj, may_be_sentinel)

    def _reduce_instance(self, obj: Any, may_be_sentinel: bool) -> Any:
        if may_be_sentinel and not getattr(obj, "__dict__", None):
            linked = self._link_sentinel(obj) if type(obj) is object else None
            if linked is not None:
                return linked
            sentinel = sentinel_of(obj)
            if sentinel is not None:
                return load_sentinel, sentinel
        return NotImplemented

    def _reduce_named(self, obj: Any, kind: type) -> Any:
        linked = self._link(obj)
        if linked is not None:
            return linked
        if kind is Cached:
            return self._reduce_cached(obj)
        if kind is not FunctionType:
            return _without_slotnames(super().reducer_override(obj))
        if internals._should_pickle_by_reference(obj):
            return NotImplemented
        known = reduce_known(obj, is_global=self.is_global)
        if known is not None:
            return known
        space = self._globals_of(obj)
        reduced = super().reducer_override(obj) if space is None else reduce_function(obj, space)
        self._begun.add(id(obj))
        if id(obj) in self._hollow:
            self._hollow.discard(id(obj))
            return reduced[:2]
        return reduced

    def _link(self, named: Any) -> Any:
        """How a function, a class or a cache is reduced to its name in a module that travels by value; None if it has
        none."""
        raise NotImplementedError

    def _link_sentinel(self, value: object) -> Any:
        """The same for a bare object, or another of which there is only one."""
        raise NotImplementedError

    def _globals_of(self, function: FunctionType) -> Any:
        """What pickles as the globals that a function is to have, and none of its own; None for a copy of those that
        it refers to."""
        raise NotImplementedError

    def _reduce_cached(self, cached: Any) -> Any:
        if by_reference(cached):
            return NotImplemented
        wrapped = cached.__wrapped__
        attributes = {
            key: value for key, value in vars(cached).items() if key not in ("__wrapped__", "cache_parameters")
        }
        restore = state = None
        if type(wrapped) is FunctionType and id(wrapped) not in self._begun and self._link(wrapped) is None:
            space = self._globals_of(wrapped)
            reduced = super().reducer_override(wrapped) if space is None else reduce_function(wrapped, space)
            if reduced is not NotImplemented:
                self._hollow.add(id(wrapped))
                state, restore = reduced[2], reduced[5]
        made = (wrapped, cached.cache_parameters())
        return _make_cached, made, (attributes, restore, state), None, None, _set_cached


def _without_slotnames(reduced: Any) -> Any:
    """A class without what pickle leaves in it when it first pickles an instance: the same class is the same bytes."""
    if type(reduced) is tuple and len(reduced) == 6:
        reduced[2][0].pop("__slotnames__", None)
    return reduced


def reduce_function(function: FunctionType, space: Any, make: Callable[..., Any] | None = None) -> tuple[Any, ...]:
    """A function by value, whose globals `space` pickles to."""
    state, slots = internals._function_getstate(function)
    del slots["__globals__"]
    if slots["__module__"] in MAINS:
        slots["__module__"] = MAIN
    cells = None if function.__closure__ is None else tuple(internals._make_empty_cell() for _ in function.__closure__)
    return make or make_function, (function.__code__, space, cells), (state, slots), None, None, set_function


def make_function(code: CodeType, space: dict[str, Any], cells: tuple[Any, ...] | None) -> FunctionType:
    """A function that is still to be told its names, defaults and cells."""
    return FunctionType(code, space, None, None, cells)


def set_function(function: FunctionType, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Tell it."""
    attributes, slots = state
    vars(function).update(attributes)
    slots.pop("_cloudpickle_submodules")  # they were imported when they were unpickled
    for cell, given in zip(function.__closure__ or (), slots.pop("__closure__") or (), strict=True):
        try:
            cell.cell_contents = given.cell_contents
        except ValueError:  # it is still empty
            continue
    for name, value in slots.items():
        setattr(function, name, value)


def _reduce_code(code: CodeType) -> Any:
    make, args, *rest = internals._code_reduce(code)
    name = "".join(code.co_filename)
    return make, tuple(name if type(part) is str and part == "<dynamic-code>" else part for part in args), *rest


def _make_cached(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def _set_cached(cached: Any, state: tuple[dict[str, Any], Callable[[Any, Any], object] | None, Any]) -> None:
    attributes, restore, function_state = state
    vars(cached).update(attributes)
    if restore is not None:
        restore(cached.__wrapped__, function_state)
