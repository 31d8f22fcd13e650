"""Exceptions that plain pickle does not bring back, and what they have beside their arguments."""

from __future__ import annotations

import asyncio
import copyreg
import dataclasses
import functools
import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hdphrs.errors import CannotTravelError, RemoteTraceback, TaskError
from hdphrs.wire.pickling import dumps, loads
from hdphrs.wire.values import PAYLOAD_BYTES_MAX, dump_error, dump_result, load_outcome

Way = Callable[[Any], Any]


def as_raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        succeeded, received = load_outcome(dump_error("f", caught))
    assert not succeeded
    assert isinstance(received, BaseException)
    return received


def as_value(error: BaseException) -> BaseException:
    succeeded, received = load_outcome(dump_result("f", [error, error]))
    assert succeeded, received
    first, second = received
    assert first is second
    assert isinstance(first, BaseException)
    return first


WAYS = pytest.mark.parametrize("way", [as_raised, as_value])


class OtherArityError(Exception):
    def __init__(self, code: int, where: str) -> None:
        super().__init__(f"{code} at {where}")
        self.code = code
        self.where = where


class KeywordOnlyError(Exception):
    def __init__(self, *, code: int) -> None:
        super().__init__()
        self.code = code


class SilentError(Exception):
    """Passes nothing on; so `__new__` has set `args`."""

    def __init__(self, code: int, *, deep: bool = False) -> None:
        self.code = code
        self.deep = deep


class SlotsError(Exception):
    __slots__ = ("__hidden", "code", "unset")

    def __init__(self, code: int, *, hidden: int) -> None:
        super().__init__("slots")
        self.code = code
        self.__hidden = hidden

    @property
    def hidden(self) -> int:
        return self.__hidden


class StrictNewError(Exception):
    def __new__(cls, code: int, *, wanted: str) -> StrictNewError:
        made = super().__new__(cls, code)
        made.wanted = wanted
        return made

    def __init__(self, code: int, *, wanted: str) -> None:
        super().__init__(code)

    wanted: str


class LookupKeyError(KeyError):
    def __init__(self, key: str, table: str) -> None:
        super().__init__(key)
        self.table = table

    def __str__(self) -> str:
        return f"no {self.args[0]} in {self.table}"


class FileTroubleError(OSError):
    def __init__(self, path: str, *, retries: int) -> None:
        super().__init__(2, "No such file or directory", path, None, path + ".bak")
        self.retries = retries


class ExitWithError(SystemExit):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code)
        self.reason = reason


class ParseTroubleError(SyntaxError):
    def __init__(self, line: int) -> None:
        super().__init__("bad", ("file.py", line, 3, "x = ="))


class ModuleTroubleError(ImportError):
    def __init__(self, name: str, *, hint: str) -> None:
        super().__init__(f"no {name}", name=name, path="/somewhere")
        self.hint = hint


class StopWithError(StopIteration):
    def __init__(self, *, value: int) -> None:
        super().__init__(value)


class MultipleInheritanceError(OtherArityError, ValueError):
    pass


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlotsError(Exception):
    code: int
    names: tuple[str, ...] = ()


@dataclasses.dataclass
class DataError(Exception):
    code: int
    names: list[str] = dataclasses.field(default_factory=list)


class RefusingError(Exception):
    def __init__(self, code: int, name: str) -> None:
        super().__init__(code, name)
        object.__setattr__(self, "name", name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot assign {name}")


MADE: list[tuple[BaseException, dict[str, Any]]] = [
    (OtherArityError(3, "x"), {"code": 3, "where": "x"}),
    (KeywordOnlyError(code=4), {"code": 4}),
    (SilentError(5, deep=True), {"code": 5, "deep": True}),
    (SlotsError(6, hidden=7), {"code": 6, "hidden": 7}),
    (StrictNewError(8, wanted="w"), {"wanted": "w"}),
    (LookupKeyError("k", "t"), {"table": "t"}),
    (FileTroubleError("/p", retries=3), {"retries": 3, "errno": 2, "filename": "/p", "filename2": "/p.bak"}),
    (ExitWithError(9, "because"), {"code": 9, "reason": "because"}),
    (ParseTroubleError(12), {"lineno": 12, "filename": "file.py", "offset": 3, "text": "x = ="}),
    (ModuleTroubleError("m", hint="h"), {"name": "m", "path": "/somewhere", "hint": "h"}),
    (StopWithError(value=10), {"value": 10}),
    (MultipleInheritanceError(1, "y"), {"code": 1, "where": "y"}),
    (FrozenSlotsError(11, ("a",)), {"code": 11, "names": ("a",)}),
    (DataError(12, ["b"]), {"code": 12, "names": ["b"]}),
    (RefusingError(13, "n"), {"name": "n"}),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), {"object": b"\xff", "start": 0, "end": 1, "reason": "bad"}),
    (json.JSONDecodeError("m", "doc", 1), {"msg": "m", "doc": "doc", "pos": 1, "lineno": 1, "colno": 2}),
    (subprocess.CalledProcessError(3, ["cmd"], b"out", "err"), {"returncode": 3, "cmd": ["cmd"], "stderr": "err"}),
    (subprocess.TimeoutExpired("cmd", 1.5, output=b"o"), {"cmd": "cmd", "timeout": 1.5, "output": b"o"}),
    (FileNotFoundError(2, "No such file", "/f"), {"errno": 2, "filename": "/f", "strerror": "No such file"}),
    (OSError(5, "Input/output error"), {"filename": None}),
    (BlockingIOError(11, "again", 7), {"characters_written": 7}),
    (asyncio.IncompleteReadError(b"ab", 4), {"partial": b"ab", "expected": 4}),
    (NameError("no x", name="x"), {"name": "x"}),
    (AttributeError("no y", name="y", obj=threading.Lock()), {"name": "y", "obj": None}),
]


