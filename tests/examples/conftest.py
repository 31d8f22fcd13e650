"""Runs the examples as scripts, in this process."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hdphrs

EXAMPLES = Path(__file__).parents[2] / "examples"

Script = Callable[..., list[str]]
"""`script("queens.py", "8")`: the lines that the example prints."""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Script:
    """Runs an example as `__main__`, in sequential mode and in an empty directory."""

    def run(name: str, *arguments: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        monkeypatch.chdir(tmp_path)
        with hdphrs.sequential():
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run
