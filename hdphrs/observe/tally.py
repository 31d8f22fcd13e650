"""What happened in a run: counts, and the table of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from hdphrs.observe.lives import Life
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol.messages import Message
from hdphrs.protocol.tasks import PROGRAM, ROOT


@dataclass(slots=True)
class _Done:
    """What one life did."""

    events: int = 0
    effects: int = 0
    sent: int = 0
    received: int = 0
    recreated: int = 0
    end: str = "stopped without a word"


class Tally:
    """Counts what is replayed."""

    def __init__(self, lives: Sequence[Life]) -> None:
        self._lives = {life: _Done() for life in lives}
        self._sent: Counter[str] = Counter()
        self._received: Counter[str] = Counter()
        self._futures = self._filled = self._asked = self._answered = 0
        self.events: int = 0
        """Of all nodes."""
        self.deaths: int = 0
        """Nodes that the root has declared dead."""

    @property
    def replicas(self) -> int:
        """Tasks that were re-created because a node had died."""
        return sum(done.recreated for done in self._lives.values())

    def count(self, life: Life, event: ev.Event, effects: Iterable[fx.Effect]) -> None:
        """One event of a life."""
        done = self._lives[life]
        done.events += 1
        self.events += 1
        match event:
            case ev.Received(_, message):
                done.received += 1
                self._received[type(message).__name__] += 1
            case ev.Exported(origin, tasks):
                self._futures += len(tasks)
                self._asked += len(tasks) * (origin == PROGRAM)
            case ev.Placed(origin):
                self._futures += 1
                self._asked += origin == PROGRAM
        for effect in effects:
            done.effects += 1
            match effect:
                case fx.Send(_, message):
                    done.sent += 1
                    self._sent[type(message).__name__] += 1
                case fx.Deliver(origin):
                    self._filled += 1
                    self._answered += origin == PROGRAM
                case fx.Fence(_, recreated):
                    done.recreated += recreated
                    self.deaths += life.node == ROOT
                case fx.Halt(reason):
                    done.end = reason or "ended with the run"

    def table(self) -> list[str]:
        """Two tables and a sentence, in lines."""
        nodes: list[Sequence[str]] = [
            ("node", "host", "process", "events", "effects", "sent", "received", "replicas", "end")
        ]
        for life, done in self._lives.items():
            name = "-" if life.node is None else str(life.node)
            counts = (done.events, done.effects, done.sent, done.received, done.recreated)
            nodes.append((name, life.header.host, str(life.header.pid), *map(_grouped, counts), done.end))
        messages: list[Sequence[str]] = [("message", "sent", "received", "lost")]
        for name in (kind.__name__ for kind in get_args(Message)):
            if self._sent[name] or self._received[name]:
                sent, received = self._sent[name], self._received[name]
                messages.append((name, *map(_grouped, (sent, received, sent - received))))
        return [
            *_aligned(nodes, left=(1, 8)),
            "",
            *_aligned(messages, left=(0,)),
            "",
            f"futures: {self._futures:,} made, {self._filled:,} filled",
            f"of them the program's: {self._asked:,} made, {self._answered:,} filled",
            f"deaths: {self.deaths}; tasks re-created: {self.replicas}",
        ]


def _grouped(number: int) -> str:
    return f"{number:,}"


def _aligned(rows: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
