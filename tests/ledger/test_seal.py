"""With a key, a ledger believes only what is signed with it (decision 42)."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.ledger import Entry, Store, open_store, seal
from hdphrs.ledger.entry import decode_entry, encode_entry
from hdphrs.ledger.seal import Seal
from tests.ledger.support import BYTES_MAX, entry_of, file_location, memo_of, right

KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))
Open = Callable[[bytes | None], Store]


@pytest.fixture(params=["directory", "file", "memory"])
def opens(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens a ledger of each kind with a key; nobody complains."""
    locations = {
        "directory": str(tmp_path / "ledger"),
        "file": file_location(tmp_path),
        "memory": f"memory://{uuid.uuid4().hex}",
    }
    complaints: list[str] = []
    stores = []

    def opens(key: bytes | None) -> Store:
        stores.append(open_store(locations[request.param], BYTES_MAX, complaints.append, key=key))
        stores[-1].labels()
        return stores[-1]

    yield opens
    for store in stores:
        store.close()
    assert complaints == []


def test_what_is_not_signed_or_with_another_key_is_a_miss_and_counted(opens: Open) -> None:
    opens(None).write([entry_of(0)])
    opens(OTHER_KEY).write([entry_of(1)])
    opens(KEY).write([entry_of(2)])
    store = opens(KEY)
    assert [entry.key for entry in store.read([memo_of(number) for number in range(4)])] == [memo_of(2)]
    assert store.unsigned == 2


def test_without_a_key_everything_is_believed(opens: Open) -> None:
    opens(None).write([entry_of(0)])
    opens(OTHER_KEY).write([entry_of(1)])
    store = opens(None)
    assert right(store, range(3)) == 2
    assert store.unsigned == 0


def test_an_entry_that_was_not_signed_is_replaced_by_one_that_is(opens: Open) -> None:
    opens(None).write([entry_of(0)])
    store = opens(KEY)
    assert right(store, range(1)) == 0
    store.write([entry_of(0)])
    assert right(opens(KEY), range(1)) == 1
    assert right(opens(None), range(1)) == 1


def test_what_is_not_signed_is_told_apart_and_removed_on_demand(opens: Open) -> None:
    opens(None).write([entry_of(number) for number in range(3)])
    opens(KEY).write([entry_of(number) for number in range(3, 8)])
    store = opens(KEY)
    verdict = store.verify(remove=False)
    assert (verdict.sound, verdict.damaged, verdict.unsigned) == (5, 0, 3)
    verdict = store.verify(remove=True)
    assert (verdict.sound, verdict.damaged, verdict.unsigned) == (5, 0, 3)
    assert opens(None).figures().entries == 5
    verdict = store.verify(remove=True)
    assert (verdict.sound, verdict.damaged, verdict.unsigned) == (5, 0, 0)
    assert store.shrink(0) == 5


def test_nothing_of_an_entry_is_looked_at_before_its_signature(opens: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    opens(None).write([entry_of(0)])
    opens(OTHER_KEY).write([entry_of(1)])
    looked_at = []

    def look(blob: object, key: bytes) -> Entry:
        looked_at.append(key)
        return decode_entry(blob, key)

    monkeypatch.setattr(seal, "decode_entry", look)
    opens(KEY).write([entry_of(2)])
    assert right(opens(KEY), range(3)) == 1
    assert looked_at == [memo_of(2)]


def test_a_right_entry_is_wrong_in_any_other_place() -> None:
    complaints: list[str] = []
    signed = Seal("it", KEY, complaints.append)
    blob = signed.close(entry_of(1))
    assert signed.open(memo_of(1), blob) == entry_of(1)
    assert signed.open(memo_of(2), blob) is None
    for other in (encode_entry(entry_of(1)), b"", None, 7, "x", signed.close(entry_of(2)), blob[:40], blob[:-1]):
        assert signed.open(memo_of(1), other) is None
    assert signed.open(None, blob) is None
    assert signed.unsigned == 9
    assert complaints == ["an entry of it is damaged (it has no key) and is not used"]


@given(st.binary(max_size=200), st.integers(0, 10_000), st.integers(1, 255))
def test_an_entry_of_which_any_byte_is_another_is_not_signed(data: bytes, place: int, change: int) -> None:
    signed = Seal("it", KEY, print)
    entry = Entry(memo_of(1), b"", b"\1", "f", 1.0, data)
    blob = bytearray(signed.close(entry))
    blob[place % len(blob)] ^= change
    assert signed.open(entry.key, bytes(blob)) is None
    assert signed.unsigned == 1


def test_a_value_that_is_exchanged_for_another_one_that_is_signed_is_a_miss(tmp_path: Path) -> None:
    """Who can write to the ledger has the signed entries of other calls at hand."""
    store = open_store(str(tmp_path / "ledger"), BYTES_MAX, print, key=KEY)
    store.write([entry_of(1), entry_of(2)])
    store.close()
    file = sqlite3.connect(tmp_path / "ledger" / "ledger-1.sqlite")
    with file:
        file.execute("UPDATE entries SET entry = (SELECT entry FROM entries WHERE key = ?)", [memo_of(1)])
    file.close()
    store = open_store(str(tmp_path / "ledger"), BYTES_MAX, print, key=KEY)
    assert right(store, range(3)) == 1
    assert store.unsigned == 1
    store.close()
