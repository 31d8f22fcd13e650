"""Calls that a task submits, waited for with others as `concurrent.futures` does it."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any

import pytest

from hdphrs.api.future import AWAY, DONE, Future, state
from hdphrs.executor.inside import InsideFuture

N = 5


class _Port:
    """Of a scheduler to which outcomes come whenever something is received: at `poll`, and in the loop."""

    def __init__(self) -> None:
        self.tasks: list[Future[int]] = []
        self.has_outcomes = False
        self._calls: dict[Future[Any], list[Callable[[], object]]] = {}

    def child(self) -> Future[int]:
        task: Future[int] = Future()
        task._function, task._status = None, AWAY
        self.tasks.append(task)
        return task

    def poll(self, future: Future[Any]) -> bool:
        if self.has_outcomes:
            self.receive(*(task for task in self.tasks if task is not future))
        return False

    def receive(self, *tasks: Future[int]) -> None:
        for task in tasks:
            task._content, task._status = self.tasks.index(task), DONE
            for call in self._calls.pop(task, ()):
                call()

    def watch(self, future: Future[Any], call: Callable[[], object]) -> None:
        self._calls.setdefault(future, []).append(call)

    def bell(self) -> _Bell:
        return _Bell(self)


class _Bell:
    def __init__(self, port: _Port) -> None:
        self._port = port

    def ring(self) -> None:
        """Whoever waits looks by itself."""

    def wait(self, for_s: float | None = None) -> bool:
        if for_s == 0.0:
            return False
        left = [task for task in self._port.tasks if task._status is AWAY]
        assert left, "the task waits for ever"
        self._port.receive(left[-1])
        return True


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> _Port:
    port = _Port()
    monkeypatch.setattr(state, "port", port)
    return port


@pytest.mark.parametrize("how", ["wait", "as_completed"])
def test_outcomes_that_come_while_a_wait_begins_are_counted_once(port: _Port, how: str) -> None:
    """Once the wait had counted a call as pending, received its outcome, and then did not count it any more."""
    calls = [InsideFuture(port.child()) for _ in range(N)]
    assert not concurrent.futures.wait(calls, timeout=0).done  # from now on outcomes fill them
    port.has_outcomes = True
    if how == "wait":
        done, pending = concurrent.futures.wait(calls)
        assert (len(done), len(pending)) == (N, 0)
    else:
        assert sorted(call.result() for call in concurrent.futures.as_completed(calls)) == list(range(N))
    assert sorted(call.result() for call in calls) == list(range(N))
