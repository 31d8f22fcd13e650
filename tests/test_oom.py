"""The kernel's counters of kills for want of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from hdphrs import oom
from hdphrs.oom import OomWitness


def test_rise_of_any_counter_is_told_once(tmp_path: Path) -> None:
    cgroup, host = tmp_path / "memory.events", tmp_path / "vmstat"
    cgroup.write_text("low 0\noom 1\noom_kill 0\noom_group_kill 0\n")
    host.write_text("nr_free_pages 17\noom_kill 4\n")
    witness = OomWitness([cgroup, host])
    assert not witness.has_risen()
    host.write_text("nr_free_pages 11\noom_kill 5\n")
    assert witness.has_risen()
    assert not witness.has_risen()
    cgroup.write_text("oom_kill 2\n")
    assert witness.has_risen()


def test_counters_that_are_missing_never_rise(tmp_path: Path) -> None:
    assert not OomWitness([tmp_path / "nothing"]).has_risen()


@pytest.mark.parametrize(
    ("membership", "file"),
    [("0::/user.slice\n", "user.slice/memory.events"), ("4:cpu,memory:/a\n0::/\n", "memory/a/memory.oom_control")],
)
def test_counter_of_the_own_cgroup_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, membership: str, file: str
) -> None:
    (tmp_path / "cgroup").write_text(membership)
    counter = tmp_path / file
    counter.parent.mkdir(parents=True)
    counter.write_text("oom_kill 0\n")
    monkeypatch.setattr(oom, "CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(oom, "CGROUPS", tmp_path)
    monkeypatch.setattr(oom, "HOST", tmp_path / "vmstat")
    witness = OomWitness()
    counter.write_text("oom_kill 1\n")
    assert witness.has_risen()


def test_what_is_said_of_a_process_that_was_killed_for_want_of_memory() -> None:
    told = oom.memory_word(3 << 30)
    assert told.startswith("because the system was out of memory")
    assert "the arguments of its unfinished calls took 3.22 GB" in told
    assert "arguments" not in oom.memory_word(0)
    assert oom.limit_of_memory("MemFree: 1 kB\nMemTotal:       24 kB\n") == 24 * 1024
    assert oom.limit_of_memory("") == 0
