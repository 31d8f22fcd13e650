"""Unions of frozen types as plain lists: a table of rows, one a type.

What lives here: `Rows`, which packs a value as `[kind, field, ...]` in the order of the type's fields.  How a field is
packed follows from its annotation, so that a new field cannot be forgotten.  What does not: which types there are, and
how their fields are packed; see `codec.py` for messages, `trace.py` for events and effects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Generic, TypeVar, get_type_hints

from hdphrs.errors import ProtocolError
from hdphrs.records import dataclass

T = TypeVar("T")

Pack = Callable[[Any], object]
Unpack = Callable[[object], Any]
"""Raises `ProtocolError` for everything that `Pack` does not make."""


def wrong(expected: str, value: object) -> ProtocolError:
    """The complaint about a value; it shows no data of the user's."""
    shown = repr(value) if type(value) in (int, bool, type(None)) else f"a {type(value).__name__}"
    return ProtocolError(f"not a {expected}: {shown}")


@dataclass(frozen=True, slots=True)
class _Shape(Generic[T]):
    kind: int
    type: type[T]
    fields: tuple[tuple[str, Pack, Unpack], ...]


class Rows(Generic[T]):
    """The codec of one union."""

    def __init__(
        self, what: str, types: Mapping[int, type[T]], by_annotation: Mapping[Any, tuple[Pack, Unpack]]
    ) -> None:
        """
        Args:
            what: one of the union, for errors.
            types: kind number to type.
            by_annotation: how a field of this annotation is packed and unpacked.
        """
        self._what = what
        self._by_kind = {kind: _shape(kind, row, by_annotation) for kind, row in types.items()}
        self._by_type = {shape.type: shape for shape in self._by_kind.values()}

    def pack(self, value: T) -> list[object]:
        """`[kind, field, ...]`."""
        shape = self._by_type[type(value)]
        return [shape.kind, *[pack(getattr(value, name)) for name, pack, _ in shape.fields]]

    def unpack(self, packed: object) -> T:
        """The value of `[kind, field, ...]`.

        Raises:
            ProtocolError: it is none.
        """
        if type(packed) is not list or not packed:
            raise wrong(self._what, packed)
        kind = packed[0]
        shape = self._by_kind.get(kind) if type(kind) is int else None
        if shape is None:
            raise wrong(f"kind of {self._what}", kind)
        if len(packed) != len(shape.fields) + 1:
            raise ProtocolError(f"{shape.type.__name__} with {len(packed) - 1} fields instead of {len(shape.fields)}")
        return shape.type(*[field[2](value) for field, value in zip(shape.fields, packed[1:], strict=True)])


def _shape(kind: int, row: type[T], by_annotation: Mapping[Any, tuple[Pack, Unpack]]) -> _Shape[T]:
    hints = get_type_hints(row)
    return _Shape(kind, row, tuple((f.name, *by_annotation[hints[f.name]]) for f in fields(row)))  # type: ignore[arg-type]
