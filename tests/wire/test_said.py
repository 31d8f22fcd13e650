"""The shapes of what tasks say."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from hdphrs.wire import said
from hdphrs.wire.said import BUNDLE_BYTES, Advice, Allowance, Held, LogRecord, Text, Wanted, Warned, Who

WHO = ["host:1", "f", b"\0"]
ITEMS: list[list[Any]] = [
    [said.TEXT, WHO, said.OUT, b"line\n"],
    [said.RECORD, WHO, {"msg": "x"}],
    [said.WARNING, WHO, "text", "builtins.UserWarning", "x.py", 3],
    [said.ADVICE, "kind", "sentence"],
    [said.HELD, 3],
]
OPENED = [
    Text(Who(*WHO), said.OUT, "line\n"),  # type: ignore[arg-type]
    LogRecord(Who(*WHO), {"msg": "x"}),  # type: ignore[arg-type]
    Warned(Who(*WHO), "text", "builtins.UserWarning", "x.py", 3),  # type: ignore[arg-type]
    Advice("kind", "sentence"),
    Held(3),
]


def test_items_are_what_they_were_when_a_bundle_is_opened() -> None:
    (bundle,) = said.bundles(ITEMS)
    assert said.open_bundle(bundle) == OPENED


def test_lost_bundle_counts_for_the_lines_in_it() -> None:
    (bundle,) = said.bundles([*ITEMS, [said.TEXT, WHO, said.OUT, b"x\ny\n"]])
    assert said.lost_with(bundle) == 1 + 1 + 1 + 1 + 3 + 2


def test_bundles_are_of_moderate_size() -> None:
    items = [[said.TEXT, WHO, said.OUT, bytes(BUNDLE_BYTES // 3)] for _ in range(7)]
    bundles = list(said.bundles(items))
    assert len(bundles) == 4
    assert sum(len(said.open_bundle(bundle)) for bundle in bundles) == len(items)
    assert list(said.bundles([])) == []


@pytest.mark.parametrize("data", [b"", b"\xc1", msgpack.packb(3), msgpack.packb([[9, 1], [0, [], 1, b""], "x", []])])
def test_what_has_no_known_shape_is_left_out(data: bytes) -> None:
    assert said.open_bundle(data) == []


def test_bytes_that_are_no_text_can_be_shown() -> None:
    (bundle,) = said.bundles([[said.TEXT, WHO, said.ERR, b"\xff\n"]])
    assert said.open_bundle(bundle) == [Text(Who("host:1", "f", b"\0"), said.ERR, "\\xff\n")]


def test_wishes_are_what_they_were() -> None:
    wanted = Wanted((b"\0", b"\1"), {"": 30, "their.module": 10}, 20)
    assert said.decode_wanted(said.encode_wanted(wanted)) == wanted


def test_allowance_grows_again_up_to_its_most() -> None:
    now_s = 0.0
    allowance = Allowance(10, 100, lambda: now_s)
    assert allowance.take(60)
    assert not allowance.take(60)
    now_s = 2.0
    assert allowance.take(60)
    now_s = 1000.0
    assert allowance.take(5000), "what is more than all is not refused for ever"
    assert not allowance.take(1)


def test_long_lines_count_for_several() -> None:
    assert [said.lines_of(text) for text in (b"x", b"x\ny\n", bytes(10_000))] == [1, 2, 5]
