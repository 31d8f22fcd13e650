"""What fuzzing has found, each input by name."""

from __future__ import annotations

import io

import msgpack
import pytest

from hdphrs.errors import StartError, TaskCrashedError, TaskError, TaskLostError
from hdphrs.protocol.tasks import Outcome as TaskOutcome
from hdphrs.protocol.tasks import Verdict
from hdphrs.wire.settings import encode_settings, read_settings
from hdphrs.wire.values import load_outcome
from tests.fuzz import seeds
from tests.fuzz.mutate import frame
from tests.fuzz.target import examine
from tests.fuzz.targets import TARGETS

VERSIONS = msgpack.unpackb(encode_settings(seeds.settings()[0])[4:])["versions"]

SETTINGS = {
    "no_object": b"\xc1",
    "lengths_that_lie": b"\xdd\x00\x01\x00\x00" * 900,
    "a_number": msgpack.packb(7),
    "versions_are_a_list": msgpack.packb({"versions": [], "settings": {}}),
    "versions_are_missing": msgpack.packb({}),
    "settings_are_a_number": msgpack.packb({"versions": VERSIONS, "settings": 3}),
    "settings_are_empty": msgpack.packb({"versions": VERSIONS, "settings": {}}),
    "text_is_not_utf8": b"\x81\xa1\xff\xc0",
    "key_is_a_list": b"\x81\x90\x01",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_standard_input_without_settings_is_a_start_error(name: str) -> None:
    with pytest.raises(StartError, match="its standard input holds no settings"):
        read_settings(io.BytesIO(frame(SETTINGS[name])))


def test_version_that_is_no_text_is_a_start_error() -> None:
    with pytest.raises(StartError, match="this host runs Python"):
        read_settings(io.BytesIO(frame(msgpack.packb({"versions": {"python": [1]}, "settings": {}}))))


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (TaskOutcome(Verdict.RAISED, b""), TaskError),
        (TaskOutcome(Verdict.RAISED, b"\xc1"), TaskError),
        (TaskOutcome(Verdict.RAISED, msgpack.packb(None)), TaskError),
        (TaskOutcome(Verdict.RAISED, msgpack.packb([None, "f", "E"])), TaskError),
        (TaskOutcome(Verdict.RAISED, msgpack.packb([None, "f", "E", 1, "x", "y"])), TaskError),
        (TaskOutcome(Verdict.RAISED, msgpack.packb([7, "f", "E", "m", "x", "y"])), TaskError),
        (TaskOutcome(Verdict.CRASHED, b"\xff"), TaskCrashedError),
        (TaskOutcome(Verdict.LOST, b"\xff"), TaskLostError),
    ],
)
def test_illegible_outcome_is_an_error_of_its_task(outcome: TaskOutcome, error: type[Exception]) -> None:
    succeeded, content = load_outcome(outcome)
    assert not succeeded
    assert type(content) is error
    assert str(content)


@pytest.mark.parametrize("target", ["codec", "greeting", "outcome"])
@pytest.mark.parametrize(
    "body",
    [b"\xdd\x00\x02\x00\x00" * 1000, b"\xdc\xff\xff" * 1000, b"\x93\x01" + b"\xdd\x00\x01\x00\x00" * 900],
    ids=["32-bit", "16-bit", "inside"],
)
def test_nested_lists_that_lie_about_their_length_take_little_memory(target: str, body: bytes) -> None:
    assert not examine(TARGETS[target], body, measured=True).accepted


def test_session_whose_message_is_nil_is_refused() -> None:
    stream = bytes.fromhex("266d00000004930001c000000002910200000007930001930f0400")
    assert not examine(TARGETS["session"], stream, measured=False).accepted


def test_record_with_lists_that_lie_about_their_length_takes_little_memory() -> None:
    assert not examine(TARGETS["trace"], b"\0" + b"\xdc\x01\x2c" + b"\xdc\xff\xff" * 21_844, measured=True).accepted


def test_deep_frame_in_pieces_is_compared_without_recursion() -> None:
    assert examine(
        TARGETS["framing"], b"\x01" + frame(b"\x91" * 1000 + b"\xcb\x7f\xf8" + bytes(6)), measured=False
    ).accepted
