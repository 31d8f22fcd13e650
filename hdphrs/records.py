"""`dataclass`, made faster for the kind that this package has most of: frozen, with slots, and plain fields.

What lives here: the same decorator as that of the standard library, to people, type checkers and `dataclasses.fields`.
That one compiles six methods of a class one by one.  A node makes some eighty such classes before it can do anything;
here each costs one compilation (decision 28).  What is not of that kind goes to the standard library.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """As `dataclasses.dataclass`."""
        if cls is None:
            return partial(dataclass, **options)
        kw_only = options.get("kw_only", False)
        if options != {"frozen": True, "slots": True} | ({"kw_only": True} if kw_only else {}) or not _is_plain(cls):
            return dataclasses.dataclass(cls, **options)
        return _make(cls, kw_only=kw_only)


def _is_plain(cls: type) -> bool:
    values = vars(cls)
    return cls.__bases__ == (object,) and not any(
        isinstance(values.get(name), dataclasses.Field) or str(kind).startswith(("ClassVar", "InitVar", "KW_ONLY"))
        for name, kind in values.get("__annotations__", {}).items()
    )


def _make(cls: type, *, kw_only: bool) -> type:
    names = tuple(vars(cls).get("__annotations__", {}))
    defaults = {f"_default_{name}": vars(cls)[name] for name in names if name in vars(cls)}
    known: dict[str, Any] = {"_set": object.__setattr__, **defaults}
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)  # lists the fields
    exec(_source(names, defaults, kw_only, hasattr(cls, "__post_init__")), known)
    body = {name: value for name, value in vars(cls).items() if name not in (*names, "__dict__", "__weakref__")}
    for method in (known["__init__"], known["__eq__"], known["__hash__"]):
        method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
        method.__module__ = cls.__module__
        if method.__name__ == "__init__" or vars(cls).get(method.__name__) is None:
            body[method.__name__] = method
    for name in ("__repr__", "__setattr__", "__delattr__", "__getstate__", "__setstate__"):
        body.setdefault(name, vars(_Common)[name])
    made = type(cls.__name__, (object,), body | {"__slots__": names})
    made.__qualname__ = cls.__qualname__
    return made


def _source(names: tuple[str, ...], defaults: dict[str, Any], kw_only: bool, post_init: bool) -> str:
    takes = [f"{name}=_default_{name}" if f"_default_{name}" in defaults else name for name in names]
    arguments = ", ".join(["self", *(["*"] if kw_only and names else []), *takes])
    sets = [f"    _set(self, {name!r}, {name})" for name in names]
    if post_init:
        sets.append("    self.__post_init__()")
    ours, theirs = ("".join(f"{who}.{name}, " for name in names) for who in ("self", "other"))
    return "\n".join(
        [
            f"def __init__({arguments}):",
            *(sets or ["    pass"]),
            "def __eq__(self, other):",
            "    if other.__class__ is self.__class__:",
            f"        return ({ours}) == ({theirs})",
            "    return NotImplemented",
            "def __hash__(self):",
            f"    return hash(({ours}))",
        ]
    )


class _Common:
    """What is the same for all."""

    def __repr__(self: Any) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__qualname__}({fields})"

    def __setattr__(self: Any, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self: Any, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in self.__slots__]

    def __setstate__(self: Any, state: list[Any]) -> None:
        for name, value in zip(self.__slots__, state, strict=True):
            object.__setattr__(self, name, value)
