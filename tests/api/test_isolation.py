"""Each task in a context of its own, when one may have been set."""

from __future__ import annotations

import contextvars
import io
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from hdphrs.api import future as fast
from hdphrs.api.apart import call_apart
from hdphrs.api.future import Future, context_of, get, spawn
from hdphrs.api.isolation import NESTED_MAX, Isolation
from hdphrs.contexts.aspects import streams

VAR: ContextVar[str] = ContextVar("VAR", default="none")


@pytest.fixture(autouse=True)
def task(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test here runs as if inside a task, in a process that isolates tasks."""
    task: Future[Any] = Future()
    task._function, task._parent, task._spawned = None, None, 0
    monkeypatch.setattr(fast.here, "task", task)
    monkeypatch.setattr(fast, "isolation", Isolation())
    monkeypatch.setattr(fast, "isolates", True)
    fast.sparks.clear()
    yield
    VAR.set("none")
    fast.sparks.clear()


def sets(value: str) -> str:
    before = VAR.get()
    VAR.set(value)
    return before


def test_a_child_has_what_its_parent_had_set_when_it_was_spawned_and_the_parent_does_not_see_its_own() -> None:
    VAR.set("a")
    future = spawn(sets, "child's")
    VAR.set("b")
    assert get(future) == "a"
    assert VAR.get() == "b"
    assert get(spawn(sets, value="by keyword")) == "b"


def test_a_child_that_fails_leaves_nothing_either() -> None:
    def fails() -> None:
        VAR.set("failed")
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the test's own
        get(spawn(fails))
    assert VAR.get() == "none"


@pytest.mark.parametrize("depth", [1, NESTED_MAX, 3 * NESTED_MAX])
def test_tasks_may_be_nested_deep(depth: int) -> None:
    def down(left: int) -> int:
        VAR.set(str(left))
        below = get(spawn(down, left - 1)) if left else 0
        assert VAR.get() == str(left)
        return below + 1

    assert get(spawn(down, depth)) == depth + 1
    assert fast.isolation.nested == 0


def test_a_parent_may_be_in_a_context_of_its_own_making_at_any_depth() -> None:
    def down(left: int) -> str:
        def inside() -> str:
            VAR.set("inside")
            return get(spawn(down, left - 1)) if left else VAR.get()

        try:
            return contextvars.copy_context().run(inside)
        finally:
            assert VAR.get() == ("inside" if left < NESTED_MAX + 10 else "none")

    assert get(spawn(down, NESTED_MAX + 10)) == "inside"


def test_a_task_that_began_before_leaves_an_empty_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "isolates", False)

    def begins() -> None:
        fast.isolates = True
        VAR.set("mine")

    early = spawn(sets, "x")
    get(spawn(begins))
    assert VAR.get() == "none"
    VAR.set("parent's")
    assert get(early) == "none"
    assert VAR.get() == "parent's"


def test_items_of_a_task_do_not_see_what_others_set(monkeypatch: pytest.MonkeyPatch) -> None:
    VAR.set("task's")
    assert [call_apart(sets, value) for value in "abc"] == 3 * ["task's"]
    monkeypatch.setattr(fast, "isolates", False)
    VAR.set("none")

    def begins() -> str:
        fast.isolates = True
        return sets("mine")

    assert [call_apart(begins) for _ in range(2)] == 2 * ["none"]


def test_the_context_of_a_spawn_is_known_when_the_task_has_run() -> None:
    VAR.set("a")
    future = spawn(sets, "b")
    before = context_of(future)
    get(future)
    assert context_of(future) == before != b""
    monkey = spawn(abs, -1)
    assert context_of(monkey) == before


def test_what_is_suspended_goes_on_as_it_was() -> None:
    fast.isolation.nested = 3
    before = fast.isolation.suspend()
    assert fast.isolation.nested == 0
    fast.isolation.resume(before)
    assert fast.isolation.nested == 3
    fast.isolation.resume(None)
    assert fast.isolation.nested == 0


def test_threads_count_their_tasks_for_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task in a thread may end while those of the main thread are left where they are; the next one is isolated."""
    base, theirs = sys.stdout, io.StringIO()
    isolation = Isolation(streams())
    inside, go_on = threading.Event(), threading.Event()
    seen: list[Any] = []

    def waits() -> None:
        inside.set()
        go_on.wait()

    def in_thread(function: Callable[[], object]) -> threading.Thread:
        future: Future[Any] = Future()
        thread = threading.Thread(target=lambda: seen.append(isolation.run(future, function, ())))
        thread.start()
        return thread

    def main() -> None:
        first = in_thread(waits)
        inside.wait()
        before = isolation.suspend()
        go_on.set()
        first.join()
        counted.append(isolation.nested)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", theirs)
            in_thread(lambda: sys.stdout is base).join()
        isolation.resume(before)
        in_thread(lambda: counted.append(isolation.nested)).join()

    counted: list[int] = []
    isolation.call(contextvars.Context(), main, (), {})
    assert seen == [None, True, None]
    assert (counted, isolation.nested) == ([0, 1], 0)


def test_a_thread_nests_tasks_deep_too() -> None:
    isolation, seen = Isolation(streams()), list[int]()

    def nests(depth: int) -> str:
        VAR.set(str(depth))
        if depth:
            isolation.run(Future(), nests, (depth - 1,))
        seen.append(int(VAR.get()))
        return VAR.get()

    thread = threading.Thread(target=lambda: isolation.run(Future(), nests, (NESTED_MAX + 20,)))
    thread.start()
    thread.join()
    assert seen == list(range(NESTED_MAX + 21))
    assert isolation.nested == 0
