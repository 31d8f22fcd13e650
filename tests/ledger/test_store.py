"""What every kind of store does: a directory, and URLs of several file systems."""

from __future__ import annotations

import os
import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hdphrs.errors import LedgerError
from hdphrs.ledger import Entry, open_store
from hdphrs.ledger.entry import Damage, decode_entry, encode_entry
from hdphrs.ledger.sqlite import SqliteStore
from tests.ledger.support import BYTES_MAX, Opener, data_of, entry_of, file_location, memo_of, right


@pytest.fixture(params=["directory", "file", "memory"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """A store of each kind."""
    locations = {
        "directory": str(tmp_path / "ledger"),
        "file": file_location(tmp_path),
        "memory": f"memory://{uuid.uuid4().hex}",
    }
    opener = Opener(locations[request.param])
    yield opener
    assert opener.complaints == []


def test_what_one_run_has_written_the_next_one_reads(opener: Opener) -> None:
    first = opener()
    assert first.labels() == []
    first.write([entry_of(number) for number in range(300)])
    first.close()
    second = opener()
    assert {label.key for label in second.labels()} == {memo_of(number) for number in range(300)}
    assert {(label.top, label.path) for label in second.labels()} == {
        (entry.top, entry.path) for entry in map(entry_of, range(300))
    }
    assert right(second, range(400)) == 300
    figures = second.figures()
    assert figures.entries == 300
    assert figures.bytes > 300 * 40
    second.close()


def test_runs_that_share_a_store_read_what_the_other_has_written(opener: Opener) -> None:
    first, second = opener(), opener()
    first.write([entry_of(1)])
    second.write([entry_of(1), entry_of(2)])
    assert right(first, range(4)) == 2
    first.close()
    assert right(second, range(4)) == 2
    second.close()


def test_what_is_more_than_there_may_be_goes_cheap_and_large_first(opener: Opener) -> None:
    store = opener(200_000)
    store.write([entry_of(1, size=90_000), entry_of(2, size=10_000, cost_s=100.0)])
    assert [entry.key for entry in store.read([memo_of(1), memo_of(2)])] == [memo_of(2)]  # half of it is too much
    for number in range(10, 30):
        store.write([entry_of(number, size=20_000, cost_s=0.001)])
        assert store.figures().bytes <= 200_000 + 21_000
    store.labels()
    assert [entry.key for entry in store.read([memo_of(2)])] == [memo_of(2)]
    store.close()


def test_a_store_is_shrunk_and_verified_on_demand(opener: Opener) -> None:
    store = opener()
    store.write([entry_of(number) for number in range(50)])
    assert (store.verify(remove=True).sound, store.verify(remove=True).damaged) == (50, 0)
    assert store.shrink(1 << 30) == 0
    assert store.shrink(0) == 50
    assert store.figures().entries == 0
    store.close()


def test_what_is_removed_is_there_no_more_and_what_is_not_there_matters_not(opener: Opener) -> None:
    store = opener()
    store.write([entry_of(number) for number in range(3)])
    store.remove([memo_of(1), memo_of(7)])
    store.close()
    again = opener()
    assert {label.key for label in again.labels()} == {memo_of(0), memo_of(2)}
    assert [entry.key for entry in again.read([memo_of(1), memo_of(2)])] == [memo_of(2)]
    again.close()


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    key=st.binary(min_size=20, max_size=20),
    top=st.one_of(st.just(b""), st.binary(min_size=21, max_size=21)),
    path=st.binary(max_size=240),
    name=st.text(max_size=20),
    cost_s=st.floats(0, 1e9),
    data=st.binary(max_size=2000),
)
def test_any_entry_comes_back_as_it_was(
    opener: Opener, key: bytes, top: bytes, path: bytes, name: str, cost_s: float, data: bytes
) -> None:
    entry = Entry(b"!" + key, top, path, name, cost_s, data)
    assert decode_entry(encode_entry(entry), entry.key) == entry
    store = opener()
    store.write([entry])
    store.labels()
    assert store.read([entry.key]) == [entry]
    store.close()


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(0, 10_000), st.integers(1, 255))
def test_an_entry_of_which_any_byte_is_another_is_refused(data: bytes, place: int, change: int) -> None:
    entry = Entry(memo_of(1), b"", b"\1", "f", 1.0, data)
    blob = bytearray(encode_entry(entry))
    blob[place % len(blob)] ^= change
    with pytest.raises(Damage):
        decode_entry(bytes(blob), entry.key)
    with pytest.raises(Damage):
        decode_entry(encode_entry(entry), memo_of(2))


