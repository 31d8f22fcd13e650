"""`python -m tests.wheels`: builds the source distribution and both wheels, and installs each as a user does.

What lives here: what is built, what twine and the names of the files must say, and the environments without a compiler
in which a program runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

TOOLS = ("build", "twine")

PROGRAM = """\
import hdphrs

def square(n):
    return n * n

if __name__ == "__main__":
    print(hdphrs.par_map(square, range(4)))
"""
SAID = "[0, 1, 4, 9]\n"

COMPILED, PURE = "compiled", "pure Python"


class WrongError(Exception):
    """What is not as it should be."""


def main(arguments: Sequence[str]) -> int:
    """Exit status 0: all is right."""
    parser = argparse.ArgumentParser(prog="python -m tests.wheels", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--share", action="store_true", help="leave out the compiled form, which `make compiled` builds"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="hdphrs-wheels-") as name:
        folder = Path(name)
        try:
            check(folder, compiled=not options.share)
        except WrongError as error:
            print(f"wheels: {error}")
            return 1
    print("wheels: ok")
    return 0


def check(folder: Path, *, compiled: bool) -> None:
    """Build all, and try all.

    Raises:
        WrongError: with what is not right.
    """
    tools = environment(folder / "tools", *TOOLS)
    tree = copy(folder / "tree")
    built = folder / "built"
    run(tools, "-m", "build", "--sdist", "--outdir", built, tree)
    (source,) = built.glob("*.tar.gz")
    check_source(source)
    pure = build_wheel(tools, folder / "pure", source, HDPHRS_PURE="1")
    check_wheel(pure, "py3-none-any")
    wheels = {PURE: pure}
    if compiled:
        wheels[COMPILED] = build_wheel(tools, folder / "compiled", source, HDPHRS_PURE="0")
        check_wheel(wheels[COMPILED], own_tag())
    run(tools, "-m", "twine", "check", "--strict", source, *wheels.values())
    for form, wheel in wheels.items():
        try_installed(folder / "venvs" / form.split()[0], wheel, form)
    try_installed(folder / "venvs" / "source", source, PURE)


def copy(tree: Path) -> Path:
    """What git knows of this repository, as it is now."""
    files = subprocess.check_output(["git", "ls-files", "-z", "--cached"], cwd=REPOSITORY, text=True)
    for name in files.split("\0"):
        if name and (REPOSITORY / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, tree / name)
    return tree


def environment(folder: Path, *packages: object, **variables: str) -> Path:
    """Its interpreter."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages, **variables)
    return python


def build_wheel(tools: Path, folder: Path, source: Path, **variables: str) -> Path:
    """From the source distribution, as `pip` does."""
    folder.mkdir()
    with tarfile.open(source) as archive:
        archive.extractall(folder / "source", filter="data")
    (tree,) = (folder / "source").iterdir()
    run(tools, "-m", "build", "--wheel", "--outdir", folder, tree, **variables)
    (wheel,) = folder.glob("*.whl")
    return wheel


def own_tag() -> str:
    """Of a wheel for this Python on this machine."""
    version = "cp{}{}".format(*sys.version_info)
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{version}-{version}-{platform}"


def check_source(source: Path) -> None:
    """The sources, whole, and nothing that was built."""
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = {"setup.py", "pyproject.toml", "README.md", "hdphrs/py.typed", "hdphrs/protocol/node.py"} - names
    if missing or any(name.endswith((".so", ".pyc")) for name in names):
        raise WrongError(f"{source.name}: without {sorted(missing)}, or with what was built")


def check_wheel(wheel: Path, tag: str) -> None:
    """Its name and its contents agree, and it holds all modules and the mark of their types."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (about,) = [archive.read(name).decode() for name in names if name.endswith(".dist-info/WHEEL")]
    if not wheel.name.endswith(f"-{tag}.whl") or f"Tag: {tag}\n" not in about.replace("\r\n", "\n"):
        raise WrongError(f"{wheel.name}: its tag is not {tag}")
    modules = {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "hdphrs").rglob("*.py")} | {
        "hdphrs/py.typed"
    }
    if missing := modules - names:
        raise WrongError(f"{wheel.name}: without {sorted(missing)}")
    libraries = {name for name in names if name.endswith(".so")}
    if bool(libraries) != (tag != "py3-none-any"):
        raise WrongError(f"{wheel.name}: has {len(libraries)} libraries")
    if alien := {name.split("/")[0] for name in names} - {"hdphrs"}:
        alien = {name for name in alien if not name.endswith(".dist-info")}
        strange = {name for name in alien if "__mypyc" not in name}
        if strange:
            raise WrongError(f"{wheel.name}: holds {sorted(strange)}")


def try_installed(folder: Path, file: Path, form: str) -> None:
    """Install it where there is no compiler, and run a program there."""
    python = environment(folder, file, CC="no-compiler-here", CXX="no-compiler-here")
    said = run(python, "-m", "hdphrs", "--version")
    if form not in said:
        raise WrongError(f"{file.name}: installed it is {said.strip()!r}, and should be {form}")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    for way in ((), ("-m", "hdphrs", "run")):
        if (said := run(python, *way, program)) != SAID:
            raise WrongError(f"{file.name}: the program has said {said!r}")
    print(f"wheels: {file.name}: {form}", flush=True)


def run(python: Path, *arguments: object, **variables: str) -> str:
    """Its standard output; nothing of this repository is on its path.

    Raises:
        WrongError: it has failed.
    """
    clean: Mapping[str, str] = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "HDPHRS_PURE")}
    done = subprocess.run(
        [str(python), *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=python.parent,
        env={**clean, **variables},
    )
    if done.returncode:
        lines = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise WrongError(f"{' '.join(map(str, arguments))} has ended with status {done.returncode}:\n{lines}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
