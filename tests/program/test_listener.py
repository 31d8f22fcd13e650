"""What tasks say is shown, whether or not there is room for a thread that does it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from hdphrs.program import listener
from hdphrs.program.listener import Listener
from hdphrs.program.screen import Screen
from hdphrs.room import PAUSE_MAX_S
from hdphrs.wire import said

(LINE,) = said.bundles([[said.TEXT, ["here:0", "f", b"a"], said.OUT, b"a line\n"]])


class Room:
    """How many threads can be started, and what time it is."""

    def __init__(self) -> None:
        self.threads = 0
        self.asked = 0
        self.now_s = 100.0

    def try_to_start(self, thread: threading.Thread) -> bool:
        self.asked += 1
        self.threads -= 1
        return self.threads >= 0


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Room:
    one = Room()
    monkeypatch.setattr(listener, "try_to_start", one.try_to_start)
    monkeypatch.setattr(listener, "monotonic", lambda: one.now_s)
    return one


@pytest.mark.parametrize("end", [Listener.show, Listener.close])
def test_without_a_thread_who_waits_for_a_result_or_ends_shows_it(
    room: Room, end: Callable[[Listener], None], capfd: pytest.CaptureFixture[str]
) -> None:
    one = Listener()
    one.take(LINE)
    end(one)
    assert "a line\n" in capfd.readouterr().out
    assert len(one) == 0


def test_a_thread_is_tried_now_and_then_and_only_until_there_is_one(room: Room) -> None:
    one = Listener()
    for pause_s, asked in ((0.0, 1), (0.0, 1), (PAUSE_MAX_S, 2), (0.0, 2)):
        room.now_s += pause_s
        one.take(LINE)
        assert room.asked == asked
    room.threads = 1
    for _ in range(3):
        room.now_s += PAUSE_MAX_S
        one.take(LINE)
    assert room.asked == 3


def test_who_waits_for_a_result_asks_no_stream_whether_it_has_room_if_there_is_nothing_to_show(
    room: Room, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It would take longer than all that the program does else in a round trip."""
    room.threads = 1
    asked: list[float] = []

    def await_room(screen: Screen, within_s: float) -> bool:
        asked.append(within_s)
        return True

    monkeypatch.setattr(Screen, "await_room", await_room)
    one = Listener()
    monkeypatch.setattr(one, "_thread", threading.current_thread())
    one.show()
    assert asked == []
    one.take(LINE)
    one.show()
    assert asked
    assert len(one) == 0
