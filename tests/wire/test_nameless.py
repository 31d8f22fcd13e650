"""Memory without a name, and what takes its place where the system refuses it."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from pathlib import Path

import pytest

from hdphrs.wire import nameless as module
from hdphrs.wire.nameless import nameless
from hdphrs.wire.page import Page


def refuse(*_: object) -> int:
    raise PermissionError(1, "not here")


@pytest.fixture(params=["memory", "refused", "refused, and no /dev/shm"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    if request.param != "memory":
        monkeypatch.setattr(os, "memfd_create", refuse, raising=False)
    if request.param == "refused, and no /dev/shm":
        monkeypatch.setattr(module, "SHARED_MEMORY", str(tmp_path / "none"))
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return str(request.param)


def test_memory_is_shared_has_its_size_and_leaves_no_name(way: str, tmp_path: Path) -> None:
    descriptor = nameless("hdphrs-test", 4096)
    try:
        assert os.fstat(descriptor).st_size == 4096
        assert not os.get_inheritable(descriptor)
        with mmap.mmap(descriptor, 4096) as one, mmap.mmap(descriptor, 4096) as other:
            one[7] = 42
            assert other[7] == 42
    finally:
        os.close(descriptor)
    assert list(tmp_path.iterdir()) == []


def test_page_is_made_where_memory_is_refused(way: str) -> None:
    page = Page.create(2)
    page.line(1).run(5, careful=False, again=False)
    assert page.line(1).running == 5
    page.close()


@pytest.mark.skipif(sys.platform != "linux", reason="seals are known to Linux alone")
@pytest.mark.parametrize("size", [0, 1 << 20])
def test_memory_of_a_size_keeps_it_whatever_a_task_does_to_its_descriptor(size: int) -> None:
    descriptor = nameless("hdphrs-test", 4096)
    with pytest.raises(PermissionError):
        os.ftruncate(descriptor, size)
    os.close(descriptor)


def test_memory_without_a_size_grows() -> None:
    descriptor = nameless("hdphrs-test")
    assert os.write(descriptor, b"abc") == 3
    os.close(descriptor)


def test_want_of_descriptors_is_an_error_whichever_way(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    def exhausted(*_: object, **__: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", exhausted, raising=False)
    monkeypatch.setattr(tempfile, "TemporaryFile", exhausted)
    with pytest.raises(OSError, match="Too many open files"):
        nameless("hdphrs-test", 64)
