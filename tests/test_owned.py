"""What only this user and root can change, and what others can, or may have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hdphrs.owned import Distrust, Folder, read_secret

OTHER = 12345
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    """Three folders, one in the other; the files in the last are what matters."""
    (tmp_path / "a" / "b" / "c").mkdir(parents=True, mode=0o755)
    yield tmp_path / "a"
    for folder in (tmp_path / "a", tmp_path / "a" / "b"):
        if folder.is_dir():
            folder.chmod(0o755)


def reach(path: Path, *, create: bool = False) -> Folder:
    """It is closed when nothing refers to it any more."""
    return Folder.open(str(path), create=create)


@pytest.mark.parametrize("where", ["a", "a/b", "a/b/c"])
@pytest.mark.parametrize(("mode", "others"), [(0o775, "its group"), (0o777, "everybody"), (0o757, "everybody")])
def test_a_folder_that_others_can_write_to_is_distrusted_wherever_it_is_on_the_way(
    top: Path, where: str, mode: int, others: str
) -> None:
    folder = top.parent / where
    folder.chmod(mode)
    with pytest.raises(Distrust) as caught:
        reach(top / "b" / "c")
    assert str(caught.value) == f"{others} can write to {folder} (mode {mode:04o}); chmod go-w {folder}"
    folder.chmod(0o755)
    reach(top / "b" / "c")


def test_a_sticky_folder_is_trusted_above_and_not_as_the_last(top: Path) -> None:
    (top / "b").chmod(0o1777)
    reach(top / "b" / "c")
    with pytest.raises(Distrust, match="everybody can write to"):
        reach(top / "b")
    Folder.open(str(top / "b"), create=False, sticky=True).make("file")


@needs_root
@pytest.mark.parametrize("where", ["a", "a/b", "a/b/c"])
def test_a_folder_of_another_user_is_distrusted_wherever_it_is_on_the_way(top: Path, where: str) -> None:
    os.chown(top.parent / where, OTHER, -1)
    with pytest.raises(Distrust, match=f"{where} belongs to another user \\({OTHER}\\)"):
        reach(top / "b" / "c")


@needs_root
def test_a_folder_that_another_user_makes_in_a_sticky_one_is_distrusted(top: Path) -> None:
    top.chmod(0o1777)
    os.chown(top / "b", OTHER, -1)
    with pytest.raises(Distrust, match="a/b belongs to another user"):
        reach(top / "b" / "c" / "new", create=True)
    assert not (top / "b" / "c" / "new").exists()


def test_links_on_the_way_are_followed_where_they_lead_is_checked_and_the_last_is_none(top: Path) -> None:
    (top / "relative").symlink_to("b/../b")
    (top / "absolute").symlink_to(top / "b")
    (top / "chain").symlink_to("relative")
    (top / "last").symlink_to("b/c")
    for name in ("relative", "absolute", "chain"):
        assert os.fstat(reach(top / name / "c").descriptor).st_ino == (top / "b" / "c").stat().st_ino
    with pytest.raises(Distrust, match="last is a symbolic link; name what it points to"):
        reach(top / "last")
    (top / "b").chmod(0o777)
    for name in ("relative", "absolute", "chain"):
        with pytest.raises(Distrust, match=f"everybody can write to {top}/b "):
            reach(top / name / "c")
    (top / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels"):
        reach(top / "loop" / "c")


@needs_root
def test_a_link_of_another_user_is_distrusted(top: Path) -> None:
    top.chmod(0o1777)
    (top / "link").symlink_to("b")
    os.chown(top / "link", OTHER, -1, follow_symlinks=False)
    with pytest.raises(Distrust, match="link belongs to another user"):
        reach(top / "link" / "c")


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_what_is_made_is_for_this_user_alone(top: Path, mask: int) -> None:
    old = os.umask(mask)
    try:
        folder = reach(top / "new" / "newer", create=True)
        folder.make("file", b"content")
        inner = folder.inside("inner", create=True)
        inner.make("file")
    finally:
        os.umask(old)
    assert {path.stat().st_mode & 0o777 for path in (top / "new", *(top / "new").rglob("*")) if path.is_dir()} == {
        0o700
    }
    assert {path.stat().st_mode & 0o777 for path in (top / "new").rglob("file")} == {0o600}
    assert folder.read("file") == b"content"
    assert sorted(folder.names()) == ["file", "inner"]


def link(file: Path) -> None:
    """A link that leads to a good file."""
    good = file.with_name("good")
    good.write_bytes(b"planted")
    file.symlink_to(good)


def hard_link(file: Path) -> None:
    """A second name."""
    good = file.with_name("good")
    good.write_bytes(b"planted")
    os.link(good, file)


def writable(file: Path) -> None:
    """A file that a group may write."""
    file.write_bytes(b"planted")
    file.chmod(0o620)


def pipe(file: Path) -> None:
    """Who opens it waits."""
    os.mkfifo(file)


def folder(file: Path) -> None:
    """No file at all."""
    file.mkdir()


def foreign(file: Path) -> None:
    """A file of another user, or, where it cannot be given away, one that all may write."""
    file.write_bytes(b"planted")
    if os.geteuid() == 0:
        os.chown(file, OTHER, -1)
    else:
        file.chmod(0o666)


PLANTED = [link, hard_link, writable, pipe, folder, foreign]


@pytest.mark.parametrize("plant", PLANTED)
def test_a_file_that_others_can_have_changed_is_neither_found_nor_read(
    top: Path, plant: Callable[[Path], None]
) -> None:
    opened = reach(top / "b" / "c")
    assert opened.find("file") is None
    plant(top / "b" / "c" / "file")
    with pytest.raises(Distrust):
        opened.find("file")
    with pytest.raises(Distrust):
        opened.read("file")
    with pytest.raises(FileExistsError):
        opened.make("file")


def test_nothing_is_made_through_a_link_to_nowhere(top: Path) -> None:
    elsewhere = top / "elsewhere"
    (top / "b" / "c" / "file").symlink_to(elsewhere)
    with pytest.raises(FileExistsError):
        reach(top / "b" / "c").make("file")
    assert not elsewhere.exists()


def test_a_folder_that_is_deleted_is_gone(top: Path) -> None:
    opened = reach(top / "b" / "c")
    assert not opened.is_gone()
    (top / "b" / "c").rmdir()
    assert opened.is_gone()
    opened.close()
    opened.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        opened.names()


def test_a_secret_is_this_user_s_alone_and_of_the_right_size(top: Path) -> None:
    file = top / "key"
    file.write_bytes(bytes(32))
    for mode in (0o640, 0o604, 0o622):
        file.chmod(mode)
        with pytest.raises(Distrust):
            read_secret(str(file), 16, 64)
    file.chmod(0o600)
    assert read_secret(str(file), 16, 64) == bytes(32)
    for bounds in ((33, 64), (16, 31)):
        with pytest.raises(Distrust, match="has 32 bytes; expected"):
            read_secret(str(file), *bounds)
    top.chmod(0o1777)
    assert read_secret(str(file), 16, 64) == bytes(32)
    top.chmod(0o777)
    with pytest.raises(Distrust, match="everybody can write to"):
        read_secret(str(file), 16, 64)
    top.chmod(0o755)
    (top / "link").symlink_to(file)
    with pytest.raises(Distrust, match="symbolic link"):
        read_secret(str(top / "link"), 16, 64)
    with pytest.raises(FileNotFoundError):
        read_secret(str(top / "nothing"), 16, 64)
    if os.geteuid() == 0:
        os.chown(file, OTHER, -1)
        with pytest.raises(Distrust, match="belongs to another user"):
            read_secret(str(file), 16, 64)
