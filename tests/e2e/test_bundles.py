"""Short calls that the program spawns, or a task, and which travel in bundles (decisions 16, 30), on real processes."""

from __future__ import annotations

import json
import os
import signal
from random import Random

import pytest

from tests.e2e.harness import DEADLINE_S, Cluster, eventually
from tests.processes import send

RUNS = int(os.environ.get("HDPHRS_BUNDLE_RUNS", "2"))
"""Seeded mixes for each number of nodes; the release check sets more."""

MIXED = """
    import hdphrs, hdphrs.errors, os, sys, time
    from random import Random
    from pathlib import Path

    seed, folder, where = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

    def spin(seconds):
        end_s = time.perf_counter() + seconds
        while time.perf_counter() < end_s:
            pass

    def cheap(n):
        return n * n

    def nested(n):
        return sum(map(hdphrs.get, [hdphrs.spawn(cheap, i) for i in range(n % 5)]))

    def sometimes(n):
        if n % 97 == 13:
            spin(0.2)
        return seldom(n)

    def seldom(n):
        if n % 31 == 7:
            raise ValueError(f"unlucky {n}")
        return [n]

    def poisonous(n):
        if n % 401 == 100:
            os._exit(9)
        return n

    def some(n):
        spin(0.0002)
        return n

    def plain(function, n):
        if function is some:
            return n
        if function is sometimes:
            function = seldom
        if function is poisonous and n % 401 == 100:
            return "task poisonous(" + str(n) + ") took down its process 3 times"
        if function is nested:
            return sum(i * i for i in range(n % 5))
        try:
            return function(n)
        except ValueError as error:
            return str(error)

    def outcome(future):
        try:
            return hdphrs.get(future)
        except hdphrs.Cancelled:
            return "cancelled"
        except ValueError as error:
            return str(error)
        except hdphrs.errors.TaskCrashedError as error:
            return str(error).split(",")[0]

    def everything():
        chance = Random(seed)
        calls = [(chance.choice([cheap, some, nested, sometimes, poisonous]), n) for n in range(1500)]
        (folder / "begun").touch()
        futures = [hdphrs.spawn(*call) for call in calls]
        unwanted = set(chance.sample(range(len(calls)), 30))
        cancelled = {n for n in unwanted if futures[n].cancel()}
        for n, (call, future) in enumerate(zip(calls, futures)):
            expected = "cancelled" if n in cancelled else plain(*call)
            assert outcome(future) == expected, (n, call, outcome(future), expected)
        return "right"

    print(hdphrs.run(everything) if where == "in a task" else everything())
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(RUNS))
@pytest.mark.parametrize(
    ("nodes", "cores", "where"),
    [(1, 1, "here"), (2, 1, "here"), (4, 1, "here"), (1, 3, "in a task"), (2, 1, "in a task")],
)
def test_any_mix_of_calls_comes_to_the_same_as_in_plain_python_whoever_dies(
    cluster: Cluster, nodes: int, cores: int, where: str, seed: int
) -> None:
    cluster.recorded = True
    chance = Random(f"{nodes} {seed}")
    program = cluster.write(MIXED)
    process = cluster.start("--local-nodes", nodes, "--cores", cores, program, seed, cluster.folder, where)
    eventually((cluster.folder / "begun").exists, DEADLINE_S, "the beginning")
    for _ in range(chance.randrange(3)):
        signal.sigtimedwait([], chance.uniform(0.05, 0.5))
        victims = chance.choice([cluster.nodes()[1:], cluster.schedulers()])
        if victims and process.poll() is None:
            send(chance.choice(victims), signal.SIGKILL)
    completed = cluster.finish()
    assert (completed.returncode, completed.stdout) == (0, "right\n"), completed.stderr


def test_one_poisonous_call_among_a_thousand_fails_alone_under_its_own_name(cluster: Cluster) -> None:
    cluster.recorded = True
    program = cluster.write(
        """
        import hdphrs, hdphrs.errors, os

        def step(n):
            if n == 617:
                os._exit(7)
            return n

        futures = [hdphrs.spawn(step, n) for n in range(1000)]
        values, errors = [], []
        for future in futures:
            try:
                values.append(hdphrs.get(future))
            except hdphrs.errors.TaskCrashedError as error:
                errors.append(str(error))
        assert values == [n for n in range(1000) if n != 617]
        [error] = errors
        print(error.split(":")[0])
        """
    )
    completed = cluster.run("--cores", 2, program)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == "task step(617) took down its process 3 times, and is given up\n"


def test_a_call_that_waits_for_its_sibling_in_the_same_bundle_gets_it(cluster: Cluster) -> None:
    """The program lets a call go on when it has the values of all others."""
    program = cluster.write(
        """
        import hdphrs, sys, time
        from pathlib import Path

        def quick(path, n):
            if n == 250:
                while not Path(path).exists():
                    time.sleep(0.001)
            return n

        for n in range(100):
            hdphrs.get(hdphrs.spawn(quick, sys.argv[1], 0))
        futures = [hdphrs.spawn(quick, sys.argv[1], n) for n in range(500)]
        print(sum(hdphrs.get(future) for n, future in enumerate(futures) if n != 250))
        Path(sys.argv[1]).touch()
        print(hdphrs.get(futures[250]))
        """
    )
    completed = cluster.run("--local-nodes", 2, "--cores", 1, program, cluster.folder / "go")
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == "124500\n250\n"


def test_a_call_of_a_tasks_bundle_that_takes_long_holds_up_no_other(cluster: Cluster) -> None:
    """One that another scheduler has got goes on when all others have come."""
    program = cluster.write(
        """
        import hdphrs, os, sys, time
        from pathlib import Path

        folder = Path(sys.argv[1])

        def step(home, n):
            end_s = time.perf_counter() + 0.3e-3
            while time.perf_counter() < end_s:
                pass
            if n > 1000 and os.getpid() != home:
                try:
                    (folder / "waits").touch(exist_ok=False)
                except FileExistsError:
                    return n
                while not (folder / "go").exists():
                    time.sleep(0.001)
            return n

        def main():
            futures = [hdphrs.spawn(step, os.getpid(), n) for n in range(3000)]
            for number, future in enumerate(hdphrs.as_completed(futures), 1):
                if number == len(futures) - 1:
                    (folder / "go").touch()
            return sum(map(hdphrs.get, futures))

        print(hdphrs.run(main))
        """
    )
    completed = cluster.run("--cores", 2, program, cluster.folder)
    assert (completed.returncode, completed.stdout) == (0, "4498500\n"), completed.stderr


def test_a_poisonous_call_of_a_tasks_bundle_fails_alone(cluster: Cluster) -> None:
    cluster.recorded = True
    program = cluster.write(
        """
        import hdphrs, hdphrs.errors, os, time

        def step(n):
            end_s = time.perf_counter() + 0.2e-3
            while time.perf_counter() < end_s:
                pass
            if n == 1617:
                os._exit(7)
            return n

        def value(future):
            try:
                return hdphrs.get(future)
            except hdphrs.errors.TaskCrashedError as error:
                return str(error).split(":")[0]

        def main():
            return [value(future) for future in [hdphrs.spawn(step, n) for n in range(2000)]]

        values = hdphrs.run(main)
        assert [n for n, value in enumerate(values) if value != n] == [1617]
        print(values[1617])
        """
    )
    completed = cluster.run("--cores", 2, program)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == "task step(1617) took down its process 3 times, and is given up\n"


def test_a_cancelled_call_of_a_bundle_ends_and_its_siblings_come(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, sys, time
        from pathlib import Path

        def quick(path, n):
            if n == 250:
                Path(path).touch()
                while True:
                    hdphrs.get(hdphrs.spawn(abs, n))
            return n

        for n in range(100):
            hdphrs.get(hdphrs.spawn(quick, sys.argv[1], 0))
        futures = [hdphrs.spawn(quick, sys.argv[1], n) for n in range(500)]
        while not Path(sys.argv[1]).exists():
            time.sleep(0.001)
        assert futures[250].cancel()
        print(sum(hdphrs.get(future) for n, future in enumerate(futures) if n != 250))
        try:
            hdphrs.get(futures[250])
        except hdphrs.Cancelled:
            print("cancelled")
        """
    )
    completed = cluster.run("--cores", 1, program, cluster.folder / "begun")
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == "124500\ncancelled\n"


