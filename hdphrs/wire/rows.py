"""Unions of frozen types as plain lists: a table of rows, one a type.

What lives here: `Rows`, which packs a value as `[kind, field, ...]` in the order of the type's fields.  How a field is
packed follows from its annotation, so that a new field cannot be forgotten.  What does not: which types there are, and
how their fields are packed; see `codec.py` for messages, `trace.py` for events and effects.

Each type has two functions of its own, without loops, which are written and compiled when they are first needed: most
nodes never see most messages, and to compile them all would take longer than to start without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Generic, TypeVar, get_type_hints

from hdphrs.errors import ProtocolError

T = TypeVar("T")

Pack = Callable[[Any], object]
Unpack = Callable[[object], Any]
"""Raises `ProtocolError` for everything that `Pack` does not make."""


def wrong(expected: str, value: object) -> ProtocolError:
    """The complaint about a value; it shows no data of the user's."""
    shown = repr(value) if type(value) in (int, bool, type(None)) else f"a {type(value).__name__}"
    return ProtocolError(f"not a {expected}: {shown}")


_Fields = tuple[tuple[str, Pack, Unpack], ...]


def itself(value: Any) -> object:
    """A value that a frame holds as it is."""
    return value


class Rows(Generic[T]):
    """The codec of one union."""

    def __init__(
        self,
        what: str,
        types: Mapping[int, type[T]],
        by_annotation: Mapping[Any, tuple[Pack, Unpack]],
        evident: Mapping[Unpack, str],
    ) -> None:
        """
        Args:
            what: one of the union, for errors.
            types: kind number to type.
            by_annotation: how a field of this annotation is packed and unpacked.
            evident: of unpackers, under which condition, in Python, a value `{v}` is unpacked to itself.
        """
        self._what = what
        self._types = types
        self._kinds = {row: kind for kind, row in types.items()}
        self._fields = {kind: _fields(row, by_annotation) for kind, row in types.items()}
        self._evident = evident
        self._pack: dict[type[T], Callable[[T], list[object]]] = {}
        self._unpack: dict[int, Callable[[list[Any]], T]] = {}

    def pack(self, value: T) -> list[object]:
        """`[kind, field, ...]`."""
        pack = self._pack.get(type(value))
        if pack is None:
            kind = self._kinds[type(value)]
            pack = self._pack[type(value)] = _packer(kind, self._fields[kind])
        return pack(value)

    def unpack(self, packed: object) -> T:
        """The value of `[kind, field, ...]`.

        Raises:
            ProtocolError: it is none.
        """
        if type(packed) is not list or not packed:
            raise wrong(self._what, packed)
        kind = packed[0]
        if type(kind) is not int or kind not in self._types:
            raise wrong(f"kind of {self._what}", kind)
        unpack = self._unpack.get(kind)
        if unpack is None:
            unpack = self._unpack[kind] = _unpacker(self._types[kind], self._fields[kind], self._evident)
        return unpack(packed)


def _fields(row: type, by_annotation: Mapping[Any, tuple[Pack, Unpack]]) -> _Fields:
    hints = get_type_hints(row)
    return tuple((f.name, *by_annotation[hints[f.name]]) for f in fields(row))


def _packer(kind: int, of: _Fields) -> Callable[[Any], list[object]]:
    parts = [f"value.{name}" if pack is itself else f"pack_{name}(value.{name})" for name, pack, _ in of]
    known: dict[str, Any] = {f"pack_{name}": pack for name, pack, _ in of}
    made: Callable[[Any], list[object]] = eval(f"lambda value: [{', '.join([str(kind), *parts])}]", known)
    return made


def _unpacker(row: type[T], of: _Fields, evident: Mapping[Unpack, str]) -> Callable[[list[Any]], T]:
    parts = []
    for name, _, unpack in of:
        condition = evident.get(unpack)
        part = f"unpack_{name}({name}_)"
        parts.append(part if condition is None else f"{name}_ if {condition.format(v=f'{name}_')} else {part}")
    lines = [
        "def unpack(packed):",
        f"    if len(packed) != {len(of) + 1}:",
        "        raise miscounted(packed)",
        f"    {', '.join(['_', *[f'{name}_' for name, _, _ in of]])}, = packed",
        f"    return row({', '.join(parts)})",
    ]

    def miscounted(packed: list[Any]) -> ProtocolError:
        return ProtocolError(f"{row.__name__} with {len(packed) - 1} fields instead of {len(of)}")

    known: dict[str, Any] = {f"unpack_{name}": unpack for name, _, unpack in of}
    known |= {"row": row, "miscounted": miscounted}
    exec("\n".join(lines), known)
    made: Callable[[list[Any]], T] = known["unpack"]
    return made
