"""`python -m tests.foreign`: other people's tests, unmodified, with hdphrs in the place of what they test.

What lives here: the command line, and what it prints.  A failure that is not expected, and a pass that is not, make the
exit status 1.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from tests.foreign.environment import InstallError, install
from tests.foreign.expectations import Expectations, counts, judge
from tests.foreign.record import Entry, skipped, write_entry, write_page
from tests.foreign.run import RunError, command_of, last_run, run, show
from tests.foreign.suite import REPOSITORY, Suite
from tests.foreign.suites import SUITES


def main() -> int:
    """Run the suites that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.foreign", description=__doc__)
    parser.add_argument("--suite", action="append", choices=sorted(SUITES), help="one of them; all by default")
    parser.add_argument("--share", choices=("ci", "all"), default="all", help="ci: what takes a few minutes")
    parser.add_argument("--record", action="store_true", help="write the record and the page; needs --share all")
    parser.add_argument("--read", action="store_true", help="run nothing: judge the last run by what is expected now")
    parser.add_argument("--page", action="store_true", help="only make the page of the record anew")
    asked = parser.parse_args()
    if asked.record and asked.share != "all":
        parser.error("--record needs --share all")
    if not asked.page:
        good = [
            _run_one(SUITES[name], asked.share, record=asked.record, read=asked.read) for name in asked.suite or SUITES
        ]
        passed, failed = good.count(True), good.count(False)
        print(f"suites: {passed} passed, {failed} failed", flush=True)
        if failed:
            return 1
    if asked.record or asked.page:
        write_page()
    return 0


def _run_one(suite: Suite, share: str, *, record: bool, read: bool) -> bool:
    """Whether all was as expected."""
    print(f"{suite.name}: {suite.title} {suite.version}, share {share}", flush=True)
    try:
        if not read:
            install(suite)
        found = last_run(suite, share) if read else run(suite, share)
    except (InstallError, RunError) as error:
        print(f"  {error}", file=sys.stderr, flush=True)
        return False
    verdict = judge(found.outcomes, Expectations.read(suite.expectations), is_whole=share == "all")
    show(found, verdict.new_failures, "fails, which is new")
    show(found, verdict.unexpected_passes, "passes, which was not expected")
    show(found, verdict.not_seen, "is expected to fail, and is not there")
    counted = counts(found.outcomes.values())
    said = ", ".join(f"{count} {outcome}" for outcome, count in counted.items())
    print(f"  {said} in {found.took_s:.0f} s: {'as expected' if verdict.is_good else 'not as expected'}", flush=True)
    if not found.outcomes:
        return False
    if record and verdict.is_good:
        reasons = skipped(found.outcomes, found.why)
        entry = Entry(
            suite.version,
            **counted,
            command=" ".join(command_of(suite, share)).replace(f"{REPOSITORY}/", ""),
            date=_today(),
            python="{}.{}.{}".format(*sys.version_info),
            reasons=reasons,
        )
        write_entry(suite, entry)
    return verdict.is_good


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


if __name__ == "__main__":
    sys.exit(main())
