"""What a node makes of what its schedulers say."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hdphrs.node import voices as saying
from hdphrs.node.link import NodeLink
from hdphrs.node.process import SchedulerProcess
from hdphrs.node.voices import REST_BYTES_MAX, Speaker, ToProgram, Voices
from hdphrs.protocol.tasks import ROOT, NodeId
from hdphrs.wire import local, said
from hdphrs.wire.said import ERR, LAST, OUT, Held, Said, Text, Who
from hdphrs.wire.settings import Streams


class Scheduler:
    """Its streams, and what becomes of them."""

    def __init__(self, prefixed: Streams) -> None:
        self.bundles: list[bytes] = []
        self.voices = Voices("host", prefixed)
        self.voices.forward = self.bundles.append
        self.out: int | None = None
        out: int | None = None
        if prefixed is Streams.BOTH:
            out, self.out = os.pipe()
        err, self.err = os.pipe()
        process = cast(SchedulerProcess, SimpleNamespace(number=2, errors=err, output=out))
        self.speaker = Speaker(self.voices, process, lambda: ("f", b"\4"))
        self.speaker.ready = True

    def heard(self) -> list[Said]:
        heard = [item for bundle in self.bundles for item in said.open_bundle(bundle)]
        self.bundles.clear()
        return heard

    def close(self) -> None:
        os.close(self.err)
        if self.out is not None:
            os.close(self.out)
        self.speaker.close()


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler(Streams.BOTH)


WHO = Who("host:2", "f", b"\4")


def test_nodes_that_share_a_host_are_told_apart_from_then_on(scheduler: Scheduler) -> None:
    def place() -> str:
        scheduler.speaker.said([[said.TEXT, ["", "f", b""], OUT, b"x\n"]])
        (heard,) = scheduler.heard()
        assert isinstance(heard, Text)
        return heard.who.place

    me, elsewhere, beside = (NodeId(3), "host", 1), (ROOT, "far", 4), (NodeId(5), "host", 1)
    scheduler.voices.meet(me, elsewhere)
    assert place() == "host:2"
    scheduler.voices.meet(me, elsewhere, beside)
    assert place() == "host/3:2"
    scheduler.voices.meet(me, elsewhere)  # what was said before is still on the screen
    assert place() == "host/3:2"


def test_lines_of_both_streams_are_taken_for_those_of_the_running_task(scheduler: Scheduler) -> None:
    assert scheduler.out is not None
    os.write(scheduler.out, b"one\ntw")
    os.write(scheduler.err, b"error\n")
    scheduler.speaker.drain()
    assert sorted(scheduler.heard(), key=str) == [Text(WHO, OUT, "one\n"), Text(WHO, ERR, "error\n")]
    os.write(scheduler.out, b"o\n")
    scheduler.speaker.drain()
    assert scheduler.heard() == [Text(WHO, OUT, "two\n")]
    scheduler.close()
    assert scheduler.heard() == []


def test_what_is_left_of_a_dead_process_comes_too(scheduler: Scheduler) -> None:
    assert scheduler.out is not None
    os.write(scheduler.out, b"half a line")
    os.write(scheduler.err, b"Fatal Python error\nin")
    scheduler.close()
    assert scheduler.heard() == [
        Text(WHO, LAST, "Fatal Python error\n"),
        Text(WHO, OUT, "half a line\n"),
        Text(WHO, LAST, "in\n"),
    ]


def test_words_of_the_link_get_their_place_and_are_remembered(scheduler: Scheduler) -> None:
    scheduler.speaker.said([[said.TEXT, ["", "g", b"\5"], ERR, b"about to die\n"], [said.HELD, 2]])
    assert scheduler.heard() == [Text(Who("host:2", "g", b"\5"), ERR, "about to die\n"), Held(2)]
    assert scheduler.speaker.errors.text() == "about to die"
    scheduler.close()


def test_until_somebody_listens_words_go_where_the_nodes_own_go(
    scheduler: Scheduler, capfd: pytest.CaptureFixture[str]
) -> None:
    scheduler.voices.forward = None
    os.write(scheduler.err, b"no module\n")
    scheduler.speaker.drain()
    scheduler.speaker.said([[said.TEXT, ["", "", b""], OUT, b"early\n"]])
    assert capfd.readouterr() == ("early\n", "no module\n")
    scheduler.close()


def test_raw_streams_are_none_of_the_programs(capfd: pytest.CaptureFixture[str]) -> None:
    scheduler = Scheduler(Streams.NONE)
    os.write(scheduler.err, b"raw\n")
    scheduler.close()
    assert (scheduler.heard(), capfd.readouterr().err) == ([], "raw\n")


def test_long_line_is_cut(scheduler: Scheduler) -> None:
    os.write(scheduler.err, b"x" * (REST_BYTES_MAX + 1))
    scheduler.speaker.drain()
    assert scheduler.heard() == [Text(WHO, ERR, "x" * (REST_BYTES_MAX + 1) + "\n")]
    scheduler.close()


def test_flood_is_counted_instead(scheduler: Scheduler) -> None:
    for _ in range(10):
        os.write(scheduler.err, b"x\n" * 1000)
        scheduler.speaker.drain()
    heard = scheduler.heard()
    assert sum(item.count for item in heard if isinstance(item, Held)) >= 7000
    scheduler.close()


class Program:
    """A link to a program that may be slow."""

    backlog = 0

    def __init__(self) -> None:
        self.posted: list[list[Any]] = []

    def post(self, message: list[Any]) -> None:
        self.posted.append(message)

    def flush(self) -> None:
        pass


def test_program_that_does_not_read_loses_words_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saying, "BACKLOG_MAX", 10)
    program = Program()
    way = ToProgram(cast(NodeLink, program))
    way.forward(b"one")
    program.backlog = 11
    (held,) = said.bundles([[said.TEXT, list(WHO), OUT, b"x\ny\n"]])
    way.forward(held)
    way.hear(3, b"three")
    assert program.posted == [[local.SAID, b"one"]]
    program.backlog = 0
    way.forward(b"four")
    _, [kind, held], last = program.posted
    assert (kind, said.open_bundle(held), last) == (local.SAID, [Held(5)], [local.SAID, b"four"])
