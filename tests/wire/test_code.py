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

from hdphrs.api.future import Keywords, unfold
from hdphrs.errors import CannotTravelError
from hdphrs.protocol.tasks import Task
from hdphrs.skeletons import strategy
from hdphrs.skeletons.divide_and_conquer import Plan
from hdphrs.skeletons.map import map_slice
from hdphrs.wire import code, values
from hdphrs.wire.code import INLINE, INLINE_BYTES_MAX, SHELVED_INLINE_BYTES_MAX, VERSIONS_MAX, CodeBook, CodeShelf
from hdphrs.wire.items import pack_task


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
        digest = bytes(digest)  # as it travels
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


def example(number: Any) -> Any:
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


class Called:
    def __call__(self) -> str:
        return "called"


@pytest.mark.parametrize("function", [lambda: "called", Called()])
def test_what_travels_inline_brings_along_where_modules_are(
    monkeypatch: pytest.MonkeyPatch, function: Callable[[], str]
) -> None:
    """A program may have extended its path, and then made a lambda that refers to a module from there."""
    pair, path = Pair(), sys.path
    monkeypatch.setattr(sys, "path", [*path, "/somewhere/else"])
    digest, payload = pair.book.encode("f", function, (), {})
    assert digest == INLINE
    monkeypatch.setattr(sys, "path", [*path])
    called, _, _ = pair.shelf.decode("f", INLINE, payload)
    assert called() == "called"
    assert sys.path == [*path, "/somewhere/else"]


def test_a_closure_cell_that_changes_is_noticed() -> None:
    pair = Pair()
    step = 1

    def add(number: int) -> int:
        return number + step

    assert pair.send(add, 1)[1] == 2
    step = 10
    assert pair.send(add, 1)[1] == 11


def test_a_large_closure_is_registered_when_it_is_first_used() -> None:
    pair = Pair()
    table = bytes(INLINE_BYTES_MAX + 1)

    def look_up(index: int) -> int:
        return table[index]

    digest, value = pair.send(look_up, 1)
    assert digest != INLINE
    assert value == 0
    assert pair.send(look_up, 2) == (digest, 0)
    assert len(pair.registered) == 1


class Model:
    """Something large with a method."""

    def __init__(self) -> None:
        self.weights = bytearray(INLINE_BYTES_MAX + 1)

    def look_up(self, index: int) -> int:
        return self.weights[index]


def test_code_is_released_when_its_function_is_gone_and_no_task_waits_to_be_sent() -> None:
    pair = Pair()
    table = bytes(INLINE_BYTES_MAX + 1)
    function: Any = lambda index: table[index]  # noqa: E731
    digest, payload = pair.book.encode("f", function, (1,), {})
    assert pair.book.released() == []
    del function
    assert pair.book.released() == []  # the task has it
    packed = pack_task(Task("f", b"", digest, payload))
    del digest
    assert pair.book.released() == []  # as packed as it may be
    released = bytes(packed[2])  # type: ignore[call-overload]
    del packed
    assert pair.book.released() == [released]
    assert pair.book.released() == []


def test_code_that_is_needed_again_is_registered_again() -> None:
    pair = Pair()
    table = bytes(INLINE_BYTES_MAX + 1)
    registered = []
    for _ in range(3):
        digest, _ = pair.book.encode("f", lambda index: table[index], (1,), {})
        registered.append(pair.registered.pop(digest))
        del digest
    assert len({bytes(data) for data in registered}) == 1
    assert len(pair.book.released()) == 3


def test_a_partial_of_a_closure_is_code_as_the_closure_is() -> None:
    pair = Pair()
    table = bytes(INLINE_BYTES_MAX + 1)
    mapped = partial(map_slice, lambda index: table[index])
    digest, value = pair.send(mapped, [1, 2])
    assert digest != INLINE
    assert value == [0, 0]


