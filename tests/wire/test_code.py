"""Functions as code: what is registered, what travels inline, what is pickled anew."""

from __future__ import annotations

import gc
import math
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import pytest

from hdphrs.errors import CannotTravelError
from hdphrs.wire.code import INLINE, INLINE_BYTES_MAX, CodeBook, CodeShelf


class Pair:
    """A process that makes tasks and one that runs them."""

    def __init__(self) -> None:
        self.registered: dict[bytes, bytes] = {}
        self.book = CodeBook(self.registered.__setitem__)
        self.shelf = CodeShelf(CodeBook(lambda digest, data: None))
        self.taught: set[bytes] = set()

    def send(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[bytes, Any]:
        """Encode, decode and call: (digest, value)."""
        digest, payload = self.book.encode("f", function, args, kwargs)
        if digest and digest not in self.taught:
            self.taught.add(digest)
            self.shelf.teach(digest, self.registered[digest])
        called, positional, keywords = self.shelf.decode("f", digest, payload)
        return digest, called(*positional, **keywords)


def main_function(source: str, name: str, **names: Any) -> tuple[FunctionType, dict[str, Any]]:
    """A function as a program's `__main__` would define it, and its globals."""
    module: dict[str, Any] = {"__name__": "__main__", **names}
    exec(source, module)
    return module[name], module


def test_a_module_function_is_registered_once() -> None:
    pair = Pair()
    first, second = pair.send(math.gcd, 6, 4), pair.send(math.gcd, 9, 6)
    assert (first[1], second[1]) == (2, 3)
    pair.send(example, 1)
    pair.send(example, 2)
    assert len(pair.registered) == 1


def example(number: int) -> int:
    return number + 1


def test_a_function_of_main_is_registered_once_and_carries_its_globals() -> None:
    pair = Pair()
    function, _ = main_function("def f(x): return x + N", "f", N=5)
    assert pair.send(function, 1) == pair.send(function, 1)
    assert pair.send(function, 2)[1] == 7
    assert len(pair.registered) == 1


def test_rebinding_a_global_that_a_function_refers_to_pickles_it_anew() -> None:
    pair = Pair()
    function, module = main_function("def g(x): return x + N\ndef f(x): return g(x)", "f", N=5)
    before = pair.send(function, 1)
    module["N"] = 6
    after = pair.send(function, 1)
    assert (before[1], after[1]) == (6, 7)
    exec("def g(x): return x * 100", module)
    assert pair.send(function, 2)[1] == 200


def test_lambdas_closures_methods_and_partials_travel_inline() -> None:
    pair = Pair()
    three = 3

    class Adder:
        def __init__(self, amount: int) -> None:
            self.amount = amount

        def add(self, number: int) -> int:
            return self.amount + number

        def __call__(self, number: int) -> int:
            return self.amount * number

    callables: list[Callable[[int], int]] = [
        lambda x: x + three,
        Adder(3).add,
        partial(int.__add__, 3),
        Adder(4),
        partial(example),
    ]
    assert [pair.send(function, 4) for function in callables] == [(INLINE, value) for value in (7, 7, 7, 16, 5)]
    assert not pair.registered


def test_a_closure_cell_that_changes_is_noticed() -> None:
    pair = Pair()
    step = 1

    def add(number: int) -> int:
        return number + step

    assert pair.send(add, 1)[1] == 2
    step = 10
    assert pair.send(add, 1)[1] == 11


def test_a_large_closure_is_registered_when_it_is_used_again() -> None:
    pair = Pair()
    table = bytes(INLINE_BYTES_MAX + 1)

    def look_up(index: int) -> int:
        return table[index]

    assert pair.send(look_up, 1) == (INLINE, 0)
    digest, value = pair.send(look_up, 2)
    assert digest != INLINE
    assert value == 0


def test_the_book_forgets_functions_that_are_gone() -> None:
    pair = Pair()
    for i in range(10):
        pair.send(lambda x, i=i: x + i, 1)
    gc.collect()
    assert not pair.book._pages


def test_keywords_reach_the_call() -> None:
    assert Pair().send(int, "ff", base=16)[1] == 255
    assert Pair().send(dict, (("a", 1),), b=2)[1] == {"a": 1, "b": 2}


def test_positional_arguments_that_look_like_keywords_stay_positional() -> None:
    def both(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return args, kwargs

    assert Pair().send(both, (1, 2), {})[1] == (((1, 2), {}), {})


def test_the_culprit_is_named_when_arguments_do_not_pickle() -> None:
    pair = Pair()
    with pytest.raises(CannotTravelError, match=r"argument 2 of task f \(a _thread.lock\) does not pickle"):
        pair.book.encode("f", example, (1, threading.Lock()), {})
    with pytest.raises(CannotTravelError, match="argument 'key' of task f"):
        pair.book.encode("f", example, (), {"key": threading.Lock()})
    lock = threading.Lock()
    with pytest.raises(CannotTravelError, match="the function of task f does not pickle"):
        pair.book.encode("f", lambda: lock.acquire(), (), {})


def test_a_task_that_does_not_unpickle_says_so() -> None:
    class Treacherous:
        def __reduce__(self) -> tuple[Any, ...]:
            return int, ("not a number",)

    with pytest.raises(CannotTravelError, match="task f does not unpickle here: ValueError"):
        Pair().send(example, Treacherous())


def test_a_function_unpickled_from_code_keeps_its_digest_when_it_spawns_itself() -> None:
    pair = Pair()
    function, _ = main_function("def f(n): return f", "f")
    digest, received = pair.send(function, 1)
    again, _ = pair.shelf._book.encode("f", received, (1,), {})
    assert again == digest


def test_code_raises_the_recursion_limit_and_completes_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    pair = Pair()
    limit = sys.getrecursionlimit()
    try:
        function, _ = main_function("def f(n): return n", "f")
        pair.send(function, 1)
        assert sys.getrecursionlimit() > 2 * limit
    finally:
        sys.setrecursionlimit(limit)
