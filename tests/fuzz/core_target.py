"""The target that reads the messages of an authenticated peer: a core in the midst of things.

What lives here: three situations (a supervisor that is a victim too, a worker, a root that waits for TERM to be
acknowledged), and messages with whatever ids.  An authenticated peer is trusted to speak of itself in its own name and
to send no sparks or rulings that nobody asked for; everything that may come late must be tolerated, whatever it names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, Final

from hdphrs.config import CoreConfig
from hdphrs.errors import ProtocolError
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.node import Node
from hdphrs.protocol.rights import RULINGS
from hdphrs.protocol.tasks import PROGRAM, ROOT, FishId, Member, NodeId, Origin, Spark, Task, TaskRef
from hdphrs.wire.codec import ROWS, pack_message, unpack_message
from hdphrs.wire.framing import FrameDecoder, encode_frame
from tests.fuzz import seeds
from tests.fuzz.mutate import mutate_frames
from tests.fuzz.target import Outcome, Target, refused

STALE: Final = (
    msg.Fish,
    msg.NoWork,
    msg.Req,
    msg.Auth,
    msg.Denied,
    msg.Obsolete,
    msg.Ack,
    msg.Purge,
    msg.Result,
    msg.Suspect,
    msg.TermAck,
    msg.Leaving,
    msg.Noted,
    *RULINGS,
)
"""What may come late, or from somebody who does not know better; rulings only from others than the root."""

NODES_MAX: Final = 4


def task(slot: int) -> Task:
    """A task with code that everybody knows."""
    return Task("f", b"path %d" % slot, seeds.CODE, b"")


def member(node: int) -> Member:
    """A node as the root knows it."""
    return Member(NodeId(node), "host", 2, ("127.0.0.1", 4000 + node), 100 + node)


def _busy(core: Node, sender: int) -> None:
    """Two schedulers, one with work; four own tasks of which one has left; two of `sender`'s, one of them guarded."""
    me, thief = core.me, NodeId(3)
    assert me is not None
    exported = tuple((slot, task(slot)) for slot in range(4))
    stolen = tuple(Spark(TaskRef(NodeId(sender), Origin(1), slot), 0, task(10 + slot)) for slot in range(2))
    happened: list[ev.Event] = [
        ev.Learned(seeds.CODE, b"def f"),
        ev.SchedulerUp(Origin(1)),
        ev.SchedulerUp(Origin(2)),
        ev.Received(NodeId(sender), msg.Schedule(FishId(1), stolen)),
        ev.Received(thief, msg.Fish(FishId(1), thief, 1, 0.1)),
        ev.Exported(PROGRAM, exported),
        ev.Received(thief, msg.Fish(FishId(2), thief, 2, 0.1)),
        ev.Hungry(Origin(1), 1),
    ]
    for event in happened:
        core.handle(event, 0.0)


def _root() -> Node:
    core = Node.root(CoreConfig(), lambda n: 0)
    for number in range(1, NODES_MAX):
        core.handle(ev.Arrived(number, "host", 2, ("127.0.0.1", 4000 + number), 100 + number), 0.0)
    return core


def supervisor() -> Node:
    """The root, in the midst of a run."""
    core = _root()
    _busy(core, 2)
    return core


def worker() -> Node:
    """Node 1, in the midst of a run."""
    core = Node.newcomer(CoreConfig(), lambda n: 0)
    welcome = msg.Welcome(NodeId(1), 3, (member(2), member(3)), ())
    core.handle(ev.Received(ROOT, welcome), 0.0)
    _busy(core, 2)
    return core


def ending() -> Node:
    """The root, which has sent TERM."""
    core = supervisor()
    core.handle(ev.Terminate(), 0.0)
    return core


SITUATIONS: Final[tuple[Callable[[], Node], ...]] = (supervisor, worker, ending)


def honest(sender: NodeId, message: msg.Message) -> msg.Message:
    """The message with the sender's own name where it speaks of itself."""
    match message:
        case msg.Fish():
            return replace(message, thief=sender)
        case msg.Req():
            return replace(message, victim=sender)
    return message


def hear(core: Node, sender: NodeId, message: msg.Message) -> list[fx.Effect]:
    """Let the core have it, and see that what it wants to send can travel."""
    effects = core.handle(ev.Received(sender, message), 1.0)
    for effect in effects:
        if isinstance(effect, fx.Send):
            assert effect.to != core.me, f"it writes to itself: {effect}"
            unpack_message(FrameDecoder().feed(encode_frame(pack_message(effect.message)))[0])
    return effects


def _run(data: bytes) -> Outcome:
    core = SITUATIONS[(data[0] if data else 0) % len(SITUATIONS)]()
    others = [node for node in range(NODES_MAX) if node != core.me]
    heard = 0
    try:
        for frame in FrameDecoder(1 << 20).feed(data[1:]):
            if type(frame) is not list or len(frame) != 2 or type(frame[0]) is not int:
                raise ProtocolError("not a sender and a message")
            sender, message = NodeId(others[frame[0] % len(others)]), unpack_message(frame[1])
            if isinstance(message, STALE) and (sender != ROOT or not isinstance(message, RULINGS)):
                hear(core, sender, message)
                hear(core, sender, honest(sender, message))
                heard += 1
    except ProtocolError as error:
        return refused(error)
    core.handle(ev.Tick(), 100.0)
    late = min(9, core.counters["stale"] + core.counters["duplicates"])
    return Outcome(heard > 0, f"{type(core).__name__} {min(heard, 9)} messages, {late} late")


def _conversations() -> list[list[Any]]:
    said = []
    for number in range(30):
        rng = seeds.seed_number(f"core {number}")
        types = [rng.choice(STALE) for _ in range(6)]
        said.append([[rng.randrange(3), pack_message(seeds.message_of(rng, each))] for each in types])
    return said


def _draw(rng: Random) -> bytes:
    said = rng.choice(_SAID)
    others = [frame for frames in _SAID for frame in frames]
    if rng.random() < 0.5:  # no nonsense, only other ids
        said = [[rng.randrange(3), pack_message(seeds.message_of(rng, rng.choice(STALE)))] for _ in range(8)]
        return bytes([rng.randrange(3)]) + seeds.frames(said)
    return bytes([rng.randrange(3)]) + mutate_frames(rng, said, others)


_SAID: Final = _conversations()
assert set(STALE) <= set(ROWS.values())
CORE = Target("core", _run, lambda: [bytes([n % 3]) + seeds.frames(said) for n, said in enumerate(_SAID)], _draw)
