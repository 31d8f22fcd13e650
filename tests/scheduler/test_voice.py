"""What a scheduler sends of what its tasks say."""

from __future__ import annotations

import io
import logging
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hdphrs.api import future as fast
from hdphrs.api.future import Future, get
from hdphrs.protocol.tasks import PROGRAM, ROOT, Spark, Task, TaskRef
from hdphrs.scheduler.assigned import Assigned
from hdphrs.scheduler.voice import PARTIAL_BYTES_MAX, PARTIALS_MAX, Mouth, Voice
from hdphrs.wire import local, said
from hdphrs.wire.said import ERR, OUT, Wanted, encode_wanted


class Heard:
    """The node's end of a voice."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.socket = ours
        self.link = local.Link(theirs)
        self.links = cast(Any, SimpleNamespace(are_ours=True))
        self.voice = Voice(self.link, self.links)
        self.out = Mouth(self.voice, OUT)
        self._receiving = local.Link(ours)

    def items(self) -> list[list[Any]]:
        messages = self._receiving.receive(block=False)
        assert messages is not None
        assert all(kind == local.SAID for kind, _ in messages)
        return [item for _, items in messages for item in items]

    def texts(self) -> list[bytes]:
        return [item[3] for item in self.items() if item[0] == said.TEXT]

    def close(self) -> None:
        self.socket.close()
        self.link.close()


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    yield heard
    heard.close()


def task(*path: int, name: str = "f") -> Assigned:
    return Assigned(1, Spark(TaskRef(ROOT, PROGRAM, 1), 0, Task(name, bytes(path), b"", b"")))


@pytest.fixture
def assigned() -> Iterator[Assigned]:
    fast.here.task = task(4)
    yield fast.here.task
    fast.here.task = None


def test_whole_lines_leave_at_once_with_their_task(heard: Heard, assigned: Assigned) -> None:
    heard.out.write(b"one\ntwo\nthr")
    assert heard.items() == [[said.TEXT, ["", "f", b"\4"], OUT, b"one\ntwo\n"]]
    heard.out.write(b"ee\n")
    assert heard.texts() == [b"three\n"]


def test_lines_of_tasks_that_take_turns_are_not_mixed(heard: Heard) -> None:
    first, second = task(1), task(2)
    try:
        for author, data in ((first, b"x = "), (second, b"y = "), (first, b"1\n"), (second, b"2\n")):
            fast.here.task = author
            heard.out.write(data)
    finally:
        fast.here.task = None
    assert [(item[1][2], item[3]) for item in heard.items()] == [(b"\1", b"x = 1\n"), (b"\2", b"y = 2\n")]


def test_child_that_runs_in_place_is_named(heard: Heard, assigned: Assigned) -> None:
    def shout() -> None:
        heard.out.write(b"here\n")

    child: Future[None] = Future()
    child._function, child._content, child._parent, child._index = shout, (), assigned, 6
    get(child)
    assert heard.items()[0][1] == ["", shout.__qualname__, b"\4\6"]


def test_line_without_end_is_ended_when_results_leave(heard: Heard, assigned: Assigned) -> None:
    with installed(heard.voice, out=True):
        print("no end", end="")
        sys.stdout.flush()
        assert heard.texts() == []
        assert heard.voice.finish() == []
        assert heard.texts() == [b"no end\n"]


def test_what_could_not_be_sent_goes_with_the_results_that_leave(heard: Heard) -> None:
    item = [said.TEXT, ["", "f", b""], said.OUT, b"line\n"]
    heard.voice._waiting.append(item)  # somebody else was sending
    assert heard.voice.finish() == [[local.SAID, [item]]]
    assert heard.voice.finish() == []


@contextmanager
def installed(voice: Voice, *, out: bool = False, err: bool = False) -> Iterator[None]:
    module: Any = warnings
    before = sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__, list(logging.root.handlers), logging.root.level
    hooks = logging.Logger.callHandlers, logging.basicConfig, module._showwarnmsg_impl
    logging.root.handlers = []
    voice.install(out=out, err=err)
    try:
        yield
    finally:
        sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__, logging.root.handlers, level = before  # type: ignore[misc]
        logging.Logger.callHandlers, logging.basicConfig, module._showwarnmsg_impl = hooks  # type: ignore[method-assign]
        logging.root.setLevel(level)


def test_first_task_may_flush_a_part_of_a_line(heard: Heard, assigned: Assigned) -> None:
    heard.voice.want(encode_wanted(Wanted(mains=(b"\4",))))
    heard.out.write(b"50 %")
    heard.out.flush()
    assert heard.texts() == [b"50 %"]


def test_long_line_is_cut_and_of_a_progress_bar_the_last_state_is_kept(heard: Heard, assigned: Assigned) -> None:
    heard.out.write(b"x" * (PARTIAL_BYTES_MAX + 1))
    assert heard.texts() == [b"x" * (PARTIAL_BYTES_MAX + 1) + b"\n"]
    for percent in range(PARTIAL_BYTES_MAX):
        heard.out.write(b"\r%d" % percent)
    heard.out.write(b"\n")
    (text,) = heard.texts()
    assert len(text) <= PARTIAL_BYTES_MAX + 10
    assert text.endswith(b"%d\n" % (PARTIAL_BYTES_MAX - 1))


def test_so_many_tasks_may_have_begun_a_line(heard: Heard) -> None:
    try:
        for number in range(PARTIALS_MAX + 1):
            fast.here.task = task(number % 128, number // 128)
            heard.out.write(b"x")
    finally:
        fast.here.task = None
    assert len(heard.texts()) == PARTIALS_MAX + 1


def test_flood_is_held_back_and_counted_but_not_of_the_first_task(heard: Heard, assigned: Assigned) -> None:
    heard.voice._allowance = said.Allowance(0, 5)
    for _ in range(9):
        heard.out.write(b"x\n")
    assert heard.texts() == [b"x\n"] * 5
    assert heard.voice.gathered() == [[local.SAID, [[said.HELD, 4]]]]
    heard.voice.want(encode_wanted(Wanted(mains=(b"\4",))))
    heard.out.write(b"z\n")
    assert heard.texts() == [b"z\n"]


def test_record_travels_with_its_message_its_exception_and_what_is_plain_of_the_rest(heard: Heard) -> None:
    with installed(heard.voice):
        logger = logging.getLogger("tests.voice")
        heard.voice.want(encode_wanted(Wanted(levels={"": logging.WARNING, "tests.voice": logging.INFO})))
        logger.debug("not wanted")
        try:
            raise ValueError("no")
        except ValueError:
            logger.info("it is %d", 3, exc_info=True, extra={"number": 2**70, "text": "\udc00"})
        ((kind, who, attributes),) = heard.items()
        assert (kind, who) == (said.RECORD, ["", "", b""])
        assert (attributes["name"], attributes["levelno"], attributes["msg"]) == ("tests.voice", 20, "it is 3")
        assert "ValueError: no" in attributes["exc_text"]
        assert (attributes["number"], attributes["text"]) == (str(2**70), "\\udc00")
        heard.voice.want(encode_wanted(Wanted(levels={"": logging.WARNING})))
        logger.info("not wanted any more")
        assert heard.items() == []


def test_warning_travels(heard: Heard) -> None:
    with warnings.catch_warnings():
        with installed(heard.voice):
            warnings.showwarning = warnings._showwarning_orig  # type: ignore[attr-defined]  # pytest has its own
            warnings.simplefilter("always")
            warnings.warn("careful", RuntimeWarning, stacklevel=1)
        ((kind, _, text, category, filename, _),) = heard.items()
        assert (kind, text, category, filename) == (said.WARNING, "careful", "builtins.RuntimeWarning", __file__)


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def messages(heard: Heard) -> list[str]:
    return [item[2]["msg"] for item in heard.items()]


def test_logging_looks_as_if_nobody_had_configured_it_and_can_be_configured(heard: Heard) -> None:
    kept, logger = Kept(), logging.getLogger("tests.voice.configured")
    with installed(heard.voice):
        assert logging.getLogger().handlers == []
        assert not logger.hasHandlers()
        logging.warning("of the root")  # elsewhere this gives it a handler
        assert messages(heard) == ["of the root"]
        assert logging.getLogger().handlers == []
        logging.basicConfig(handlers=[kept])
        logger.warning("kept")
        assert (kept.messages, messages(heard)) == (["kept"], [])
        logging.root.handlers = []
        logger.warning("heard")
        assert (kept.messages, messages(heard)) == (["kept"], ["heard"])


def test_a_librarys_own_handlers_do_not_keep_its_records(heard: Heard, capfd: pytest.CaptureFixture[str]) -> None:
    kept, logger = Kept(), logging.getLogger("tests.voice.library")
    null = logging.NullHandler()
    with installed(heard.voice):
        logger.addHandler(null)
        logger.addHandler(kept)
        logger.getChild("below").warning("both")
        assert (kept.messages, messages(heard)) == (["both"], ["both"])
        logger.propagate = False
        logger.warning("its own")
        assert (kept.messages, messages(heard)) == (["both", "its own"], [])
        logger.propagate = True
        logger.removeHandler(kept)
        logger.removeHandler(null)
    assert capfd.readouterr().err == "", "the handler of last resort has nothing to say"


def test_standard_streams_look_like_pythons_own(heard: Heard) -> None:
    with installed(heard.voice, out=True, err=True):
        for stream, name, number in ((sys.stdout, "<stdout>", 1), (sys.stderr, "<stderr>", 2)):
            assert isinstance(stream, io.TextIOWrapper)
            assert isinstance(stream.buffer, io.BufferedIOBase)
            assert (stream.name, stream.mode, stream.fileno(), stream.encoding) == (name, "w", number, "utf-8")
            assert not stream.isatty()
            assert stream.writable()
            assert not stream.closed
            stream.reconfigure(line_buffering=True)
        assert sys.__stdout__ is sys.stdout
        assert sys.__stderr__ is sys.stderr
        heard.out.write(b"bytes\n")
        assert heard.texts() == [b"bytes\n"]


def test_warnings_can_be_caught_and_redirected_as_ever(heard: Heard) -> None:
    with warnings.catch_warnings(), installed(heard.voice):
        warnings.showwarning = warnings._showwarning_orig  # type: ignore[attr-defined]
        warnings.simplefilter("always")
        with warnings.catch_warnings(record=True) as caught:
            warnings.warn("caught", stacklevel=1)
        assert [str(one.message) for one in caught] == ["caught"]
        warnings.showwarning("shown", UserWarning, "x.py", 3)
        assert [item[2] for item in heard.items()] == ["shown"]


def test_what_is_said_while_somebody_sends_is_sent_later(heard: Heard, assigned: Assigned) -> None:
    with heard.link._sending:
        heard.out.write(b"in between\n")
        assert heard.texts() == []
    assert heard.voice
    heard.out.write(b"later\n")
    assert heard.texts() == [b"in between\n", b"later\n"]
    assert not heard.voice


def test_fork_of_a_task_writes_to_its_descriptor(heard: Heard) -> None:
    reading, writing = os.pipe()
    heard.links.are_ours = False
    Mouth(heard.voice, writing).write(b"child\n")
    assert os.read(reading, 100) == b"child\n"
    os.close(reading)
    os.close(writing)


def test_error_stream_is_a_stream_of_text(heard: Heard, assigned: Assigned) -> None:
    with installed(heard.voice, err=True):
        print("caf\xe9 \udc00", file=sys.stderr)
        sys.stderr.buffer.write(b"\xff\n")
        assert (sys.stderr.fileno(), sys.stderr.isatty(), sys.stderr.writable()) == (ERR, False, True)
    assert heard.texts() == ["caf\xe9 \\udc00\n".encode(), b"\xff\n"]