def test_every_call_counts_in_the_report(cluster: Cluster) -> None:
    report = cluster.folder / "report.json"
    program = cluster.write(
        """
        import hdphrs

        def same(n):
            return n

        print(sum(map(hdphrs.get, [hdphrs.spawn(same, n) for n in range(3000)])))
        """
    )
    completed = cluster.run("--cores", 2, "--report", report, program)
    assert (completed.returncode, completed.stdout) == (0, "4498500\n"), completed.stderr
    [node] = json.loads(report.read_text())["nodes"]
    assert node["tasks_run"] == 3000
    assert node["exported"] < 1000


def test_a_call_draws_the_same_alone_and_in_a_bundle(cluster: Cluster) -> None:
    """Once each is waited for before the next is spawned, once none is; some have arguments that are pickled."""
    program = cluster.write(
        """
        import hdphrs, sys

        def draw(n):
            return hdphrs.seed(), hdphrs.get(hdphrs.spawn(hdphrs.seed)), n

        def number(n):
            return hdphrs.seed() + n

        calls = [(draw, n) for n in range(300)]
        calls += [(draw, str(n)) for n in range(300)]
        calls += [(number, n) for n in range(300)]
        if sys.argv[1] == "alone":
            values = [hdphrs.get(hdphrs.spawn(*call)) for call in calls]
        else:
            values = [hdphrs.get(future) for future in [hdphrs.spawn(*call) for call in calls]]
        assert len(set(values)) == 900
        print("result:", values)
        """
    )
    results = []
    for way in ("alone", "together"):
        report = cluster.folder / f"{way}.json"
        completed = cluster.run("--cores", 2, "--seed", 5, "--report", report, program, way)
        assert completed.returncode == 0, completed.stderr
        [node] = json.loads(report.read_text())["nodes"]
        results.append((completed.stdout, node["exported"]))
    assert results[0][0] == results[1][0]
    assert results[1][1] < results[0][1]


