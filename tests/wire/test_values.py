"""Results and exceptions as bytes."""

from __future__ import annotations

import dataclasses
import pickle
import reprlib
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.api import future as fast
from hdphrs.config import FRAME_BYTES_MAX, CoreConfig
from hdphrs.errors import CannotTravelError, RemoteTraceback, TaskCrashedError, TaskError, TaskLostError
from hdphrs.protocol.messages import Schedule
from hdphrs.protocol.tasks import Cause, Crash, FishId, NodeId, Origin, Outcome, Spark, Task, TaskRef, Verdict
from hdphrs.wire import values
from hdphrs.wire.codec import pack_message
from hdphrs.wire.framing import encode_frame, encode_object
from hdphrs.wire.pickling import dumps
from hdphrs.wire.values import dump_arguments, dump_error, dump_result, load_outcome, summary

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@given(value=plain)
def test_a_value_comes_back_equal(value: Any) -> None:
    assert load_outcome(dump_result("f", value)) == (True, value)


@given(values=st.lists(plain | st.builds(range, st.integers(), st.integers()), max_size=4).map(tuple))
def test_arguments_are_the_same_bytes_whichever_pickler_made_them(values: tuple[Any, ...]) -> None:
    """A task is found again by the bytes of its arguments."""
    assert dump_arguments("f", values, {}, b"chance") == dumps((*values, b"chance"))


def test_plain_arguments_and_ranges_do_without_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "dump_parts", None)
    payload = dump_arguments("f", (range(3), "x", 1), {}, b"chance")
    assert pickle.loads(payload) == (range(3), "x", 1, b"chance")


def test_a_result_that_does_not_pickle_becomes_an_error_that_names_task_and_type() -> None:
    succeeded, error = load_outcome(dump_result("f", threading.Lock()))
    assert not succeeded
    assert isinstance(error, CannotTravelError)
    assert str(error).startswith("the result of task f (a _thread.lock) does not pickle: ")


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def test_an_exception_comes_back_with_the_remote_traceback_as_its_cause() -> None:
    succeeded, error = load_outcome(dump_error("f", raised(KeyError("x"))))
    assert not succeeded
    assert type(error) is KeyError
    assert error.args == ("x",)
    assert isinstance(error.__cause__, RemoteTraceback)
    assert "in raised" in str(error.__cause__)
    assert "KeyError: 'x'" in str(error.__cause__)


def test_verdicts_of_the_runtime_become_errors_that_tell_the_attempts() -> None:
    crashes = (Crash("alpha", 7, "was killed by SIGSEGV"), Crash("beta", 9, "exited with status 3"))
    _, error = load_outcome(Outcome(Verdict.CRASHED, b"f", crashes))
    assert isinstance(error, TaskCrashedError)
    for word in ("task f", "2 times", "alpha", "SIGSEGV", "beta", "status 3"):
        assert word in str(error)
    assert error.attempts == crashes
    _, lost = load_outcome(Outcome(Verdict.LOST, b"task f was on node 3"))
    assert isinstance(lost, TaskLostError)


@pytest.mark.parametrize(
    ("causes", "says", "ends"),
    [
        (
            [Cause.VALUE] * 2,
            "task f is given up, its value kills the process that reads it, 2 times: on h, process 0 was killed; on ",
            "",
        ),
        (
            [Cause.ARGUMENTS],
            "task f is given up, its arguments kill the process that unpickles them, once: on h, process 0 was ",
            "",
        ),
        (
            [Cause.RUN, Cause.VALUE, Cause.ARGUMENTS],
            "task f took down 3 processes, and is given up: on h, process 0 was killed while it ran; ",
            "while its value was read; on h, process 2 was killed while its arguments were unpickled",
        ),
    ],
)
def test_crash_error_tells_what_of_a_task_has_taken_its_processes_down(
    causes: list[Cause], says: str, ends: str
) -> None:
    crashes = tuple(Crash("h", pid, "was killed", cause=cause) for pid, cause in enumerate(causes))
    _, error = load_outcome(Outcome(Verdict.CRASHED, b"f", crashes))
    assert str(error).startswith(says)
    assert str(error).endswith(ends)
    assert [attempt.cause for attempt in error.attempts] == causes


def test_crash_error_shows_arguments_and_last_words_and_travels() -> None:
    crashes = (
        Crash("alpha", 7, "was killed by SIGSEGV", "", "Fatal Python error: Segmentation fault"),
        Crash("alpha", 8, "was killed by SIGKILL, out of memory", "3, y='x'", ""),
    )
    _, error = load_outcome(Outcome(Verdict.CRASHED, b"f", crashes))
    assert str(error).startswith("task f(3, y='x') took down its process 2 times, and is given up: on alpha, process 7")
    assert "out of memory" in str(error)
    (note,) = error.__notes__
    assert note.startswith("process 7 on alpha was killed by SIGSEGV")
    assert note.endswith("\n    Fatal Python error: Segmentation fault")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.attempts, again.__notes__) == (str(error), crashes, error.__notes__)


class Shy:
    """Takes itself for a list, by its name."""

    def __len__(self) -> int:
        raise ValueError("no")


