"""What a call means: equal for equal code and values wherever they are, another as soon as anything differs."""

from __future__ import annotations

import contextvars
import functools
import os
import struct
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hdphrs
from hdphrs.wire.code import CodeBook
from hdphrs.wire.meaning import key_of, meaning_of
from hdphrs.wire.pickling import dumps, loads

WHOLE = """
    import dataclasses, enum, functools, logging, math, re
    from pathlib import Path
    import helper
    from helper import g, K

    LOG = logging.getLogger("x")
    NAMES = {"a", "b", "c", ("d", 1), frozenset("xyz")}

    class Color(enum.Enum):
        RED = 1
        GREEN = 2

    @dataclasses.dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: float = 2.0
        z: list = dataclasses.field(default_factory=list)
        def area(self): return self.x * self.y
        @property
        def half(self): return self.x / 2
        @staticmethod
        def zero(): return Point(0)

    def f0(x): return helper.g(x) + helper.inner.Z
    def f1(x): return g(x) if x in NAMES else Color.RED
    def f2(x): return Point(x).area() + math.sin(x)
    def f3(x, *, k=LOG):
        k.info("x")
        return K(x).m(2)
    def f4(x):
        import json
        return json.dumps([y for y in x if y in {"p", "q", "r", "s"}])
    @functools.lru_cache
    def f5(x): return f5(x - 1) if x else Point(0)
    def f6(x): return re.sub("a", "b", x) + str(Path("/"))
    def closure(k):
        def inner(x): return x + k
        return inner
    ALL = [f0, f1, f2, f3, f4, f5, f6, closure(3), lambda x: x + 1, functools.partial(f2, 3), Point, K(3).m, len]
    """

HELPER = """
    import inner
    N = 3
    def g(x): return x + N + inner.Z
    class K:
        def __init__(self, a): self.a = a
        def m(self, x): return g(x) + self.a
    """

TELL = """
    import sys, hdphrs.wire.meaning as m, hdphrs.wire.pickling as p
    print(*[m.meaning_of(f).hex() for f in ALL])
    print(*[m.meaning_of(p.loads(p.dumps(f))).hex() for f in ALL])
    open(sys.argv[1], "wb").write(p.dumps(ALL))
    """

READ = """
    import sys, hdphrs.wire.meaning as m, hdphrs.wire.pickling as p
    print(*[m.meaning_of(f).hex() for f in p.loads(open(sys.argv[1], "rb").read())])
    """


def write(folder: Path, **files: str) -> None:
    """Modules that are older than any process that reads them."""
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.write_text(textwrap.dedent(text))
        os.utime(path, (1e9, 1e9))


def told(folder: Path, program: str, seed: int) -> list[str]:
    """What a program in this folder prints, line by line."""
    environment = os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    command = [sys.executable, f"{program}.py", "functions.pickle"]
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, timeout=300, check=True)
    return done.stdout.splitlines()


def test_meanings_are_the_same_in_every_process_and_after_every_journey(tmp_path: Path) -> None:
    write(tmp_path, helper=HELPER, inner="Z = 1", prog=textwrap.dedent(WHOLE) + textwrap.dedent(TELL), read=READ)
    here, copied = told(tmp_path, "prog", 0)
    assert here == copied
    assert len(set(here.split())) == 13
    assert told(tmp_path, "prog", 1) == [here, copied]
    assert told(tmp_path, "read", 2) == [here]


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("inner", "Z = 1", "Z = 2", [0, 1, 3, 11]),
        ("helper", "x + N", "N + x", [0, 1, 3, 11]),
        ("prog", "self.x * self.y", "self.y * self.x", [2, 5, 9, 10]),
        ("prog", "y: float = 2.0", "y: float = 3.0", [2, 5, 9, 10]),
        ("prog", "closure(3)", "closure(4)", [7]),
        ("prog", '("d", 1)', '("d", 2)', [1]),
        ("prog", "RED = 1", "RED = 3", [1]),
        ("prog", '"q"', '"Q"', [4]),
        ("prog", "import dataclasses", "# another line\n    import dataclasses", []),
    ],
)
def test_a_change_of_anything_changes_what_depends_on_it(
    tmp_path: Path, file: str, old: str, new: str, changed: list[int]
) -> None:
    files = {"helper": HELPER, "inner": "Z = 1", "prog": WHOLE + TELL}
    write(tmp_path, **files)
    before = told(tmp_path, "prog", 0)[0].split()
    assert old in files[file]
    write(tmp_path, **{file: files[file].replace(old, new)})
    after = told(tmp_path, "prog", 0)[0].split()
    assert [i for i in range(13) if before[i] != after[i]] == changed


def test_a_module_that_has_changed_since_the_start_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, helper_that_changes="def g(x): return x")
    monkeypatch.syspath_prepend(tmp_path)
    import helper_that_changes  # type: ignore[import-not-found]

    assert meaning_of(helper_that_changes.g)
    os.utime(tmp_path / "helper_that_changes.py")
    os.utime(tmp_path / "helper_that_changes.py", (4e9, 4e9))
    assert meaning_of(helper_that_changes.g) == b""
    sys.modules.pop("helper_that_changes")


def made(source: str, **names: Any) -> FunctionType:
    """The function `f` of a main module."""
    space: dict[str, Any] = {"__name__": "__main__", **names}
    exec(textwrap.dedent(source), space)
    function = space["f"]
    assert isinstance(function, FunctionType)
    return function


