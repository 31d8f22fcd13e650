"""Exceptions on their way: the same class, whatever its `__init__` asks for.

What lives here: how the pickler takes an exception apart, and how it is put together again.  What does not: the outcome
of a task that has raised (`values.py`).

Plain pickle copies an exception by calling its class with `error.args`, which fails if `__init__` takes other
arguments, and it forgets causes and contexts.  Here the object is made without `__init__` and `__new__` of its class,
and then gets what the other one has: `args`, the fields that C classes and `__slots__` define, its attributes, notes,
cause and context.

A class that says itself how it is pickled, by `__reduce__` or `copyreg`, is believed, unless it can be seen that this
does not hold.  What does not travel is left out, and a note says so: an attribute is missing then, an argument is
replaced by its `repr`.
"""

from __future__ import annotations

import copyreg
import functools
import reprlib
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, GetSetDescriptorType, MemberDescriptorType, NoneType
from typing import Any, Final, TypeAlias

from hdphrs.wire.signals import came_between

PROTOCOL: Final = 5

PLAIN_ITEMS_MAX: Final = 1000
"""Containers with more items are not looked into to see whether they are plain."""
PLAIN_DEPTH_MAX: Final = 4

_PLAIN: Final = frozenset({int, float, complex, str, bytes, bool, NoneType})
_CONTAINERS: Final = frozenset({tuple, list, set, frozenset})
_IS_HEAP_TYPE: Final = 1 << 9
"""The flag of classes that a `class` statement has defined, or a C extension as one does."""

_NOTES: Final = "__notes__"
_OF_NO_USE: Final = {(AttributeError, "obj")}
"""Fields that the standard library leaves behind too: this one is the object that lacks an attribute, of any size."""

Travels: TypeAlias = Callable[[object], "str | None"]
"""Tells why a value cannot travel; None if it can."""

_Fill: TypeAlias = Callable[[Any, Any], None]
_Parts: TypeAlias = tuple[tuple[Callable[..., Any], tuple[Any, ...]], _Fill, dict[str, Any]]
"""How it is made, of what; and what fills it, with what."""


class Exceptions:
    """What one pickler does with the exceptions that it meets."""

    def __init__(self, travels: Travels | None = None) -> None:
        """
        Args:
            travels: asked about each part of an exception; None to take it that all of them travel.
        """
        self.met: bool = False
        """Whether there was one."""
        self._travels = travels
        self._hollow: dict[int, Any] = {}
        """How members of groups are made, which are filled together with their group."""

    def reduce(self, error: BaseException) -> Any:
        """What the pickler is to make of this exception; see `pickle.Pickler.reducer_override`."""
        self.met = True
        if id(error) in self._hollow:
            return self._hollow.pop(id(error))
        made, fill_it, state = self._parts(error)
        return *made, state, None, None, fill_it

    def _parts(self, error: BaseException) -> _Parts:
        own = None if self._travels is is_plain else self._by_its_own_word(error)
        if own is not None:
            return own
        left_out: list[str] = []
        state = self._state(error, left_out)
        if not isinstance(error, BaseExceptionGroup):
            return (blank, (type(error),)), fill, state
        # A member may lead back to its group, which is there only when its members are: so these are made first.
        members = error.exceptions
        state["members"] = []
        for member in members:
            made, fill_it, of_member = self._parts(member)
            self._hollow[id(member)] = made
            state["members"].append((member, fill_it, of_member))
        return (blank_group, (type(error), error.message, members)), fill, state

    def _state(self, error: BaseException, left_out: list[str]) -> dict[str, Any]:
        """All that `fill` needs; what there is nothing of is not in it."""
        kind: Any = type(error)
        args = [self._part(arg, f"argument {place}", left_out) for place, arg in enumerate(_ARGS.__get__(error), 1)]
        values = _attributes(error)
        state: dict[str, Any] = {"args": tuple(args)}
        if _is_pythons(kind, "__setstate__") and self._travels is not is_plain:
            if _is_pythons(kind, "__getstate__"):
                state["own"] = kind.__getstate__(error)
            elif values:
                state["own"] = self._kept(values, "attribute ", left_out)
            values = {_NOTES: values[_NOTES]} if _NOTES in values else {}
        state["values"] = self._kept(values, "attribute ", left_out)
        state["fields"] = self._kept(dict(_fields(error)), "field ", left_out)
        state["links"] = self._links(error, left_out)
        state["left_out"] = left_out
        return _filled(state)

    def _links(self, error: BaseException, left_out: list[str]) -> dict[str, Any]:
        linked = {"cause": error.__cause__, "context": error.__context__}
        links = self._kept({name: other for name, other in linked.items() if other is not None}, "", left_out)
        if error.__suppress_context__:
            links["suppress"] = True
        return links

    def _kept(self, values: dict[str, Any], what: str, left_out: list[str]) -> dict[str, Any]:
        kept = {}
        for name, value in values.items():
            if (why := self._why_not(value)) is None:
                kept[name] = value
            else:
                left_out.append(f"{what}{name} (a {_type_name(value)}): {why}")
        return kept

    def _part(self, value: Any, what: str, left_out: list[str]) -> Any:
        """The value, or its `repr`."""
        why = self._why_not(value)
        if why is None:
            return value
        left_out.append(f"{what} (a {_type_name(value)}), which is replaced by its repr: {why}")
        try:
            return reprlib.repr(value)
        except Exception:
            return f"<a {_type_name(value)}>"

    def _why_not(self, value: object) -> str | None:
        if self._travels is None or (self._travels is is_plain and isinstance(value, BaseException)):
            return None
        return self._travels(value)

    def _by_its_own_word(self, error: BaseException) -> _Parts | None:
        """As its class has it; None if that has nothing to say, or what it says does not hold."""
        kind = type(error)
        reducer = copyreg.dispatch_table.get(kind)
        if reducer is None and not (_is_pythons(kind, "__reduce__") or _is_pythons(kind, "__reduce_ex__")):
            return None
        try:
            reduced: Any = error.__reduce_ex__(PROTOCOL) if reducer is None else reducer(error)
            if not isinstance(reduced, tuple) or not _holds(kind, *reduced[:2]):
                return None
        except BaseException as obstacle:
            if came_between(obstacle):
                raise
            return None
        make, args, own, _, _, setter = (*reduced, None, None, None, None)[:6]
        if any(self._why_not(part) is not None for part in (make, args, own, setter)):
            return None
        left_out: list[str] = []
        state = {"links": self._links(error, left_out), "left_out": left_out, "setter": setter}
        if _NOTES in _attributes(error):
            state["values"] = self._kept({_NOTES: _attributes(error)[_NOTES]}, "", left_out)
        state = _filled(state) | ({} if own is None else {"own": own})
        rest = Exceptions(is_plain)._state(error, [])
        rest.pop("links", None)
        return (restored, (kind, make, args, rest)), fill, state


