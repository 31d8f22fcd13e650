"""The recorded lives of a run: its traces, each with a core to live it again.

What lives here: finding the files of one run and telling who is who.  A node that was fenced and joined again has two
lives, and an id for each.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from pathlib import Path

from hdphrs import __version__
from hdphrs.errors import UsageError
from hdphrs.observe.divergence import Divergence
from hdphrs.protocol.effects import Effect
from hdphrs.protocol.events import Received
from hdphrs.protocol.messages import Welcome
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import ROOT, NodeId
from hdphrs.wire.trace import SUFFIX, Header, Record, TraceFile


class Life:
    """One trace, as far as it has been lived again."""

    def __init__(self, file: TraceFile, header: Header) -> None:
        self.header = header
        self.node: NodeId | None = ROOT if header.root else _named_by(file)
        """None for a newcomer that was never welcomed."""
        self.core: Node = (Node.root if header.root else Node.newcomer)(header.config, self._choose)
        self.lived: int = 0
        """Events."""
        self._records = file.records()
        self._draws: deque[int] = deque()
        self._now_s = header.now_s
        self.next = next(self._records, None)

    @property
    def wall_s(self) -> float:
        """When the next event happened, by the clock of its host."""
        now_s = self._now_s if self.next is None else self.next.now_s
        return self.header.wall_s + now_s - self.header.now_s

    def __str__(self) -> str:
        who = "a node without an id" if self.node is None else f"node {self.node}"
        return f"{who} ({self.header.host}, process {self.header.pid})"

    def live(self) -> tuple[Record, list[Effect]]:
        """Feed the core the next event; the record of it, and what the core wants done now.

        Raises:
            Divergence: that is not what is recorded.
        """
        record = self.next
        assert record is not None, f"the trace of {self} has ended"
        self.lived += 1
        self.next = next(self._records, None)
        if record.now_s < self._now_s:
            raise self.diverges(record, f"it happened {self._now_s - record.now_s:g} s before the event before it")
        self._now_s = record.now_s
        self._draws.extend(record.draws)
        self.core.counters.update(record.counted)
        try:
            effects = self.core.handle(record.event, record.now_s)
        except Divergence:
            raise
        except Exception as error:
            also = "; so it did in the run" if record.effects is None else ""
            raise self.diverges(record, f"the core raises {type(error).__name__}: {error}{also}") from error
        self._compare(record, effects)
        return record, effects

    def diverges(self, record: Record, told: str) -> Divergence:
        """What is wrong with the event that was lived last."""
        return Divergence(f"{self}, event {self.lived}, {shown(record.event)}: {told}")

    def _choose(self, n: int) -> int:
        if not self._draws or self._draws[0] >= n:
            told = f"it was {self._draws[0]}" if self._draws else "nothing was drawn"
            raise Divergence(f"{self}, event {self.lived}: the core draws one of {n}; in the run {told}")
        return self._draws.popleft()

    def _compare(self, record: Record, effects: list[Effect]) -> None:
        if record.effects is None:
            raise self.diverges(record, "the core raised an error in the run, and does not now")
        if self._draws:
            raise self.diverges(record, f"the core drew {len(self._draws)} times more in the run")
        for number, (now, then) in enumerate(zip(effects, record.effects, strict=False), 1):
            if now != then:
                raise self.diverges(record, f"effect {number} was {shown(then)}, and is {shown(now)}")
        if len(effects) != len(record.effects):
            more, when = max(((effects, "now"), (record.effects, "in the run")), key=lambda one: len(one[0]))
            first = shown(more[min(len(effects), len(record.effects))])
            told = f"it had {len(record.effects)} effects, and has {len(effects)}; only {when}: {first}"
            raise self.diverges(record, told)


def read_lives(folder: str) -> list[Life]:
    """All lives in a folder, the root's first, those without an id last.

    Raises:
        UsageError: there is no such folder, no trace in it, or traces of several runs; a file cannot be read.
        ProtocolError: a file is no trace of this version, or damaged.
    """
    lives = [life for path in _paths(folder) if (life := _read(path)) is not None]
    if not lives:
        raise UsageError(f"there is no trace in {folder}")
    if len({life.header.run for life in lives}) > 1:
        raise UsageError(f"{folder} holds the traces of several runs")
    lives.sort(key=lambda life: (life.node is None, life.node or 0, life.header.wall_s))
    for one, other in zip(lives, islice(lives, 1, None), strict=False):
        if one.node is not None and one.node == other.node:
            raise UsageError(f"{folder} holds two traces of {one}")
    return lives


def shown(value: object, chars_max: int = 400) -> str:
    """A value for people; long payloads are cut."""
    text = repr(value)
    return text if len(text) <= chars_max else f"{text[:chars_max]}... ({len(text):,} characters)"


def _paths(folder: str) -> list[Path]:
    try:
        return sorted(path for path in Path(folder).iterdir() if path.suffix == SUFFIX)
    except OSError as error:
        raise UsageError(f"cannot read the traces in {folder}: {error.strerror}") from error


def _read(path: Path) -> Life | None:
    """None for a node that was killed before it had begun."""
    try:
        if not path.is_file():  # reading from a pipe would wait for whoever writes to it
            raise UsageError(f"cannot read the trace {path}: it is not a regular file")
        file = TraceFile(str(path), path.read_bytes(), __version__)
    except OSError as error:
        raise UsageError(f"cannot read the trace {path}: {error.strerror}") from error
    return None if file.header is None else Life(file, file.header)


def _named_by(file: TraceFile) -> NodeId | None:
    for record in file.records():
        match record.event:
            case Received(_, Welcome(you)):
                return you
    return None