Shy.__name__ = Shy.__qualname__ = "list"
Shy.__module__ = "builtins"


def test_summary_of_arguments_is_short_and_survives_any_repr() -> None:
    assert summary((1, "a" * 1000), {"y": [0] * 1000}) == f"1, {reprlib.repr('a' * 1000)}, y=[0, 0, 0, 0, 0, 0, ...]"
    assert summary(tuple(range(20)), {}) == "0, 1, 2, 3, 4, 5, 6, 7, ..."
    assert summary((Shy(),), {}) == "<a list, whose __repr__ raised ValueError>"
    summary(("\udc80",), {}).encode()


def test_garbage_in_a_value_is_an_error_not_a_crash() -> None:
    succeeded, error = load_outcome(Outcome(Verdict.VALUE, b"garbage"))
    assert not succeeded
    assert isinstance(error, CannotTravelError)


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    code: int


def test_a_frozen_exception_comes_back_with_its_cause() -> None:
    _, error = load_outcome(dump_error("f", raised(FrozenError(3))))
    assert error == FrozenError(3)
    assert isinstance(error.__cause__, RemoteTraceback)


class UnreadableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class ExitingError(Exception):
    """Neither prints nor pickles, and wants to end the process."""

    def __str__(self) -> str:
        sys.exit(3)

    def __reduce__(self) -> Any:
        sys.exit(4)

    @property
    def __notes__(self) -> Any:  # type: ignore[override]
        sys.exit(5)


@pytest.mark.parametrize("error", [ValueError("file \udcff"), UnreadableError(), ExitingError()])
def test_an_exception_that_cannot_be_printed_is_still_an_outcome(error: Exception) -> None:
    succeeded, received = load_outcome(dump_error("f", raised(error)))
    assert not succeeded
    assert type(error).__name__ in str(received.__cause__)
    assert type(received) is type(error) or type(error).__name__ in str(received)


def test_surrogates_in_a_message_come_back_in_the_exception_and_escaped_in_the_traceback() -> None:
    _, error = load_outcome(dump_error("f", raised(ValueError("file \udcff"))))
    assert error.args == ("file \udcff",)
    assert "file \\udcff" in str(error.__cause__)


def test_every_exception_of_a_group_loses_our_frames_only() -> None:
    _, error = load_outcome(dump_error("f", raised(BaseExceptionGroup("many", [raised(KeyError("x"))]))))
    assert str(error.__cause__).count("in raised") == 2


class Exits:
    def __reduce__(self) -> Any:
        sys.exit(4)


class ExitsThere:
    def __reduce__(self) -> Any:
        return sys.exit, (4,)


def test_a_result_whose_pickling_exits_becomes_an_error() -> None:
    for value in (Exits(), ExitsThere()):
        succeeded, error = load_outcome(dump_result("f", value))
        assert not succeeded
        assert isinstance(error, CannotTravelError)
        assert "SystemExit: 4" in str(error)


def test_a_result_or_an_exception_that_does_not_fit_into_a_frame_becomes_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(values, "PAYLOAD_BYTES_MAX", 100_000)
    monkeypatch.setattr(values, "TEXT_CHARS_MAX", 1_000)
    _, error = load_outcome(dump_result("f", bytes(120_000)))
    assert isinstance(error, CannotTravelError)
    assert "the result of task f (a bytes) is 120.0 kB pickled; the limit is 100.0 kB" in str(error)
    outcome = dump_error("f", raised(ValueError("x" * 120_000)))
    assert len(outcome.data) < 10_000
    _, error = load_outcome(outcome)
    assert isinstance(error, TaskError)
    assert "ValueError: xxx" in str(error)
    assert "that exception is 120" in str(error)


def test_largest_payload_fits_into_a_frame_with_all_that_may_go_with_it() -> None:
    config = CoreConfig()
    crash = Crash("h" * 255, 1 << 32, "was killed by SIGSEGV", "a" * 400, "w" * 4096)
    task = Task("n" * 4 * fast.NAME_CHARS_MAX, bytes(16), bytes(32), b"")
    spark = Spark(TaskRef(NodeId(1 << 60), Origin(1 << 60), 1 << 60), 9, task, (crash,) * config.attempts_max)
    packed = pack_message(Schedule(FishId(1 << 60), (spark,) * config.want_max))
    around = len(encode_frame([0, 1 << 60, packed]))
    assert around + config.give_bytes_max + values.PAYLOAD_BYTES_MAX <= FRAME_BYTES_MAX


@pytest.mark.parametrize("wrong", ["text", 7, [b"x"]])
@pytest.mark.parametrize("place", [0, 1])
def test_what_is_no_pickle_of_an_exception_is_told_as_illegible(place: int, wrong: object) -> None:
    pickles: list[object] = [None, None]
    pickles[place] = wrong
    data = encode_object([*pickles, "f", "ValueError", "no", "trace", ""])
    succeeded, error = load_outcome(Outcome(Verdict.RAISED, data))
    assert not succeeded
    assert "nothing legible has arrived" in str(error)