@pytest.mark.parametrize("value", [threading.Lock(), (x for x in "generator"), open, sys.stdout.buffer])
def test_what_cannot_be_told_has_no_meaning_or_that_of_its_name(value: object) -> None:
    assert (meaning_of(made("def f(): return value", value=value)) != b"") == (value is open)


def test_well_known_things_mean_what_they_are_made_of() -> None:
    source = "def f(): return value"
    meanings = [meaning_of(made(source, value=struct.Struct(text))) for text in (">I", ">I", ">H")]
    assert meanings[0] == meanings[1] != meanings[2]
    assert b"" not in meanings

    def dispatch(result: int) -> Any:
        kind = functools.singledispatch(made("def f(x): return 0"))
        kind.register(int, made("def f(x): return result", result=result))
        return kind

    meanings = [meaning_of(made(source, value=dispatch(result))) for result in (1, 1, 2)]
    assert meanings[0] == meanings[1] != meanings[2]
    assert b"" not in meanings
    properties = [functools.cached_property(made("def f(self): return level", level=level)) for level in (1, 1, 2)]
    meanings = [meaning_of(made(source, value=value)) for value in properties]
    assert meanings[0] == meanings[1] != meanings[2]
    assert b"" not in meanings
    assert meaning_of(made(source, value=contextvars.ContextVar("value", default=1))) == b""


@pytest.mark.parametrize("text", ["def f(): raise SystemExit", "class f: pass"])
def test_an_object_whose_pickling_raises_has_no_meaning(text: str) -> None:
    class Nasty:
        def __reduce_ex__(self, protocol: object) -> Any:
            raise SystemExit(text)

    assert meaning_of(made("def f(): return value", value=Nasty())) == b""


def key(function: Callable[..., Any], *args: Any, chance: bytes = b"", **kwargs: Any) -> bytes:
    """The key of a call, as a process that makes tasks computes it."""
    book = CodeBook(lambda digest, data: None)
    book.chance = chance
    code, payload = book.encode("f", function, args, kwargs)
    return book.key(function, code, payload, args, kwargs, b"path")


def one(x: Any) -> Any:
    return x


def test_the_key_of_a_call_depends_on_all_its_parts() -> None:
    calls = [
        key(one, 1),
        key(one, 2),
        key(one, x=1),
        key(one, 1.0),
        key(one, [1]),
        key(one, one),
        key(one, made("f = lambda x: x")),
    ]
    assert len({*calls, b""}) == 8
    assert key(one, threading.get_ident) != b""
    assert key(one, made("def f(): return lock", lock=len)) != key(one, made("def f(): return lock", lock=max))


@settings(deadline=None)
@given(st.sets(st.text(max_size=5)), st.sets(st.integers()))
def test_sets_have_no_order(texts: set[str], numbers: set[int]) -> None:
    again = set(sorted(texts, reverse=True))  # noqa: C414 - made in another order
    assert key(one, texts, numbers) == key(one, again, set(numbers))
    assert key(one, loads(dumps([texts]))) == key(one, [texts])


@pytest.mark.parametrize("function", [one, made("f = lambda x: x"), made("def f(x): return rng(x)", rng=hdphrs.rng)])
@pytest.mark.parametrize("size", [1, 1000, 1 << 20])
def test_the_key_of_a_call_may_be_asked_for_later(function: Callable[..., Any], size: int) -> None:
    book = CodeBook(lambda digest, data: None)
    book.chance = b"chance"
    args = (7, "x" * size)
    code, payload = book.encode("f", function, args, {})
    assert book.known(function) is None, "its meaning has not been asked for"
    now = book.key(function, code, payload, args, {}, b"path")
    known = book.known(function)
    assert known is not None
    book.chance = b"another"
    assert known.key(args, b"path") == now != b""


def test_a_function_that_has_changed_is_not_recalled() -> None:
    book = CodeBook(lambda digest, data: None)
    function = made("def f(x): return x + Y", Y=1)
    assert book.known(function) is None
    code, payload = book.encode("f", function, (1,), {})
    book.key(function, code, payload, (1,), {}, b"path")
    assert book.known(function) is not None
    function.__globals__["Y"] = 2
    assert book.known(function) is None


def test_a_key_without_a_meaning_is_none() -> None:
    assert key(made("def f(x): return value", value=sys.modules["__main__"]), 1) == b""
    assert key_of(b"m", (threading.Lock(),), {}, b"\x93") == b""


def test_the_key_of_a_call_that_draws_random_numbers_depends_on_chance() -> None:
    one_, two = b"1" * 18, b"2" * 18

    def differs(function: Callable[..., Any], *args: Any) -> bool:
        return key(function, *args, chance=one_) != key(function, *args, chance=two)

    drawing: list[Callable[..., Any]] = [
        made("from hdphrs import rng\ndef f(): return rng()"),
        made("import hdphrs\ndef f(): return hdphrs.seed(64)"),
        made("import hdphrs\ndef g(): return hdphrs.rng()\ndef f(): return g()"),
        made("import hdphrs\nclass C:\n    def draw(self): return hdphrs.rng()\ndef f(): return C().draw()"),
        made("import hdphrs\ng = {1: [hdphrs.rng]}\ndef f(): return g[1]"),
        made("def f():\n    from hdphrs import rng\n    return rng()"),
        partial(made("f = lambda g: g()"), made("import hdphrs\ndef f(): return hdphrs.rng()")),
    ]
    assert [differs(function) for function in drawing] == [True] * len(drawing)
    assert differs(one, drawing[0])
    assert not differs(one, 1)
    assert not differs(made("import hdphrs\ndef f(): return hdphrs.get(hdphrs.spawn(abs, -1))"))