@WAYS
@pytest.mark.parametrize(("error", "attributes"), MADE, ids=[type(error).__name__ for error, _ in MADE])
def test_an_exception_arrives_as_itself(way: Way, error: BaseException, attributes: dict[str, Any]) -> None:
    vars(error)["__notes__"] = ["a note"]
    received = way(error)
    assert type(received) is type(error)
    assert received.args == error.args
    assert str(received) == str(error)
    assert {name: getattr(received, name) for name in attributes} == attributes
    assert received.__notes__ == ["a note"]
    again = way(received)
    assert {name: getattr(again, name) for name in attributes} == attributes
    assert again.__notes__ == ["a note"]


@WAYS
def test_installed_libraries_exceptions_arrive_with_what_they_hold(way: Way) -> None:
    requests = pytest.importorskip("requests")
    response = requests.Response()
    response.status_code = 404
    response._content = b"gone"
    received = way(requests.HTTPError("404", response=response, request=requests.Request("GET", "http://x")))
    assert type(received) is requests.HTTPError
    assert (received.response.status_code, received.response.content, received.request.url) == (
        404,
        b"gone",
        "http://x",
    )
    received = way(requests.exceptions.JSONDecodeError("m", "doc", 1))
    assert (type(received), received.doc, received.pos) == (requests.exceptions.JSONDecodeError, "doc", 1)


@WAYS
def test_aws_client_errors_arrive(way: Way) -> None:
    exceptions = pytest.importorskip("botocore.exceptions")
    response = {"Error": {"Code": "NoSuchKey", "Message": "gone"}}
    received = way(exceptions.ClientError(response, "GetObject"))
    assert (type(received), received.response, received.operation_name) == (
        exceptions.ClientError,
        response,
        "GetObject",
    )
    received = way(exceptions.EndpointConnectionError(endpoint_url="http://x", error="e"))
    assert (type(received), received.kwargs["endpoint_url"]) == (exceptions.EndpointConnectionError, "http://x")


@WAYS
def test_command_line_errors_arrive(way: Way) -> None:
    click = pytest.importorskip("click")
    received = way(click.BadParameter("no", param_hint="--x"))
    assert (type(received), received.format_message()) == (click.BadParameter, "Invalid value for --x: no")
    received = way(click.exceptions.NoSuchOption("--y"))
    assert (type(received), received.option_name) == (click.exceptions.NoSuchOption, "--y")


class HonouredError(Exception):
    made = 0

    def __init__(self, code: int, lock: object) -> None:
        super().__init__("honoured")
        HonouredError.made += 1
        self.code = code
        self.lock = lock

    def __reduce__(self) -> Any:
        return _make_honoured, (self.code,)


def _make_honoured(code: int) -> HonouredError:
    return HonouredError(code, "another lock")


@WAYS
def test_a_reduce_that_works_both_ways_is_believed(way: Way) -> None:
    error = HonouredError(3, threading.Lock())
    error.add_note("noted")
    received = way(error)
    assert (received.code, received.lock, received.__notes__) == (3, "another lock", ["noted"])


class WrongReduceError(Exception):
    def __init__(self, code: int, *, name: str) -> None:
        super().__init__("wrong")
        self.code = code
        self.name = name

    def __reduce__(self) -> Any:
        return type(self), (self.code,)  # the keyword is missing


class OtherReduceError(WrongReduceError):
    def __reduce__(self) -> Any:
        return functools.partial(type(self), name=self.name, code=1), (self.code,)


class NoExceptionError(WrongReduceError):
    def __reduce__(self) -> Any:
        return dict, ()


class RaisesReduceError(WrongReduceError):
    def __reduce__(self) -> Any:
        raise RuntimeError("no")


class ReduceExError(WrongReduceError):
    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), ()


