"""What is expected of a suite: which tests fail, and why that is right, or for how long it is not.

What lives here: the files in `expected/`, and the judgement of a run by them.  A file is TOML with three lists of
groups, each with a reason and the names of the tests: `fails`, `varies` for those that sometimes do, and `left_out` for
those that are not run since they would hang or take the whole run down.  A name without parameters stands for the test
with all of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.foreign.plugged.outcomes import without_parameters

FAILS, VARIES, LEFT_OUT = "fails", "varies", "left_out"

PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"


@dataclass(frozen=True, slots=True)
class Group:
    """Tests that have one reason in common."""

    kind: str
    why: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expectations:
    """All groups of a suite."""

    groups: tuple[Group, ...] = ()
    _kinds: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Expectations:
        """Those of the file; a suite without one passes everything.

        Raises:
            ValueError: a test is named twice, or the file has another form.
        """
        found = tomllib.loads(path.read_text()) if path.exists() else {}
        if unknown := set(found) - {FAILS, VARIES, LEFT_OUT}:
            raise ValueError(f"{path.name}: unknown lists {', '.join(sorted(unknown))}")
        groups = [Group(kind, group["why"], tuple(group["tests"])) for kind in found for group in found[kind]]
        kinds: dict[str, str] = {}
        for group in groups:
            for test in group.tests:
                if test in kinds:
                    raise ValueError(f"{path.name} names {test} twice")
                kinds[test] = group.kind
        return cls(tuple(groups), kinds)

    def names(self, kind: str) -> list[str]:
        """The tests of one list."""
        return [test for test, other in self._kinds.items() if other == kind]

    def kind_of(self, test: str) -> str | None:
        """The list that has the test, by its name with parameters or without."""
        return self._kinds.get(test) or self._kinds.get(without_parameters(test))

    def entry_of(self, test: str) -> str:
        """The name that stands for the test in its list."""
        return test if test in self._kinds else without_parameters(test)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run has that was not expected."""

    new_failures: tuple[str, ...]
    unexpected_passes: tuple[str, ...]
    not_seen: tuple[str, ...]
    """Named among those that fail, and not in the run at all."""

    @property
    def is_good(self) -> bool:
        """Whether all was as expected."""
        return not (self.new_failures or self.unexpected_passes or self.not_seen)


def judge(outcomes: Mapping[str, str], expectations: Expectations, *, is_whole: bool) -> Verdict:
    """Compare a run with what was expected.

    Args:
        outcomes: by the tests' names.
        is_whole: the whole suite has been run, so that every test that is named must be there.
    """
    new = [test for test, outcome in outcomes.items() if outcome == FAILED and expectations.kind_of(test) is None]
    passes = [test for test, outcome in outcomes.items() if outcome == PASSED and expectations.kind_of(test) == FAILS]
    seen = {expectations.entry_of(test) for test in outcomes}
    missing = [test for test in expectations.names(FAILS) if test not in seen] if is_whole else []
    return Verdict(tuple(new), tuple(passes), tuple(missing))


def counts(outcomes: Iterable[str]) -> dict[str, int]:
    """How many tests have which outcome."""
    found = dict.fromkeys((PASSED, SKIPPED, FAILED), 0)
    for outcome in outcomes:
        found[outcome] += 1
    return found
