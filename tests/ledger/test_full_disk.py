"""A disk that is full, or cannot be written at all: what is in the ledger is there nevertheless.

The disk is a small one in memory, in a mount namespace of its own: only root can have that.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.support import REPOSITORY

TRIAL = """
import os, shutil, sys
from pathlib import Path
import pytest
from hdphrs.errors import LedgerError
from hdphrs.ledger import open_store
from tests.ledger.support import entry_of, right

disk, location, how = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
folder = disk / "ledger"

def fill_up():
    with open(disk / "filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass

complaints = []
open_again = lambda: open_store(location, 1 << 20, complaints.append)
store = open_again()
store.write([entry_of(number) for number in range(50)])
if how.startswith("killed"):
    left = disk / "left"
    shutil.copytree(folder, left)
    store.close()
    shutil.rmtree(folder)
    left.rename(folder)
elif how != "in use":
    store.close()
if how.endswith("read-only"):
    assert os.system(f"mount -o remount,ro {disk}") == 0
else:
    fill_up()
if how != "in use":
    store = open_again()
assert right(store, range(60)) == 50
for _ in range(2):
    with pytest.raises(LedgerError) as caught:
        store.write([entry_of(number, size=5000) for number in range(100, 120)])
    print(caught.value)
    assert right(store, range(60)) == 50
if how.endswith("read-only"):
    assert os.system(f"mount -o remount,rw {disk}") == 0
else:
    (disk / "filler").unlink()
store.write([entry_of(55)])
assert right(store, range(60)) == 51
store.close()
assert right(open_again(), range(60)) == 51
assert complaints == [], complaints
"""


def can_mount() -> bool:
    """Whether this user has mounts of its own."""
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


needs_mounts = pytest.mark.skipif(not can_mount(), reason="a small disk of one's own can be mounted by root alone")


def on_small_disk(disk: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command where `disk` is one of a megabyte."""
    disk.mkdir()
    script = 'mount -t tmpfs -o size=1m,mode=700 tmpfs "$0" && exec "$@"'
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script, str(disk), *command],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )


@needs_mounts
@pytest.mark.parametrize("kind", ["directory", "file"])
@pytest.mark.parametrize("how", ["closed", "killed", "in use", "read-only", "killed, then read-only"])
def test_what_is_in_a_ledger_is_read_while_nothing_can_be_written(tmp_path: Path, kind: str, how: str) -> None:
    disk = tmp_path / "disk"
    location = f"{disk}/ledger" if kind == "directory" else f"file://{disk}/ledger"
    done = on_small_disk(disk, sys.executable, "-c", TRIAL, str(disk), location, how)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("the ledger ")
        assert "cannot be written: " in line
        if kind == "directory":
            assert line.endswith(
                "(the file system is read-only)" if how.endswith("read-only") else "(the disk is full)"
            )
