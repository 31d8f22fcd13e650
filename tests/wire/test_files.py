"""The bound of open files: raised as far as it is allowed, and no further than is of use.  The standard descriptors."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from hdphrs.wire import files
from hdphrs.wire.files import OPEN_MAX, OUT_OF_THE_WAY, allow_many, beyond_standard, out_of_the_way

ALL = resource.RLIM_INFINITY

ALL_FILES = 1 << 28
"""More than a process may have open."""


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [(256, 4096, 4096), (1024, 1 << 20, OPEN_MAX), (1024, ALL, OPEN_MAX), (4096, 4096, None), (1 << 20, 1 << 20, None)],
)
def test_bound_is_raised_as_far_as_allowed_and_never_lowered(
    soft: int, hard: int, raised: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, bounds: asked.append(bounds))
    allow_many()
    assert asked == ([] if raised is None else [(raised, hard)])


def test_system_that_refuses_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: int, bounds: tuple[int, int]) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, ALL))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    allow_many()


@pytest.mark.parametrize(("room", "first"), [(1024, OUT_OF_THE_WAY), (ALL, OUT_OF_THE_WAY), (64, 32)])
def test_descriptor_out_of_the_way_has_a_high_number_and_is_not_inherited(
    room: int, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (room, room))
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    moved = out_of_the_way(reading)
    assert moved >= first
    assert not os.get_inheritable(moved)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(reading)
    os.write(writing, b"x")
    assert os.read(moved, 1) == b"x"
    os.close(moved)
    os.close(writing)


def test_descriptor_stays_where_it_is_if_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (2 * ALL_FILES, 2 * ALL_FILES))
    monkeypatch.setattr(files, "OUT_OF_THE_WAY", ALL_FILES)
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    assert out_of_the_way(reading) == reading
    assert not os.get_inheritable(reading)
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("inherited", [True, False])
def test_closed_standard_descriptors_are_occupied_and_no_others_touched(inherited: bool) -> None:
    code = f"""if True:
        import os, stat, sys
        from itertools import combinations
        from hdphrs.wire.files import occupy_standard
        output = os.dup(1)
        for count in range(4):
            for closed in combinations(range(3), count):
                for number in range(3):
                    os.dup2(output, number)
                for number in closed:
                    os.close(number)
                occupy_standard(inherited={inherited})
                is_null = [os.fstat(number).st_rdev == os.stat(os.devnull).st_rdev for number in range(3)]
                assert is_null == [number in closed for number in range(3)], closed
                assert all(os.get_inheritable(number) == {inherited} for number in closed)
        os.write(output, b"right")
    """
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert completed.stdout.endswith(b"right"), completed


def test_descriptor_gets_a_number_beyond_the_standard_ones() -> None:
    code = """if True:
        import os, sys
        from hdphrs.wire.files import beyond_standard
        os.close(2)
        low, high = os.pipe()
        assert low == 2
        moved = beyond_standard(low)
        assert moved > 2 and not os.get_inheritable(moved)
        os.write(high, b"right")
        assert os.read(moved, 5) == b"right"
        try:
            os.fstat(2)
        except OSError:
            os.write(1, b"closed as before")
    """
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert completed.stdout == b"closed as before"


def test_number_beyond_the_standard_ones_is_kept() -> None:
    reading, writing = os.pipe()
    assert (beyond_standard(reading), beyond_standard(writing)) == (reading, writing)
    os.close(reading)
    os.close(writing)