def test_a_partial_of_what_can_change_is_pickled_each_time() -> None:
    pair = Pair()
    for held in (partial(bytearray.__getitem__, bytearray(INLINE_BYTES_MAX + 1)), Model().look_up):
        assert pair.send(held, 1) == (INLINE, 0)
        assert pair.send(held, 2) == (INLINE, 0)


def test_the_pages_of_large_functions_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "PAGES_BYTES_MAX", 4 * INLINE_BYTES_MAX)
    pair = Pair()
    tables = [bytes([i]) * (INLINE_BYTES_MAX + 1) for i in range(10)]
    functions = [lambda index, table=table: table[index] for table in tables]
    for i, function in enumerate(functions):
        assert pair.send(function, 1)[1] == i
    assert len(pair.book._pages) == 3
    assert len(pair.book.released()) == 7
    assert [pair.send(function, 1)[1] for function in functions] == list(range(10))


def test_what_was_taught_is_released_when_it_is_forgotten_and_its_function_is_gone() -> None:
    pair = Pair()
    table = bytes(INLINE_BYTES_MAX + 1)
    digest, _ = pair.book.encode("f", lambda index: table[index], (1,), {})
    book = CodeBook(lambda digest, data: None)
    shelf = CodeShelf(book)
    shelf.teach(digest, pair.registered[digest])
    function = shelf.function("f", digest)
    shelf.forget(digest)
    assert book.released() == []
    assert book.code_of("f", function)[0] == digest  # as long as it is here it need not be registered
    shelf.teach(digest, pair.registered[digest])
    assert shelf.function("f", digest) is not function
    shelf.forget(digest)
    assert book.released() == [digest]  # of two
    del function
    assert book.released() == [digest]


def test_a_large_array_that_a_function_captures_is_mapped_and_not_copied() -> None:
    numpy = pytest.importorskip("numpy")
    pair = Pair()
    table = numpy.arange(INLINE_BYTES_MAX)
    digest, value = pair.send(lambda: table, *())
    assert digest != INLINE
    assert (value == table).all()
    assert value.base is not None
    value[0] = 7  # nobody else sees that
    assert pair.send(lambda: table)[1][0] == 0


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


def test_a_partial_called_with_keywords_keeps_its_positional_arguments() -> None:
    function, kwargs = unfold(Keywords(partial(divmod, 7), x=2))
    assert kwargs == {"x": 2}
    assert function(2) == (3, 1)
    function, kwargs = unfold(Keywords(partial(int, base=16), x=2))
    assert (function, kwargs) == (int, {"base": 16, "x": 2})


def test_a_recursive_closure_that_is_gone_is_forgotten() -> None:
    def outer(base: int) -> Callable[[int], int]:
        def even(n: int) -> int:
            return base if n == 0 else odd(n - 1)

        def odd(n: int) -> int:
            return even(n - 1)

        return even

    pair = Pair()
    for i in range(10):
        assert pair.send(outer(i), 2)[1] == i
    gc.collect()
    assert not pair.book._pages


def test_a_function_of_a_namespace_that_is_gone_is_forgotten() -> None:
    pair = Pair()
    pair.send(main_function("class C: pass\ndef f(n): return n and f(n - 1) or C.__name__", "f")[0], 3)
    gc.collect()
    assert not pair.book._pages


def test_the_book_is_bounded_however_many_functions_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "PAGES_MAX", 3)
    pair = Pair()
    functions = [lambda x, i=i: x + i for i in range(10)]
    assert [pair.send(function, 1)[1] for function in functions] == list(range(1, 11))
    assert len(pair.book._pages) == 3


def test_a_function_that_changes_at_every_step_travels_inline_after_a_while() -> None:
    pair = Pair()
    function, module = main_function("def f(): return STEP", "f")
    for step in range(3 * VERSIONS_MAX):
        module["STEP"] = step
        digest, value = pair.send(function)
        assert value == step
        assert (digest == INLINE) == (step >= VERSIONS_MAX)
    assert len(pair.registered) == VERSIONS_MAX


