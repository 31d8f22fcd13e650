"""When a task of a skeleton fails, or nobody wants the rest any more, the others are cancelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import hdphrs
from hdphrs.api.future import AWAY, DONE, Future, state
from hdphrs.api.sequential import SequentialPort
from tests.e2e.harness import cluster as open_cluster


class Away(SequentialPort):
    """All tasks are elsewhere until they are waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.cancelled: list[Any] = []

    def spawn(self, function: Callable[..., Any], args: Any, kwargs: Any, supervised: bool | None) -> Future[Any]:
        future: Future[Any] = Future()
        future._function = None
        future._status = AWAY
        future._content = function, args
        return future

    def wait(self, future: Future[Any]) -> Any:
        function, args = future._content
        future._content = function(*args)
        future._status = DONE
        return future._content

    def cancel(self, future: Future[Any]) -> bool:
        self.cancelled.append(future._content[1][0])
        return True


@pytest.fixture
def port() -> Iterator[Away]:
    with hdphrs.sequential():
        state.port = port = Away()
        yield port


def fail_at_two(item: Any) -> Any:
    if item == 2:
        raise LookupError
    return item


def next_three(node: int) -> list[int]:
    return [1, 2, 3] if node == 0 else []


FAILING: list[tuple[Callable[[], object], list[Any]]] = [
    (lambda: hdphrs.par_map(fail_at_two, range(5)), [2, 3, 4]),
    (lambda: hdphrs.push_map_chunked(1, fail_at_two, range(5)), [[2], [3], [4]]),
    (lambda: hdphrs.fork_map_sliced(4, fail_at_two, range(5)), [[2], [3]]),
    (lambda: hdphrs.par_map_reduce(fail_at_two, max, range(5), 0, chunk=1), [[2], [3], [4]]),
    (lambda: hdphrs.par_enumerate(next_three, fail_at_two, max, 0, 0, depth=1), [(1, 2), (1, 3), (0, 0)]),
    (lambda: list(hdphrs.par_buffer(3, fail_at_two, range(9))), [3, 4]),
]


@pytest.mark.parametrize(("call", "cancelled"), FAILING)
def test_when_a_task_fails_those_that_are_still_under_way_are_cancelled(
    port: Away, call: Callable[[], object], cancelled: list[Any]
) -> None:
    with pytest.raises(LookupError):
        call()
    assert port.cancelled == cancelled


def test_a_stream_that_is_left_cancels_what_is_under_way(port: Away) -> None:
    results = hdphrs.par_buffer(3, abs, count())
    assert next(results) == 0
    del results
    assert port.cancelled == [1, 2]


def test_a_decision_cancels_what_it_need_not_know_any_more(port: Away) -> None:
    assert hdphrs.par_decide(next_three, (2).__eq__, 0, depth=1) == 2
    assert port.cancelled == [(1, 3)]


@pytest.mark.slow
def test_cancelled_tasks_leave_the_cores_to_others(tmp_path: Path) -> None:
    """On two nodes of one core, with tasks that would never end."""
    program = """
        import hdphrs

        def endless(item):
            if item == 1:
                raise LookupError
            while True:
                hdphrs.get(hdphrs.spawn(abs, 1))

        def main():
            try:
                hdphrs.push_map(endless, [1, 2, 3, 4])
            except LookupError:
                return hdphrs.push_map(abs, range(4))

        print(hdphrs.run(main))
    """
    with open_cluster(tmp_path) as cluster:
        completed = cluster.run("--local-nodes", 2, "--cores", 1, cluster.write(program))
    assert completed.stdout == "[0, 1, 2, 3]\n", completed.stderr
