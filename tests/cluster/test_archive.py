"""What of the program's directory travels."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from hdphrs.cluster import archive
from hdphrs.cluster.archive import pack_directory


def packed(folder: Path) -> dict[str, bytes]:
    result = pack_directory(str(folder))
    assert result.warnings == ()
    with zipfile.ZipFile(io.BytesIO(result.content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"name = {name!r}\n")


def test_python_files_travel_with_their_packages(tmp_path: Path) -> None:
    write(tmp_path, "prog.py", "helper.py", "package/__init__.py", "package/deep/x.py", "data.csv")
    content = packed(tmp_path)
    assert list(content) == ["helper.py", "prog.py", "package/__init__.py", "package/deep/x.py"]
    assert content["helper.py"] == b"name = 'helper.py'\n"


def test_caches_hidden_folders_virtual_environments_and_links_stay(tmp_path: Path) -> None:
    write(tmp_path, "prog.py", ".git/x.py", "__pycache__/x.py", "env/pyvenv.cfg", "env/lib/x.py")
    write(tmp_path, "node_modules/x.py")
    (tmp_path / "round").symlink_to(tmp_path)
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere.py")
    os.mkfifo(tmp_path / "pipe.py")
    assert list(packed(tmp_path)) == ["prog.py"]


def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path, "prog.py", "a/b.py")
    before = pack_directory(str(tmp_path)).content
    os.utime(tmp_path / "prog.py", (0, 0))
    assert pack_directory(str(tmp_path)).content == before


@pytest.mark.parametrize(
    ("bound", "value", "said"),
    [
        ("ARCHIVE_BYTES_MAX", 40, "more than 0 MiB of Python files"),
        ("ARCHIVE_FILES_MAX", 2, "more than 2 Python files"),
        ("DIRECTORIES_MAX", 1, "more than 1 folders"),
    ],
)
def test_a_directory_beyond_a_bound_travels_in_part_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int, said: str
) -> None:
    write(tmp_path, "a.py", "b.py", "far/c.py")
    monkeypatch.setattr(archive, bound, value)
    result = pack_directory(str(tmp_path))
    (warning,) = result.warnings
    assert warning == f"the program's directory {tmp_path} holds {said}; the rest is not sent to other hosts"
    with zipfile.ZipFile(io.BytesIO(result.content)) as file:
        assert file.namelist() == ["a.py", "b.py"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every file")
def test_an_unreadable_file_stays_with_a_warning(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "b.py")
    (tmp_path / "a.py").chmod(0)
    (warning,) = pack_directory(str(tmp_path)).warnings
    assert "a.py" in warning
    assert "Permission denied" in warning
