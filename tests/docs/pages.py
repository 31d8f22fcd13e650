"""The code in a page of the documents, and what the page says that it prints.

What lives here: the blocks of a page, and their rules, which are:

- `python` blocks make one program, from the top of the page to its end; behind each `print(...)` stands what it prints;
- a block with a title, `python title="fib.py"`, is a file of that name, in the folder where the page is run;
- `console` blocks are commands (`$ ...`) that are given in that folder, each with what comes out;
- `py` blocks are of other systems, which are not installed here; they are Python, and no more is known;
- other languages are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
DEADLINE_S = 120
HOSTS = {"anna": "127.0.0.1", "berta": "127.0.0.1"}
"""Who is meant by the names in the guide when it is run."""

_BLOCK = re.compile(
    r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.DOTALL | re.MULTILINE
)
_SAID = re.compile(r"^ *print\(.*\) +# (.*)$", re.MULTILINE)

_LOSSES = re.compile(r"hdphrs: (scheduler process \d+ .* it is replaced|lost .* computed .* again)")
"""What programs hear that kill their own workers to show what happens then."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    language: str
    title: str | None
    text: str


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = page.read_text()
    found = [Block(match["language"], match["title"], match["text"]) for match in _BLOCK.finditer(text)]
    assert 2 * len(found) == len(re.findall("^```", text, re.MULTILINE)), f"{page}: a fence of no known form"
    return found


def program_of(blocks: list[Block]) -> str:
    """The program that a page's untitled blocks make; empty if there are none."""
    return "\n".join(block.text for block in blocks if block.language == "python" and block.title is None)


def run_program(source: str, folder: Path) -> None:
    """Run it, and see that it prints what its comments say, and nothing else."""
    said = _SAID.findall(source)
    assert len(said) == len(re.findall(r"^ *print\(", source, re.MULTILINE)), "a print without what it prints"
    program = folder / "page.py"
    program.write_text(source)
    completed = _run([sys.executable, str(program)], folder)
    complaints = [line for line in completed.stderr.splitlines() if not _LOSSES.fullmatch(line)]
    assert not complaints, completed.stderr
    assert completed.returncode == 0
    assert completed.stdout.splitlines() == said, completed.stdout


def write_files(blocks: list[Block], folder: Path) -> None:
    """The files that a page shows."""
    for block in blocks:
        if block.title is not None:
            text = re.sub(r"\b\w+\b", lambda word: HOSTS.get(word[0], word[0]), block.text)
            (folder / block.title).write_text(text)


def dialogues(blocks: list[Block]) -> Iterator[tuple[str, list[str]]]:
    """Commands, and the lines that come out of each."""
    for block in blocks:
        if block.language != "console":
            continue
        before, *commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
        assert not before, "a console block begins with a command"
        for command in commands:
            line, *output = command.splitlines()
            yield line, output


def give_command(command: str, said: list[str], folder: Path) -> None:
    """Give a command as on the page; what comes out is what is said there, where `...` stands for anything in a line,
    and as a line for any number of them."""
    completed = _run(["/bin/sh", "-c", command], folder)
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n" for line in said
    )
    out = completed.stdout + completed.stderr
    assert re.fullmatch(pattern, out), f"{command} printed:\n{out}"


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """With an `ssh` that takes this machine for every other one."""
    tools = folder / ".tools"
    if not tools.exists():
        tools.mkdir()
        ssh = tools / "ssh"
        ssh.write_text('#!/bin/sh\nfor command; do :; done\nexec /bin/sh -c "$command"\n')
        ssh.chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": path, "TERM": "dumb"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
