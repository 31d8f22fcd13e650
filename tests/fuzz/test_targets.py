"""A short run of every fuzz target (`make fuzz` is the long one), and that a finding would be seen."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from random import Random

import pytest

from hdphrs.errors import ProtocolError
from hdphrs.wire import pickling
from tests.fuzz import engines, tripwire
from tests.fuzz.__main__ import PLAN
from tests.fuzz.target import Finding, Outcome, Target, examine, refused
from tests.fuzz.targets import TARGETS

QUICK = {"listener": 40, "core": 300, "pieces": 300}


@pytest.fixture(autouse=True)
def wire() -> Iterator[None]:
    with tripwire.laid():
        yield


@pytest.mark.parametrize("name", TARGETS)
def test_target_under_mutations_finds_nothing(name: str) -> None:
    engines.mutations(TARGETS[name], QUICK.get(name, 1000), engines.Tally())


@pytest.mark.parametrize("name", TARGETS)
def test_target_under_hypothesis_finds_nothing(name: str) -> None:
    tally = engines.Tally()
    engines.hypothesis(TARGETS[name], QUICK.get(name, 1000) // 5, tally)
    assert tally.inputs


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_of_a_target_are_valid_and_the_same_each_time(name: str) -> None:
    target = TARGETS[name]
    seeds = target.seeds()
    assert seeds == target.seeds()
    assert all(target.run(data).accepted for data in seeds)
    assert target.draw(Random(7)) == target.draw(Random(7))


def test_plan_is_a_million_inputs_over_all_targets() -> None:
    assert PLAN.keys() == TARGETS.keys()
    assert sum(count for counts in PLAN.values() for count in counts.values()) >= 1_000_000


def _target(run: object) -> Target:
    return Target("planted", run, lambda: [b"ok"], lambda rng: rng.randbytes(4))  # type: ignore[arg-type]


def _raise(data: bytes) -> Outcome:
    raise KeyError(data)


def _unpickle(data: bytes) -> Outcome:
    try:
        pickle.loads(data)
    except BaseException as error:  # as code does that must survive whatever unpickling raises
        return Outcome(False, str(error))
    return Outcome(True, "")


def _unpickle_with_ours(data: bytes) -> Outcome:
    try:
        pickling.loads(data)
    except BaseException as error:
        return Outcome(False, str(error))
    return Outcome(True, "")


def _devour(data: bytes) -> Outcome:
    return Outcome(len(bytearray(10 << 20)) > 0, "")


def _run_out(data: bytes) -> Outcome:
    try:
        raise ProtocolError("malformed") from MemoryError()
    except ProtocolError as error:
        return refused(error)


@pytest.mark.parametrize(
    ("run", "what"),
    [
        (_raise, "KeyError"),
        (_unpickle, "unpickled: .*pickle.loads"),
        (_unpickle_with_ours, "unpickled: .*loads"),
        (_devour, "made it allocate"),
        (_run_out, "MemoryError"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_planted_flaw_is_a_finding(run: object, what: str) -> None:
    with pytest.raises(Finding, match=what) as found:
        engines.mutations(_target(run), 10, engines.Tally())
    assert f"--target planted --input {found.value.data.hex()}" in str(found.value)


def test_finding_of_hypothesis_is_made_small() -> None:
    def run(data: bytes) -> Outcome:
        assert b"\x07" not in data
        return Outcome(True, "")

    with pytest.raises(Finding) as found:
        engines.hypothesis(_target(run), 500, engines.Tally())
    assert found.value.data == b"\x07"


def test_refusal_is_no_finding() -> None:
    def run(data: bytes) -> Outcome:
        return refused(ProtocolError("a frame of 1,073,741,825 bytes, the limit is 12"))

    assert examine(_target(run), b"", measured=False) == Outcome(False, "a frame of # bytes, the limit is #")


def test_input_in_hex_is_tried_again_from_the_command_line() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--target", "codec", "--input"]
    valid = subprocess.run([*command, "920207"], capture_output=True, text=True, check=False)
    assert (valid.returncode, valid.stdout) == (0, "refused: NoWork with # fields instead of #\n")
    nonsense = subprocess.run([*command, "zz"], capture_output=True, text=True, check=False)
    assert nonsense.returncode == 2
    assert "Traceback" not in nonsense.stderr
