"""Tasks have the surroundings of the program, however that was started, and in whatever process they run."""

from __future__ import annotations

import subprocess
import sys
import zipapp

import pytest

from tests.e2e.harness import Cluster

pytestmark = pytest.mark.slow

LOOK = """
import locale, os, signal, sys, time, warnings
import hdphrs

def umask():
    old = os.umask(0o77)
    os.umask(old)
    return oct(old)

def look():
    return (
        sys.argv[1:], os.environ.get("MINE"), "GIVEN" in os.environ, os.getcwd(), umask(), sys.get_int_max_str_digits(),
        warnings.filters[0][0], time.tzname[0], locale.setlocale(locale.LC_ALL), sys.dont_write_bytecode,
    )

def change(number):
    sys.argv[1:] = ["changed", str(number)]
    os.environ["MINE"] = str(number)
    os.environ["TZ"] = f"UTC{number}"
    os.environ.pop("GIVEN", None)
    time.tzset()
    os.chdir(["/", "/usr", "/usr/bin"][number])
    os.umask(0o20 + number)
    sys.set_int_max_str_digits(5000 + number)
    sys.dont_write_bytecode = bool(number % 2)
    warnings.simplefilter(["error", "ignore", "always"][number])
    locale.setlocale(locale.LC_ALL, ["C", "C.UTF-8", "POSIX"][number])

def everywhere():
    return [hdphrs.get(hdphrs.spawn_at(node, look)) for node in hdphrs.all_nodes()]

def nested():
    return [hdphrs.get(each) for each in [hdphrs.spawn(look) for _ in range(20)]]
"""

CHECK = (
    LOOK
    + """
if __name__ == "__main__":
    for number in range(3):
        if number or "late" not in sys.argv:
            change(number)
        for seen in (everywhere(), hdphrs.run(nested), [hdphrs.get(each) for each in [hdphrs.spawn(look)] * 3]):
            assert all(one == look() for one in seen), (seen, look())
    with hdphrs.Executor(1) as executor:
        assert executor.submit(look).result() == look()
    print("alike")
"""
)

WAYS = {
    "python": None,
    "run": [],
    "cores": ["--cores", "2"],
    "nodes": ["--local-nodes", "3"],
    "sequential": ["--sequential"],
    "unreliable": ["--unreliable"],
}


