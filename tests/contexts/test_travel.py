"""Which context variables children get, and how they travel."""

from __future__ import annotations

import contextvars
import decimal
import sys
import threading
from collections.abc import Iterator
from contextvars import Context, ContextVar
from decimal import Decimal
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from hdphrs.contexts import travel
from hdphrs.contexts.travel import VALUE_BYTES_MAX, own, pack, packed, reduce, snapshot, unpack, variable
from hdphrs.wire.pickling import dumps, loads

NAMED: ContextVar[Any] = ContextVar("NAMED", default="default")
BARE: ContextVar[Any] = ContextVar("BARE")


class Stubborn:
    """Does not pickle, and counts how often that was tried."""

    tried = 0

    def __reduce__(self) -> Any:
        Stubborn.tried += 1
        raise TypeError("no")


def of(*values: tuple[ContextVar[Any], Any]) -> Context:
    """A context in which these are set."""
    context = Context()
    for var, value in values:
        context.run(var.set, value)
    return context


def there_and_back(context: Context) -> Context:
    return unpack(pack(context.run(snapshot)))


@pytest.mark.parametrize("value", [1, "text", None, (1, [2]), {"a": 1}, Decimal(3)])
def test_a_variable_of_a_module_travels_with_its_value(value: object) -> None:
    assert there_and_back(of((NAMED, value), (BARE, value))).run(lambda: (NAMED.get(), BARE.get())) == (value, value)


def test_what_is_as_it_is_everywhere_is_not_said() -> None:
    for context in (Context(), of((NAMED, "default")), of()):
        assert pack(context) == b""
    context = Context()
    context.run(decimal.getcontext)
    context.run(lambda: np.errstate().__enter__())
    assert pack(context.run(snapshot)) == b""
    assert pack(None) == b""


@pytest.mark.parametrize(
    "value",
    [threading.Lock(), Stubborn(), [Stubborn()], b"x" * (VALUE_BYTES_MAX + 1)],
    ids=["lock", "own", "in a list", "large"],
)
def test_what_does_not_travel_is_left_behind_here_as_well(value: object) -> None:
    context = of((NAMED, value), (BARE, 1)).run(snapshot)
    assert NAMED not in context
    assert context[BARE] == 1
    assert unpack(pack(context)).run(NAMED.get) == "default"


def test_variables_that_no_module_holds_are_left_behind() -> None:
    hidden: ContextVar[int] = ContextVar("hidden")
    assert len(of((hidden, 1)).run(snapshot)) == 0


def test_variables_of_event_loops_are_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    sniffio = pytest.importorskip("sniffio")
    assert len(of((sniffio.current_async_library_cvar, "trio")).run(snapshot)) == 0


def test_a_type_that_does_not_pickle_is_tried_once() -> None:
    var: ContextVar[Any] = ContextVar("var")
    sys.modules[__name__].__dict__["var_of_a_test"] = var
    travel._searched = 0
    Stubborn.tried = 0
    for _ in range(3):
        of((var, Stubborn())).run(snapshot)
    assert Stubborn.tried == 1
    del sys.modules[__name__].__dict__["var_of_a_test"]


def test_the_context_of_decimal_is_the_childs_own() -> None:
    def parent() -> list[int]:
        decimal.getcontext().prec = 7
        taken = snapshot()
        decimal.getcontext().prec = 8
        child = own(taken)
        child.run(lambda: setattr(decimal.getcontext(), "prec", 9))
        return [run(lambda: decimal.getcontext().prec) for run in (taken.run, child.run, unpack(pack(taken)).run)]

    assert Context().run(parent) == [7, 9, 7]


def test_flags_that_decimal_has_raised_stay_with_the_parent() -> None:
    def parent() -> tuple[bool, bool]:
        decimal.getcontext().prec = 3
        Decimal(1) / 3
        inexact = decimal.Inexact
        return decimal.getcontext().flags[inexact], snapshot().run(lambda: decimal.getcontext().flags[inexact])

    assert Context().run(parent) == (True, False)


def test_errstate_travels() -> None:
    def parent() -> Any:
        with np.errstate(divide="raise", over="ignore"):
            return unpack(packed()).run(np.geterr)

    assert Context().run(parent) == {"divide": "raise", "over": "ignore", "under": "ignore", "invalid": "warn"}


def test_printoptions_travel() -> None:
    def parent() -> Any:
        np.set_printoptions(precision=3)
        return unpack(packed()).run(lambda: str(np.array([1 / 3])))

    assert Context().run(parent) == "[0.333]"


def test_equal_contexts_are_packed_to_the_same_bytes() -> None:
    one, other = of((NAMED, 1), (BARE, 2)), of((BARE, 2), (NAMED, 1))
    assert pack(one) == pack(other) != b""


def test_a_module_that_is_not_here_is_passed_over() -> None:
    data = pack(of((NAMED, 1), (BARE, 2)))
    context = unpack(data.replace(b"NAMED", b"NAMEX"))
    assert [var.name for var in context] == ["BARE"]


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The program's own module, in which a variable is defined; gone on the other side."""
    module = type(sys)("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    yield module
    travel._made.clear()


def test_a_variable_of_the_program_is_one_and_the_same_there(main: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    main.MINE = ContextVar("MINE", default=5)
    main.OTHER = ContextVar("OTHER")
    data = pack(of((main.MINE, 6), (main.OTHER, 7)))
    pickled = dumps([main.MINE, main.OTHER])
    monkeypatch.delattr(main, "MINE")
    monkeypatch.delattr(main, "OTHER")
    context = unpack(data)
    mine, other = loads(pickled)
    assert context.run(lambda: (mine.get(), other.get())) == (6, 7)
    assert mine.get() == 5
    with pytest.raises(LookupError):
        other.get()
    assert pack(of((mine, 6), (other, 7))) == data


def test_a_variable_that_nobody_would_find_does_not_pickle() -> None:
    with pytest.raises(TypeError, match="ContextVar"):
        dumps(ContextVar("hidden"))
    assert loads(dumps(NAMED)) is NAMED
    assert variable(__name__, "BARE") is BARE
    with pytest.raises(LookupError):
        variable(__name__, "Stubborn")


def test_a_snapshot_is_not_the_callers() -> None:
    def parent() -> str:
        NAMED.set("before")
        taken = snapshot()
        taken.run(NAMED.set, "the child's")
        return str(NAMED.get())

    assert contextvars.copy_context().run(parent) == "before"


def test_what_the_program_has_imported_is_found_in_the_module_that_it_comes_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another process has it there, under whatever name the program has it; only there do others read it."""
    module = ModuleType("of_the_program")
    var: ContextVar[Any] = ContextVar("OF_A_MODULE")
    module.OF_A_MODULE = var  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sys.modules["__main__"], "ALIAS", var, raising=False)
    data = pack(of((var, 7)).run(snapshot))
    assert b"of_the_program" in data
    assert unpack(data).run(var.get) == 7
    assert reduce(var, is_global=True) == (variable, ("of_the_program", "OF_A_MODULE"))
