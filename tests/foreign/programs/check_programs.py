"""The programs, as `python -m tests.foreign` runs them: plainly, on two nodes, and with nodes that are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.foreign.programs.__main__ import NAMES

REPOSITORY = Path(__file__).parents[3]

WAYS = {
    "plain": [],
    "two nodes": ["-m", "hdphrs", "run", "--local-nodes", "2"],
    "killed": ["-m", "hdphrs", "run", "--local-nodes", "3", "--kill-at", "0.8,1.5"],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_the_result_is_right(name: str, way: str) -> None:
    program = [str(Path(__file__).with_name("__main__.py")), name, "large"]
    done = subprocess.run(
        [sys.executable, *WAYS[way], *program],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
