"""Values, exceptions, arguments and finds that take down the process which unpickles them."""

from __future__ import annotations

import re

import pytest

from tests.e2e.harness import Cluster, entries

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def recorded(cluster: Cluster) -> None:
    """Every run here is replayed in the end, see `Cluster.replay`."""
    cluster.recorded = True


DEADLINE_S = 60.0

TASKS = """
    import ctypes, os, signal, sys, time
    import hdphrs
    from hdphrs.errors import TaskCrashedError

    def kill():
        os.kill(os.getpid(), signal.SIGKILL)

    def segfault():
        ctypes.string_at(0)

    class Exits:
        def __reduce__(self):
            return os._exit, (7,)

    class Killed:
        def __reduce__(self):
            return kill, ()

    class Segfaults(Exception):
        def __reduce__(self):
            return segfault, ()

    def exits(n):
        return Exits()

    def killed(n):
        return Killed()

    def raises(n):
        raise Segfaults

    def takes(argument):
        return 1

    def good(n):
        return [n * n]

    def said(future):
        try:
            return hdphrs.get(future)
        except TaskCrashedError as error:
            assert len(error.attempts) == 3, error.attempts
            return str(error)

    def elsewhere(function, *args):  # it never runs in its parent's place
        return hdphrs.spawn_at(hdphrs.my_node(), function, *args)
"""

READ = "is given up, its value kills the process that reads it, 3 times: "
DIED = re.compile(r"hdphrs: scheduler process \d+ .* while it unpickled the (value|arguments) of task (\w+); it is")


def run(cluster: Cluster, program: str, *options: object) -> tuple[list[str], list[tuple[str, str]]]:
    """What the program printed, and the deaths of schedulers: of what, of which task; there were no others."""
    completed = cluster.run(*options, cluster.write(TASKS + program), deadline_s=DEADLINE_S)
    assert completed.returncode == 0, completed.stderr
    died = DIED.findall(completed.stderr)
    assert len(died) == completed.stderr.count("it is replaced"), completed.stderr
    return completed.stdout.splitlines(), died


