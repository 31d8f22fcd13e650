"""Every example of the guide is run, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import GUIDE, blocks_of, dialogues, give_command, program_of, run_program, write_files

PAGES = sorted(GUIDE.glob("*.md"))
BY_HAND = {"first-program.md": 1, "recovery.md": 1}
"""Blocks that make the environment which the tests run in, or are for the midst of a run: they are followed by hand."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("source", ["print(1 + 1)  # 3", "print(1)", "print(1)  # 1\nraise SystemExit(2)", "1 / 0"])
def test_a_page_that_says_something_else_is_found_out(source: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_program(source, tmp_path)


def test_a_command_that_answers_something_else_is_found_out(tmp_path: Path) -> None:
    give_command("echo one; echo two; echo three", ["o...e", "..."], tmp_path)
    for said in (["one"], ["one", "three", "..."], []):
        with pytest.raises(AssertionError):
            give_command("echo one; echo two", said, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_is_what_happens(page: Path, tmp_path: Path) -> None:
    blocks = blocks_of(page)
    assert {block.language for block in blocks} <= {"python", "console", "py", "text", "sh"}
    assert all(block.title for block in blocks if block.language == "text"), "text that is no file"
    assert sum(block.language == "sh" for block in blocks) == BY_HAND.get(page.name, 0)
    write_files(blocks, tmp_path)
    for block in blocks:
        if block.language == "py":
            compile(block.text, page.name, "exec")
    if source := program_of(blocks):
        run_program(source, tmp_path)
    for command, said in dialogues(blocks):
        give_command(command, said, tmp_path)
