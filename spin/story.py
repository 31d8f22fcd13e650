"""Tells a trail of SPIN's in a line a step.

What lives here: `spin -t -p` prints every statement; a step of a model is one event at one node, or one fault, and ends
when the scratch variables are cleared.  A line tells who, what it took, which handlers ran, and what it sent.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

HELPERS = (
    "send",
    "ship",
    "cut",
    "register",
    "close",
    "open_guard",
    "forget_step",
    "launch",
    "share_answer",
    "refuse",
    "duplicate",
    "on_received",
    "on_answer",
)
"""Inlines that say nothing of their own about a step."""
STEP_ENDS = "[asked = 0]"
NOTHING_YET = ": starts a task"

_STATEMENT = re.compile(r"^\s*\d+:\s+proc\s+(\d+) \((:?\w+):.*?\) (\w+\.pml):(\d+) (.*)$")
_MESSAGE = re.compile(r"^(Send|Recv) (\w+),(\d+),(\d+),(\d+),(\d+)\s.*\(link\[(\d+)\]\)")
_CHOICE = re.compile(r"^\(state \d+\)\s+\[(who|t|r|x) = (\d+)\]")


def tell(trail: list[str], here: Path) -> tuple[str, ...]:
    """The steps of `trail`, each in a line.

    Args:
        here: where the models are.
    """
    nodes = sum(line.startswith("Starting Node") for line in trail)
    told: list[str] = []
    step: list[tuple[int, str, str, int, str]] = []
    for line in trail:
        statement = _STATEMENT.match(line)
        if statement is None or statement[2] not in ("Node", "Environment"):
            continue
        if step and step[0][0] != int(statement[1]):
            step = []  # the environment has given up: nothing to tell
        step.append((int(statement[1]), statement[2], statement[3], int(statement[4]), statement[5]))
        if STEP_ENDS in statement[5]:
            told.append(_step(step, nodes, here))
            step = []
    if step and step[0][1] == "Node":
        told.append(_step(step, nodes, here))
    if told and told[-1].endswith(NOTHING_YET):
        told.pop()
    return tuple(told)


def _step(step: list[tuple[int, str, str, int, str]], nodes: int, here: Path) -> str:
    process, kind = step[0][:2]
    took, sent = "", []
    handlers: list[str] = []
    chosen: dict[str, str] = {}
    for _, _, file, line, text in step:
        name = _inlines(here / file).get(line)
        if name is not None and name not in HELPERS and name not in handlers:
            handlers.append(name)
        message = _MESSAGE.match(text)
        if message is not None:
            source, to = _ends(int(message[7]), nodes)
            content = f"{message[2]}({', '.join(message.group(3, 4, 5, 6))})"
            if message[1] == "Send":
                sent.append(f", sends {content} to {to}")
            elif name is None:
                took = f" takes {content} from {source}"
            continue
        choice = _CHOICE.match(text)
        if choice is not None and name is None:
            chosen.setdefault(choice[1], choice[2])
    what = ", ".join(handlers) or ("ignored" if took else "starts a task")
    if kind == "Environment":
        return f"fault: {what} {chosen.get('who', '')}".rstrip()
    if "on_dead_node" in handlers:
        took = f" hears that {chosen.get('x', '?')} is dead"
    return f"node {process - 1}{took}: {what}{''.join(sent)}"


def _ends(link: int, nodes: int) -> tuple[int, int]:
    source, other = divmod(link, nodes - 1)
    return source, other + (other >= source)


@cache
def _inlines(model: Path) -> dict[int, str]:
    """The inline to which each line belongs."""
    owner: dict[int, str] = {}
    current: str | None = None
    for number, line in enumerate(model.read_text().splitlines(), 1):
        opening = re.match(r"inline (\w+)\(", line)
        if opening is not None:
            current = opening[1]
        if current is not None:
            owner[number] = current
        if line == "}":
            current = None
    return owner
