"""What a person is shown of a run: the failure, the line that reruns it, and the last events.

What lives here: text.
"""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

from hdphrs.protocol.events import Received
from hdphrs.sim.draw import SHAPES, Draw
from hdphrs.sim.program import number_of
from hdphrs.sim.run import CRASH, LIVENESS, WRONG, Result
from hdphrs.sim.world import Happening

NAMES = {CRASH: "crash", LIVENESS: "no end", WRONG: "wrong"}

LINE_MAX = 300
"""Characters of an event."""


def tell_failure(result: Result) -> list[str]:
    """What was wrong, what was drawn, the last events, and how to see it again."""
    return [
        f"seed {result.seed:#x}: {NAMES[result.status]} (status {result.status}): {result.told}",
        f"drawn: {tell_draw(result.drawn)}",
        f"the last {len(result.tail)} events:",
        *(f"  {tell_event(happening)}" for happening in result.tail),
        f"rerun with: {rerun(result)}",
    ]


def tell_draw(drawn: Draw) -> str:
    """What a seed draws; the kinds of trouble that are off are left out."""
    told = []
    for name, value in asdict(drawn).items():
        if name == "shape":
            told.append(f"shape={SHAPES[value]}")
        elif value:
            told.append(f"{name}={value}")
    return " ".join(told)


def rerun(result: Result) -> str:
    """The command that ends where this run ended."""
    fixed = "".join(f" --set {name}={value}" for name, value in result.fixed.items())
    return f"hdphrs sim --seed={result.seed:#x}{fixed} --until-event={result.events}"


def tell_event(happening: Happening) -> str:
    """One event, on one line."""
    now_ns, node, what, more = happening
    told = f"{now_ns / 1e9:13.6f} s  node {node}: "
    if isinstance(what, str):
        told += f"{what} {more}" if more != () else what
    else:
        told += _tell(what.message) + f" of {what.sender}" if isinstance(what, Received) else _tell(what)
        if more:
            told += " -> " + ", ".join(_tell(effect) for effect in more)
    return told if len(told) <= LINE_MAX else told[: LINE_MAX - 1] + "…"


def _tell(thing: Any) -> str:
    """A message, event or effect with what is in it, refs as `node.origin.slot`."""
    if is_dataclass(thing) and not isinstance(thing, type):
        kind = type(thing).__name__
        if kind == "Spark":
            return f"{thing.ref}#{thing.replica}"  # type: ignore[attr-defined]
        if kind == "Task":
            return f"task {number_of(thing)}"  # type: ignore[arg-type]
        inner = ", ".join(_tell(getattr(thing, name)) for name in thing.__dataclass_fields__)
        return f"{kind}({inner})"
    if type(thing) is tuple:
        return "(" + ", ".join(_tell(part) for part in thing) + ")"
    return thing.hex() if isinstance(thing, bytes) else str(thing)
