"""How many threads numerical libraries use in a scheduler."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hdphrs.scheduler.native_threads import FOLLOWERS, OPENMP, OTHERS, NativeThreads, schedulers_here

ALL = (OPENMP, *FOLLOWERS, *OTHERS)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = {name: os.environ.pop(name, None) for name in ALL}
    monkeypatch.setattr("hdphrs.scheduler.native_threads.LIMITED", ())
    yield
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def test_each_scheduler_has_its_share_of_the_cores() -> None:
    for cores, schedulers, share in ((8, 8, 1), (8, 2, 4), (8, 3, 2), (2, 4, 1)):
        threads = NativeThreads()
        for name in ALL:
            os.environ.pop(name, None)
        threads.divide(cores, schedulers)
        assert threads.share == share
        assert {os.environ[name] for name in ALL} == {str(share)}


def test_the_share_follows_the_nodes_of_the_host() -> None:
    threads = NativeThreads()
    threads.divide(8, 2)
    threads.divide(8, schedulers_here([[1, "here", 2], [2, "far", 16], [3, "here", 2], [4, "", 0]]))
    assert {os.environ[name] for name in ALL} == {"2"}


def test_what_the_user_has_set_holds_and_those_that_follow_it_follow() -> None:
    os.environ[OPENMP] = "3"
    threads = NativeThreads()
    threads.divide(4, 4)
    assert os.environ[OPENMP] == "3"
    assert not any(name in os.environ for name in FOLLOWERS), "they take OMP_NUM_THREADS then"
    assert {os.environ[name] for name in OTHERS} == {"1"}


def test_one_library_that_the_user_has_set_holds_alone() -> None:
    os.environ["MKL_NUM_THREADS"] = "5"
    NativeThreads().divide(4, 4)
    assert os.environ["MKL_NUM_THREADS"] == "5"
    assert {os.environ[name] for name in ALL if name != "MKL_NUM_THREADS"} == {"1"}


def test_what_a_task_has_set_or_removed_since_stays_so() -> None:
    threads = NativeThreads()
    threads.divide(8, 2)
    os.environ["NUMBA_NUM_THREADS"] = "7"
    del os.environ["POLARS_MAX_THREADS"]
    threads.divide(8, 4)
    assert os.environ["NUMBA_NUM_THREADS"] == "7"
    assert "POLARS_MAX_THREADS" not in os.environ
    assert os.environ[OPENMP] == "2"


class Library:
    def __init__(self, internal_api: str, num_threads: int) -> None:
        self.internal_api = internal_api
        self.num_threads = num_threads

    def set_num_threads(self, count: int) -> None:
        self.num_threads = count


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Library]:
    libraries = [Library("openblas", 8), Library("mkl", 8), Library("openmp", 8)]
    module: Any = ModuleType("threadpoolctl")
    module.ThreadpoolController = lambda: SimpleNamespace(lib_controllers=libraries)
    monkeypatch.setitem(sys.modules, "threadpoolctl", module)
    monkeypatch.setattr("hdphrs.scheduler.native_threads.LIMITED", ("sys",))
    return libraries


def test_libraries_that_are_loaded_already_are_told(loaded: list[Library]) -> None:
    threads = NativeThreads()
    threads.divide(8, 4)
    assert [library.num_threads for library in loaded] == [2, 2, 2]
    loaded[1].num_threads = 6  # a task has
    threads.divide(8, 8)
    assert [library.num_threads for library in loaded] == [1, 6, 1]


def test_loaded_libraries_that_the_user_has_set_are_left_alone(loaded: list[Library]) -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "8"
    NativeThreads().divide(8, 8)
    assert [library.num_threads for library in loaded] == [8, 1, 1]


def test_torch_is_told_too(monkeypatch: pytest.MonkeyPatch, loaded: list[Library]) -> None:
    torch: Any = ModuleType("torch")
    told = [8]
    torch.get_num_threads, torch.set_num_threads = lambda: told[-1], told.append
    monkeypatch.setitem(sys.modules, "torch", torch)
    threads = NativeThreads()
    threads.divide(8, 2)
    told.append(3)  # a task has
    threads.divide(8, 4)
    assert told == [8, 4, 3]


def test_without_threadpoolctl_the_environment_is_set_all_the_same(
    monkeypatch: pytest.MonkeyPatch, loaded: list[Library]
) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    NativeThreads().divide(8, 8)
    assert os.environ[OPENMP] == "1"
