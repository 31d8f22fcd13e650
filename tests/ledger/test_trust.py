"""A ledger of this machine reads and makes nothing where others can put something in its way (decision 42)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hdphrs.errors import LedgerError
from hdphrs.ledger import Entry, open_store
from hdphrs.ledger.sqlite import FILE_NAME, SUFFIXES
from tests.ledger.support import BYTES_MAX, Opener, entry_of, memo_of, right
from tests.test_owned import OTHER, PLANTED, foreign, hard_link, link, needs_root, writable

URLS = ["file", "local"]


def location_of(folder: Path, kind: str) -> str:
    """Of a ledger of this kind, in this folder."""
    return str(folder) if kind == "directory" else f"{kind}://{folder}"


def fill(location: str) -> None:
    """With three entries."""
    store = Opener(location)()
    store.write(map(entry_of, range(3)))
    store.close()


def planted() -> Entry:
    """A value that is not the one of that call."""
    return Entry(memo_of(0), memo_of(0), b"\1", "f", 1.0, b"planted")


def test_a_log_that_was_planted_beside_a_ledger_is_not_read(tmp_path: Path) -> None:
    """This is what a group could do: SQLite takes what is in the log for what is in the file."""
    folder, theirs = tmp_path / "ledger", tmp_path / "theirs"
    fill(str(folder))
    shutil.copytree(folder, theirs)
    store = open_store(str(theirs), BYTES_MAX, print)
    store.write([planted()])
    for suffix in ("-wal", "-shm"):
        shutil.copyfile(theirs / (FILE_NAME + suffix), folder / (FILE_NAME + suffix))
        if os.geteuid() == 0:
            os.chown(folder / (FILE_NAME + suffix), OTHER, -1)
        else:
            (folder / (FILE_NAME + suffix)).chmod(0o666)
    store.close()
    with pytest.raises(LedgerError, match=f"the ledger {folder} cannot be trusted: .*{FILE_NAME}-wal"):
        Opener(str(folder))()
    for suffix in ("-wal", "-shm"):
        (folder / (FILE_NAME + suffix)).unlink()
    assert right(Opener(str(folder))(), range(3)) == 3


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("plant", PLANTED)
def test_each_file_that_sqlite_opens_is_checked_before(
    tmp_path: Path, plant: Callable[[Path], None], suffix: str
) -> None:
    folder = tmp_path / "ledger"
    fill(str(folder))
    file = folder / (FILE_NAME + suffix)
    if file.exists():
        file.unlink()
    plant(file)
    before = {path.name: path.lstat().st_mtime_ns for path in folder.iterdir()}
    for create in (True, False):
        with pytest.raises(LedgerError, match=f"the ledger {folder} cannot be trusted: .*{file.name}"):
            open_store(str(folder), BYTES_MAX, print, create=create)
    assert {path.name: path.lstat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_link_to_nowhere_is_not_followed(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "ledger"
    folder.mkdir(mode=0o700)
    (folder / (FILE_NAME + suffix)).symlink_to(tmp_path / "made")
    with pytest.raises(LedgerError, match="is a symbolic link"):
        Opener(str(folder))()
    assert not (tmp_path / "made").exists()


@needs_root
@pytest.mark.parametrize("kind", ["directory", *URLS])
def test_a_folder_of_another_user_is_refused_before_anything_is_made_in_it(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "ledger"
    folder.mkdir()
    os.chown(folder, OTHER, -1)
    (folder / FILE_NAME).symlink_to(tmp_path / "made")
    with pytest.raises(LedgerError, match=f"cannot be trusted: {folder} belongs to another user \\({OTHER}\\)"):
        Opener(location_of(folder, kind))()
    assert not (tmp_path / "made").exists()
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize("kind", ["directory", *URLS])
@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused_with_what_to_do(tmp_path: Path, kind: str, mode: int) -> None:
    location = location_of(tmp_path / "ledger", kind)
    fill(location)
    last = tmp_path / "ledger" / ("" if kind == "directory" else "ledger-1")
    last.chmod(mode)
    others = "its group" if mode == 0o770 else "everybody"
    with pytest.raises(LedgerError) as caught:
        Opener(location)()
    line = f"the ledger {location} cannot be trusted: {others} can write to {last} (mode {mode:04o}); chmod go-w {last}"
    assert str(caught.value) == line
    last.chmod(0o700)
    assert right(Opener(location)(), range(3)) == 3


@pytest.mark.parametrize("kind", ["directory", *URLS])
def test_a_folder_that_others_could_exchange_is_refused(tmp_path: Path, kind: str) -> None:
    above = tmp_path / "above"
    location = location_of(above / "ledger", kind)
    fill(location)
    above.chmod(0o777)
    with pytest.raises(LedgerError, match=f"everybody can write to {above} \\(mode 0777\\)"):
        Opener(location)()
    above.chmod(0o1777)
    assert right(Opener(location)(), range(3)) == 3
    above.chmod(0o755)


@pytest.mark.parametrize("kind", URLS)
@pytest.mark.parametrize("plant", [link, hard_link, writable, foreign])
def test_an_object_that_others_can_have_written_is_not_read(
    tmp_path: Path, kind: str, plant: Callable[[Path], None]
) -> None:
    location = location_of(tmp_path / "ledger", kind)
    fill(location)
    opened = Opener(location)()
    opened.labels()
    victim = next(file for file in (tmp_path / "ledger").rglob("*") if file.is_file())
    victim.unlink()
    plant(victim)
    with pytest.raises(LedgerError, match=f"cannot be trusted: .*{victim.name}"):
        Opener(location)().labels()
    with pytest.raises(LedgerError, match=f"cannot be trusted: .*{victim.name}"):
        opened.read([memo_of(number) for number in range(3)])


@pytest.mark.parametrize("kind", URLS)
def test_a_folder_of_objects_that_others_can_write_to_is_not_read(tmp_path: Path, kind: str) -> None:
    location = location_of(tmp_path / "ledger", kind)
    fill(location)
    opened = Opener(location)()
    opened.labels()
    (part,) = (tmp_path / "ledger" / "ledger-1").iterdir()
    part.chmod(0o770)
    for use in (opened.labels, lambda: opened.read([memo_of(0)]), lambda: opened.write([entry_of(7)])):
        with pytest.raises(LedgerError, match=f"its group can write to {part} "):
            use()


@pytest.mark.parametrize("kind", ["directory", *URLS])
def test_whatever_the_umask_a_ledger_is_made_for_this_user_alone(tmp_path: Path, kind: str) -> None:
    location = location_of(tmp_path / "one" / "two", kind)
    old = os.umask(0)
    try:
        fill(location)
        Opener(location)().write([entry_of(8)])
    finally:
        os.umask(old)
    made = list((tmp_path / "one").rglob("*"))
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}
    assert right(Opener(location)(), range(9)) == 4


@pytest.mark.parametrize(
    "location",
    ["simplecache::file:///tmp/x", "filecache::s3://bucket/x", "zip://x::file:///tmp/x.zip", "simplecache::/tmp/x://y"],
)
def test_a_chain_of_urls_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError, match="it is a chain of URLs; name the last of them alone"):
        open_store(location, BYTES_MAX, print)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_set_aside_makes_room_for_one_of_this_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    fill(str(folder))
    (folder / FILE_NAME).write_bytes(b"garbage" * 1000)
    aside = tmp_path / "elsewhere"
    (folder / f"{FILE_NAME}.damaged").symlink_to(aside)
    opener = Opener(str(folder))
    store = opener()
    store.write([entry_of(1)])
    assert len(opener.complaints) == 1
    assert not aside.exists()
    assert (folder / FILE_NAME).stat().st_mode & 0o777 == 0o600
    assert right(store, range(3)) == 1
    store.close()
