"""`dataclass`, made faster for the kind that this package has most of: frozen, with slots, and plain fields.

What lives here: the same decorator as that of the standard library, to people, type checkers and `dataclasses.fields`.
What is not of that kind goes to the standard library.

Theory of operation
-------------------

That one compiles six methods of a class one by one.  A node makes some hundred such classes before it can do anything;
here each costs one compilation, when its `__new__` is first looked for; half of them wait for long (decision 28).

And it fills a frozen record by `object.__setattr__`, field by field, which for nine fields takes four times as long as
assignments do.  Here the values are assigned to a nameless
base, the `_cells` for so many fields, which may be changed, and then what has been filled is declared to be of the
class itself, which has the same cells under the names of its fields, and may not.  Nobody else sees it in between.  So
what is called is `__new__`, and a record has no subclasses that have anything of their own in them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeVar, dataclass_transform

_Record = TypeVar("_Record")


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def dataclass(
    *, frozen: Literal[True], slots: Literal[True], kw_only: bool = False
) -> Callable[[type[_Record]], type[_Record]]:
    """As `dataclasses.dataclass`."""

    def make(cls: type[_Record]) -> type[_Record]:
        if _is_plain(cls):
            made: type[_Record] = _make(cls, kw_only=kw_only)
            return made
        return dataclasses.dataclass(frozen=frozen, slots=slots, kw_only=kw_only)(cls)

    return make


def _is_plain(cls: type) -> bool:
    values = vars(cls)
    return cls.__bases__ == (object,) and not any(
        not _is_plain_value(values.get(name)) or str(kind).startswith(("ClassVar", "InitVar", "KW_ONLY"))
        for name, kind in values.get("__annotations__", {}).items()
    )


def _is_plain_value(value: object) -> bool:
    """A default, or a field with nothing but a default, and whether it is compared."""
    if not isinstance(value, dataclasses.Field):
        return True
    plain = dataclasses.field(default=value.default, compare=value.compare)
    return value.default is not dataclasses.MISSING and repr(value) == repr(plain)


@cache
def _cells(count: int) -> type:
    """What holds so many values."""
    return type(f"_Cells{count}", (), {"__slots__": tuple([f"_{number}" for number in range(count)])})


def _make(cls: Any, *, kw_only: bool) -> Any:
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)  # lists the fields
    fields = dataclasses.fields(cls)
    names = tuple([each.name for each in fields])
    compared = tuple([each.name for each in fields if each.compare])
    defaults = {f"_default_{each.name}": each.default for each in fields if each.default is not dataclasses.MISSING}
    cells = _cells(len(names))
    body = {name: value for name, value in vars(cls).items() if name not in (*names, "__dict__", "__weakref__")}
    body |= {name: vars(cells)[f"_{number}"] for number, name in enumerate(names)}
    for name in ("__repr__", "__setattr__", "__delattr__", "__reduce__"):
        body.setdefault(name, vars(_Common)[name])

    def write() -> Any:
        known: dict[str, Any] = {"_cells": cells, **defaults}
        exec(_source(names, compared, defaults, kw_only, hasattr(made, "__post_init__")), known)
        for name in ("__eq__", "__hash__", "__new__"):
            method = known[name]
            method.__qualname__ = f"{made.__qualname__}.{'__init__' if name == '__new__' else name}"  # for errors
            method.__module__ = made.__module__
            if body.get(name) is None:
                setattr(made, name, staticmethod(method) if name == "__new__" else method)
        return known["__new__"]

    made: Any = type(cls.__name__, (cells,), body | {"__slots__": (), "__new__": _Unwritten(write)})
    made.__slots__ = names  # which is what `meaning.py` and people look at
    made.__qualname__ = cls.__qualname__
    return made


class _Unwritten:
    """In place of a record's `__new__` until that is looked for."""

    def __init__(self, write: Callable[[], Any]) -> None:
        """`write` puts it there, with the others that are of each class, and returns it."""
        self._write = write

    def __get__(self, instance: object, owner: object) -> Any:
        return self._write()


def _source(
    names: tuple[str, ...], compared: tuple[str, ...], defaults: dict[str, Any], kw_only: bool, post_init: bool
) -> str:
    takes = [f"{name}=_default_{name}" if f"_default_{name}" in defaults else name for name in names]
    arguments = ", ".join(["_class", *(["*"] if kw_only and names else []), *takes])
    ours, theirs = ("".join(f"{who}.{name}, " for name in compared) for who in ("self", "other"))
    return "\n".join(
        [
            f"def __new__({arguments}):",
            "    _self = _cells()",
            *[f"    _self._{number} = {name}" for number, name in enumerate(names)],
            "    _self.__class__ = _class",
            *(["    _self.__post_init__()"] if post_init else []),
            "    return _self",
            "def __eq__(self, other):",
            "    if other.__class__ is self.__class__:",
            f"        return ({ours}) == ({theirs})",
            "    return NotImplemented",
            "def __hash__(self):",
            f"    return hash(({ours}))",
        ]
    )


def _again(cls: type, values: dict[str, Any]) -> Any:
    """A record that has travelled."""
    return cls(**values)


class _Common:
    """What is the same for all."""

    def __repr__(self: Any) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__)
        return f"{type(self).__qualname__}({fields})"

    def __setattr__(self: Any, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self: Any, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __reduce__(self: Any) -> Any:
        return _again, (type(self), {name: getattr(self, name) for name in self.__dataclass_fields__})