class RegisteredError(WrongReduceError):
    pass


@WAYS
@pytest.mark.parametrize(
    "kind",
    [WrongReduceError, OtherReduceError, NoExceptionError, RaisesReduceError, ReduceExError, RegisteredError],
)
def test_a_reduce_that_dumps_and_does_not_load_is_not_believed(
    way: Way, kind: type[WrongReduceError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(copyreg.dispatch_table, RegisteredError, lambda error: (RegisteredError, ()))
    received = way(kind(3, name="n"))
    assert (type(received), received.code, received.name, received.args) == (kind, 3, "n", ("wrong",))


class RestoringError(Exception):
    def __init__(self, *, code: int) -> None:
        self.code = code
        self.lock: Any = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"code": self.code}

    def __setstate__(self, state: dict[str, Any] | None) -> None:
        vars(self).update(state or {}, lock="a new lock")


class SetOnlyError(Exception):
    def __init__(self, *, code: int) -> None:
        self.code = code

    def __setstate__(self, state: dict[str, Any] | None) -> None:
        vars(self).update(state or {}, lock="a new lock")


@WAYS
@pytest.mark.parametrize("kind", [RestoringError, SetOnlyError])
def test_the_state_that_a_class_gets_and_sets_itself_is_believed(way: Way, kind: Any) -> None:
    received = way(kind(code=3))
    assert (type(received), received.code, received.lock) == (kind, 3, "a new lock")
    assert not hasattr(received, "__notes__")


class FailsThereError(Exception):
    def __init__(self, code: int, extra: object) -> None:
        super().__init__("there", code)
        self.code = code
        self.extra = extra

    def __reduce__(self) -> Any:
        return _fails_there, (self.code,)


def _fails_there(code: int) -> Any:
    raise RuntimeError("not here")


@WAYS
def test_a_reduce_that_fails_where_it_arrives_leaves_what_is_plain(way: Way) -> None:
    received = way(FailsThereError(3, "text"))
    assert (type(received), received.args, received.code, received.extra) == (FailsThereError, ("there", 3), 3, "text")
    assert "RuntimeError: not here" in received.__notes__[-1]


class HoldsError(Exception):
    def __init__(self, **held: object) -> None:
        super().__init__("held", 3)
        vars(self).update(held)


@WAYS
def test_an_attribute_that_does_not_pickle_is_left_out_and_noted(way: Way) -> None:
    big = list(range(1000))
    received: Any = way(HoldsError(lock=threading.Lock(), code=3, big=big, frame=sys._getframe()))
    assert (received.args, received.code, received.big) == (("held", 3), 3, big)
    assert not hasattr(received, "lock")
    assert not hasattr(received, "frame")
    lock, frame = received.__notes__
    assert lock.startswith("hdphrs: this did not travel: attribute lock (a _thread.lock): TypeError: cannot pickle")
    assert "attribute frame (a frame)" in frame
    assert way(received).__notes__ == received.__notes__


@WAYS
def test_an_argument_that_does_not_pickle_becomes_its_repr(way: Way) -> None:
    received = way(ValueError("bad", threading.Lock(), 3))
    assert type(received) is ValueError
    assert received.args[::2] == ("bad", 3)
    assert received.args[1].startswith("<unlocked _th")
    assert "argument 2 (a _thread.lock)" in received.__notes__[0]


class LoadsBadly:
    def __reduce__(self) -> Any:
        return _fails_there, (1,)


def test_an_attribute_that_pickles_and_does_not_unpickle_is_left_out_of_what_is_raised() -> None:
    received: Any = as_raised(HoldsError(bad=LoadsBadly(), code=3))
    assert (type(received), received.args, received.code) == (HoldsError, ("held", 3), 3)
    assert not hasattr(received, "bad")
    assert any("attribute bad" in note for note in received.__notes__)
    assert "RuntimeError: not here" in received.__notes__[-1]


@WAYS
def test_cause_context_and_suppression_arrive(way: Way) -> None:
    first, second, third = OtherArityError(1, "first"), KeywordOnlyError(code=2), HoldsError(lock=threading.Lock())
    second.__cause__ = first
    third.__context__ = second
    received: Any = way(third)
    assert received.args == ("held", 3)
    context: Any = received.__context__
    assert (type(context), context.code, context.__suppress_context__) == (KeywordOnlyError, 2, True)
    assert (type(context.__cause__), context.__cause__.where) == (OtherArityError, "first")
    assert received.__suppress_context__ is False
    error = ValueError("x")
    error.__cause__ = third
    received = way(error)
    assert type(received.__cause__) is HoldsError
    assert received.__suppress_context__ is True


def test_what_is_raised_has_the_remote_traceback_at_the_end_of_its_causes() -> None:
    try:
        try:
            raise OtherArityError(1, "inner")
        except OtherArityError as inner:
            raise KeywordOnlyError(code=2) from inner
    except KeywordOnlyError as error:
        received: Any = load_outcome(dump_error("f", error))[1]
    assert type(received.__cause__) is OtherArityError
    remote = received.__cause__.__cause__
    assert isinstance(remote, RemoteTraceback)
    assert "OtherArityError: 1 at inner" in remote.text
    again: Any = load_outcome(dump_error("g", received))[1]
    assert type(again.__cause__) is OtherArityError
    remote = again.__cause__.__cause__
    assert isinstance(remote, RemoteTraceback)
    assert remote.__cause__ is None, "the older one is in the text of the newer one"


def test_an_exception_that_is_its_own_cause_arrives() -> None:
    error = OtherArityError(1, "round")
    other = KeywordOnlyError(code=2)
    error.__cause__, other.__cause__ = other, error
    received: Any = as_value(error)
    assert received.__cause__.__cause__ is received
    received = as_raised(error)
    assert type(received) is OtherArityError


class CodedGroup(ExceptionGroup[Exception]):
    def __new__(cls, errors: list[Exception], *, code: int) -> CodedGroup:
        made = super().__new__(CodedGroup, f"code {code}", errors)
        made.code = code
        return made

    def __init__(self, errors: list[Exception], *, code: int) -> None:
        pass

    code: int


@WAYS
def test_a_group_arrives_with_its_members(way: Way) -> None:
    inner = ExceptionGroup("inner", [KeywordOnlyError(code=1), HoldsError(lock=threading.Lock(), code=5)])
    inner.add_note("noted")
    received = way(CodedGroup([OtherArityError(2, "x"), inner], code=3))
    assert (type(received), received.code, received.message) == (CodedGroup, 3, "code 3")
    first, second = received.exceptions
    assert (type(first), first.code) == (OtherArityError, 2)
    assert (second.message, second.__notes__) == ("inner", ["noted"])
    assert [(type(member), member.code) for member in second.exceptions] == [(KeywordOnlyError, 1), (HoldsError, 5)]


@WAYS
def test_a_group_whose_member_leads_back_to_it_arrives(way: Way) -> None:
    member = OtherArityError(1, "x")
    group = ExceptionGroup("round", [member, ValueError()])
    member.__context__ = group
    received = way(group)
    assert received.exceptions[0].__context__ is received
    received = way(member)
    assert received.__context__.exceptions[0] is received


def test_an_exception_whose_class_does_not_pickle_is_described() -> None:
    lock = threading.Lock()

    class NeverError(Exception):
        def locked(self) -> bool:
            return lock.locked()

    received = as_raised(NeverError("no"))
    assert isinstance(received, TaskError)
    assert "NeverError: no (that exception does not pickle: " in str(received)
    succeeded, refusal = load_outcome(dump_result("f", NeverError("no")))
    assert not succeeded
    assert isinstance(refusal, CannotTravelError)


def test_a_value_beside_an_exception_that_does_not_pickle_is_refused_as_ever() -> None:
    succeeded, refusal = load_outcome(dump_result("f", [ValueError("x"), threading.Lock()]))
    assert not succeeded
    assert isinstance(refusal, CannotTravelError)


def test_an_exception_that_is_too_large_arrives_without_what_is_not_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdphrs.wire.values.PAYLOAD_BYTES_MAX", 100_000)
    received: Any = as_raised(HoldsError(data=bytearray(120_000), code=3))
    assert (type(received), received.code) == (HoldsError, 3)
    assert "that exception is 120" in received.__notes__[-1]
    assert PAYLOAD_BYTES_MAX > 100_000


def test_classes_of_main_arrive_in_another_process() -> None:
    source = """
import sys, threading
from hdphrs.wire.pickling import dumps
class Mine(Exception):
    def __init__(self, *, code):
        self.code = code
        self.lock = threading.Lock()
    def __str__(self):
        return f"code {self.code}"
sys.stdout.buffer.write(dumps(Mine(code=3)))
"""
    received = loads(subprocess.check_output([sys.executable, "-c", source]))
    assert (type(received).__name__, received.code, str(received)) == ("Mine", 3, "code 3")
    assert "attribute lock" in received.__notes__[0]


def test_a_long_chain_of_contexts_with_locks_takes_linear_time() -> None:
    error: BaseException = HoldsError(lock=threading.Lock())
    for _ in range(40):
        outer = HoldsError(lock=threading.Lock())
        outer.__context__ = error
        error = outer
    received: Any = as_value(error)
    depth = 0
    while received is not None:
        assert not hasattr(received, "lock")
        received, depth = received.__context__, depth + 1
    assert depth == 41


def test_a_plain_exception_stays_small() -> None:
    assert len(dumps(ValueError("x"))) < 250
    assert pickle.loads(dumps(ValueError("x"))).args == ("x",)
