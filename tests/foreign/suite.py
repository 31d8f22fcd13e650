"""What a suite is: where its tests come from, what is plugged in, and which of them a share has.

What lives here: the record of one suite.  What does not: the suites themselves (`suites/`), and how they are run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "build" / "foreign"
"""All that is installed, unpacked or written by a run."""

EXPECTED = Path(__file__).parent / "expected"

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests of another project, or programs of our own that compute what others have published."""

    name: str
    title: str
    """For people, without the version."""
    version: str
    tests: tuple[str, ...]
    """Arguments of pytest that name the tests, in the suite's folder."""
    plugin: str
    """A module of `plugged`, given to pytest with -p."""
    plugged: str
    """How hdphrs takes part, in a sentence for the page."""
    requires: tuple[str, ...] = ()
    """What pip installs, besides pytest and what hdphrs needs."""
    source: str = ""
    """A source distribution to unpack, as a requirement; its folder is the suite's folder."""
    links: tuple[str, ...] = ()
    """Files that are already on this machine, linked into the suite's folder."""
    folder: str = "."
    """Where pytest runs, in the source distribution."""
    ci: tuple[str, ...] = ()
    """Arguments in place of `tests` for the share of CI; empty for all of them."""
    ci_left_out: tuple[str, ...] = ()
    """Names of tests that are too long for CI."""
    test_s_max: float = 120.0
    """A test that takes longer has hung: its stacks are shown, and the rest runs in another process."""
    suite_s_max: float = 3600.0
    """The whole run of the suite."""
    environ: Mapping[str, str] = field(default_factory=lambda: NOTHING)

    @property
    def expectations(self) -> Path:
        """The file that names the tests which are not expected to pass."""
        return EXPECTED / f"{self.name}.toml"