@pytest.fixture(autouse=True)
def given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIVEN", "from outside")
    monkeypatch.delenv("TZ", raising=False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("when", ["early", "late"])
def test_tasks_have_what_the_program_has_at_each_call(cluster: Cluster, way: str, when: str) -> None:
    options = WAYS[way]
    program = cluster.write(CHECK)
    completed = cluster.run(*(options or []), program, when, python=options is None)
    assert (completed.stdout, completed.stderr) == ("alike\n", "")


@pytest.mark.parametrize("how", ["file", "folder", "archive", "module", "package", "compiled", "run_path"])
def test_programs_of_any_kind_run_as_python_runs_them(
    cluster: Cluster, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
import sys
import hdphrs
from {package}helper import twice

def task(x):
    return twice(x), sys.argv

if __name__ == "__main__":
    main = sys.modules["__main__"]
    print(hdphrs.get(hdphrs.spawn(task, 4)), hdphrs.get(hdphrs.spawn(twice, 5)))
    print(sys.argv, __file__, __package__, __spec__ and __spec__.name, sys.path[0], type(__loader__), __builtins__)
    print(task.__module__, vars(main) is globals(), sorted(globals()))
"""
    folder = cluster.folder
    (folder / "pack").mkdir()
    (folder / "pack" / "__init__.py").write_text("")
    for name in ("helper.py", "pack/helper.py"):
        (folder / name).write_text("def twice(x): return 2 * x\n")
    for name in ("prog.py", "__main__.py"):
        (folder / name).write_text(source.format(package=""))
    for name in ("pack/work.py", "pack/__main__.py"):
        (folder / name).write_text(source.format(package="."))
    (folder / "by_path.py").write_text(
        f"import runpy; runpy.run_path({str(folder / 'prog.py')!r}, run_name='__main__')"
    )
    zipapp.create_archive(folder, folder.parent / "app.pyz", "/usr/bin/env python3")
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-b", "prog.py"], cwd=folder, check=True)
    monkeypatch.chdir(folder)
    words = {
        "file": ["prog.py"],
        "folder": ["."],
        "archive": [str(folder.parent / "app.pyz")],
        "module": ["-m", "pack.work"],
        "package": ["-m", "pack"],
        "compiled": ["prog.pyc"],
        "run_path": ["by_path.py"],
    }[how]
    plain = cluster.run(*words, "a", "b", python=True)
    assert (plain.returncode, plain.stderr) == (0, "")
    for options in ([], ["--local-nodes", "2"], ["--sequential"]):
        run = cluster.run(*options, *words, "a", "b")
        assert (run.returncode, run.stdout, run.stderr) == (0, plain.stdout, ""), options


def test_a_scheduler_that_replaces_a_dead_one_has_them_too(cluster: Cluster) -> None:
    program = cluster.write(
        LOOK
        + """
def die():
    os.kill(os.getpid(), signal.SIGKILL)

def pid_and_look():
    return os.getpid(), look()

if __name__ == "__main__":
    before, seen = hdphrs.get(hdphrs.spawn(pid_and_look))
    change(1)
    assert hdphrs.get(hdphrs.spawn(look)) == look()
    try:
        hdphrs.get(hdphrs.spawn(die))
    except hdphrs.HdphrsError as error:
        print(type(error).__name__)
    after, seen = hdphrs.get(hdphrs.spawn(pid_and_look))
    print(after != before, seen == look())
"""
    )
    completed = cluster.run("--cores", "1", program)
    assert completed.stdout == "TaskCrashedError\nTrue True\n", completed.stderr


def test_tasks_that_are_stolen_from_node_to_node_never_have_older_ones(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import os, time
        import hdphrs

        def leaf(number):
            time.sleep(0.001)
            return int(os.environ["ROUND"]) >= number

        def tree(depth, number):
            if depth == 0:
                return leaf(number)
            parts = [hdphrs.spawn(tree, depth - 1, number) for _ in range(3)]
            return all(map(hdphrs.get, parts))

        if __name__ == "__main__":
            futures = []
            for number in range(30):
                os.environ["ROUND"] = str(number)
                futures.append(hdphrs.spawn(tree, 3, number))
            print(all(map(hdphrs.get, futures)))
        """
    )
    completed = cluster.run("--local-nodes", "3", "--cores", "1", program)
    assert completed.stdout == "True\n", completed.stderr


@pytest.mark.parametrize("way", ["python", "run", "sequential"])
@pytest.mark.parametrize("raised", [False, True])
def test_spawned_calls_nest_as_deep_as_plain_ones_in_any_mode(cluster: Cluster, way: str, raised: bool) -> None:
    program = cluster.write(
        f"""
        import sys
        import hdphrs
        def down(n): return 0 if n == 0 else 1 + hdphrs.get(hdphrs.spawn(down, n - 1))
        def three(n, a, *, b): return 0 if n == 0 else 1 + hdphrs.get(hdphrs.spawn(three, n - 1, a, b=b))
        if __name__ == "__main__":
            hdphrs.get(hdphrs.spawn(abs, 1))
            {"sys.setrecursionlimit(20_000)" if raised else ""}
            limit = sys.getrecursionlimit()
            print(hdphrs.run(down, limit - 20) - limit, hdphrs.run(three, limit - 20, 1, b=2) - limit)
            print(sys.getrecursionlimit() == limit)
        """
    )
    completed = cluster.run(*WAYS[way] or [], program, python=way == "python")
    assert completed.stdout == "-20 -20\nTrue\n", completed.stderr


@pytest.mark.parametrize("options", [["-O"], ["-OO", "-B"], ["-X", "utf8=1"], ["-W", "error::UserWarning"]])
def test_tasks_run_in_an_interpreter_with_the_programs_options(cluster: Cluster, options: list[str]) -> None:
    source = """
import sys, warnings
import hdphrs
def flags(): return sys.flags.optimize, sys.flags.dont_write_bytecode, sys.flags.utf8_mode, __debug__
def filters(): return [(each[0], each[2].__name__) for each in warnings.filters]
if __name__ == "__main__":
    print(flags(), flags() == hdphrs.get(hdphrs.spawn(flags)), filters() == hdphrs.get(hdphrs.spawn(filters)))
"""
    program = cluster.write(source)
    outputs = []
    for command in ([], ["-m", "hdphrs", "run"], ["-m", "hdphrs", "run", "--local-nodes", "2"]):
        ran = subprocess.run(
            [sys.executable, *options, *command, str(program)], capture_output=True, text=True, check=False
        )
        assert ran.stderr == ""
        outputs.append(ran.stdout)
    assert outputs[0].endswith("True True\n")
    assert len(set(outputs)) == 1


def test_multiprocessing_in_tasks_starts_as_the_program_has_chosen(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import multiprocessing
        import hdphrs
        def method(): return multiprocessing.get_start_method(allow_none=True)
        if __name__ == "__main__":
            print(hdphrs.get(hdphrs.spawn(method)))
            multiprocessing.set_start_method("forkserver")
            print(hdphrs.get(hdphrs.spawn(method)))
        """
    )
    assert cluster.run(program).stdout == "None\nforkserver\n"


def test_a_command_line_is_parsed_in_a_task_as_in_the_program(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import argparse
        import hdphrs
        def size():
            parser = argparse.ArgumentParser()
            parser.add_argument("--size", type=int, default=1)
            return parser.parse_args().size
        if __name__ == "__main__":
            print(size(), hdphrs.get(hdphrs.spawn(size)))
        """
    )
    for python in (False, True):
        assert cluster.run(program, "--size", 7, python=python).stdout == "7 7\n"


def test_cores_are_limited_by_the_program_or_the_environment(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    program = cluster.write(
        """
        import sys
        import hdphrs
        if len(sys.argv) > 1:
            hdphrs.configure(cores=int(sys.argv[1]))
        if __name__ == "__main__":
            hdphrs.get(hdphrs.spawn(abs, 1))
            print(hdphrs.node_infos()[0].slots, hdphrs.Executor()._max_workers)
        """
    )
    assert cluster.run(program, 3, python=True).stdout == "3 3\n"
    monkeypatch.setenv("HDPHRS_CORES", "1")
    assert cluster.run(program, python=True).stdout == "1 1\n"
    assert cluster.run(program, 3, python=True).stdout == "3 3\n"
    assert cluster.run(program, 3).stdout == "1 1\n"
    assert cluster.run("--cores", 2, program, 3).stdout == "2 2\n"
    assert cluster.run("--sequential", program, 3).returncode == 0
    monkeypatch.setenv("HDPHRS_CORES", "many")
    wrong = "HDPHRS_CORES is 'many'; it must be a whole number from 1 to 1024"
    assert cluster.run(program).stderr == f"hdphrs: {wrong}\n"
    assert cluster.run(program, python=True).stderr.splitlines()[-1] == f"hdphrs.errors.UsageError: {wrong}"


def test_nothing_of_ours_is_among_the_programs_files_and_environment_in_tasks(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import os
        import hdphrs
        def names(): return sorted(name for name in os.environ if name.startswith("HDPHRS_") and "TEST" not in name)
        if __name__ == "__main__":
            os.environ["HDPHRS_OWN"] = "1"
            print([hdphrs.get(hdphrs.spawn_at(node, names)) for node in hdphrs.all_nodes()])
        """
    )
    completed = cluster.run("--local-nodes", 2, program)
    assert "HDPHRS_OWN" not in completed.stdout, completed.stderr
    assert "HDPHRS_PROGRAM" not in completed.stdout
    assert "HDPHRS_AWAY" not in completed.stdout
