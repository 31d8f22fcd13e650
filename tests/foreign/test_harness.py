"""The harness of other people's tests: what it makes of outcomes, and that the page is what the record says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.foreign import environment, run
from tests.foreign.expectations import FAILS, LEFT_OUT, VARIES, Expectations, counts, judge
from tests.foreign.plugged.outcomes import name_of, without_parameters
from tests.foreign.record import PAGE, REASONS_MAX, Entry, page, read_entries, skipped, write_entry
from tests.foreign.run import RunError
from tests.foreign.suite import Suite
from tests.foreign.suites import SUITES

THEIRS = """
import os, time
import pytest

def test_passes():
    pass

def test_fails():
    assert False, "so it fails"

@pytest.mark.parametrize("n", [1, 2])
def test_each(n):
    assert n == 1

def test_skips():
    pytest.skip("not today")

def test_takes_its_process_down():
    os._exit(7)

def test_hangs():
    time.sleep(600)

def test_comes_after_them():
    pass

def test_is_left_out():
    raise AssertionError
"""

EXPECTED = """
[[fails]]
why = "it does"
tests = ["test_theirs.py::test_fails", "test_theirs.py::test_each[2]", "test_theirs.py::test_takes_its_process_down"]

[[varies]]
why = "depends"
tests = ["test_theirs.py::test_hangs"]