def test_a_large_inline_function_is_not_kept() -> None:
    pair = Pair()
    table = bytes(SHELVED_INLINE_BYTES_MAX)
    assert pair.send(lambda: len(table))[1] == len(table)
    assert not pair.shelf._inline


def test_a_plain_inline_function_is_unpickled_once() -> None:
    pair = Pair()

    def twice(number: int) -> int:
        return 2 * number

    def call(number: int) -> int:
        return twice(number) + math.gcd(4, 6)

    pair.send(call, 1)
    pair.send(call, 1)
    assert len(pair.shelf._inline) == 1


def test_tasks_of_one_inline_callable_do_not_share_what_they_change() -> None:
    class Account:
        total = 0

        def add(self, amount: int) -> int:
            self.total += amount
            return self.total

    seen: list[int] = []
    count = 0

    def remember(number: int, extra: list[int] = []) -> int:  # noqa: B006 - the point of the test
        seen.append(number)
        extra.append(number)
        return len(seen) + len(extra)

    def step(number: int) -> int:
        nonlocal count
        count += number
        return count

    pair = Pair()
    take = partial(dict.pop, {"x": 1})
    for _ in range(3):
        assert pair.send(take, "x")[1] == 1
        assert pair.send(Account().add, 1)[1] == 1
        assert pair.send(remember, 1)[1] == 2
        assert pair.send(step, 1)[1] == 1


def test_a_partial_of_a_dict_that_has_changed_travels_as_it_is_now() -> None:
    pair = Pair()
    settings = {"x": 1}
    look_up = partial(dict.get, settings)
    assert pair.send(look_up, "x")[1] == 1
    settings["x"] = 2
    assert pair.send(look_up, "x")[1] == 2


def test_code_that_does_not_unpickle_says_the_same_at_every_attempt() -> None:
    pair = Pair()
    function, _ = main_function("def f(): return B", "f", B=Boom())
    digest, payload = pair.book.encode("f", function, (), {})
    pair.shelf.teach(digest, pair.registered[digest])
    for _ in range(3):
        with pytest.raises(CannotTravelError, match="needs a GPU here"):
            pair.shelf.decode("f", digest, payload)


class Boom:
    def __reduce__(self) -> tuple[Any, ...]:
        return explode, ()


def explode() -> None:
    raise RuntimeError("needs a GPU here")


class Exits:
    def __reduce__(self) -> tuple[Any, ...]:
        sys.exit("no")


class Interrupted:
    def __reduce__(self) -> tuple[Any, ...]:
        raise KeyboardInterrupt


def test_pickling_code_that_exits_is_an_error_and_ctrl_c_goes_through() -> None:
    pair = Pair()
    with pytest.raises(CannotTravelError, match=r"argument 2 of task f \(.*Exits\) does not pickle: SystemExit: no"):
        pair.book.encode("f", example, (1, Exits()), {})
    with pytest.raises(CannotTravelError, match="the function of task f does not pickle: SystemExit"):
        pair.book.encode("f", partial(example, Exits()), (), {})
    with pytest.raises(KeyboardInterrupt):
        pair.book.encode("f", example, (Interrupted(),), {})
    with pytest.raises(KeyboardInterrupt):
        pair.book.encode("f", partial(example, Interrupted()), (), {})


def test_unpickling_code_that_exits_is_an_error() -> None:
    class Leaves:
        def __reduce__(self) -> tuple[Any, ...]:
            return sys.exit, ("gone",)

    with pytest.raises(CannotTravelError, match="task f does not unpickle here: SystemExit: gone"):
        Pair().send(example, Leaves())


