"""What a user gets: hdphrs as `pip install` makes it of this tree, compiled, in the environment of `make bench-peers`.

What lives here: where it is, whether it is still that of this tree, and how it is run although the checkout, which is
pure Python, is what everybody else here imports.  What does not: who installs it (`compare/install.py`).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from benchmarks import launch
from benchmarks.compare import systems
from benchmarks.launch import REPOSITORY, BenchmarkError

READY = "ready"
"""A file in an environment that is complete; in that of hdphrs it has the tree's fingerprint."""

STALE = "hdphrs has changed since it was installed (make bench-peers)"


def fingerprint() -> str:
    """Of all that is installed."""
    digest = blake2b(digest_size=16)
    for file in [REPOSITORY / "setup.py", REPOSITORY / "pyproject.toml", *sorted(REPOSITORY.glob("hdphrs/**/*.py"))]:
        data = file.read_bytes()
        digest.update(f"{file.relative_to(REPOSITORY)} {len(data)} ".encode() + data)
    return digest.hexdigest()


def is_stale(folder: Path) -> bool:
    """Whether the environment in this folder was made of another tree."""
    ready = folder / READY
    return ready.exists() and ready.read_text().strip() != fingerprint()


def way() -> Path:
    """A folder from which everything of ours can be imported but hdphrs; made if it is not there."""
    folder = systems.VENVS / "way"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "benchmarks").is_symlink():
        (folder / "benchmarks").symlink_to(REPOSITORY / "benchmarks")
    return folder


def form() -> str:
    """What it says of itself; for the results."""
    python = systems.VENVS / systems.BASE / "bin" / "python"
    if not python.exists():
        return "not installed"
    command = [str(python), "-P", "-m", "hdphrs", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return said.stdout.strip() or "does not start"


@contextmanager
def as_installed() -> Iterator[None]:
    """Inside, `launch` runs it, not the checkout.

    Raises:
        BenchmarkError: it is not there, or is that of another tree.
    """
    folder = systems.VENVS / systems.BASE
    python = folder / "bin" / "python"
    if not python.exists():
        raise BenchmarkError("hdphrs is not installed for benchmarks (make bench-peers)")
    if is_stale(folder):
        raise BenchmarkError(STALE)
    before = launch.python, launch.surroundings
    surroundings = launch.for_another_python(os.environ)
    launch.python = str(python)
    launch.surroundings = surroundings | {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(way())}
    try:
        yield
    finally:
        launch.python, launch.surroundings = before
