"""Things that plain pickle refuses or copies."""

from __future__ import annotations

import contextvars
import dataclasses
import enum
import functools
import inspect
import re
import struct
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from hdphrs.errors import CannotTravelError
from hdphrs.wire.pickling import dumps, loads
from hdphrs.wire.well_known import reduce_known, sentinel_of


def copy_of(value: Any) -> Any:
    """The value, there and back."""
    return loads(dumps(value))


@pytest.mark.parametrize(
    "sentinel",
    [
        dataclasses.MISSING,
        dataclasses.KW_ONLY,
        dataclasses._HAS_DEFAULT_FACTORY,  # type: ignore[attr-defined]
        inspect.Parameter.empty,
        inspect.Signature.empty,
        enum._auto_null,
        functools._initial_missing,  # type: ignore[attr-defined]
        re.NOFLAG,
        Any,
        NotImplemented,
        ...,
    ],
)
def test_a_sentinel_stays_itself(sentinel: object) -> None:
    assert copy_of(sentinel) is sentinel
    assert copy_of([{"a": (sentinel,)}])[0]["a"][0] is sentinel


@pytest.mark.parametrize(
    ("module", "name"),
    [("numpy", "_NoValue"), ("pandas._libs.lib", "no_default"), ("attr", "NOTHING"), ("click.core", "UNSET"),
     ("hypothesis.internal.conjecture.utils", "INT_SIZES"), ("msgpack.fallback", "TYPE_IMMEDIATE")],
)  # fmt: skip
def test_a_sentinel_of_an_installed_package_stays_itself(module: str, name: str) -> None:
    value = getattr(pytest.importorskip(module), name, None)
    if value is None or isinstance(value, tuple):
        pytest.skip("this version has none")
    assert copy_of(value) is value


def test_an_instance_with_a_state_is_no_sentinel() -> None:
    assert sentinel_of(threading.current_thread()) is None
    assert sentinel_of(object()) is None


def test_a_struct_keeps_its_format() -> None:
    assert copy_of(struct.Struct(">IH")).format == ">IH"


def test_a_context_variable_of_a_script_keeps_its_name_and_its_default() -> None:
    def made(variable: Any) -> Any:
        known = reduce_known(variable, is_global=True)
        assert known is not None
        return known[0](*known[1])

    with_default = made(contextvars.ContextVar("a", default=(1,)))
    assert (with_default.name, with_default.get()) == ("a", (1,))
    with pytest.raises(LookupError):
        made(contextvars.ContextVar("b")).get()


def test_a_context_variable_that_nobody_would_find_is_no_argument() -> None:
    with pytest.raises(TypeError):
        copy_of(contextvars.ContextVar("a"))


def test_a_weak_dictionary_keeps_what_lives() -> None:
    key = inspect.Parameter.empty
    assert copy_of(weakref.WeakKeyDictionary({key: 1}))[key] == 1
    assert copy_of(weakref.WeakValueDictionary({1: key}))[1] is key


def cached(function: Callable[[Any], int]) -> Any:
    """A class with a cached property."""

    class Thing:
        value = functools.cached_property(function)

    return Thing


def test_a_cached_property_is_made_again() -> None:
    asked: list[object] = []
    made = copy_of(cached(lambda self: len(asked)))
    thing = made()
    assert (thing.value, thing.value) == (0, 0)


def test_a_single_dispatch_keeps_what_was_registered() -> None:
    @functools.singledispatch
    def kind(value: object) -> str:
        """Says the kind."""
        return "object"

    kind.register(int, lambda value: "int")
    kind.register(type(None), lambda value: "None")
    kind.level = 3  # type: ignore[attr-defined]
    made = copy_of(kind)
    assert made is not kind
    assert [made(value) for value in ("", 1, None)] == ["object", "int", "None"]
    assert (made.__doc__, made.level, made.__name__) == ("Says the kind.", 3, "kind")
    made.register(str, lambda value: "str")
    assert (made(""), kind("")) == ("str", "object")


@pytest.mark.parametrize("made", [threading.Lock(), threading.RLock(), threading.local()])
def test_a_lock_is_made_anew_as_a_global_and_refused_as_a_value(made: object) -> None:
    assert reduce_known(made, is_global=False) is None
    with pytest.raises(TypeError):
        dumps(made)
    make, args = reduce_known(made, is_global=True)  # type: ignore[misc]
    assert type(make(*args)) is type(made)


def test_the_error_of_a_value_is_that_of_pickle() -> None:
    with pytest.raises((TypeError, CannotTravelError), match="generator"):
        dumps(number for number in range(3))
