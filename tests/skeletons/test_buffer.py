"""The parallel buffer: how much it takes in, and when."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

import hdphrs
from hdphrs.api.future import AWAY, DONE, Future, state
from hdphrs.api.sequential import SequentialPort
from hdphrs.errors import UsageError
from hdphrs.protocol.tasks import NodeId
from hdphrs.skeletons import buffer as module
from tests.e2e.harness import cluster as open_cluster

BUFFERS: list[Any] = [hdphrs.par_buffer, hdphrs.push_buffer, hdphrs.fork_buffer]

every_buffer = pytest.mark.parametrize("buffer", BUFFERS, ids=lambda each: each.name)


class Tap:
    """An endless stream that knows how much has been taken."""

    def __init__(self) -> None:
        self.taken = 0

    def __iter__(self) -> Iterator[int]:
        for number in count():
            self.taken += 1
            yield number


@every_buffer
@pytest.mark.parametrize("ordered", [True, False])
def test_items_are_taken_when_results_are_asked_for_and_no_more_than_fit(buffer: Any, ordered: bool) -> None:
    tap = Tap()
    with hdphrs.sequential():
        results = buffer(5, abs, tap, ordered=ordered)
        assert tap.taken == 0
        for asked in range(1, 20):
            next(results)
            assert tap.taken == asked + 4


@every_buffer
def test_an_endless_stream_is_mapped_in_order(buffer: Any) -> None:
    with hdphrs.sequential():
        assert list(islice(buffer(3, str, count()), 7)) == ["0", "1", "2", "3", "4", "5", "6"]


@every_buffer
def test_an_exception_comes_where_its_result_would(buffer: Any) -> None:
    with hdphrs.sequential():
        results = buffer(4, (12).__floordiv__, [1, 2, 0, 3])
        assert [next(results), next(results)] == [12, 6]
        with pytest.raises(ZeroDivisionError):
            next(results)


class Slow(SequentialPort):
    """Tasks end when they are waited for, and when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.flying: dict[int, Future[Any]] = {}

    def spawn(self, function: Callable[..., Any], args: Any, kwargs: Any, supervised: bool | None) -> Future[Any]:
        future = super().spawn(function, args, kwargs, supervised)
        future._status = AWAY
        self.flying[args[0]] = future
        return future

    def wait(self, future: Future[Any]) -> Any:
        future._status = DONE
        return hdphrs.get(future)

    def finish(self, *numbers: int) -> None:
        for number in numbers:
            self.flying[number]._status = DONE

    def nodes(self) -> Sequence[NodeId]:
        return [NodeId(0)]


@every_buffer
def test_without_order_what_is_there_comes_before_what_is_not(buffer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "first_full", lambda flying: flying[0])
    with hdphrs.sequential():
        port = Slow()
        state.port = port
        results = buffer(4, abs, range(6), ordered=False)
        assert next(results) == 0  # nothing is there: the oldest
        port.finish(3, 2)
        assert [next(results), next(results)] == [2, 3]
        port.finish(5)
        assert list(results) == [5, 1, 4]


@pytest.mark.slow
def test_without_order_nobody_waits_for_a_task_that_takes_long(tmp_path: Path) -> None:
    """The first one ends when five others have come."""
    program = """
        import sys, time
        from pathlib import Path
        import hdphrs

        gate = Path(sys.argv[1])

        def work(number):
            while number == 0 and not gate.exists():
                time.sleep(1e-3)
            return number

        def main():
            results = hdphrs.par_buffer(3, work, range(7), ordered=False)
            first = [next(results) for _ in range(5)]
            gate.touch()
            return sorted(first), sorted(results)

        print(main())
    """
    with open_cluster(tmp_path) as cluster:
        completed = cluster.run("--cores", 2, cluster.write(program), tmp_path / "gate", deadline_s=30)
    first, rest = ast.literal_eval(completed.stdout)
    assert 0 not in first
    assert sorted(first + rest) == list(range(7))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, abs, []), "size must be a positive int, not 0"),
        ((1, 2, []), "function must be callable, not 2"),
        ((1, abs, 3), "items must be iterable, not 3"),
    ],
)
@every_buffer
def test_a_mistake_is_the_callers_before_anything_is_asked_for(
    buffer: Any, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=f"^{buffer.name}: {message}$"):
        buffer(*arguments)
    with pytest.raises(UsageError, match="ordered must be True or False, not 1"):
        buffer(1, abs, [], ordered=1)
