"""Quotas of cores, as containers and batch systems set them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hdphrs.wire import settings
from hdphrs.wire.cpu_quota import quota_cores


def made(folder: Path, membership: str, **files: str) -> float | None:
    """The quota under this membership, where these files are; `__` in a name separates folders, `_DOT_` is a dot."""
    (folder / "membership").write_text(membership)
    for name, text in files.items():
        path = folder / "groups" / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return quota_cores(folder / "membership", folder / "groups")


def test_the_second_version_has_quota_and_period_in_one_file(tmp_path: Path) -> None:
    assert made(tmp_path, "0::/", cpu_DOT_max="150000 100000\n") == 1.5


def test_a_group_without_a_quota_has_none(tmp_path: Path) -> None:
    assert made(tmp_path, "0::/", cpu_DOT_max="max 100000\n") is None


def test_the_tightest_group_on_the_way_up_counts(tmp_path: Path) -> None:
    files = {
        "a__b__c__cpu_DOT_max": "max 100000",
        "a__b__cpu_DOT_max": "200000 100000",
        "a__cpu_DOT_max": "400000 100000",
    }
    assert made(tmp_path, "0::/a/b/c\n", **files) == 2.0


@pytest.mark.parametrize("controllers", ["cpu", "cpu,cpuacct", "cpuacct,cpu"])
def test_the_first_version_has_two_files(tmp_path: Path, controllers: str) -> None:
    files = {
        f"{controllers}__job__cpu_DOT_cfs_quota_us": "50000\n",
        f"{controllers}__job__cpu_DOT_cfs_period_us": "100000\n",
    }
    assert made(tmp_path, f"9:memory:/job\n4:{controllers}:/job\n0::/\n", **files) == 0.5


def test_minus_one_is_no_quota(tmp_path: Path) -> None:
    files = {"cpu__cpu_DOT_cfs_quota_us": "-1", "cpu__cpu_DOT_cfs_period_us": "100000"}
    assert made(tmp_path, "1:cpu:/\n", **files) is None


def test_in_a_container_the_group_is_at_the_top_whatever_its_path(tmp_path: Path) -> None:
    files = {"cpu__cpu_DOT_cfs_quota_us": "300000", "cpu__cpu_DOT_cfs_period_us": "100000"}
    assert made(tmp_path, "1:cpu:/docker/0123\n", **files) == 3.0


@pytest.mark.parametrize("membership", ["", "nonsense\n", "0::/nowhere\n"])
def test_what_cannot_be_read_is_no_quota(tmp_path: Path, membership: str) -> None:
    assert made(tmp_path, membership) is None
    assert quota_cores(tmp_path / "none", tmp_path) is None


@pytest.mark.parametrize(("quota", "cores"), [(None, 8), (0.5, 1), (1.5, 2), (3.0, 3), (64.0, 8)])
def test_usable_are_the_allowed_cores_or_the_quota(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(settings, "quota_cores", lambda: quota)
    assert settings.usable_cores() == cores
