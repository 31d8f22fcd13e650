"""Futures that are waited for in other people's ways are completed by themselves, wherever that is; threads of tasks
spawn and get."""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import completing
from tests.e2e.harness import Cluster, result_of

SQUARES = [0, 1, 4, 9, 16]

OF_A_THREAD = [0, 1, 4], 16, 25, (1,), [0, 1, 4], [0, 1, 4]

ANYWHERE = {
    "in_executor": (9, SQUARES, (7,)),
    "asyncios_own_ways": (16, [0, 1, 4, 9], [0, 1, 4]),
    "asked_in_a_loop": (25, 36, 49),
    "callbacks": ([9], [0, 1, 4, 9]),
    "callbacks_that_go_on": 65536,
    "standard_waits": (True, 5, 0, SQUARES, 2),
    "asked_again_and_again": (64, 81),
    "awaited": (4, [0, 1, 4, 9], 25),
    "awaited_in_trio": ([0, 1, 4, 9], 36),
    "threads": ([([(n + k) ** 2 for n in range(3)], *OF_A_THREAD) for k in range(3)], [0, 1, 4, 9]),
}
WITH_PROCESSES = {
    "late": ["late", "late", "late", "through"],
    "late_in_trio": True,
    "loops_in_loops": 8,
    "set_aside": "outer",
    "first_of_several": (9, 16, (5,), [1]),
    "what_is_set_meanwhile": ([(True, True)] * 3, True, True),
}

TASKS = [("task", "--local-nodes", "1", "--cores", cores) for cores in ("1", "2")]
PROGRAM = ("program", "--local-nodes", "1", "--cores", "2")
SEQUENTIAL = ("task", "--sequential")


def came_out(cluster: Cluster, mode: str, *options: object, which: str) -> Any:
    return literal_eval(result_of(cluster.run(*options, completing.__file__, mode, which)))


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", completing.__file__.removesuffix("/tests/e2e/completing.py"))


@pytest.mark.parametrize("how", [*TASKS, PROGRAM, SEQUENTIAL], ids=["task-1", "task-2", "program", "sequential"])
def test_futures_are_completed_for_those_who_wait_elsewhere(cluster: Cluster, how: tuple[str, ...]) -> None:
    assert came_out(cluster, *how, which="anywhere") == ANYWHERE


@pytest.mark.parametrize("how", [*TASKS, PROGRAM], ids=["task-1", "task-2", "program"])
def test_who_waits_is_held_up_by_nothing_that_runs_meanwhile(cluster: Cluster, how: tuple[str, ...]) -> None:
    assert came_out(cluster, *how, which="processes") == WITH_PROCESSES


def test_what_threads_of_tasks_draw_is_the_same_everywhere(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDPHRS_SEED", "7")
    drawn = [came_out(cluster, *how, which="drawn")["drawn"] for how in (*TASKS, SEQUENTIAL)]
    assert drawn[0] == drawn[1] == drawn[2]
    numbers = [drawn[0][0], *drawn[0][1][0], *drawn[0][2][0]]
    assert len(set(numbers)) == 7


def test_thread_of_a_task_that_has_ended_is_refused(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, threading

        def leave_a_thread():
            threading.told, threading.said = threading.Event(), []

            def body():
                threading.told.wait()
                for call in (lambda: hdphrs.spawn(abs, -1), lambda: hdphrs.Executor().submit(abs, -1), hdphrs.rng):
                    try:
                        call()
                    except hdphrs.errors.UsageError as error:
                        threading.said.append(str(error))

            threading.left = threading.Thread(target=body)
            threading.left.start()

        def ask():
            threading.told.set()
            threading.left.join()
            return set(threading.said), len(threading.said), hdphrs.get(hdphrs.spawn(abs, -3))

        hdphrs.get(hdphrs.spawn(leave_a_thread))
        print("result:", hdphrs.get(hdphrs.spawn(ask)))
        """
    )
    said, count, value = literal_eval(result_of(cluster.run("--local-nodes", 1, "--cores", 1, program)))
    assert said == {"the task that has started this thread has ended; its threads can spawn and get no more"}
    assert (count, value) == (3, 3)