@pytest.mark.parametrize("task", ["exits", "killed", "raises"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_get_of_the_child_alone_fails_after_three_deaths_and_its_siblings_are_right(
    cluster: Cluster, task: str, nodes: int
) -> None:
    """Spawned by the program; its exception kills just as a value does."""
    program = f"""
    def parent():
        futures = [elsewhere({task} if n == 3 else good, n) for n in range(8)]
        values = [said(future) for future in futures]
        return values[3], values[:3] + values[4:]

    if __name__ == "__main__":
        crash, values = hdphrs.get(hdphrs.spawn(parent))
        assert values == [[n * n] for n in range(8) if n != 3], values
        print(crash)
    """
    (crash,), died = run(cluster, program, "--local-nodes", nodes)
    assert crash.startswith(f"task {task} {READ}on localhost, process ")
    assert died == [("value", task)] * 3


def test_two_such_children_among_fifty_good_ones(cluster: Cluster) -> None:
    """They may also run in their parent's place, and be right; how many processes they take down is bounded anyhow.

    Some leave together, as bundles.
    """
    program = """
    def slow(n):
        time.sleep(0.001)
        return exits(n) if n in (17, 33) else good(n)

    def parent():
        futures = [hdphrs.spawn(slow, n) for n in range(52)]
        values = [said(future) for future in futures]
        bad = [values.pop(n) for n in (33, 17)]
        return [value if isinstance(value, str) else type(value).__name__ for value in bad], values

    if __name__ == "__main__":
        for _ in range(3):
            bad, values = hdphrs.get(hdphrs.spawn(parent))
            assert values == [[n * n] for n in range(52) if n not in (17, 33)], values
            print(*bad, sep="\\n")
    """
    bad, died = run(cluster, program, "--cores", 2)
    assert len(bad) == 6
    for value in bad:
        assert value == "Exits" or value.startswith(f"task slow {READ}"), value
    assert len(died) <= 3 * len(bad)


@pytest.mark.parametrize("nodes", [1, 2])
def test_three_deep_where_a_task_reads_it_that_runs_in_its_parents_place(cluster: Cluster, nodes: int) -> None:
    program = """
    def nest(depth):
        if depth:
            below, beside = hdphrs.spawn(nest, depth - 1), hdphrs.spawn(good, depth)
            return [hdphrs.get(below), hdphrs.get(beside)]
        here, there = elsewhere(killed, 0), elsewhere(good, 5)
        return [said(here), hdphrs.get(there)]

    if __name__ == "__main__":
        values = hdphrs.get(hdphrs.spawn(nest, 3))
        (((crash, five), one), two), three = values
        assert [five, one, two, three] == [[25], [1], [4], [9]], values
        print(crash)
    """
    (crash,), died = run(cluster, program, "--local-nodes", nodes, "--cores", 2)
    assert crash.startswith(f"task killed {READ}")
    assert died == [("value", "killed")] * 3


def test_neither_the_reader_nor_who_waits_in_the_same_scheduler_is_charged(cluster: Cluster) -> None:
    """Four such children, one after the other, on a single scheduler: more deaths than any task has attempts."""
    program = """
    def parent(n):
        return [said(elsewhere(exits, n)).split(",")[0] for _ in range(2)]

    def above():
        futures = [hdphrs.spawn(parent, n) for n in range(2)]
        return [value for future in futures for value in hdphrs.get(future)]

    if __name__ == "__main__":
        print(*hdphrs.get(hdphrs.spawn(above)), sep="\\n")
    """
    crashes, died = run(cluster, program, "--cores", 1)
    assert crashes == ["task exits is given up"] * 4
    assert died == [("value", "exits")] * 12


def test_a_reader_that_runs_carefully(cluster: Cluster) -> None:
    """It has crashed itself: then all that it spawns leaves, each alone."""
    program = """
    def parent(log):
        with open(log, "a") as file:
            file.write(".")
        if os.path.getsize(log) == 1:
            kill()
        futures = [hdphrs.spawn(exits if n == 1 else good, n) for n in range(3)]
        return [said(future) for future in futures]

    if __name__ == "__main__":
        crash = hdphrs.get(hdphrs.spawn(parent, LOG)).pop(1)
        print(crash)
    """.replace("LOG", repr(str(cluster.folder / "log")))
    completed = cluster.run("--cores", 1, cluster.write(TASKS + program), deadline_s=DEADLINE_S)
    assert completed.stdout.startswith(f"task exits {READ}"), completed.stderr
    assert len(DIED.findall(completed.stderr)) == 3
    assert completed.stderr.count("it is replaced") == 4


def test_arguments_that_kill_are_charged_to_the_task_that_gets_them(cluster: Cluster) -> None:
    program = """
    if __name__ == "__main__":
        print(said(hdphrs.spawn(takes, Killed())))
        print(said(hdphrs.spawn(takes, 1)))
    """
    (crash, one), died = run(cluster, program)
    assert crash.startswith("task takes is given up, its arguments kill the process that unpickles them, 3 times: ")
    assert one == "1"
    assert died == [("arguments", "takes")] * 3


def test_a_ledger_has_no_value_that_has_killed(cluster: Cluster) -> None:
    """Not even if what is above it is never finished."""
    program = """
    def costly(n):
        time.sleep(0.1)
        return exits(n) if n == 1 else good(n)

    def parent():
        values = [said(future) for future in [elsewhere(costly, n) for n in range(3)]]
        time.sleep(0.5)  # what is kept is written meanwhile
        raise ValueError(values[1])

    if __name__ == "__main__":
        try:
            hdphrs.get(hdphrs.spawn(parent))
        except ValueError as error:
            print(error)
    """
    ledger = cluster.folder / "ledger"
    for _ in range(2):
        (crash,), died = run(cluster, program, "--ledger", ledger, "--cores", 1)
        assert crash.startswith(f"task costly {READ}")
        assert died == [("value", "costly")] * 3
        assert entries(ledger) == 2


def test_a_search_whose_finds_kill_goes_on_without_them(cluster: Cluster) -> None:
    """Each process asks for what others have found; the task that asks is not charged."""
    program = """
    def ask(topic, n):
        from hdphrs.api.future import state

        state.port.tell(topic, float(n), Exits())
        state.port.best(topic)
        return n

    def search():
        from hdphrs.api.future import state

        topic = state.port.topic()
        return sum(hdphrs.get(future) for future in [elsewhere(ask, topic, n) for n in range(20)])

    if __name__ == "__main__":
        print(hdphrs.get(hdphrs.spawn(search)))
    """
    completed = cluster.run("--cores", 2, cluster.write(TASKS + program), deadline_s=DEADLINE_S)
    assert (completed.returncode, completed.stdout) == (0, f"{sum(range(20))}\n"), completed.stderr
    died = completed.stderr.count("while it unpickled what a task of a search had found; it is replaced")
    assert 1 <= died <= 4
    assert completed.stderr.count("it is replaced") == died
