"""Files of a run, and who may read them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hdphrs.wire.private import check_private, make_private_folder, open_private

OTHER = 12345
"""Another user."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of other users")


def write(path: Path, text: str) -> None:
    with open(open_private(str(path)), "w") as file:
        file.write(text)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def _generous_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_new_file_is_for_its_user_alone(tmp_path: Path) -> None:
    write(tmp_path / "report", "text")
    assert (mode(tmp_path / "report"), (tmp_path / "report").read_text()) == (0o600, "text")


def test_file_that_is_there_keeps_its_mode_and_is_begun_anew(tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_text("a longer text")
    report.chmod(0o644)
    write(report, "text")
    assert (mode(report), report.read_text()) == (0o644, "text")


def test_links_of_the_user_himself_are_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "second").symlink_to("report")
    (tmp_path / "first").symlink_to("there/second")
    write(tmp_path / "first", "text")
    report = tmp_path / "there" / "report"
    assert (mode(report), report.read_text()) == (0o600, "text")
    check_private(str(tmp_path / "first"))


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "first").symlink_to("first")
    with pytest.raises(OSError, match="Too many levels"):
        open_private(str(tmp_path / "first"))


def test_descriptors_and_devices_take_a_report_as_they_are(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    write(Path(f"/dev/fd/{writing}"), "text")
    assert os.read(reading, 100) == b"text"
    os.close(reading)
    os.close(writing)
    write(Path(os.devnull), "text")
    check_private(os.devnull)


@needs_root
@pytest.mark.parametrize("target", ["mine", "missing"])
def test_link_of_another_user_is_not_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "mine").write_text("untouched")
    (tmp_path / "report").symlink_to(target)
    os.lchown(tmp_path / "report", OTHER, -1)
    for refused in (open_private, check_private, make_private_folder):
        with pytest.raises(OSError, match="it is a link that another user has made"):
            refused(str(tmp_path / "report"))
    assert (tmp_path / "mine").read_text() == "untouched"
    assert not (tmp_path / "missing").exists()


@needs_root
def test_file_of_another_user_is_not_written(tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_text("untouched")
    report.chmod(0o666)
    os.chown(report, OTHER, -1)
    for refused in (open_private, check_private):
        with pytest.raises(OSError, match="it belongs to another user"):
            refused(str(report))
    assert report.read_text() == "untouched"


def test_new_folder_is_for_its_user_alone_and_another_keeps_its_mode(tmp_path: Path) -> None:
    make_private_folder(str(tmp_path / "traces" / "first"))
    assert mode(tmp_path / "traces" / "first") == 0o700
    (tmp_path / "open").mkdir(mode=0o755)
    make_private_folder(str(tmp_path / "open"))
    assert mode(tmp_path / "open") == 0o755


def test_what_is_not_there_is_no_reason_to_refuse(tmp_path: Path) -> None:
    check_private(str(tmp_path / "report"))
