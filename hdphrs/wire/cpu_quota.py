"""How much of the host's cores a container or a batch system lets this process use.

What lives here: reading the quota of the cgroups (version 1 or 2) that this process is in.  What does not: the cores
that it may run on, which is the affinity (`settings.usable_cores`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

MEMBERSHIP: Final = Path("/proc/self/cgroup")
CGROUPS: Final = Path("/sys/fs/cgroup")


def quota_cores(membership: Path = MEMBERSHIP, cgroups: Path = CGROUPS) -> float | None:
    """The cores that the tightest quota amounts to; None if there is none.

    Args:
        membership: the file that names the cgroups of this process.
        cgroups: where these are mounted.
    """
    return min(_quotas(membership, cgroups), default=None)


def _quotas(membership: Path, cgroups: Path) -> Iterator[float]:
    """Those of each group and of the groups above it, for a quota holds for all below.  In a container the path may be
    that of the host, where nothing is mounted; the group itself is at the top then."""
    with suppress(OSError, ValueError):
        for line in membership.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            groups = [path.lstrip("/"), *map(str, PurePosixPath(path.lstrip("/")).parents)]
            for group in groups:
                if controllers == "":
                    yield from _ratio(_words(cgroups / group / "cpu.max"))
                elif "cpu" in controllers.split(","):
                    for name in ("cpu", controllers):
                        folder = cgroups / name / group
                        yield from _ratio(_words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us"))


def _ratio(words: list[str]) -> Iterator[float]:
    with suppress(ValueError):  # "max", and nothing at all
        quota, period = map(int, words)
        if quota > 0 and period > 0:
            yield quota / period


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