[[left_out]]
why = "never mind"
tests = ["test_theirs.py::test_is_left_out"]
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite in a folder of its own, run by the Python that runs this."""
    suite = Suite("theirs", "Theirs", "1.0", ("test_theirs.py",), "for_programs", "nothing", test_s_max=2.0)
    folder = tmp_path / "foreign"
    for module in (environment, run):
        monkeypatch.setattr(module, "FOLDER", folder)
    monkeypatch.setattr(environment, "WAY", folder / "way")
    monkeypatch.setattr("tests.foreign.suite.EXPECTED", tmp_path)
    monkeypatch.setattr(run, "python_of", lambda suite: Path(sys.executable))
    environment._make_way()
    source = environment.folder_of(suite)
    source.mkdir(parents=True)
    (source / "test_theirs.py").write_text(THEIRS)
    suite.expectations.write_text(EXPECTED)
    return suite.__class__(**{name: getattr(suite, name) for name in suite.__slots__} | {"environ": _reach(folder)})


def _reach(folder: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(folder / "way")}


@pytest.mark.slow
def test_a_test_that_crashes_or_hangs_has_failed_and_those_after_it_are_run(suite: Suite) -> None:
    found = run.run(suite, "all")
    assert {name.split("::")[1]: outcome for name, outcome in found.outcomes.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_each[1]": "passed",
        "test_each[2]": "failed",
        "test_skips": "skipped",
        "test_takes_its_process_down": "failed",
        "test_hangs": "failed",
        "test_comes_after_them": "passed",
    }
    assert "so it fails" in found.why["test_theirs.py::test_fails"]
    assert "status 7" in found.why["test_theirs.py::test_takes_its_process_down"]
    assert judge(found.outcomes, Expectations.read(suite.expectations), is_whole=True).is_good
    output = (environment.WAY.parent / "runs" / "theirs" / "output.txt").read_text()
    assert "in test_hangs" in output, "its stacks are shown"


@pytest.mark.slow
def test_a_suite_that_cannot_be_started_says_why(suite: Suite) -> None:
    (environment.folder_of(suite) / "conftest.py").write_text("raise RuntimeError('no such thing here')")
    with pytest.raises(RunError, match="no such thing here"):
        run.run(suite, "all")


def test_new_failures_unexpected_passes_and_tests_that_are_gone_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"
    file.write_text(EXPECTED)
    expectations = Expectations.read(file)
    outcomes = {
        "test_theirs.py::test_fails": "passed",
        "test_theirs.py::test_each[1]": "failed",
        "test_theirs.py::test_each[2]": "skipped",
        "test_theirs.py::test_hangs": "passed",
    }
    verdict = judge(outcomes, expectations, is_whole=True)
    assert verdict.new_failures == ("test_theirs.py::test_each[1]",)
    assert verdict.unexpected_passes == ("test_theirs.py::test_fails",)
    assert verdict.not_seen == ("test_theirs.py::test_takes_its_process_down",)
    assert not verdict.is_good
    assert judge(outcomes, expectations, is_whole=False).not_seen == ()
    assert counts(outcomes.values()) == {"passed": 2, "skipped": 1, "failed": 1}


def test_a_name_without_parameters_stands_for_all(tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"
    file.write_text('[[fails]]\nwhy = "all of them"\ntests = ["a.py::test_each"]\n')
    expectations = Expectations.read(file)
    assert judge({"a.py::test_each[x]": "failed"}, expectations, is_whole=True).is_good
    assert not judge(
        {"a.py::test_each[x]": "failed", "a.py::test_each[y]": "passed"}, expectations, is_whole=True
    ).is_good


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[fail]]\nwhy = ""\ntests = []\n', "unknown lists fail"),
        ('[[fails]]\nwhy = ""\ntests = ["a"]\n[[varies]]\nwhy = ""\ntests = ["a"]\n', "names a twice"),
    ],
)
def test_expectations_in_another_form_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "expected.toml").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        Expectations.read(tmp_path / "expected.toml")


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        (
            "../venv/lib/python3.11/site-packages/joblib/test/test_a.py::test_x[1-a]",
            "joblib/test/test_a.py::test_x[1-a]",
        ),
        ("source/loky-3.11/tests/test_b.py::Case::test_y", "tests/test_b.py::Case::test_y"),
        ("../../../usr/lib/python3.13/test/test_c/test_d.py::test_z", "test_c/test_d.py::test_z"),
        ("test_concurrent_futures.py::Case::test_z", "test_concurrent_futures::Case::test_z"),
        ("/lib/python3.14/test/test_concurrent_futures/test_wait.py::A::test_z", "test_concurrent_futures::A::test_z"),
        ("test_e.py::test_x[../lib]", "test_e.py::test_x[../lib]"),
    ],
)
def test_a_test_has_the_same_name_wherever_its_suite_is_installed(nodeid: str, name: str) -> None:
    assert name_of(nodeid) == name
    assert "[" not in without_parameters(name)


def test_the_record_keeps_an_entry_for_each_suite(tmp_path: Path) -> None:
    entry = Entry("1.0", 3, 2, 1, "python -m pytest", "2026-01-01", "3.11.7")
    write_entry(SUITES["joblib"], entry, tmp_path / "record.json")
    write_entry(SUITES["dask"], entry, tmp_path / "record.json")
    entries = read_entries(tmp_path / "record.json")
    assert entries == {"dask": entry, "joblib": entry}
    assert "| joblib | 1.0 |" in page(entries)


def test_reasons_of_skipped_tests_are_counted_without_their_places() -> None:
    why = {"a": "('/x/test_a.py', 3, 'Skipped: no numpy')", "b": "no numpy", "c": "f at 0x7f4f9968e890 is new", "d": ""}
    outcomes = {"a": "skipped", "b": "skipped", "c": "skipped", "d": "passed"}
    assert skipped(outcomes, why) == {"no numpy": 2, "f is new": 1}
    many = {str(n): str(n) for n in range(REASONS_MAX + 3)}
    assert skipped(dict.fromkeys(many, "skipped"), many)["other reasons"] == 3


def test_the_page_is_made_of_the_record_and_of_what_is_expected() -> None:
    assert PAGE.read_text() == page(read_entries()), "python -m tests.foreign --page"


@pytest.mark.parametrize("name", SUITES)
def test_the_record_agrees_with_what_is_expected(name: str) -> None:
    suite, entry = SUITES[name], read_entries().get(name)
    expectations = Expectations.read(suite.expectations)
    assert entry is not None, f"python -m tests.foreign --suite {name} --record"
    whole = [test for test in expectations.names(FAILS) if "[" in test or "::" not in test]
    assert entry.failed >= len(whole)
    if not expectations.names(VARIES):
        assert (entry.failed > 0) == bool(expectations.names(FAILS))
    for group in expectations.groups:
        assert group.why
        assert group.kind in (FAILS, VARIES, LEFT_OUT)
    if name != "cpython":  # that is as old as the Python that runs this
        assert entry.version == suite.version
