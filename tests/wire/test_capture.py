"""What makes a function that travels by value pickle anew."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

from hdphrs.wire.capture import Watch, is_constant
from hdphrs.wire.code import CodeBook, CodeShelf
from hdphrs.wire.pickling import by_reference


def main_module(source: str) -> Any:
    """A program's `__main__`, seen through attributes."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(source, names)

    class Module:
        def __getattr__(self, name: str) -> Any:
            return names[name]

        def __setattr__(self, name: str, value: Any) -> None:
            names[name] = value

    return Module()


def travel(book: CodeBook, code: dict[bytes, bytes], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a fresh scheduler receives it."""
    digest, payload = book.encode("f", function, (), {})
    shelf = CodeShelf(CodeBook(lambda digest, data: None))
    if digest:
        shelf.teach(digest, code[digest])
    return shelf.decode("f", digest, payload)[0]


def define_helper(module: Any) -> None:
    module.helper = lambda: 2


def set_attribute(module: Any) -> None:
    module.f.scale = 2


def replace_defaults(module: Any) -> None:
    module.f.__defaults__ = (2,)


def change_keyword_default(module: Any) -> None:
    module.f.__kwdefaults__["x"] = 2


def replace_code(module: Any) -> None:
    module.f.__code__ = (lambda: 2).__code__


def set_class_attribute(module: Any) -> None:
    module.Model.scale = 2


METHOD = """
def helper(): return 1
class Model:
    def go(self): return helper()
def f(): return Model().go()
"""
PROPERTY = """
def helper(): return 1
class Model:
    @staticmethod
    def go(): return helper()
    @property
    def p(self): return self.go()
def f(): return Model().p
"""
CACHED = """
import functools
def helper(): return 1
@functools.lru_cache
def g(): return helper()
def f(): return g()
"""
WRAPPED = """
import functools
def decorate(g):
    @functools.wraps(g)
    def wrapper(): return wrapper.__wrapped__()
    return wrapper
def helper(): return 1
@decorate
def f(): return helper()
"""


@pytest.mark.parametrize(
    ("source", "change"),
    [
        ("def f():\n try: return helper()\n except NameError: return 1", define_helper),
        ("def f():\n return f.scale\nf.scale = 1", set_attribute),
        ("def f():\n return getattr(f, 'scale', 1)", set_attribute),
        ("def f(x=1): return x", replace_defaults),
        ("def f(*, x=1): return x", change_keyword_default),
        ("def f(): return 1", replace_code),
        ("class Model: scale = 1\ndef f(): return Model.scale", set_class_attribute),
        ("class Model: scale = 1\nclass Sub(Model): pass\ndef f(): return Sub.scale", set_class_attribute),
        ("class Model: scale = 1\nmodel = Model()\ndef f(): return model.scale", set_class_attribute),
        (METHOD, define_helper),
        (PROPERTY, define_helper),
        (CACHED, define_helper),
        (WRAPPED, define_helper),
    ],
)
def test_a_change_of_what_a_function_captures_is_noticed(source: str, change: Callable[[Any], None]) -> None:
    module = main_module(source)
    code: dict[bytes, bytes] = {}
    book = CodeBook(code.__setitem__)
    watch = Watch(module.f)
    assert travel(book, code, module.f)() == 1
    assert watch.holds()
    change(module)
    assert not watch.holds()
    assert travel(book, code, module.f)() == 2


def test_a_function_that_a_module_names_is_not_watched() -> None:
    assert not Watch(by_reference)._parts


def test_classes_that_cannot_change_are_not_watched() -> None:
    module = main_module("from time import sleep\ndef f(): return sleep")
    assert len(Watch(module.f)._parts) == 2, "the function, and what its names are bound to"


def test_a_name_bound_to_none_after_its_value_is_gone_is_a_change() -> None:
    module = main_module("class Thing: pass\nthing = Thing()\ndef f(): return thing")
    watch = Watch(module.f)
    assert watch.holds()
    module.thing = None
    assert not watch.holds()


@pytest.mark.parametrize("name", ["__main__", "__mp_main__", None, "no.such.module"])
def test_a_function_of_a_main_module_travels_by_value(name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)(name or "nameless")
    exec("def f(): return 1", vars(module))
    function: FunctionType = vars(module)["f"]
    function.__module__ = name  # type: ignore[assignment]
    if name and name.startswith("__"):
        monkeypatch.setitem(sys.modules, name, module)
    assert not by_reference(function)
    assert Watch(function)._parts
    code: dict[bytes, bytes] = {}
    received = travel(CodeBook(code.__setitem__), code, function)
    assert (received is function) == (name in ("__main__", "__mp_main__"))  # it comes back to where it is defined
    assert received() == 1


def test_constants_are_told_from_what_tasks_could_change() -> None:
    number, names = 1, ["a"]

    def of_number() -> int:
        return number

    def of_names() -> list[str]:
        return names

    def of_function() -> int:
        return of_number()

    for constant in (
        1,
        "a",
        (1, (2, None)),
        sys,
        len,
        functools.wraps,
        of_number,
        of_function,
        functools.partial(int, 1),
    ):
        assert is_constant(constant)
    for changeable in ([], {}, (1, []), of_names, functools.partial(dict.get, {}), object()):
        assert not is_constant(changeable)
