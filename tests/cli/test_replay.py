"""`hdphrs run --trace-protocol` and `hdphrs replay`: from the recording to the verdict and its exit status."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster.support import Start, write_program

TREE = """
import hdphrs

def tree(levels):
    if not levels:
        return 1
    left = hdphrs.spawn(tree, levels - 1)
    return tree(levels - 1) + hdphrs.get(left)

print(hdphrs.run(tree, 12))
"""


@pytest.mark.slow
def test_recorded_run_is_replayed_and_a_missing_or_damaged_trace_is_told(start: Start, tmp_path: Path) -> None:
    prog = write_program(tmp_path, TREE)
    folder = tmp_path / "no" / "such" / "folder"
    run = start("run", "--local-nodes", 2, "--trace-protocol", folder, prog)
    assert run.finish() == (0, "4096\n", "")
    run.assert_nothing_left()

    status, output, errors = start("replay", folder).finish()
    assert (status, errors) == (0, "")
    lines = output.splitlines()
    assert re.fullmatch(r"conforming: [0-9,]+ events; the invariants held", lines[-1])
    assert [line.split()[0] for line in lines[:3]] == ["node", "0", "1"]
    assert all(line.endswith("ended with the run") for line in lines[1:3])

    again = start("run", "--trace-protocol", folder, prog).finish()
    assert again == (2, "", f"hdphrs: cannot record in {folder}: it holds the trace of another run\n")

    one, other = sorted(folder.iterdir(), key=lambda path: int(path.name.split("-")[2]))
    data = other.read_bytes()
    other.unlink()
    status, output, _ = start("replay", folder).finish()
    assert status == 1
    assert "the trace of node " in output

    other.write_bytes(data[:200] + b"x" + data[201:])
    status, output, errors = start("replay", folder).finish()
    assert (status, output) == (2, "")
    assert re.fullmatch(rf"hdphrs: {other} is damaged at byte \d+: [^\n]+\n", errors)

    one.unlink()
    other.unlink()
    assert start("replay", folder).finish() == (2, "", f"hdphrs: there is no trace in {folder}\n")


def test_folder_that_cannot_be_made_is_refused_before_the_run(start: Start, tmp_path: Path) -> None:
    prog = write_program(tmp_path, "print('never')")
    folder = prog / "folder"
    run = start("run", "--trace-protocol", folder, prog)
    assert run.finish() == (2, "", f"hdphrs: cannot record in {folder}: Not a directory\n")
