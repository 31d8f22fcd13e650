"""The same plays have the same effects, in this process and in any other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
from tests.protocol.test_interleavings import play
print([play(seed).trace.hexdigest() for seed in range(12)])
"""


def test_effects_do_not_depend_on_the_hash_seed() -> None:
    """Nothing in the core iterates over a set, so a trace can be replayed."""
    root = Path(__file__).parents[2]
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(set(runs)) == 1
    assert len(runs[0]) > 12 * 64
