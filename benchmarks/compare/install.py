"""Installs the systems, each in a virtual environment of its own below benchmarks/.venvs: `make bench-peers`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

from benchmarks.compare.systems import BASE, BASE_REQUIRES, SYSTEMS, VENVS
from benchmarks.installed import READY, fingerprint, is_stale

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
        ours = venv == BASE
        if (folder / READY).exists() and not (ours and is_stale(folder)):
            continue
        (folder / READY).unlink(missing_ok=True)
        made_of = fingerprint() if ours else ""
        print(f"{venv}: {' '.join(packages)}", file=sys.stderr)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        away = [[*pip, "uninstall", "--yes", "hdphrs"]] if ours else []  # what is stale has the same version
        for command in ([sys.executable, "-m", "venv", str(folder)], *away, [*pip, "install", *packages]):
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
            (folder / READY).write_text(f"{made_of}\n")
    return complete
