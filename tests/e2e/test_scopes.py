"""Scopes in which something fails, on real processes; what is to come out of them is said in `tests/api/scopes.py`."""

from __future__ import annotations

import pytest

from tests.api import scopes
from tests.e2e.harness import Cluster, result_of


@pytest.mark.parametrize("nodes", [1, 2])
def test_failure_counts_once_in_the_program_and_in_a_task_near_and_far(
    cluster: Cluster, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", scopes.__file__.removesuffix("/tests/api/scopes.py"))
    assert result_of(cluster.run("--local-nodes", nodes, "--cores", 2, scopes.__file__)) == "right"


def test_no_task_outlives_a_scope_whose_block_has_got_a_cancelled_future(cluster: Cluster) -> None:
    """`Cancelled` comes out of it, as it does when the task itself is to end, but here there is time to wait."""
    program = cluster.write(
        """
        import hdphrs, sys, time
        from pathlib import Path

        @hdphrs.task(timeout=100)
        def away(path):
            while not Path(path).exists():
                hdphrs.get(hdphrs.spawn(time.sleep, 0.01))

        def here(path):
            hdphrs.get(hdphrs.spawn(away, path))

        def check(gate):
            try:
                with hdphrs.scope() as tasks:
                    first = tasks.spawn(away, gate)
                    second = tasks.spawn(here, gate)
                    try:
                        hdphrs.wait([second], timeout=0.05)
                    except hdphrs.errors.WaitTimeoutError:
                        first.cancel()
                    hdphrs.get(first)
            except hdphrs.Cancelled:
                return second.done()

        gate = sys.argv[1] + "/gate"
        print("result:", check(gate), hdphrs.run(check, gate))
        """
    )
    assert result_of(cluster.run("--local-nodes", 1, "--cores", 1, program, cluster.folder)) == "True True"


def test_handlers_of_tasks_raise_in_them_and_those_of_the_program_leave_futures_as_they_are(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, signal, time

        class Late(Exception):
            pass

        def late(number, frame):
            raise Late

        class Value:
            def __init__(self, number):
                self.number = number
            def __setstate__(self, state):
                vars(self).update(state)
                signal.raise_signal(signal.SIGUSR1)

        @hdphrs.task(timeout=100)
        def make(number):
            return Value(number)

        def get_both():
            signal.signal(signal.SIGUSR1, late)
            future = hdphrs.spawn(make, 7)
            try:
                value = hdphrs.get(future).number
                time.sleep(10)  # what the handler has raised beside this task comes out of its code soon
                return [value]
            except Late:
                return ["late", hdphrs.get(future).number]

        def both():
            result = get_both()
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            return result

        def limited():
            signal.signal(signal.SIGALRM, late)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            try:
                hdphrs.get(hdphrs.spawn(time.sleep, 0.3))
            except Late:
                return "late"

        def get_twice():
            signal.signal(signal.SIGUSR1, late)
            future = hdphrs.spawn(make, 7)
            try:
                return [hdphrs.get(future).number]
            except Late:
                signal.signal(signal.SIGUSR1, signal.SIG_IGN)
                return ["late", hdphrs.get(future).number]

        print("result:", hdphrs.run(both), hdphrs.run(limited), get_twice())
        """
    )
    completed = cluster.run("--local-nodes", 1, "--cores", 2, program)
    assert result_of(completed) == "['late', 7] late ['late', 7]"
    assert "Traceback" not in completed.stderr
