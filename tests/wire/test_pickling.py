"""Classes and caches of `__main__` on their way."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from hdphrs.wire.code import CodeBook, CodeShelf
from hdphrs.wire.pickling import dumps, is_received, loads

REGISTRY: list[str] = []


class Base:
    def __init_subclass__(cls) -> None:
        REGISTRY.append(cls.__name__)


def test_a_result_leaves_the_classes_of_the_program_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    main: Any = type(sys)("__main__")
    exec("class Cfg:\n level = 1\n def show(self): return GG\nGG = 1", vars(main))
    monkeypatch.setitem(sys.modules, "__main__", main)
    data = dumps(main.Cfg())
    method = main.Cfg.show
    main.Cfg.level, main.GG = 2, 5
    received = loads(data)
    assert type(received) is main.Cfg
    assert main.Cfg.level == 2
    assert main.Cfg.show is method
    assert received.show() == 5
    assert not is_received(main.Cfg)


def test_a_result_leaves_the_local_classes_of_the_program_alone() -> None:
    class Local(Base):
        level = 1

    REGISTRY.clear()
    data = dumps(Local())
    Local.level = 2
    assert type(loads(data)) is Local
    assert Local.level == 2
    assert not REGISTRY, "no class was made on the way"


def test_a_class_of_another_process_follows_its_changes_there() -> None:
    source = """
import enum, sys
from hdphrs.wire.pickling import dumps
class Cfg: level = 1
class Color(enum.Enum): RED = 1
old = dumps(Cfg())
Cfg.level = 2
sys.stdout.write(repr((old, dumps(Cfg()), dumps(Color.RED))))
"""
    old, new, color = eval(subprocess.check_output([sys.executable, "-c", source], text=True))
    first = loads(old)
    assert is_received(type(first))
    assert first.level == 1
    second = loads(new)
    assert type(second) is type(first)
    assert first.level == second.level == 2
    assert loads(color) is loads(color)


def test_a_large_pickle_with_a_class_is_guarded_too() -> None:
    class Local:
        level = 1

    data = dumps([bytes(100_000), Local()])
    Local.level = 2
    assert loads(data)[1].level == 2


def defined(source: str, name: str) -> Any:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(source, names)
    return names[name]


FIB = """
import functools
@functools.lru_cache(maxsize=99, typed=True)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def f(n): return fib(n)
def g(n): return fib.__wrapped__(n)
fib.origin = fib
plain = fib.__wrapped__
"""


@pytest.mark.parametrize("name", ["fib", "f", "g", "plain"])
def test_a_recursive_cached_function_of_main_travels(name: str) -> None:
    code: dict[bytes, bytes] = {}
    book = CodeBook(code.__setitem__)
    shelf = CodeShelf(CodeBook(lambda digest, data: None))
    function = defined(FIB, name)
    digest, payload = book.encode(name, function, (60,), {})
    if digest:
        shelf.teach(digest, code[digest])
    received: Any
    received, args, _ = shelf.decode(name, digest, payload)
    assert received is not function
    assert received(*args) == 1548008755920
    assert received.__qualname__ == function.__qualname__
    assert bool(digest) == (name != "plain"), "what its module names is registered"
    if name == "fib":
        assert received.cache_parameters() == {"maxsize": 99, "typed": True}
        assert received.__wrapped__.__globals__["fib"] is received.origin is received
        assert received.__wrapped__.__name__ == "fib"


def test_cached_methods_and_closures_travel() -> None:
    three = 3

    @functools.cache
    def times(number: int) -> int:
        return number * three if number < 5 else times(number - 1)

    model = defined(
        "import functools\nclass Model:\n @functools.cache\n def go(self): return 7\n"
        " @staticmethod\n @functools.cache\n def fix(): return 8",
        "Model",
    )
    received: Callable[[int], int] = loads(dumps(times))
    assert received is not times
    assert received(6) == 12
    copy = loads(dumps(model()))
    assert (copy.go(), copy.fix()) == (7, 8)


def test_a_cached_function_of_a_module_travels_by_name() -> None:
    assert loads(dumps(cached)) is cached


@functools.cache
def cached() -> int:
    return 1
