"""`python -m tests.pythons`: the tests on other Pythons: those of this machine, and those of Debian's newer suites.

What lives here: which there are, their environments, and which tests run.  How Debian's are had: `debian.py`.  Each
Python that cannot be had is named with the reason, and is no failure.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tests.pythons.debian import FOLDERS, SUITES, CannotHaveError, Folder

REPOSITORY = Path(__file__).parents[2]

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")

SHARE = (
    "tests/api",
    "tests/e2e/test_failures.py",
    "tests/e2e/test_programs.py",
    "tests/executor",
    "tests/program",
    "tests/scheduler",
    "tests/skeletons",
    "tests/test_room.py",
    "tests/wire",
)
"""What CI runs: the tests that see most of the interpreter."""

WITHOUT = ("tests/benchmarks", "tests/docs", "tests/mutants", "tests/spin")
"""Of all tests: those that look at no code of ours, or that no interpreter can change."""

TOOLS = ("atheris", "import-linter", "ipykernel", "mypy", "nbclient", "pyright", "ruff", "types-greenlet")
"""Of what developers have, what these tests do not need."""

TEST_S_MAX = 300
"""A test that takes longer has hung: its stacks are shown, it has failed, and another process runs the rest."""

OPTIONS = {"3.15": ("-X", "lazy_imports=all")}
"""With these the first program is run once more."""

PROGRAM = """\
import hdphrs

def fib(n):
    if n < 2:
        return n
    left = hdphrs.spawn(fib, n - 1)
    return fib(n - 2) + hdphrs.get(left)

if __name__ == "__main__":
    print(hdphrs.run(fib, 20), hdphrs.par_map(fib, range(5)))
    with hdphrs.Executor(2) as executor:
        print(*executor.map(abs, [-1, 2]))
"""
SAID = "6765 [0, 1, 1, 2, 3]\\n1 2\\n"


@dataclass(frozen=True)
class Python:
    """One that can be had."""

    version: str
    interpreter: str
    call: Callable[..., int]
    """Runs a command beside it, in a folder; its exit status."""
    home: Path
    """The folder for its environment and the copy of the repository, as it is seen from outside,"""
    inside: str
    """and as its commands see it."""


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 if all that could be had are right."""
    parser = argparse.ArgumentParser(prog="python -m tests.pythons", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--share", action="store_true", help="run a share of the tests, as CI does")
    parser.add_argument("--only", nargs="*", metavar="VERSION", default=VERSIONS, help="these versions")
    options = parser.parse_args(arguments)
    own = "{}.{}".format(*sys.version_info)
    wanted = [version for version in options.only if version != own]
    failed = []
    for python in pythons(wanted):
        began_s = monotonic()
        print(f"pythons: {python.version}: environment", flush=True)
        status = set_up(python) or first_programs(python) or tests(python, options.share)
        if status:
            failed.append(python.version)
        print(f"pythons: {python.version}: {'FAILED' if status else 'ok'}, {monotonic() - began_s:.0f} s", flush=True)
    if failed:
        print(f"pythons: not right on {', '.join(failed)}")
    return 1 if failed else 0


def pythons(versions: Sequence[str]) -> Iterator[Python]:
    """Those of these versions that can be had; what cannot is said."""
    missing = []
    for version in versions:
        if interpreter := next(filter(_is_whole, _on_machine(version)), None):
            home = FOLDERS / "machine" / version
            home.mkdir(parents=True, exist_ok=True)
            yield Python(version, interpreter, _call_here, home, str(home))
        else:
            missing.append(version)
    why = ["not on this machine"]
    for suite in SUITES:
        if not missing:
            break
        folder = Folder(suite)
        try:
            folder.make()
            found = folder.install(missing)
        except CannotHaveError as error:
            why.append(str(error))
            break  # the others would fail alike
        for version in found:
            missing.remove(version)
            home = folder.path / "srv" / version
            home.mkdir(parents=True, exist_ok=True)
            yield Python(version, f"python{version}", folder.call, home, f"/srv/{version}")
        why.append(f"not in {suite}")
    for version in missing:
        print(f"pythons: {version}: skipped: {'; '.join(why)}", flush=True)


def _on_machine(version: str) -> Iterator[str]:
    """Where it may be: on the path, or with pyenv."""
    if found := shutil.which(f"python{version}"):
        yield found
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(root.glob(f"versions/{version}.*/bin/python{version}"), reverse=True))


def _is_whole(interpreter: str) -> bool:
    """Whether it runs, can make environments, and has the GIL."""
    probe = "import ensurepip, sys, venv; sys.exit(not getattr(sys, '_is_gil_enabled', lambda: True)())"
    return subprocess.run([interpreter, "-c", probe], check=False, capture_output=True).returncode == 0


def _call_here(*command: object, folder: str = ".", quiet: bool = False) -> int:
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run(
        [*map(str, command)], check=False, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
    ).returncode


def set_up(python: Python) -> int:
    """The environment, unless it is there and whole, and a copy of what git knows of the repository, as it is now."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"], "numpy"]
    wanted = [each for each in wanted if not each.startswith(TOOLS)]
    interpreter = f"{python.inside}/venv/bin/python"
    stamp = python.home / "venv" / "hdphrs-installed"
    if not stamp.exists() or stamp.read_text() != repr(wanted):
        stamp.unlink(missing_ok=True)
        status = python.call(python.interpreter, "-m", "venv", "--clear", f"{python.inside}/venv") or python.call(
            *(interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
        )
        if status:
            return status
        stamp.write_text(repr(wanted))
    (packages,) = (python.home / "venv").glob("lib/python*/site-packages")
    (packages / "hdphrs-tree.pth").write_text(f"{python.inside}/tree\n")
    tree = python.home / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    files = subprocess.check_output(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=REPOSITORY
    )
    for name in files.decode().split("\0"):
        if name and (REPOSITORY / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, tree / name)
    return 0


def first_programs(python: Python) -> int:
    """What the guide begins with, with warnings as errors, in the ways in which programs are run."""
    (python.home / "first.py").write_text(PROGRAM)
    for options in ((), *([OPTIONS[python.version]] if python.version in OPTIONS else [])):
        for way in ((), ("-m", "hdphrs", "run", "--local-nodes", "2")):
            command = [f"{python.inside}/venv/bin/python", "-W", "error", *options, *way, "first.py"]
            status = python.call(
                "sh", "-c", 'said=$("$@") && [ "$said" = "$(printf %b "$0")" ]', SAID, *command, folder=python.inside
            )
            if status:
                print(f"pythons: {python.version}: wrong: {' '.join(command)}", flush=True)
                return status
    return 0


def tests(python: Python, share: bool) -> int:
    """All of them, or CI's share."""
    which = SHARE if share else ("tests", *(f"--ignore={folder}" for folder in WITHOUT))
    limit = ("-o", f"faulthandler_timeout={TEST_S_MAX}", "-o", "faulthandler_exit_on_timeout=true")
    pytest = ("-m", "pytest", "-p", "no:cacheprovider", *limit, "--numprocesses", "2", *which)
    return python.call(f"{python.inside}/venv/bin/python", *pytest, folder=f"{python.inside}/tree")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
