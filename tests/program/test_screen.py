"""The program's own streams, whoever reads them."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

import pytest

from hdphrs.program import listener as listening
from hdphrs.program.listener import SHOW_S, Listener
from hdphrs.program.screen import Screen
from hdphrs.wire import said
from hdphrs.wire.said import ERR, OUT
from tests.pipes import FILLER, full_pipe, rest


@contextmanager
def unread_output() -> Iterator[int]:
    """The standard output is a full pipe while the block runs: its reading end."""
    with (
        full_pipe() as (reading, writing),
        open(writing, "w", closefd=False) as stream,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("sys.stdout", stream)
        yield reading


@pytest.mark.parametrize("text", ["a line\n" * 10_000, "Zeile \N{GREEK SMALL LETTER MU}\n" * 10_000])
def test_text_waits_for_whoever_reads_and_is_written_whole_and_in_order(text: str) -> None:
    with unread_output() as unread:
        screen = Screen()
        screen.put(OUT, text)
        screen.put(OUT, "end\n")
        assert not screen.flush(0.0)
        whole = f"{text}end\n".encode()
        read = b""
        while len(read) < len(whole):
            read += os.read(unread, 1 << 12).lstrip(FILLER)
            screen.flush(0.0)
        assert read == whole
        assert screen.flush(0.0)


def test_other_stream_is_not_shown_before_what_came_first(capsys: pytest.CaptureFixture[str]) -> None:
    with unread_output() as unread:
        screen = Screen()
        screen.put(OUT, "first\n")
        screen.put(ERR, "second\n")
        assert not screen.flush(0.0)
        assert capsys.readouterr().err == ""
        assert not rest(unread, 0)
        while not screen.flush(0.0):
            os.read(unread, 1 << 20)
        assert capsys.readouterr().err == "second\n"


def test_full_disk_is_told_once_and_disturbs_nobody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Screen()
    with open("/dev/full", "w") as full:  # which keeps nothing that it would fail with when it is closed
        monkeypatch.setattr("sys.stdout", full)
        for _ in range(3):
            screen.put(OUT, "text\n")
            assert screen.flush(0.0)
    lost = "what tasks print cannot be shown, and is lost: standard output: No space left on device"
    assert capsys.readouterr().err == f"hdphrs: {lost}\n"


def test_broken_stream_disturbs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def write(self, text: str) -> None:
            raise BrokenPipeError

    screen = Screen()
    for stream in (Broken(), None, object()):
        for name in ("sys.stdout", "sys.stderr"):
            monkeypatch.setattr(name, stream)
        for number in (OUT, ERR):
            screen.put(number, "text\n")
        assert screen.flush(0.0)


def test_what_the_program_has_printed_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with open(tmp_path / "output", "w", encoding="ascii") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        stream.write("the program's, ")
        screen = Screen()
        screen.put(OUT, "a task's: \N{GREEK SMALL LETTER MU}, ")
        assert screen.flush(0.0)
        stream.write("the program's")
    assert (tmp_path / "output").read_text() == "the program's, a task's: \\u03bc, the program's"


def test_stream_that_is_no_file_takes_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, notebook = Screen(), io.StringIO()
    monkeypatch.setattr("sys.stdout", notebook)
    screen.put(OUT, "x" * 100_000)
    assert screen.flush(0.0)
    assert notebook.getvalue() == "x" * 100_000


def bundle(text: str) -> bytes:
    (packed,) = said.bundles([[said.TEXT, ["near:0", "work", b"\0\1"], OUT, text.encode()]])
    return packed


def test_results_wait_once_for_a_reader_and_then_not_again() -> None:
    with unread_output() as unread:
        listener = Listener()
        listener.take(bundle("first\n"))
        began_s = monotonic()
        for number in range(100):
            listener.take(bundle(f"{number}\n"))
            listener.show()
        assert monotonic() - began_s < 20 * SHOW_S
        read = b""
        while b"99\n" not in read:  # the listener goes on when somebody reads, however long it has waited
            read += os.read(unread, 1 << 20).lstrip(FILLER)
        lines = [line.split()[-1] for line in read.decode().splitlines()]
        assert lines == ["first", *map(str, range(100))]
        listener.close()


def test_end_of_a_program_waits_for_a_reader_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    with unread_output() as unread:
        monkeypatch.setattr(listening, "CLOSE_S", 0.2)
        listener = Listener()
        for number in range(listening.BUNDLES_MAX + 9):
            listener.take(bundle(f"{number}\n"))
        assert len(listener) <= listening.BUNDLES_MAX
        began_s = monotonic()
        listener.close()
        assert monotonic() - began_s < 10.0
        sys.stdout.flush()  # which is not held by the thread that waits
        os.set_blocking(unread, False)
        drain(unread, listener)  # or its thread would go on in the next test


def drain(reading: int, listener: Listener) -> bytes:
    """What it shows when somebody reads, all of it."""

    def has_shown_all() -> bool:
        with listener._showing:
            return not len(listener) and listener._screen.flush(0.0)

    read = b""
    while not has_shown_all():
        with suppress(BlockingIOError):
            read += os.read(reading, 1 << 20).lstrip(FILLER)
    listener.close()
    with suppress(BlockingIOError):
        read += os.read(reading, 1 << 20).lstrip(FILLER)
    return read


def test_what_had_no_place_is_counted_when_somebody_reads(capsys: pytest.CaptureFixture[str]) -> None:
    said = listening.BUNDLES_MAX + 9
    with unread_output() as unread:
        listener = Listener()
        for _ in range(said):
            listener.take(bundle("same\n"))
        os.set_blocking(unread, False)
        read = drain(unread, listener)
    (held,) = re.findall("hdphrs: held back ([0-9]+) lines", capsys.readouterr().err)
    assert 0 < int(held) <= 9
    assert read.decode() == "[near:0 work 0.1] same\n" * (said - int(held))
