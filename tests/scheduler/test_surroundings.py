"""Putting the program's surroundings on: what it has changed, and nothing else."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hdphrs.scheduler.surroundings import Adopter
from hdphrs.wire.pickling import dumps
from hdphrs.wire.surroundings import AWAY_VARIABLE, Surroundings, encode_surroundings

BARE = Surroundings(environ={}, environ_here={}, recursion_limit=1000, digits_max=4300)


@pytest.fixture(autouse=True)
def own_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test changes is undone."""
    limits = sys.getrecursionlimit(), sys.get_int_max_str_digits(), sys.dont_write_bytecode
    umask = os.umask(0o22)
    os.umask(umask)
    environ = os.environ.copy()
    monkeypatch.setattr(sys, "argv", ["hdphrs.scheduler"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(os.getcwd())
    with warnings.catch_warnings():
        yield
    os.umask(umask)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    sys.setrecursionlimit(limits[0])
    sys.set_int_max_str_digits(limits[1])
    sys.dont_write_bytecode = limits[2]


class Adopting:
    """A adopter, and what it has told a person."""

    def __init__(self) -> None:
        self.lacks: list[tuple[str, str]] = []
        self.adopter = Adopter(lambda: "berta", lambda kind, sentence: self.lacks.append((kind, sentence)))

    def adopt(self, surroundings: Surroundings = BARE, **changes: Any) -> Surroundings:
        """These with changes, which are returned."""
        new = replace(surroundings, **changes)
        self.adopter.adopt(encode_surroundings(new))
        return new


def test_limits_arguments_and_umask_are_the_programs() -> None:
    argv = sys.argv
    Adopting().adopt(argv=("p", "q"), umask=0o27, recursion_limit=2000, digits_max=5000, writes_bytecode=False)
    assert sys.argv == ["p", "q"]
    assert sys.argv is argv
    assert os.umask(0o27) == 0o27
    assert sys.getrecursionlimit() == 4 * 2000 + 1000
    assert sys.get_int_max_str_digits() == 5000
    assert sys.dont_write_bytecode


def test_what_a_task_changes_stays_until_the_program_changes_the_same(tmp_path: Path) -> None:
    adopting = Adopting()
    first = adopting.adopt(environ={b"A": b"1", b"B": b"1"}, directory=b"/", argv=("p",))
    os.environ["A"] = "a task's"
    os.environ["OF_A_TASK"] = "1"
    os.chdir(tmp_path)
    sys.argv.append("a task's")
    second = adopting.adopt(first, environ={b"A": b"1", b"B": b"2"})
    assert (os.environ["A"], os.environ["B"], os.environ["OF_A_TASK"]) == ("a task's", "2", "1")
    assert os.getcwd() == str(tmp_path)
    assert sys.argv == ["p", "a task's"]
    adopting.adopt(second, environ={b"A": b"3", b"B": b"2"}, directory=b"/usr", argv=("p", "q"))
    assert (os.environ["A"], os.getcwd(), sys.argv) == ("3", "/usr", ["p", "q"])


def test_what_the_program_has_unset_is_gone_and_what_is_set_here_is_not() -> None:
    os.environ["OLD"] = "1"
    os.environ["OMP_NUM_THREADS"] = "1"
    adopting = Adopting()
    first = adopting.adopt(unset=(b"OLD",))
    assert "OLD" not in os.environ
    assert os.environ["OMP_NUM_THREADS"] == "1"
    os.environ["OLD"] = "a task's"
    adopting.adopt(first, environ={b"X": b"1"})
    assert os.environ["OLD"] == "a task's"


@pytest.mark.parametrize("away", [False, True])
def test_what_concerns_the_programs_host_is_for_that_alone(away: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if away:
        monkeypatch.setenv(AWAY_VARIABLE, "1")
    monkeypatch.setenv("HOME", "/here")
    adopting = Adopting()
    assert AWAY_VARIABLE not in os.environ
    path = list(sys.path)
    adopting.adopt(environ_here={b"HOME": b"/there"}, path=("/of/the/program", *path[1:]), prefix=sys.prefix)
    assert os.environ["HOME"] == ("/here" if away else "/there")
    assert sys.path[0] == (path[0] if away else "/of/the/program")
    assert set(sys.path) == {*path, "/of/the/program"}


def test_another_interpreter_keeps_the_order_of_its_path() -> None:
    path = list(sys.path)
    Adopting().adopt(path=("/of/the/program",), prefix="/another")
    assert sys.path == [*path, "/of/the/program"]


def test_the_time_zone_follows_its_variable() -> None:
    adopting = Adopting()
    first = adopting.adopt(environ={b"TZ": b"UTC+3"})
    assert time.localtime(0).tm_gmtoff == -3 * 3600
    adopting.adopt(first, environ={}, unset=(b"TZ",))
    assert "TZ" not in os.environ


def test_filters_of_warnings_count_at_once() -> None:
    def warn() -> None:
        warnings.warn("some text", BytesWarning, stacklevel=1)

    adopting = Adopting()
    one = adopting.adopt(filters=(("ignore", None, dumps(Warning), None, 0),))
    warn()
    adopting.adopt(one, filters=(("error", ("SOME.*", 2), dumps(BytesWarning), None, 0), one.filters[0]))  # type: ignore[index]
    with pytest.raises(BytesWarning):
        warn()
    assert not any(each[0] == "default" for each in warnings.filters)


def test_a_category_that_is_unknown_here_is_passed_over() -> None:
    Adopting().adopt(filters=(("error", None, b"no pickle", None, 0), ("ignore", None, dumps(Warning), None, 0)))
    assert [each[0] for each in warnings.filters] == ["ignore"]


def test_what_this_host_does_not_have_is_told() -> None:
    adopting = Adopting()
    adopting.adopt(directory=b"/not/there", locale="xx_XX.UTF-8")
    here = os.getcwd()
    assert adopting.lacks == [
        (
            "directory of berta",
            f"berta has no working directory '/not/there' (No such file or directory); tasks there have {here!r}",
        ),
        ("locale of berta", "berta does not have the program's locale 'xx_XX.UTF-8'"),
    ]


def test_a_name_that_no_environment_takes_is_passed_over() -> None:
    Adopting().adopt(environ={b"A=B": b"1", b"": b"2", b"GOOD": b"3"})
    assert os.environ["GOOD"] == "3"


def test_a_limit_below_the_present_depth_is_left_as_it_is() -> None:
    adopting = Adopting()
    first = adopting.adopt(recursion_limit=10_000)

    def down(n: int) -> None:
        if n:
            down(n - 1)
        else:
            adopting.adopt(first, recursion_limit=100)

    down(2000)
    assert sys.getrecursionlimit() == 41_000
