"""What we say to a person."""

from __future__ import annotations

import os

import pytest

from hdphrs.console import plain, say


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("a line", "a line"),
        ("  1.5 ms   20 ####  ", "  1.5 ms   20 ####"),
        ("first\n   second\r\nthird\rfourth\n", "first second third fourth"),
        ("\udcff", "\\udcff"),
    ],
)
def test_one_whole_line_is_written_at_once(
    said: str, line: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    write = os.write

    def count(descriptor: int, data: bytes) -> int:
        written.append(data)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", count)
    say(said)
    assert capfd.readouterr().err == f"hdphrs: {line}\n"
    assert len(written) == 1


def test_nobody_need_hear_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, data: bytes) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(os, "write", refuse)
    say("nothing")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("naïve f(x)", "naïve f(x)"), ("a\x1b[2J\x07\nb", r"a\x1b[2J\x07\nb"), ("\u202e\udcff\x9b", r"\u202e\udcff\x9b")],
)
def test_a_text_from_elsewhere_does_not_steer_a_terminal(text: str, shown: str) -> None:
    assert plain(text) == shown
