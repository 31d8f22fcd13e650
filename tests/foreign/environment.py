"""The environments: one for each suite below build/foreign, with hdphrs plugged in from outside.

What lives here: the virtual environment with the suite's pinned packages; its source distribution, unpacked; and the
path file that makes this checkout's hdphrs and `plugged` importable there, in every Python that a test starts, whatever
its options.  Nothing is ever installed into the environment that runs this.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from hashlib import blake2b
from pathlib import Path

from tests.foreign.suite import FOLDER, REPOSITORY, Suite

PYTEST = ("pytest==9.0.3",)

READY = "ready"
"""The suffix of a file beside a folder that is complete; it has the digest of what that was made of."""

WAY = FOLDER / "way"
"""A folder from which hdphrs and `plugged` can be imported, and nothing else of ours: suites have a `tests` too."""


class InstallError(Exception):
    """A suite cannot be had here; the message says why."""


def python_of(suite: Suite) -> Path:
    """The interpreter of the suite's environment, for the Python that runs this."""
    return _environment(suite) / "bin" / "python"


def folder_of(suite: Suite) -> Path:
    """Where pytest runs: in the source distribution, or in an empty folder."""
    return _source(suite) / suite.folder


def install(suite: Suite) -> None:
    """Make the environment, unless it is there.

    Raises:
        InstallError: a package cannot be had, or does not install.
    """
    _make_way()
    environment, source = _environment(suite), _source(suite)
    pip = [str(python_of(suite)), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    packages = [*PYTEST, *_needed_by_hdphrs(), *suite.requires]
    with _made_of(environment, [sys.version, *packages]) as is_there:
        if not is_there:
            _run([sys.executable, "-m", "venv", "--clear", str(environment)])
            _run([*pip, "install", *packages])
            where = "import sysconfig; print(sysconfig.get_path('purelib'))"
            purelib = Path(_run([str(python_of(suite)), "-c", where]).strip())
            (purelib / "hdphrs-plugged.pth").write_text(f"{WAY}\nimport plugged.startup\n")
    with _made_of(source, [suite.source, *suite.links]) as is_there:
        if not is_there:
            shutil.rmtree(source, ignore_errors=True)
            source.mkdir(parents=True)
            if suite.source:
                _unpack(pip, suite.source, source)
            for link in suite.links:
                (source / Path(link).name).symlink_to(link)


def _environment(suite: Suite) -> Path:
    """Suites that need no packages share one."""
    return FOLDER / "venvs" / "{}-{}.{}".format(suite.name if suite.requires else "plain", *sys.version_info)


def _source(suite: Suite) -> Path:
    return FOLDER / "source" / "{}-{}.{}".format(suite.name, *sys.version_info)


@contextmanager
def _made_of(folder: Path, parts: list[str]) -> Iterator[bool]:
    """Whether the folder has been made of these parts; inside, it is made if it has not."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    ready = folder.parent / f"{folder.name}.{READY}"
    digest = blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        is_there = ready.exists() and ready.read_text() == digest
        if not is_there:
            ready.unlink(missing_ok=True)
        yield is_there
        ready.write_text(digest)


def _needed_by_hdphrs() -> list[str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return list(project["dependencies"])


def _make_way() -> None:
    WAY.mkdir(parents=True, exist_ok=True)
    (FOLDER / "pytest.ini").write_text("[pytest]\n")  # else pytest finds our own settings, further up
    for name, target in (("hdphrs", REPOSITORY / "hdphrs"), ("plugged", Path(__file__).parent / "plugged")):
        if not (WAY / name).is_symlink():
            (WAY / name).symlink_to(target)


def _unpack(pip: list[str], requirement: str, into: Path) -> None:
    """What pip has found, without its outer folder."""
    with tempfile.TemporaryDirectory() as folder:
        _run(
            [*pip, "download", "--no-deps", f"--no-binary={requirement.split('==')[0]}", "--dest", folder, requirement]
        )
        (archive,) = Path(folder).glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            members = tar.getmembers()
            for member in members:
                member.name = member.name.partition("/")[2]
            tar.extractall(into, [member for member in members if member.name], filter="data")


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        raise InstallError(lines[0] if lines else f"{command[2:]} has failed")
    return done.stdout