def test_what_does_not_fit_into_a_frame_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "PAYLOAD_BYTES_MAX", 100_000)
    pair = Pair()
    with pytest.raises(
        CannotTravelError, match=r"the arguments of task f are 120\.0 kB pickled; the limit is 100\.0 kB"
    ):
        pair.book.encode("f", example, (bytes(120_000),), {})
    big = bytes(120_000)
    with pytest.raises(CannotTravelError, match="the function of task f, with what it captures, is 120"):
        pair.book.encode("f", lambda: big, (), {})
    function, _ = main_function("def f(): return B", "f", B=big)
    with pytest.raises(CannotTravelError, match="the function of task f"):
        pair.book.encode("f", function, (), {})
    half = bytes(60_000)
    with pytest.raises(CannotTravelError, match=r"the function and the arguments of task f are 12\d\.\d kB"):
        pair.book.encode("f", lambda x: half, (half,), {})
    assert len(pair.registered) == 1, "only the example"


def test_an_interrupted_registration_is_made_again() -> None:
    registered: list[bytes] = []

    def register(digest: bytes, data: bytes) -> None:
        registered.append(digest)
        if len(registered) == 1:
            raise KeyboardInterrupt

    book = CodeBook(register)
    with pytest.raises(KeyboardInterrupt):
        book.encode("f", example, (1,), {})
    book.encode("f", example, (1,), {})
    book.encode("f", example, (1,), {})
    assert len(registered) == 2


def test_no_thread_uses_a_digest_before_its_code_has_left() -> None:
    begun, returned = threading.Event(), threading.Event()
    overtaken: list[bool] = []
    second: list[threading.Thread] = []

    class Signal:
        def __reduce__(self) -> tuple[Any, ...]:
            if second:
                begun.set()
            return int, ()

    def encode() -> None:
        book.encode("f", function, (), {})
        returned.set()
        begun.set()

    def register(digest: bytes, data: bytes) -> None:
        if not second:
            second.append(threading.Thread(target=encode))
            second[0].start()
            assert begun.wait(10)
            overtaken.append(returned.is_set())

    function, _ = main_function("def f(): return S", "f", S=Signal())
    book = CodeBook(register)
    book.encode("f", function, (), {})
    second[0].join(10)
    assert returned.is_set()
    assert overtaken == [False]


def test_pickling_in_one_thread_does_not_hold_up_another() -> None:
    registered: dict[bytes, bytes] = {}
    book = CodeBook(registered.__setitem__)

    class Slow:
        def __reduce__(self) -> tuple[Any, ...]:
            other = threading.Thread(target=book.encode, args=("g", example, (1,), {}), daemon=True)
            other.start()
            other.join(10)
            assert not other.is_alive()
            return int, ()

    function, _ = main_function("def f(): return S", "f", S=Slow())
    book.encode("f", function, (), {})
    assert len(registered) == 2


def is_small(size: Any) -> bool:
    return bool(size < 2)


def smaller(size: Any) -> list[Any]:
    return [size - 1] * 2


def largest(size: Any, found: list[Any]) -> Any:
    return max(found)


def test_a_skeletons_task_travels_as_the_same_bytes_however_often() -> None:
    """A piece knows a call by its bytes, and pickled anew after unpickling it would be others."""
    main, _ = main_function("def solve(size: int, other: int = 1) -> int:\n    return size", "solve")
    task: Any = Plan(strategy.lazy, is_small, smaller, largest, partial(main, other=2)).task
    first = CodeBook(lambda digest, data: None).encode("conquer", task, (3,), {})
    for _ in range(3):
        book = CodeBook(lambda digest, data: None)
        task, args, _ = CodeShelf(book).decode("conquer", *first)
        assert book.encode("conquer", task, args, {}) == first


def test_what_a_skeletons_task_captures_is_watched() -> None:
    main, names = main_function("def solve(size):\n    return factor * size", "solve", factor=2)
    task: Any = Plan(strategy.lazy, is_small, smaller, largest, main).task
    book = CodeBook(lambda digest, data: None)
    before = book.encode("conquer", task, (3,), {})
    assert book.encode("conquer", task, (3,), {}) == before
    names["factor"] = 3
    assert book.encode("conquer", task, (3,), {}) != before