def is_plain(value: object, depth: int = PLAIN_DEPTH_MAX) -> str | None:
    """None if a value consists of nothing but numbers, texts and small containers of these, as `Travels`."""
    kind = type(value)
    parts: tuple[object, ...] = ()
    if kind in _PLAIN:
        return None
    if isinstance(value, dict) and kind is dict:
        parts = (*value, *value.values())
    elif isinstance(value, tuple | list | set | frozenset) and kind in _CONTAINERS:
        parts = tuple(value)
    else:
        depth = 0
    if depth and len(parts) <= PLAIN_ITEMS_MAX and all(is_plain(part, depth - 1) is None for part in parts):
        return None
    return "it, or something beside it, does not unpickle here"


def is_simple(error: BaseException) -> bool:
    """Whether nothing but a number or a text of it has to be unpickled."""
    if error.__cause__ is not None or error.__context__ is not None or _attributes(error):
        return False
    return not type(error).__flags__ & _IS_HEAP_TYPE and is_plain(_ARGS.__get__(error)) is None


def blank(kind: type[BaseException]) -> BaseException:
    """An exception of this class, with which neither a `__new__` nor an `__init__` of Python has had to do."""
    for base in kind.__mro__:
        if isinstance(vars(base).get("__new__"), BuiltinFunctionType):
            make: Any = base.__new__
            made: BaseException = make(kind)
            return made
    raise TypeError(f"{kind.__qualname__} cannot be made")


def blank_group(kind: Any, message: str, members: tuple[BaseException, ...]) -> BaseException:
    """The same for a group, which cannot get its members later."""
    group: BaseException = BaseExceptionGroup.__new__(kind, message, members)
    return group


def restored(kind: type[BaseException], make: Callable[..., Any], args: tuple[Any, ...], rest: dict[str, Any]) -> Any:
    """As its class wants it to be made; where that fails, what is plain of it."""
    try:
        return make(*args)
    except Exception as obstacle:
        if came_between(obstacle):
            raise
        error = blank(kind)
        fill(error, rest)
        _note(error, f"hdphrs: its own way of being unpickled failed here: {_type_name(obstacle)}: {obstacle}")
        return error


