"""What the documents show is run as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hdphrs

ROOT = Path(__file__).parents[2]


def programs() -> list[tuple[str, str]]:
    """The Python blocks of README.md, and the program in the package's docstring."""
    found = [
        ("README.md", block)
        for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    ]
    assert hdphrs.__doc__ is not None
    indented = [line[4:] if line.strip() else "" for line in hdphrs.__doc__.split("\n\n", 1)[1].splitlines()]
    found.append(("hdphrs/__init__.py", "\n".join(indented[: indented.index("print(hdphrs.run(fib, 25))") + 1])))
    return found


@pytest.mark.parametrize(("document", "source"), programs(), ids=lambda value: str(value)[:20])
def test_a_program_in_the_documents_prints_the_25th_fibonacci_number(
    document: str, source: str, tmp_path: Path
) -> None:
    program = tmp_path / "prog.py"
    program.write_text(source)
    completed = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL
    )
    assert (completed.stdout, completed.stderr) == ("75025\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("page", ["determinism.md", "executor.md", "options.md", "skeletons.md"])
def test_the_blocks_of_a_page_are_one_program_that_prints_what_they_say(page: str, tmp_path: Path) -> None:
    source = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL))
    program = tmp_path / "prog.py"
    program.write_text(source)
    completed = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL
    )
    said = re.findall(r"^ *print\(.*\) +# (.*)$", source, re.MULTILINE)
    assert len(said) == source.count("print(")
    assert (completed.stdout.splitlines(), completed.stderr) == (said, "")


def test_every_public_name_has_a_docstring() -> None:
    for name in hdphrs.__all__:
        assert getattr(hdphrs, name).__doc__, name


def test_the_documents_name_only_files_that_exist() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "benchmarks" / "README.md"]:
        for path in re.findall(r"`((?:hdphrs|tests|examples|benchmarks|docs)/[\w./-]*\.\w+)`", document.read_text()):
            assert (ROOT / path).exists(), f"{document.name} names {path}"
