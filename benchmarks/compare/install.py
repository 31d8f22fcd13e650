"""Installs the systems, each in a virtual environment of its own below benchmarks/.venvs: `make bench-peers`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

from benchmarks.compare.systems import BASE, BASE_REQUIRES, SYSTEMS, VENVS

FAILURE_CHARS_MAX = 200


def requirements(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What is to be in the environments of these systems, and in the one that all need."""
    return {BASE: BASE_REQUIRES} | {
        SYSTEMS[name].venv: SYSTEMS[name].requires for name in names if SYSTEMS[name].venv != BASE
    }


def install(names: Iterable[str]) -> bool:
    """Install what is missing; whether everything is there.

    A system that does not install leaves the reason, with which it is skipped from then on.
    """
    complete = True
    for venv, packages in requirements(names).items():
        folder = VENVS / venv
        if (folder / "ready").exists():
            continue
        print(f"{venv}: {' '.join(packages)}", file=sys.stderr)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for command in ([sys.executable, "-m", "venv", str(folder)], [*pip, *packages]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "failure").write_text(f"does not install: {lines[0][:FAILURE_CHARS_MAX]}\n")
                print(f"{venv}: {lines[0]}", file=sys.stderr)
                complete = False
                break
        else:
            (folder / "failure").unlink(missing_ok=True)
            (folder / "ready").touch()
    return complete