def fill(error: Any, state: dict[str, Any]) -> None:
    """Give an exception what the original had, as `Exceptions` has found it."""
    if "args" in state:
        _ARGS.__set__(error, state["args"])
    for name, value in state.get("fields", {}).items():
        field = _field(type(error), name)
        if field is not None:
            field.__set__(error, value)
    if "own" in state:
        _set_own(error, state["own"], state.get("setter"))
    if "values" in state:
        _attributes(error).update(state["values"])
    links = state.get("links", {})
    for name, link in (("cause", _CAUSE), ("context", _CONTEXT)):
        if name in links:
            link.__set__(error, links[name])
    _SUPPRESS.__set__(error, links.get("suppress", False))
    for member, fill_it, of_member in state.get("members", ()):
        fill_it(member, of_member)
    for what in state.get("left_out", ()):
        _note(error, f"hdphrs: this did not travel: {what}")


_ARGS: Final[Any] = BaseException.args
_CAUSE: Final[Any] = BaseException.__cause__
_CONTEXT: Final[Any] = BaseException.__context__
_SUPPRESS: Final[Any] = BaseException.__suppress_context__
_DICT: Final[Any] = vars(BaseException)["__dict__"]
"""Of the base class, whatever a class makes of these names: one that is frozen refuses assignments."""


def link_end(error: BaseException, last: BaseException) -> None:
    """Put an exception at the end of the chain of another one's causes."""
    seen = {id(error)}
    end, cause = error, error.__cause__
    while cause is not None and not isinstance(cause, type(last)) and id(cause) not in seen:
        seen.add(id(cause))
        end, cause = cause, cause.__cause__
    suppresses = end.__suppress_context__
    _CAUSE.__set__(end, last)
    _SUPPRESS.__set__(end, suppresses)


def _set_own(error: Any, own: Any, setter: Callable[[Any, Any], object] | None) -> None:
    if setter is not None:
        setter(error, own)
    elif hasattr(error, "__setstate__"):
        error.__setstate__(own)
    else:
        _attributes(error).update(own)


def _holds(kind: type[BaseException], make: Any, args: Any) -> bool:
    """Whether an exception can be made so; where that takes more than to call a class, it is to be hoped."""
    called = make.func if isinstance(make, functools.partial) else make
    if called is kind:
        return type(make(*args)) is kind
    if isinstance(called, type) or called is copyreg.__newobj__:  # type: ignore[attr-defined]
        return isinstance(make(*args), BaseException)
    return callable(make)


def _is_pythons(kind: type, name: str) -> bool:
    """Whether a class that is not built in has defined this method."""
    owner = next((base for base in kind.__mro__ if name in vars(base)), object)
    return bool(owner.__flags__ & _IS_HEAP_TYPE)


def _fields(error: BaseException) -> Iterator[tuple[str, Any]]:
    """What C classes and `__slots__` define, and is not as it is in a new object."""
    kind = type(error)
    names = {name: base for base in reversed(kind.__mro__) if base not in _ROOTS for name in vars(base)}
    fields = {name: field for name in names if (field := _field(kind, name)) is not None}
    if not fields:
        return
    new = blank_group(kind, "", (ValueError(),)) if isinstance(error, BaseExceptionGroup) else blank(kind)
    for name, field in fields.items():
        try:
            value = field.__get__(error)
        except AttributeError:  # it is not set
            continue
        try:
            if field.__get__(new) is value:
                continue
        except AttributeError:
            pass
        try:
            field.__set__(new, value)
        except (AttributeError, TypeError):  # it cannot be
            continue
        yield name, value


def _field(kind: type, name: str) -> Any:
    """The descriptor by which a class keeps something outside of `__dict__`."""
    for base in kind.__mro__:
        found = vars(base).get(name)
        if isinstance(found, MemberDescriptorType | GetSetDescriptorType) and base not in _ROOTS:
            is_of_use = (base, name) not in _OF_NO_USE and name not in ("__dict__", "__weakref__")
            return found if is_of_use else None
    return None


_ROOTS: Final = frozenset({BaseException, BaseExceptionGroup, object})


def _attributes(error: BaseException) -> dict[str, Any]:
    values: dict[str, Any] = _DICT.__get__(error)
    return values


def _note(error: BaseException, note: str) -> None:
    notes = _attributes(error).setdefault(_NOTES, [])
    if isinstance(notes, list) and note not in notes:
        notes.append(note)


def _filled(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if value or name == "own"}


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
