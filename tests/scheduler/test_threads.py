"""Threads of tasks: whose they are, and what that costs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from threading import get_ident

import pytest

from hdphrs.api import future as fast
from hdphrs.api import threads as api_threads
from hdphrs.api.future import DONE, Here, get, spawn
from hdphrs.api.threads import FIRST_THREAD
from hdphrs.errors import UsageError
from hdphrs.protocol.paths import child_path
from hdphrs.scheduler.assigned import is_below, path_of
from hdphrs.scheduler.threads import ENDED, REMEMBERED_MAX, ThreadedHere, Threads
from tests.scheduler.test_export import assigned

ended: list[object] = []


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Threads]:
    for module, name in api_threads.STARTERS:
        if hasattr(module, name):
            monkeypatch.setattr(module, name, getattr(module, name))  # so that it is put back
    made = Threads(lambda task: task in ended)
    made.install()
    fast.here.task = assigned(0)
    fast.here.task._spawned = 0
    yield made
    fast.here.task = None
    ended.clear()
    fast.sparks.clear()


def in_thread(body: object) -> None:
    thread = threading.Thread(target=body)  # type: ignore[arg-type]
    thread.start()
    thread.join()


def test_thread_spawns_below_its_task_in_the_order_of_the_threads(threads: Threads) -> None:
    task = fast.here.task
    assert task is not None
    paths: list[bytes] = []

    def body() -> None:
        futures = [spawn(abs, -n) for n in range(2)]
        assert all(is_below(future, task) for future in futures)
        paths.extend(path_of(future) for future in futures)

    in_thread(body)
    in_thread(body)
    own = path_of(task)
    assert paths == [child_path(child_path(own, FIRST_THREAD + k), n) for k in range(2) for n in range(2)]
    assert task._spawned == 0


def test_thread_runs_its_sparks_in_place_and_leaves_the_main_thread_what_it_has(threads: Threads) -> None:
    task, ran = fast.here.task, fast.here.ran
    values: list[object] = []

    def body() -> None:
        assert type(fast.here) is ThreadedHere
        values.append(get(spawn(lambda: get(spawn(abs, -3)))))

    in_thread(body)
    assert values == [3]
    assert (fast.here.task, fast.here.ran) == (task, ran)
    assert type(fast.here) is Here


def test_main_thread_goes_on_in_the_middle_of_a_get_while_threads_come_and_go(threads: Threads) -> None:
    outer = fast.here.task

    def child() -> bool:
        inner = fast.here.task
        in_thread(lambda: spawn(abs, 1))
        return fast.here.task is inner and inner is not outer

    assert get(spawn(child))
    assert fast.here.task is outer


def test_class_of_here_may_change_back_while_somebody_asks(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last thread of a task ends while the main one is inside a property."""
    task = fast.here.task

    class Changes:
        task = None

        @property
        def is_known(self) -> bool:
            fast.here.__class__ = Here
            return False

    def changes_back() -> int:
        fast.here.__class__ = Here
        return get_ident()

    with threads.joined(task), monkeypatch.context() as patch:
        patch.setattr("hdphrs.scheduler.threads._own", Changes())
        fast.here.ran += 0
        assert fast.here.ran >= 0
        patch.setattr("hdphrs.scheduler.threads.get_ident", changes_back)
        fast.here.__class__ = ThreadedHere
        assert fast.here.task is task
        fast.here.__class__ = ThreadedHere
        fast.here.task = task


def test_thread_of_a_thread_belongs_to_it(threads: Threads) -> None:
    below: list[bool] = []

    def body() -> None:
        own = fast.here.task
        assert own is not None
        in_thread(lambda: below.append(is_below(spawn(abs, 1), own)))

    in_thread(body)
    assert below == [True]


def test_thread_whose_task_has_ended_is_refused(threads: Threads) -> None:
    said: list[str] = []

    def body() -> None:
        ended.append(fast.here.task._parent)  # type: ignore[union-attr]
        for call in (lambda: spawn(abs, 1), lambda: fast.here.task):
            with pytest.raises(UsageError) as refusal:
                call()
            said.append(str(refusal.value))

    in_thread(body)
    assert said == [ENDED, ENDED]


def test_thread_that_is_started_while_another_one_is_numbered_has_its_own_number(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a finaliser, for instance; once it waited for ever for the lock that its own thread had."""
    paths: list[bytes] = []

    def body() -> None:
        paths.append(path_of(spawn(abs, -1)))

    def starts_another(task: object) -> bool:
        monkeypatch.setattr(threads, "_has_ended", lambda task: False)
        in_thread(body)
        return False

    for n in range(REMEMBERED_MAX + 1):
        threads._identity(assigned(n))
    monkeypatch.setattr(threads, "_has_ended", starts_another)
    in_thread(body)
    assert len(set(paths)) == 2


def test_thread_that_no_task_starts_and_our_own_belong_to_nobody(threads: Threads) -> None:
    main = fast.here.task
    seen: list[object] = []
    ours = threading.Thread(target=lambda: seen.append(fast.here.task), name="hdphrs-test")
    ours.start()
    ours.join()
    fast.here.task = None
    in_thread(lambda: seen.append(fast.here.task))
    assert seen == [main, None]
    assert threads.live == 0


def test_callbacks_spawn_below_their_future_and_for_its_parent(threads: Threads) -> None:
    future = spawn(abs, -1)
    identity = threads.of_callbacks(future)
    assert identity is not None
    assert is_below(identity, future)
    ended.append(fast.here.task)
    future._status = DONE
    with pytest.raises(UsageError):
        identity.check()  # type: ignore[attr-defined]
