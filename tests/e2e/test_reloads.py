"""Modules that the program has loaded again: tasks run the new code."""

from __future__ import annotations

import pytest

from tests.e2e.harness import Cluster

BEGIN = """
    import importlib, os, sys
    sys.dont_write_bytecode = True
    FOLDER = os.path.dirname(os.path.abspath(__file__))
    os.makedirs(f"{FOLDER}/edited_package", exist_ok=True)
    def edit(value, *names):
        for name, text in {
            "edited": f"def value(): return {value}\\ndef through(): return value()\\n",
            "uses": "import edited\\ndef value(): return edited.value()\\n",
            "edited_package/__init__": f"LEVEL = {value}\\n",
            "edited_package/sub": f"class Thing:\\n    def value(self): return {value}\\n",
        }.items():
            if names and name not in names:
                continue
            with open(f"{FOLDER}/{name}.py", "w") as file:
                file.write(text)
        importlib.invalidate_caches()
    edit(1)
    sys.path.insert(0, FOLDER)
    import hdphrs, edited, uses, edited_package.sub as sub
    from hdphrs import get, spawn
    def of_main(): return edited.value()
    def seen():
        calls = [edited.value, edited.through, uses.value, of_main, lambda: edited.value(), lambda: uses.value()]
        found = {get(spawn(call)) for call in calls} | set(hdphrs.par_map(lambda i: uses.value(), range(20)))
        return found, get(spawn(sub.Thing().value)), get(spawn(lambda thing: thing.value(), sub.Thing()))
    print(seen())
"""


def run(cluster: Cluster, rest: str, *options: str) -> list[str]:
    """The lines that a program says."""
    program = cluster.write(BEGIN + rest)
    completed = cluster.run(*options, program, python=not options)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.splitlines()


@pytest.mark.parametrize("options", [[], ["--local-nodes", "2"]])
def test_tasks_run_the_new_code_of_a_reloaded_module(options: list[str], cluster: Cluster) -> None:
    rest = """
    edit(222, "edited")
    importlib.reload(edited)
    print(seen())
    edit(222, "edited_package/sub")
    importlib.reload(sub)
    print(seen())
    edit(3333, "edited")
    importlib.reload(edited)
    print(seen())
    """
    assert run(cluster, rest, *options) == ["({1}, 1, 1)", "({222}, 1, 1)", "({222}, 222, 222)", "({3333}, 222, 222)"]


def test_tasks_run_the_new_code_of_a_function_that_was_patched_in_place(cluster: Cluster) -> None:
    rest = """
    old = edited.value
    edit(222, "edited")
    importlib.reload(edited)
    print(get(spawn(old)))
    old.__code__ = edited.value.__code__
    print(get(spawn(old)), seen())
    """
    assert run(cluster, rest) == ["({1}, 1, 1)", "1", "222 ({222}, 1, 1)"]


def test_tasks_run_the_new_code_of_a_module_that_was_removed_and_imported_again(cluster: Cluster) -> None:
    rest = """
    del sys.modules["edited"]
    edit(222, "edited")
    import edited
    uses.edited = edited
    print(seen())
    """
    assert run(cluster, rest) == ["({1}, 1, 1)", "({222}, 1, 1)"]


def test_a_package_and_a_name_imported_from_a_module_follow_the_program(cluster: Cluster) -> None:
    rest = """
    import edited_package
    from edited import value
    def named(): return value()
    def level(): return edited_package.LEVEL
    print(get(spawn(named)), get(spawn(level)))
    edit(222, "edited", "edited_package/__init__")
    importlib.reload(edited)
    importlib.reload(edited_package)
    print(named(), get(spawn(named)), get(spawn(level)))
    from edited import value
    print(named(), get(spawn(named)))
    """
    assert run(cluster, rest)[1:] == ["1 1", "1 1 222", "222 222"]


def test_a_reload_that_fails_in_a_scheduler_is_that_tasks_error(cluster: Cluster) -> None:
    rest = """
    with open(f"{FOLDER}/edited.py", "a") as file:
        file.write("if 'hdphrs.scheduler' in sys.argv or os.getpid() != PROGRAM: raise ValueError('not here')\\n")
    edited.sys, edited.os, edited.PROGRAM = sys, os, os.getpid()
    importlib.reload(edited)
    try: get(spawn(edited.value))
    except hdphrs.HdphrsError as error: print(error)
    """
    last = run(cluster, rest)[-1]
    assert "does not unpickle here" in last, last
