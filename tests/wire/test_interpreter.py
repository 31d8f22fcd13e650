"""Interpreters that are started as this one was."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hdphrs.wire.interpreter import start_variables


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ([], []),
        (["-O"], ["-O"]),
        (["-OO", "-B"], ["-BOO"]),
        (["-bb"], []),
        (["-X", "dev", "-X", "utf8=1"], ["-X", "dev", "-X", "utf8=1"]),
        (["-X", "importtime=0", "-W", "error", "-s"], []),
    ],
)
def test_options_are_passed_on_if_they_matter_to_tasks(given: list[str], passed: list[str]) -> None:
    source = "from hdphrs.wire.interpreter import interpreter_options; print(interpreter_options())"
    command = [sys.executable, *given, "-c", source]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env={})
    assert ran.stdout == f"{passed}\n", ran.stderr


def test_variables_that_count_at_the_start_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "3")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.delenv("PYTHONUTF8", raising=False)
    variables = start_variables()
    assert variables["PYTHONHASHSEED"] == "3"
    assert not {"PYTHONPATH", "PYTHONUTF8"} & variables.keys()
