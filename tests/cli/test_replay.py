"""`hdphrs run --trace-protocol` and `hdphrs replay`: from the recording to the verdict and its exit status."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hdphrs import __version__
from hdphrs.config import CoreConfig
from hdphrs.protocol.events import Exported
from hdphrs.protocol.paths import child_path
from hdphrs.protocol.tasks import PROGRAM, Task
from hdphrs.wire.trace import Header, Record, encode_header, encode_record, first_line
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


@pytest.mark.parametrize("plant", [lambda path: os.mkfifo(path), lambda path: path.mkdir()], ids=["pipe", "folder"])
def test_what_is_no_file_is_no_trace_and_is_not_waited_for(
    start: Start, tmp_path: Path, plant: Callable[[Path], None]
) -> None:
    plant(tmp_path / "x.trace")
    line = f"hdphrs: cannot read the trace {tmp_path}/x.trace: it is not a regular file\n"
    assert start("replay", tmp_path).finish(within_s=30) == (2, "", line)


def test_a_trace_of_somebody_else_neither_runs_anything_nor_steers_a_terminal(start: Start, tmp_path: Path) -> None:
    """What tasks are made of is in it, and never unpickled; names of hosts are shown."""
    header = Header(b"run", True, "host\x1b[2J", 1, 0.0, 0.0, CoreConfig())
    bomb = b"cos\nsystem\n(S'touch %s'\ntR." % bytes(tmp_path / "made")
    exported = Exported(PROGRAM, ((0, Task("f\x1b[2J", child_path(b"", 0), bomb, bomb, True)),))
    record = Record(0.0, exported, (), (), None)
    trace = first_line(__version__) + encode_header(header) + encode_record(record)
    (tmp_path / "x.trace").write_bytes(trace)
    status, output, errors = start("replay", tmp_path).finish()
    assert (status, errors) == (1, "")
    assert "host\\x1b[2J" in output
    assert "\x1b" not in output
    assert not (tmp_path / "made").exists()
