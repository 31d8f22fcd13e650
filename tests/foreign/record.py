"""The record of the last whole runs, and the page that is made of it.

What lives here: `record.json` has an entry for each suite; `docs/other-peoples-tests.md` shows them, and every test
that is not expected to pass, with the reason.  A test of ours holds the two together.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import wrap

from tests.foreign.expectations import FAILS, LEFT_OUT, SKIPPED, VARIES, Expectations
from tests.foreign.suite import REPOSITORY, Suite
from tests.foreign.suites import SUITES

RECORD = Path(__file__).parent / "record.json"
PAGE = REPOSITORY / "docs" / "other-peoples-tests.md"

WIDTH = 118

REASONS_MAX = 8
"""Reasons for skipping that are shown of a suite."""

REASON_CHARS_MAX = 120

HEAD = """# Other people's tests

Projects that run calls on several processes have tests of what their users rely on. hdphrs is put in the place of
their own workers, from outside, and their tests are run as they are: none of them is copied or changed. `make foreign`
installs each suite at the version shown into an environment of its own below `build/foreign`, runs it, and compares
the outcome of each test with what is expected: a failure that is not listed below fails the run, and so does a listed
test that passes. `.ci/run` does the same with `--share ci`, a part of each suite; together they take a few minutes.

Tests that want a crash to break an executor are inverted: there ours has to name what has crashed, and to answer
afterwards. `python -m tests.foreign --suite joblib` runs one suite, `--record` writes this page. The commands in the
last table run in the suite's environment, with the path file that the runner has put there.

"""

HEADINGS = {
    FAILS: "These fail:",
    VARIES: "These fail now and then:",
    LEFT_OUT: "These are not run:",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One whole run of a suite."""

    version: str
    passed: int
    skipped: int
    failed: int
    command: str
    date: str
    python: str
    reasons: dict[str, int] = field(default_factory=dict)
    """Why the suite skips tests, and how many."""


def read_entries(path: Path = RECORD) -> dict[str, Entry]:
    """The entries of all suites that have been run, by name."""
    found = json.loads(path.read_text()) if path.exists() else {}
    return {name: Entry(**entry) for name, entry in found.items()}


def write_entry(suite: Suite, entry: Entry, path: Path = RECORD) -> None:
    """Replace the entry of a suite."""
    entries = read_entries(path) | {suite.name: entry}
    data = {name: asdict(entries[name]) for name in sorted(entries)}
    path.write_text(json.dumps(data, indent=2) + "\n")


def write_page() -> None:
    """Make the page of the record and the expectations."""
    PAGE.write_text(page(read_entries()))


def skipped(outcomes: Mapping[str, str], why: Mapping[str, str]) -> dict[str, int]:
    """The reasons for which most tests are skipped, and how many have others."""
    found = Counter(_shortened(why[test]) for test, outcome in outcomes.items() if outcome == SKIPPED).most_common()
    others = sum(count for _, count in found[REASONS_MAX:])
    return dict(found[:REASONS_MAX]) | ({"other reasons": others} if others else {})


def _shortened(reason: str) -> str:
    """Without the place, and what differs from run to run."""
    said = re.sub(r"""^\('.*', \d+, ['"]Skipped: (.*)['"]\)$""", r"\1", reason)
    return re.sub(r" at 0x[0-9a-f]+|-[0-9a-f]{32}", "", said).split(" | ")[0][:REASON_CHARS_MAX]


def page(entries: Mapping[str, Entry]) -> str:
    """The text of the page."""
    return HEAD + "\n".join([*_table(entries), "", *_reasons(), *_skips(entries), *_commands(entries), ""])


def _table(entries: Mapping[str, Entry]) -> Iterator[str]:
    yield "| suite | version | what is put in its place | passed | skipped | failed, all listed | date | Python |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, suite in SUITES.items():
        entry = entries.get(name)
        figures = (
            [
                entry.version,
                suite.plugged,
                str(entry.passed),
                str(entry.skipped),
                str(entry.failed),
                entry.date,
                entry.python,
            ]
            if entry
            else [suite.version, suite.plugged, "", "", "", "not yet", ""]
        )
        yield f"| {suite.title} | {' | '.join(figures)} |"


def _reasons() -> Iterator[str]:
    for suite in SUITES.values():
        groups = Expectations.read(suite.expectations).groups
        if not groups:
            continue
        yield from (f"## {suite.title}", "")
        for kind, heading in HEADINGS.items():
            of_kind = [group for group in groups if group.kind == kind]
            if not of_kind:
                continue
            yield from (heading, "")
            for group in of_kind:
                names = ", ".join(f"`{test}`" for test in group.tests)
                lines = wrap(f"- {group.why}: {names}", WIDTH, break_long_words=False, break_on_hyphens=False)
                yield lines[0]
                yield from (f"  {line}" for line in lines[1:])
            yield ""


def _skips(entries: Mapping[str, Entry]) -> Iterator[str]:
    yield from ("## Skipped by the suites themselves", "", "| suite | tests | why |", "|---|---|---|")
    for name, suite in SUITES.items():
        for why, count in entries[name].reasons.items() if name in entries else ():
            yield f"| {suite.title} | {count} | {why.replace('|', chr(92) + '|')} |"
    yield ""


def _commands(entries: Mapping[str, Entry]) -> Iterator[str]:
    yield from ("## Commands", "", "| suite | command |", "|---|---|")
    for name, suite in SUITES.items():
        if name in entries:
            yield f"| {suite.title} | `{entries[name].command}` |"
