"""Reliability between two live nodes across broken connections (hole R23 of the original: a break lost
messages).

What lives here: pure state, one `Session` at either end of a pair, as old as the acquaintance of the two and
older than any connection.  It numbers what is sent, keeps it until the peer has it, and drops what arrives
twice.

Frames of a connection, after the greeting:

    [DATA, seq, message]    the seq-th message of this direction, counted from 1
    [ACK, seq]              everything up to seq has been received; also the heartbeat
    [ASK]                   please acknowledge now
    [NOTE, seconds]         news that are worth nothing once there are newer ones: some durations, as floats; only the
                            latest is sent, before anything else, and it is lost with the connection
    [TOLD, topic, rank, find]  what a task of a search has found: of each search only the latest is sent, and it is lost
                            with the connection
    [SAID, lost, bundle]    what tasks say (`hdphrs/wire/said.py`), and how many lines were dropped before it; what
                            is not written yet waits, up to a bound, and what was is lost with the connection

A message with large payloads (`hdphrs/wire/bulk.py`) follows these, which come in pieces; every other frame may come
between two pieces, and of messages those of a steal (`messages.QUICK`, decision 32).  So a message gets its number when
it is certain that nothing overtakes it any more.  Each batch has a piece, so that nothing waits for ever.

When a connection begins, each end says how far it has received (`greeting.Progress`) and calls `resume` with the
other's word: what the peer has is forgotten, the rest is sent again.  Of large payloads that were on their way each end
keeps what has come, part of one message at most (`framing.Unfinished`), and the other goes on from there: so what is
larger than a connection ever carries before it breaks arrives all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from hdphrs.api.board import FIND_BYTES_MAX, TOPIC_BYTES_MAX, TOPICS_MAX
from hdphrs.errors import ProtocolError
from hdphrs.protocol.tasks import NodeId
from hdphrs.transport.greeting import Progress
from hdphrs.wire.bulk import Bulk
from hdphrs.wire.codec import accused, brings_tasks, is_code, is_quick
from hdphrs.wire.framing import (
    PIECE_BYTES,
    TOKEN,
    Unfinished,
    encode_body,
    encode_frame,
    frame_of,
    piece_head,
    plain_frame,
)
from hdphrs.wire.items import unpack_bytes, unpack_many, unpack_natural, unpack_seconds
from hdphrs.wire.said import lost_with

DATA: Final = 0
ACK: Final = 1
ASK: Final = 2
NOTE: Final = 3
TOLD: Final = 4
SAID: Final = 5

NOTE_ITEMS: Final = 3
"""Durations in one note."""

ACK_AFTER_BYTES: Final = 1 << 20
"""An end that has received so much without acknowledging anything does so even if it has nothing else to
send.  This and the heartbeats bound what the sender keeps."""

SAID_BYTES_MAX: Final = 4 << 20
"""What tasks have said that waits for the connection; what comes then is dropped, and counted."""

LOAD_BYTES_MAX: Final = 256 << 20
"""Large payloads that are queued for other nodes and not acknowledged; a node that has more begins nothing new until
half of them have left.  As many as a program may spawn ahead (`hdphrs/program/calls.py`): it is what the fastest link
carries in the tenth of a second for which the cores may then have nothing to do."""

BATCH_BYTES: Final = 1 << 18
"""A batch is closed when it has grown to this size."""


_NUMBER_MAX: Final = (1 << 64) - 1
"""As long in a frame as any."""


class Letter(NamedTuple):
    """A message on its way."""

    frame: bytes
    bulks: tuple[Bulk, ...]
    """They go before the frame."""


class Late(NamedTuple):
    """A message that may be overtaken, and has no number yet."""

    message: list[object]
    bulks: tuple[Bulk, ...]


class Load:
    """Large payloads that peers have not acknowledged, of all sessions of a node together."""

    def __init__(self, bytes_max: int = LOAD_BYTES_MAX) -> None:
        self.bytes: int = 0
        self.bytes_max: int = bytes_max
        self.is_full: bool = False
        """There was more than `bytes_max`, and since then never less than half of that."""
        self.has_lightened: bool = False
        """It has been full, and is no more, since somebody has looked."""

    def add(self, size: int) -> None:
        """So much more waits."""
        self.bytes += size
        if self.bytes > self.bytes_max:
            self.is_full = True

    def lighten(self, size: int) -> None:
        """So much has been acknowledged, or its session has ended."""
        self.bytes -= size
        if self.is_full and self.bytes <= self.bytes_max // 2:
            self.is_full = False
            self.has_lightened = True


class Session:
    """One end of a pair of nodes."""

    def __init__(
        self,
        on_note: Callable[[tuple[float, ...]], None] = lambda seconds: None,
        on_told: Callable[[bytes, float, bytes], None] = lambda topic, rank, find: None,
        on_said: Callable[[int, bytes], None] = lambda lost, bundle: None,
        load: Load | None = None,
    ) -> None:
        """
        Args:
            on_note: takes what the peer notes.
            on_told: what its tasks have found.
            on_said: what they say.
            load: counts the large payloads that wait for this peer, and for others.
        """
        self._load = load or Load()
        self._own_load = 0
        """What this session has added to it."""
        self._on_note = on_note
        self._on_told = on_told
        self._told: dict[bytes, tuple[float, bytes]] = {}
        self._on_said = on_said
        self._said: deque[bytes] = deque()
        self._said_bytes = 0
        self._unsaid = 0
        self._noted: tuple[float, ...] | None = None
        self.received: int = 0
        """Number of the last message received; the peer hears it when a connection begins."""
        self.unfinished: Unfinished = Unfinished()
        """What has come of large payloads whose message has not; the decoder of each connection goes on with it."""
        self._pushed = 0
        """The number of the last message that has one."""
        self._unsent: deque[Letter] = deque()
        """What has a number.  Large payloads have only those that were on a connection before, and `_brought`."""
        self._late: deque[Late] = deque()
        """The first message with large payloads, and what does not overtake it."""
        self._kept: deque[Letter] = deque()
        """Written to the current connection and not acknowledged."""
        self._brought: Letter | None = None
        """Its bulks are written, and its frame is not."""
        self._bulks_written: int = 0
        """Of the first message with large payloads."""
        self._bytes_written: int = 0
        """Of the next of its bulks."""
        self._acknowledged = 0
        """What we have last told the peer."""
        self._owes_ack = False
        self._bytes_received = 0
        """Since the last acknowledgement."""
        self._asks = False
        self._has_news = False

    @property
    def has_news(self) -> bool:
        """A message, or a part of one, has come since the last acknowledgement: the peer waits for one."""
        return self._has_news

    @property
    def progress(self) -> Progress:
        """What the peer is to hear when a connection begins."""
        return Progress(self.received, len(self.unfinished.bulks), self.unfinished.incoming_bytes)

    @property
    def settled(self) -> bool:
        """The peer has received everything."""
        return not (self._unsent or self._late or self._kept or self._said) and self._noted is None

    @property
    def must_write(self) -> bool:
        """Something received makes it necessary to write soon."""
        return self._owes_ack

    @property
    def has_to_write(self) -> bool:
        """The next batch is not empty."""
        waits = self._unsent or self._late or self._said or self._told
        return bool(waits or self._owes_ack or self._noted is not None or self._asks)

    def push(self, message: list[object]) -> None:
        """Queue a packed message.

        Raises:
            MessageTooLargeError: it is too large; nothing has changed.
        """
        if not self._late or self._overtakes(message):
            frame = plain_frame([DATA, self._pushed + 1, message])
            if frame is not None:
                self._unsent.append(Letter(frame, ()))
                self._pushed += 1
                return
        bulks: list[Bulk] = []
        _frame_with(message, _NUMBER_MAX, bulks)
        if bulks:
            size = sum(map(len, bulks))
            self._own_load += size
            self._load.add(size)
        self._late.append(Late(message, tuple(bulks)))
        if not self._late[0].bulks:  # it may hold a bulk, and has none
            self._go_on()

    def _overtakes(self, message: list[object]) -> bool:
        """Whether a message, if it is not large itself, goes ahead of the late ones."""
        if not is_quick(message):
            return False
        return not brings_tasks(message) or not any(is_code(late.message) for late in self._late)

    def _go_on(self) -> None:
        """The first of the late ones is overtaken no more, and what follows it up to the next with large payloads."""
        late = self._late
        while True:
            message, bulks = late.popleft()
            self._pushed += 1
            self._unsent.append(Letter(_frame_with(message, self._pushed, []), bulks))
            if bulks:
                self._brought = self._unsent[-1]
            if not late or late[0].bulks:
                return

    def beat(self) -> None:
        """Make the next batch carry an acknowledgement, even if it says nothing new (a heartbeat)."""
        self._owes_ack = True

    def note(self, seconds: Sequence[float]) -> None:
        """Let the peer know these durations, in place of the last ones if they are still here."""
        self._noted = tuple(seconds)

    def tell(self, topic: bytes, rank: float, find: bytes) -> None:
        """Let the peer know this find, in place of the last one of its search if that is still here."""
        self._told.pop(topic, None)
        self._told[topic] = rank, find
        if len(self._told) > TOPICS_MAX:
            del self._told[next(iter(self._told))]

    def say(self, bundle: bytes) -> None:
        """Let the peer know what tasks say, if not too much of that waits."""
        frame = encode_frame([SAID, self._unsaid, bundle])
        if self._said_bytes + len(frame) > SAID_BYTES_MAX:
            self._unsaid += lost_with(bundle)
            return
        self._said.append(frame)
        self._said_bytes += len(frame)
        self._unsaid = 0

    def ask(self) -> None:
        """Make the peer acknowledge everything sent so far."""
        self._asks = True

    def batch(self) -> bytes:
        """The next bytes to write to the current connection; empty if there is nothing to say.

        A batch ends with a piece of something large: whatever comes up meanwhile is in the next one.
        """
        parts = []
        size = 0
        if self._noted is not None:
            parts.append(encode_frame([NOTE, self._noted]))
            self._noted = None
        for topic, (rank, find) in self._told.items():
            parts.append(encode_frame([TOLD, topic, rank, find]))
        self._told.clear()
        while self._said and size < BATCH_BYTES:
            frame = self._said.popleft()
            self._said_bytes -= len(frame)
            parts.append(frame)
            size += len(frame)
        if self._owes_ack:
            parts.append(self._acknowledgement())
        self._write_letters(parts, size)
        if self._late and not any(letter.bulks for letter in self._unsent):
            parts.append(self._piece(self._late[0].bulks))
            if self._bulks_written == len(self._late[0].bulks):
                self._go_on()
        if self._asks and not self._unsent and not self._late:
            parts.append(_ASK_FRAME)
            self._asks = False
        if parts and self.received > self._acknowledged:  # after what somebody waits for
            parts.append(self._acknowledgement())
        return b"".join(parts)

    def _write_letters(self, parts: list[bytes], size: int) -> None:
        """Add what has a number to a batch of this size, up to a piece of something large."""
        while self._unsent and size < BATCH_BYTES:
            letter = self._unsent[0]
            if letter.bulks and letter is not self._brought:  # it has been on a connection before
                parts.append(self._piece(letter.bulks))
                if self._bulks_written == len(letter.bulks):
                    self._brought = letter
                break
            if letter.bulks:
                self._brought = None
                self._bulks_written = 0
            self._kept.append(self._unsent.popleft())
            parts.append(letter.frame)
            size += len(letter.frame)

    def _acknowledgement(self) -> bytes:
        self._acknowledged = self.received
        self._owes_ack = self._has_news = False
        self._bytes_received = 0
        return _small_frame([ACK, self.received])

    def _piece(self, bulks: Sequence[Bulk]) -> bytes:
        bulk = bulks[self._bulks_written]
        data = bulk.read(self._bytes_written, PIECE_BYTES)
        self._bytes_written += len(data)
        left = len(bulk) - self._bytes_written
        if not left:
            self._bulks_written += 1
            self._bytes_written = 0
        return piece_head(len(data), left) + data

    def on_frame(self, frame: Any) -> list[Any] | None:
        """Take in a frame of the current connection.

        Returns:
            The packed message it brings, None if it brings no new one.

        Raises:
            ProtocolError: the peer has lost count, or this is no frame of a session.
        """
        if type(frame) is list and frame:
            kind, size = frame[0], len(frame)
            if kind == DATA and size == 3 and type(frame[2]) is list:
                seq = frame[1]
                if type(seq) is int and seq == self.received + 1:  # nearly always
                    self._has_news = True
                    self.received = seq
                    return frame[2]
                self._on_other_data(unpack_natural(seq))
                return None
            if kind == ACK and size == 2:
                self._on_ack(unpack_natural(frame[1]))
                return None
            if kind == NOTE and size == 2 and type(frame[1]) is list and len(frame[1]) == NOTE_ITEMS:
                self._on_note(unpack_many(frame[1], unpack_seconds, "note"))
                return None
            if kind == TOLD and size == 4:
                self._on_told(*_unpack_find(*frame[1:]))
                return None
            if kind == SAID and size == 3:
                self._on_said(unpack_natural(frame[1]), unpack_bytes(frame[2]))
                return None
            if kind == ASK and size == 1:
                self._owes_ack = True
                return None
        raise ProtocolError("not a frame of a session")

    def accused(self, frame: Any) -> NodeId | None:
        """Of whom a frame says that it is dead, or may be; it is not taken in yet."""
        if type(frame) is list and len(frame) == 3 and frame[0] == DATA and type(frame[2]) is list:
            return accused(frame[2])
        return None

    def on_bytes(self, count: int, *, amid: bool) -> None:
        """So many bytes of frames have arrived, the last of which may be `amid` a frame or a large payload."""
        self._bytes_received += count
        self._has_news |= amid
        if self._bytes_received >= ACK_AFTER_BYTES:
            self._owes_ack = True

    def resume(self, peer: Progress) -> None:
        """A new connection begins, at whose other end so much has arrived.

        Raises:
            ProtocolError: the peer claims what was never sent, or has forgotten what it once had.
        """
        self._begin_bulks()
        self._unsent.extendleft(reversed(self._kept))
        self._kept.clear()
        self._on_ack(peer.received)
        if peer.received < self._pushed - len(self._unsent):
            raise ProtocolError(f"it has forgotten messages: it has {peer.received}, and had more before")
        self._go_on_from(peer)
        self._acknowledged = self.received
        self._has_news = False

    def _go_on_from(self, peer: Progress) -> None:
        """Of the first message with large payloads the peer has so much already."""
        letter = next((letter for letter in self._unsent if letter.bulks), None)
        bulks: Sequence[Bulk] = ()
        if letter is not None:
            bulks = letter.bulks
        elif self._late:
            bulks = self._late[0].bulks
        next_bytes = len(bulks[peer.bulks]) if peer.bulks < len(bulks) else 1
        if peer.bulks > len(bulks) or peer.bulk_bytes >= next_bytes:
            raise ProtocolError("it claims a part of a large payload that was never sent")
        self._bulks_written, self._bytes_written = peer.bulks, peer.bulk_bytes
        if bulks and peer.bulks == len(bulks):  # its frame was lost
            if letter is None:
                self._go_on()
            else:
                self._brought = letter

    def _on_other_data(self, seq: int) -> None:
        """It is not the next."""
        self._has_news = True
        if seq > self.received:
            raise ProtocolError(f"message {seq} follows message {self.received}")

    def _on_ack(self, seq: int) -> None:
        if seq > self._pushed:
            raise ProtocolError(f"it acknowledges message {seq}, and {self._pushed} were sent")
        kept = self._kept
        first = self._pushed - len(self._unsent) - len(kept) + 1
        size = 0
        while kept and first <= seq:
            if bulks := kept.popleft().bulks:
                size += sum(map(len, bulks))
            first += 1
        while self._unsent and first <= seq:  # the peer had it, of a connection that broke
            if bulks := self._unsent.popleft().bulks:
                size += sum(map(len, bulks))
                self._begin_bulks()  # another one is the first now
            first += 1
        if size:
            self._own_load -= size
            self._load.lighten(size)

    def end(self) -> None:
        """Nothing of what waits will be sent any more."""
        self._load.lighten(self._own_load)
        self._own_load = 0

    def _begin_bulks(self) -> None:
        self._bulks_written = self._bytes_written = 0
        self._brought = None


def _frame_with(message: list[object], number: int, bulks: list[Bulk]) -> bytes:
    """The frame of a message, and its bulks."""

    def carry(bulk: Bulk) -> object:
        bulks.append(bulk)
        return TOKEN

    body = encode_body([DATA, number, message], carry)
    return frame_of(body, beside=sum(map(len, bulks)))


def _small_frame(obj: object) -> bytes:
    return plain_frame(obj) or encode_frame(obj)


def _unpack_find(topic: object, rank: object, find: object) -> tuple[bytes, float, bytes]:
    topic, find = unpack_bytes(topic), unpack_bytes(find)
    if type(rank) is not float or rank != rank or len(topic) > TOPIC_BYTES_MAX or len(find) > FIND_BYTES_MAX:
        raise ProtocolError("not a find of a search")
    return topic, rank, find


_ASK_FRAME: Final = encode_frame([ASK])
