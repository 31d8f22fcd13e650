"""What the program shows of what tasks say."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import pytest

from hdphrs.program import echo as echoing
from hdphrs.program.echo import ALIKE_S, HELD_S, LINES_MAX, LINES_PER_S, ONCE_MAX, Echo, paragraphs
from hdphrs.wire.said import ERR, LAST, OUT, Advice, Held, LogRecord, Text, Warned, Who

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    1 / 0\nZeroDivisionError: no\n'


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Shown(Echo):
    def __init__(self) -> None:
        self.clock = Clock()
        self.out = ""
        self.err = ""
        super().__init__(self._show, self.clock)

    def _show(self, stream: int, text: str) -> None:
        if stream == OUT:
            self.out += text
        else:
            self.err += text

    def after(self, seconds: float) -> None:
        self.clock.now_s += seconds
        if self.due_s is not None and self.due_s <= self.clock.now_s:
            self.tick()


@pytest.fixture
def echo() -> Shown:
    return Shown()


def who(number: int, place: str = "host:0") -> Who:
    return Who(place, "work", bytes([0, number]))


def test_lines_get_place_name_and_path_in_front(echo: Shown) -> None:
    echo.hear(Text(who(17, "far:3"), OUT, "one\ntwo\n"))
    echo.hear(Text(Who("far:3", "", b""), ERR, "nobody's\n"))
    assert echo.out == "[far:3 work 0.17] one\n[far:3 work 0.17] two\n"
    assert echo.err == "[far:3] nobody's\n"


def test_what_the_first_task_prints_is_the_programs_own(echo: Shown) -> None:
    echo.mains.add(b"\0")
    main = Who("host:0", "main", b"\0")
    echo.hear(Text(main, OUT, "50 %\r"))
    for _ in range(LINES_MAX + 1):
        echo.hear(Text(main, OUT, "x\n"))
    assert echo.out == "50 %\r" + "x\n" * (LINES_MAX + 1)


def test_the_same_line_of_other_tasks_is_counted(echo: Shown) -> None:
    for number in range(5):
        echo.hear(Text(who(number), OUT, "loading\n"))
        echo.hear(Text(who(number), OUT, f"{number}\n"))
    assert echo.out.count("loading") == 1
    echo.after(ALIKE_S)
    assert echo.out.endswith("[4 more] loading\n")
    echo.hear(Text(who(7), OUT, "loading\n"))
    assert echo.out.endswith("[host:0 work 0.7] loading\n")


def test_the_same_line_of_the_same_task_is_shown_again(echo: Shown) -> None:
    for _ in range(3):
        echo.hear(Text(who(1), OUT, "tick\n"))
    echo.end()
    assert echo.out == "[host:0 work 0.1] tick\n" * 3


def test_what_was_counted_is_told_at_the_end(echo: Shown) -> None:
    echo.hear(Text(who(1), ERR, TRACEBACK))
    echo.hear(Text(who(2), ERR, TRACEBACK))
    echo.end()
    assert echo.err.count("ZeroDivisionError") == 1
    assert echo.err.endswith("[1 more] Traceback (most recent call last): (4 lines)\n")


def test_too_much_is_held_back_and_said_so(echo: Shown) -> None:
    for number in range(LINES_MAX + 5):
        echo.hear(Text(who(1), OUT, f"{number}\n"))
    echo.hear(Held(10))
    assert echo.out.count("\n") == LINES_MAX
    echo.after(HELD_S)
    assert echo.err.startswith("hdphrs: held back 15 lines of tasks' output; --output raw")
    for number in range(LINES_PER_S):
        echo.hear(Text(who(1), OUT, f"{number}\n"))
    assert echo.out.count("\n") == LINES_MAX + LINES_PER_S
    assert echo.due_s is None or echo.due_s > echo.clock.now_s


def test_last_words_are_never_held_back(echo: Shown) -> None:
    for number in range(LINES_MAX + 5):
        echo.hear(Text(who(1), ERR, f"{number}\n"))
    echo.hear(Text(who(1), LAST, "Fatal Python error\n"))
    assert echo.err.endswith("[host:0 work 0.1] Fatal Python error\n")


def test_indented_lines_belong_to_the_line_above_and_a_traceback_is_one_paragraph() -> None:
    assert list(paragraphs("a\nb\n  c\nd\ne\n")) == ["a\n", "b\n  c\nd\n", "e\n"]
    assert list(paragraphs("before\n" + TRACEBACK + "after\n")) == ["before\n", TRACEBACK, "after\n"]


def test_progress_bar_shows_its_last_state() -> None:
    assert list(paragraphs("10 %\r50 %\r100 %\n")) == ["100 %\n"]
    assert list(paragraphs("a\r\nb\r\n")) == ["a\n", "b\n"]


def attributes(**more: Any) -> dict[str, Any]:
    return {"name": "their.module", "levelno": logging.INFO, "levelname": "INFO", "msg": "said 100 %", **more}


def test_record_is_handled_here_as_it_was_made_there(echo: Shown, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    echo.hear(LogRecord(who(3, "far:1"), attributes(lineno=7, exc_text="Traceback ...", colour="red")))
    (record,) = caplog.records
    assert (record.name, record.levelno, record.getMessage(), record.lineno) == ("their.module", 20, "said 100 %", 7)
    told = vars(record)
    assert (told["hdphrs_host"], told["hdphrs_task"], told["hdphrs_path"]) == ("far", "work", "0.3")
    assert (told["hdphrs"], told["processName"], told["colour"]) == ("[far:1 work 0.3]", "far:1", "red")
    assert "Traceback ..." in logging.Formatter().format(record)


def test_host_of_a_record_is_the_host_alone(echo: Shown, caplog: pytest.LogCaptureFixture) -> None:
    echo.hear(LogRecord(who(3, "far/2:1"), attributes(levelno=logging.ERROR)))
    told = vars(caplog.records[0])
    assert (told["hdphrs_host"], told["hdphrs_place"]) == ("far", "far/2:1")


def test_record_below_the_level_of_the_program_is_dropped(echo: Shown, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    echo.hear(LogRecord(who(3), attributes()))
    assert not caplog.records


def test_same_record_of_other_tasks_is_counted(echo: Shown, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for number in range(3):
        echo.hear(LogRecord(who(number), attributes()))
    echo.after(ALIKE_S)
    assert [record.getMessage() for record in caplog.records] == ["said 100 %", "said 100 % [2 more]"]


def test_record_in_a_program_without_handlers_is_a_line_with_a_prefix(
    echo: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    echo.hear(LogRecord(who(1), attributes(levelno=logging.ERROR, levelname="ERROR", exc_text="Traceback:\n  x")))
    assert echo.err.splitlines() == [
        "[host:0 work 0.1] ERROR their.module: said 100 %",
        "[host:0 work 0.1] Traceback:",
        "[host:0 work 0.1]   x",
    ]


def test_warning_is_shown_once_for_each_place_and_by_the_programs_filters(echo: Shown) -> None:
    warned = Warned(who(1), "old", "builtins.DeprecationWarning", "x.py", 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        echo.hear(warned)
        echo.hear(Warned(who(2), "old", "builtins.DeprecationWarning", "x.py", 3))
        echo.hear(Warned(who(2), "odd", "nowhere.OddWarning", "x.py", 4))
    assert [(str(one.message), one.category, one.lineno) for one in caught] == [
        ("old [host:0 work 0.1]", DeprecationWarning, 3),
        ("odd [host:0 work 0.2]", UserWarning, 4),
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        echo.hear(Warned(who(1), "new", "builtins.UserWarning", "x.py", 5))
    assert not caught


def test_warning_that_the_program_makes_an_error_of_is_shown(echo: Shown) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        echo.hear(Warned(who(1), "old", "builtins.UserWarning", "x.py", 3))
    assert [str(one.message) for one in caught] == ["old [host:0 work 0.1]"]


def test_so_many_warnings_are_remembered(echo: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Warned] = []
    monkeypatch.setattr(echoing, "warn", shown.append)
    for lineno in [*range(ONCE_MAX + 1), 0]:
        echo.hear(Warned(who(1), "old", "builtins.UserWarning", "x.py", lineno))
    assert len(shown) == ONCE_MAX + 2


def test_advice_is_given_once_of_each_kind(echo: Shown) -> None:
    for sentence in ("first", "second"):
        echo.hear(Advice("small", sentence))
    assert echo.err == "hdphrs: advice: first\n"
