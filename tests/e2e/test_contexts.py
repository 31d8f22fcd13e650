"""What a task sets is seen by itself and its children only, and the same wherever a child runs (`seeing.py`)."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import DEADLINE_S, Cluster
from tests.e2e.seeing import SCENARIOS, SIGNALS
from tests.e2e.seeing_threads import SCENARIOS as OF_THREADS

FOLDER = Path(__file__).parent

PRECISE = "0.3333333333333333333333333333"

RIGHT: dict[str, Any] = {
    "decimals_in_a_block": ["0.333333333", PRECISE],
    "decimals_set_by_a_child": ["0.33333", PRECISE],
    "decimals_set_after_the_spawn": ["0.33333333", "0.3333"],
    "variable": ["the parent's", "the parent's"],
    "variable_of_another_task": "none",
    "variable_that_cannot_travel": "none",
    "within_a_context": [["inside", "inside"], "none"],
    "errstate": [["raises", "goes on", "raises"], "[0.33333333]"],
    "loop_within_a_loop": [7, True],
    "loop_that_is_set": True,
    "loops_of_neighbours": [[7, True], [8, True]],
    "trio_within_trio": [7, True],
    "trio_within_asyncio": 7,
    "stream": ["before\nafter\n", True],
    "stream_of_a_child": [False, True],
    "filters": ["goes on", "raises", 1],
    "generator": ["a", "a", "b"],
    "stack_of_contexts": [["a", "b", "0.333"], "none"],
    "nested": [180, PRECISE],
    "two_generations": [["ab", "ab"], "a"],
    "prints_of_a_thread": [[["0", "child"], True], True, True],
    "prints_of_threads_of_nested_tasks": [["2", "child"], True, ["1", "child"], True, ["0", "child"], True],
    "warnings_in_a_thread": [["goes on", "raises"], "raises", False],
    "threads_of_a_pool": [False, True],
    "logs_in_a_thread": [["child's"], ["mine"]],
    "thread_that_outlives_its_task": "parent\n",
    "what_a_thread_sets": [True, True],
    "handlers": [True, True],
    "alarm": ["late", "unharmed"],
}

OF_THE_PROGRAM = {
    "alone": ["0.333333", "the program's", "none"],
    "bundle": ["the program's0.333333"],
    "placed": "the program's",
    "executor": ["0.333333", "the program's", "the program's", "the program's"],
    "after": ["0.333333", "the program's"],
}

MODES = {
    "in turns": (["--cores", "1"], ["in_place", "on_a_stack", "placed", "in_a_map", "program"]),
    "stolen": (["--cores", "2"], ["stolen"]),
    "sequential": (["--sequential"], ["in_place", "on_a_stack", "placed", "in_a_map", "program", "--no-signals"]),
}


@functools.cache
def seen(mode: str, program: str = "seeing.py") -> dict[str, Any]:
    """What a program's tasks have seen."""
    options, ways = MODES[mode]
    command = [sys.executable, "-m", "hdphrs", "run", *options, str(FOLDER / program), *ways]
    env = os.environ | {"PYTHONPATH": str(FOLDER.parents[1])}
    run = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False, env=env)
    assert run.returncode == 0, run.stderr
    assert "not shown" not in run.stdout
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-2])
    return found


CASES = [
    (mode, way, scenario.__name__)
    for mode, (_, ways) in MODES.items()
    for way in ways
    for scenario in (SCENARIOS if "--no-signals" in ways else SCENARIOS + SIGNALS)
    if way not in ("program", "--no-signals")
]


@pytest.mark.parametrize(("mode", "way", "scenario"), CASES)
def test_what_tasks_see_does_not_depend_on_who_runs_them(mode: str, way: str, scenario: str) -> None:
    assert seen(mode)[f"{scenario} {way}"] == RIGHT[scenario]


@pytest.mark.parametrize("scenario", [scenario.__name__ for scenario in OF_THREADS])
@pytest.mark.parametrize(("mode", "way"), dict.fromkeys((mode, way) for mode, way, _ in CASES))
def test_what_threads_of_tasks_see_is_what_their_task_has(mode: str, way: str, scenario: str) -> None:
    assert seen(mode, "seeing_threads.py")[f"{scenario} {way}"] == RIGHT[scenario]


@pytest.mark.parametrize("mode", ["in turns", "sequential"])
def test_tasks_of_a_program_see_what_it_has_set_and_it_does_not_see_what_they_set(mode: str) -> None:
    assert seen(mode)["program"] == OF_THE_PROGRAM


def test_a_process_that_sets_nothing_isolates_nothing(cluster: Cluster) -> None:
    """And loads nothing for it."""
    program = cluster.write("""
        import sys
        import hdphrs
        from hdphrs.api import future

        def look():
            names = ["contextvars", "asyncio", "decimal", "numpy", "trio", "hdphrs.contexts.travel"]
            names += ["_contextvars"] * (sys.version_info < (3, 14))  # since then Python's own threading loads it
            return [future.isolates, [name for name in names if name in sys.modules]]

        def work():
            hdphrs.get(hdphrs.spawn(abs, -1))
            print("said", file=sys.stderr)
            return look()

        def importing():
            import decimal
            return future.isolates

        if __name__ == "__main__":
            print(hdphrs.run(work), hdphrs.run(importing))
    """)
    process = cluster.start("--cores", "1", program)
    assert process.communicate(timeout=DEADLINE_S)[0] == "[False, []] True\n"


@pytest.mark.parametrize("how", ["run", "python", "configure"])
def test_contexts_can_be_turned_off(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how != "configure":
        monkeypatch.setenv("HDPHRS_CONTEXTS", "0")
    program = cluster.write(f"""
        import decimal
        import hdphrs
        from hdphrs.api import future

        def work():
            decimal.getcontext().prec = 5
            return future.isolates, str(decimal.Decimal(1) / 3)

        if __name__ == "__main__":
            decimal.getcontext().prec = 3
            {how == "configure"} and hdphrs.configure(contexts=False)
            print(hdphrs.run(work))
    """)
    is_plain = how != "run"
    process = cluster.start(*([] if is_plain else ["--cores", "1"]), program, python=is_plain)
    assert process.communicate(timeout=DEADLINE_S)[0] == "(False, '0.33333')\n"


def test_what_cannot_travel_neither_fails_nor_slows_a_program_down(cluster: Cluster) -> None:
    """As a web framework or a tracer has it in its context: requests, locks, variables that nothing names."""
    program = cluster.write("""
        import contextvars, threading, time
        import hdphrs

        REQUEST = contextvars.ContextVar("REQUEST")

        class Request:
            def __init__(self):
                self.lock = threading.Lock()
                self.pickled = 0
            def __reduce__(self):
                self.pickled += 1
                raise TypeError("a request does not pickle")

        def add(n):
            return n + 1

        def missing():
            return REQUEST.get(None) is None

        def main():
            request = Request()
            REQUEST.set(request)
            hidden = [contextvars.ContextVar(f"hidden{n}") for n in range(20)]
            for variable in hidden:
                variable.set(request)
            assert sum(hdphrs.get([hdphrs.spawn(add, n)][0]) for n in range(50)) == 1275
            assert hdphrs.get(hdphrs.spawn(missing))
            print(request.pickled)

        if __name__ == "__main__":
            main()
    """)
    process = cluster.start("--cores", "1", program)
    assert process.communicate(timeout=DEADLINE_S)[0] == "1\n"