def test_a_directory_is_its_owner_s_alone(tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    store = Opener(str(folder))()
    store.write([entry_of(1)])
    assert folder.stat().st_mode & 0o777 == 0o700
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
    store.close()
    folder.chmod(0o777)
    with pytest.raises(LedgerError, match="everybody can write to"):
        Opener(str(folder))()
    folder.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(folder / "ledger-1.sqlite", 12345, -1)
        with pytest.raises(LedgerError, match="belongs to another user"):
            Opener(str(folder))()


def test_what_is_no_place_for_a_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be used"):
        Opener(str(tmp_path / "file"))()
    for location in (str(tmp_path / "nowhere"), file_location(tmp_path), "memory://nowhere"):
        with pytest.raises(LedgerError, match="there is no ledger"):
            open_store(location, 1000, print, create=False)
    with pytest.raises(LedgerError, match="cannot be used"):
        Opener("frob://x")()
    assert data_of(1) != data_of(2)


def test_a_ledger_whose_log_or_file_is_removed_meanwhile_keeps_what_is_written_after_that(tmp_path: Path) -> None:
    """Another run may have set the file aside, or somebody tidied up."""
    opener = Opener(str(tmp_path / "ledger"))
    file = tmp_path / "ledger" / "ledger-1.sqlite"
    store = opener()
    store.write([entry_of(1)])
    file.with_name(f"{file.name}-wal").unlink()
    store.write([entry_of(2)])
    other = opener()
    assert right(other, range(9)) >= 1
    other.close()
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).rename(tmp_path / f"aside{suffix}")
    other = opener()
    store.write([entry_of(3)])
    assert right(other, range(9)) == 1
    other.close()
    store.close()
    assert right(opener(), range(9)) == 1
    assert opener.complaints == []


def test_a_ledger_that_is_closed_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    opener = Opener(str(tmp_path / "ledger"))
    store = opener()
    store.write([entry_of(1)])
    store.close()
    for use in (store.labels, lambda: store.read([memo_of(1)]), lambda: store.write([entry_of(2)])):
        with pytest.raises(LedgerError):
            use()
    assert right(opener(), range(9)) == 1
    assert opener.complaints == []


def test_an_object_larger_than_the_ledger_may_be_is_not_read(tmp_path: Path) -> None:
    """Whoever can write to a bucket could fill the memory of all who read it."""
    opener = Opener(file_location(tmp_path))
    opener().write([entry_of(1), entry_of(2)])
    file = next(file for file in tmp_path.rglob(f"{memo_of(1).hex()}-*"))
    os.truncate(file, BYTES_MAX + 1)
    store = opener()
    assert right(store, range(9)) == 1
    assert [label.key for label in store.labels()] == [memo_of(2)]
    assert opener.complaints == []


@pytest.mark.parametrize("name", ["a b", "a?mode=ro", "a%20b", "a#b", "ä\u2028", "a:b"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    opener = Opener(str(tmp_path / name))
    store = opener()
    store.write([entry_of(1)])
    store.close()
    assert sorted(path.name for path in (tmp_path / name).iterdir()) == ["ledger-1.sqlite"]
    assert right(opener(), range(9)) == 1
    assert opener.complaints == []


def test_a_file_that_is_read_as_it_is_is_never_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing could be written, so it was opened without locks: what looks damaged may be another run at work."""
    opener = Opener(str(tmp_path / "ledger"))
    file = tmp_path / "ledger" / "ledger-1.sqlite"
    store = opener()
    store.write([entry_of(number) for number in range(50)])
    store.close()
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL

    def refuse(store: SqliteStore) -> sqlite3.Connection:
        store._check_files()
        raise error

    sound = file.read_bytes()
    other = sqlite3.connect(file)  # so that this one is not alone
    other.execute("SELECT COUNT(*) FROM entries").fetchall()
    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "_connect", refuse)
        store = opener()
        file.write_bytes(sound[:5000] + b"x" * (len(sound) - 5000))
        with pytest.raises(LedgerError, match="cannot be used: "):
            store.read([memo_of(number) for number in range(50)])
        file.write_bytes(sound)
        store.close()
    other.close()
    assert [path.name for path in (tmp_path / "ledger").iterdir()] == ["ledger-1.sqlite"]
    assert right(opener(), range(99)) == 50
    assert opener.complaints == []


@pytest.mark.parametrize("kind", ["directory", "file"])
@pytest.mark.parametrize("part", ["ledger", "ledger/ledger-1"])
def test_a_ledger_that_is_deleted_says_so_when_it_is_written(tmp_path: Path, kind: str, part: str) -> None:
    location = str(tmp_path / "ledger") if kind == "directory" else f"file://{tmp_path}/ledger"
    store = Opener(location)()
    store.write([entry_of(1)])
    if kind == "directory" and part != "ledger":
        (tmp_path / "ledger" / "ledger-1.sqlite").unlink()
    else:
        shutil.rmtree(tmp_path / part)
    for _ in range(2):
        with pytest.raises(LedgerError, match=f"^the ledger {location} has been deleted$"):
            store.write([entry_of(2)])
    store.close()