def test_a_call_with_an_option_goes_alone_and_one_may_be_waited_for_so_long(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, hdphrs.errors, sys, time
        from pathlib import Path

        def quick(path, n):
            while n == 250 and not Path(path).exists():
                time.sleep(0.001)
            return n

        def limited(n):
            while n == 50:
                pass
            return n

        def outcome(future):
            try:
                return future.get()
            except hdphrs.errors.TaskTimeoutError:
                return "timeout"

        for n in range(100):
            hdphrs.get(hdphrs.spawn(quick, sys.argv[1], 0))
        futures = [hdphrs.spawn(quick, sys.argv[1], n) for n in range(500)]
        try:
            futures[250].get(timeout=0.1)
        except hdphrs.errors.WaitTimeoutError:
            Path(sys.argv[1]).touch()
        assert [future.get(timeout=60) for future in futures] == [*range(500)]
        futures = [hdphrs.spawn(hdphrs.task(limited, timeout=0.2 if n == 50 else 60), n) for n in range(100)]
        assert [outcome(future) for future in futures] == [n if n != 50 else "timeout" for n in range(100)]
        print("right")
        """
    )
    completed = cluster.run("--cores", 2, program, cluster.folder / "go")
    assert (completed.returncode, completed.stdout) == (0, "right\n"), completed.stderr
