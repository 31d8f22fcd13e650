"""The cluster fixture of the end-to-end tests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.e2e.harness import SOON_S, Cluster
from tests.e2e.harness import cluster as open_cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A run of real processes, none of which may be left at the end."""
    with open_cluster(tmp_path) as run:
        yield run


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A cgroup that bounds processes and threads (`pids.max`), made by the test; or no test."""
    name = f"hdphrs-test-{uuid.uuid4().hex}"
    for parent in ("pids", ""):
        group = Path("/sys/fs/cgroup") / parent / name
        try:
            group.mkdir()
            (group / "pids.max").write_text("max")
        except OSError:
            if group.is_dir():
                group.rmdir()
            continue
        yield group
        end_s = monotonic() + SOON_S
        while monotonic() < end_s and (group / "cgroup.procs").read_text():
            sleep(0.01)
        group.rmdir()
        return
    pytest.skip("no cgroup of processes can be made here")
