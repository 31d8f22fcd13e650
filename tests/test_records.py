"""The fast decorator makes what the standard library's makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from hdphrs import records

KINDS: list[dict[str, Any]] = [
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"slots": True},
    {"eq": False, "slots": True},
]


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
    """What only the standard library can do."""

    x: int
    y: float = dataclasses.field(default=0.0, compare=False)


def outcome(act: Callable[[], object]) -> str:
    try:
        return repr(act())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("plain", [Point, Nothing, Partly])
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
                lambda: hash(one) == hash(other) if kind.get("eq", True) else None,
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
                lambda: other.away(),
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


def test_record_travels_and_is_a_key() -> None:
    one = Travels(1, (2,))
    assert pickle.loads(pickle.dumps(one)) == one
    assert {one: 3}[Travels(1, (2,))] == 3
    match one:
        case Travels(x, y):
            assert (x, y) == (1, (2,))
