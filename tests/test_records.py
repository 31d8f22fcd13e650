"""The fast decorator makes what the standard library's makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest

from hdphrs import records

KINDS: list[dict[str, Any]] = [
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
]
"""There are no others: what may change takes the standard library's decorator."""


class Point:
    """A place."""

    x: int
    y: int = 2
    name: str = "p"

    def __post_init__(self) -> None:
        assert self.x >= 0

    def away(self) -> int:
        """How far."""
        return self.x + self.y


class Nothing:
    """No fields."""


class Partly:
    """Of which not all is compared."""

    x: int
    y: float = dataclasses.field(default=0.0, compare=False)


class Listed:
    """What only the standard library can do."""

    x: int
    y: list[int] = dataclasses.field(default_factory=list)


def outcome(act: Callable[[], object]) -> str:
    try:
        return repr(act())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("plain", [Point, Nothing, Partly, Listed])
def test_class_behaves_as_the_standard_library_s(plain: type, kind: dict[str, Any]) -> None:
    def made(decorate: Any) -> Any:
        copied = {name: value for name, value in vars(plain).items() if name not in ("__dict__", "__weakref__")}
        cls = decorate(**kind)(type(plain.__name__, (), copied))
        cls.__qualname__ = plain.__qualname__
        return cls

    ours, theirs = made(records.dataclass), made(dataclasses.dataclass)
    some = {"x": 1} if dataclasses.fields(theirs) else {}

    def looks(cls: Any) -> list[str]:
        one, other = cls(**some), cls(**some)
        return [
            outcome(act)
            for act in (
                lambda: one,
                lambda: (one == other, one == 1, one != other),
                lambda: hash(one) == hash(other),
                lambda: cls(),
                lambda: cls(-1),
                lambda: cls(1, 2),
                lambda: cls(x=1, z=2),
                lambda: setattr(one, "x", 5),
                lambda: setattr(one, "unknown", 5),
                lambda: delattr(one, "x"),
                lambda: dataclasses.replace(one, **some),
                lambda: dataclasses.asdict(one),
                lambda: [(each.name, each.type, each.default) for each in dataclasses.fields(one)],
                lambda: (cls.__match_args__, cls.__slots__, cls.__doc__, cls.__module__, hasattr(one, "__dict__")),
                lambda: [parameter.kind for parameter in inspect.signature(cls).parameters.values()],
                lambda: copy.deepcopy(one),
                lambda: copy.copy(one),
                lambda: one.__replace__(**some),
                lambda: setattr(one, "__class__", int),
                lambda: other.away(),
                lambda: one == cls(**some, y=3) if some else None,
            )
        ]

    differing = [(a, b) for a, b in zip(looks(ours), looks(theirs), strict=True) if a != b]
    assert [
        b for _, b in differing if not b.startswith(("TypeError: super", "FrozenInstanceError", "AttributeError"))
    ] == []
    assert all(a.startswith("FrozenInstanceError") for a, _ in differing)


@records.dataclass(frozen=True, slots=True)
class Travels:
    """Of a module, so that it can be pickled."""

    x: int
    y: tuple[int, ...] = ()


@records.dataclass(frozen=True, slots=True)
class Few:
    """Has as many fields."""

    a: int
    b: tuple[int, ...]


@records.dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The same, by name."""

    x: int
    y: tuple[int, ...] = ()
    z: float = dataclasses.field(default=0.0, compare=False)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("one", [Travels(1, (2,)), Named(x=1, y=(2,), z=3.0)], ids=lambda one: type(one).__name__)
def test_record_travels_and_is_a_key(one: Any, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(one, protocol))
    assert (again, repr(again), type(again)) == (one, repr(one), type(one))
    assert {one: 3}[again] == 3


def test_methods_of_a_class_are_written_when_the_first_record_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    source = records._source

    def write(names: tuple[str, ...], *facts: Any) -> str:
        written.append(names)
        return source(names, *facts)

    monkeypatch.setattr(records, "_source", write)

    @records.dataclass(frozen=True, slots=True)
    class Late:
        x: int

        def __hash__(self) -> int:
            return 7

    class Same(Late):
        __slots__ = ()

    assert written == []
    assert list(inspect.signature(Late).parameters) == ["x"]
    assert (Same(1) == Same(1), Late(1) == Late(2), hash(Late(1))) == (True, False, 7)
    assert written == [("x",)]


def test_record_matches_by_position() -> None:
    match Travels(1, (2,)):
        case Travels(x, y):
            assert (x, y) == (1, (2,))


def test_records_of_as_many_fields_share_nothing_but_their_cells() -> None:
    one: Any = Travels(1)
    other: Any = Few(1, ())
    assert (one != other, isinstance(one, Few), type(one).x is type(one).y) == (True, False, False)
    assert [name for name in dir(one) if not name.startswith("_")] == ["x", "y"]


def test_subclass_with_anything_of_its_own_cannot_be_made() -> None:
    class Same(Travels):
        __slots__ = ()

    class More(Travels):
        pass

    assert repr(Same(1)).endswith("Same(x=1, y=())")
    with pytest.raises(TypeError, match="layout differs"):
        More(1)


def test_record_is_filled_without_a_call_for_each_field() -> None:
    calls: list[str] = []
    Travels(1, (2,))  # writes the methods, if it is the first
    sys.setprofile(lambda frame, event, argument: calls.append(event))
    try:
        Travels(1, (2,))
    finally:
        sys.setprofile(None)
    assert calls.count("call") == 1
    assert calls.count("c_call") == 1  # that of `setprofile`
