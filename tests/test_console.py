"""What we say to a person."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from time import monotonic

import pytest

from hdphrs.console import HEARD_S_MAX, WAITING_BYTES_MAX, Outlet, plain, say, take_leave
from tests.pipes import full_pipe, rest


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


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe that is full: its reading and its writing end."""
    with full_pipe() as ends:
        yield ends


def test_stream_that_nobody_reads_keeps_nobody_waiting_but_once(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    began_s = monotonic()
    for _ in range(1000):
        outlet.offer(b"a line\n")
    assert HEARD_S_MAX <= monotonic() - began_s < 50 * HEARD_S_MAX
    assert not outlet.is_empty
    assert rest(pipe[0], 7000) == b"a line\n" * 1000
    assert outlet.flush(10.0)


def test_what_waits_is_bounded_and_what_is_dropped_counted(
    pipe: tuple[int, int], capfd: pytest.CaptureFixture[str]
) -> None:
    outlet = Outlet(pipe[1])
    line = b"x" * 1023 + b"\n"
    fitting = WAITING_BYTES_MAX // len(line)
    for _ in range(fitting + 3):
        outlet.offer(line)
    assert not outlet.has_room
    assert rest(pipe[0], fitting * len(line)) == line * fitting
    assert outlet.flush(10.0)
    assert outlet.has_room
    take_leave(10.0)
    assert capfd.readouterr().err == "hdphrs: 3 lines are missing here: nobody read them in time\n"


def test_who_holds_back_is_told_when_there_is_room(pipe: tuple[int, int]) -> None:
    told = threading.Event()
    outlet = Outlet(pipe[1], told.set)
    while outlet.has_room:
        outlet.put(b"x" * 10_000)
    assert not told.is_set()
    rest(pipe[0], WAITING_BYTES_MAX * 3 // 4)
    assert told.wait(10.0)
    assert outlet.has_room
    while not outlet.is_empty:  # its thread must not write into what gets the number of this pipe next
        os.read(pipe[0], 1 << 20)


def test_descriptor_that_others_have_made_non_blocking_gets_whole_lines(pipe: tuple[int, int]) -> None:
    os.set_blocking(pipe[1], False)
    outlet = Outlet(pipe[1])
    line = b"y" * 100_000 + b"\n"
    outlet.put(line)
    assert rest(pipe[0], len(line)) == line
    assert outlet.flush(10.0)


def test_without_room_for_a_thread_what_would_block_is_dropped(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    outlet = Outlet(pipe[1])
    outlet.offer(b"lost\n")
    assert outlet.is_empty
    os.read(pipe[0], 1 << 20)
    outlet.offer(b"a line\n")
    assert os.read(pipe[0], 100) == b"a line\n"


def test_copy_of_a_process_has_nothing_to_write_of_what_its_parent_has_said(pipe: tuple[int, int]) -> None:
    code = f"""if True:
        import os
        from hdphrs.console import Outlet
        outlet = Outlet({pipe[1]})
        outlet.put(b"once\\n")
        if os.fork() == 0:
            assert outlet.is_empty and outlet.has_room and outlet.flush(0.0)
            os._exit(7)
        os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
    """
    assert subprocess.run([sys.executable, "-c", code], pass_fds=pipe, check=False).returncode == 7


def test_end_of_a_process_does_not_wait_for_long_for_a_reader(pipe: tuple[int, int]) -> None:
    said = "for n in range(9999): say(str(n))"
    code = f"from hdphrs.console import say, take_leave\n{said}\ntake_leave()\nraise SystemExit(7)"
    child = subprocess.Popen([sys.executable, "-c", code], stderr=pipe[1])
    assert child.wait(20.0) == 7


def test_end_of_a_process_waits_as_long_as_its_reader_goes_on() -> None:
    """Each piece is read within the time, all of them are not."""
    pipe = os.pipe()
    outlet = "from hdphrs.console import outlet, take_leave\n"
    code = f"{outlet}outlet(2).put(b'x' * 2**18)\ntake_leave(0.2)\nraise SystemExit(7)"
    child = subprocess.Popen([sys.executable, "-c", code], stderr=pipe[1])
    os.close(pipe[1])
    read, pause = 0, threading.Event()
    while data := os.read(pipe[0], 2**12):
        read += data.count(b"x")
        pause.wait(0.02)
    os.close(pipe[0])
    assert child.wait(20.0) == 7
    assert read == 2**18
