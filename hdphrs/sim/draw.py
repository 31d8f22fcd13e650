"""What one seed draws: the cluster, its work, its bounds, and how much of each kind of fault.

What lives here: `Draw`, a flat set of numbers, so that each can be fixed (`--set name=value`) and shrunk by itself.
Every number is drawn from a stream of its own name: to fix one changes no other.  Where and when a fault strikes is
drawn later, in `faults.py`.

Swarm: each kind of fault is off in about half of the seeds.  A seed that has everything would hide what needs quiet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from hashlib import blake2b
from random import Random

from hdphrs.errors import UsageError
from hdphrs.sim.paper import BENCHMARKS

DRAWN_SHAPES = ("flat", "divide", "irregular", "pushed", "mixed")
SHAPES = (*DRAWN_SHAPES, *BENCHMARKS)

NODES_MAX = 4096
NUMBER_MAX = 10**9


@dataclass(frozen=True, slots=True)
class Draw:
    """All that a seed decides beforehand; plain integers.  Percentages are of tasks or of messages."""

    # the cluster
    nodes: int
    cores: int
    """Schedulers of each node."""
    latency_us: int
    """Of a typical link; each link has its own, between half and twice this."""
    jitter_pct: int
    slow_pct: int
    """Links that are slower by far: between different pairs there is no order."""
    byte_ns: int
    """Time that each byte of a payload keeps a link busy; 0 for a network without limits."""
    large_pct: int
    """Messages with payloads that take long, and that small ones of some kinds overtake."""
    local_us: int
    """Between a node and its schedulers."""
    skew_ppm: int
    """Clocks go wrong by so much, either way, and begin anywhere."""
    detect_ms: int
    notice_us: int
    """Within this time somebody dials a port that refuses."""

    # the program
    shape: int
    """An index of `SHAPES`."""
    tasks: int
    depth_max: int
    """Levels below the top."""
    rounds: int
    """The program spawns its tasks in so many parts, each when the one before has ended."""
    cost_us: int
    """Mean computing time of a task."""
    payload_bytes: int
    eager: int
    """1: schedulers export all children at once, as the eager skeletons do."""
    speculate: int
    """1: the last few tasks are started once more."""
    sampled_pct: int
    """Tasks worth keeping whose end in place is noticed."""
    lifo: int
    """1: parents get their youngest child first."""
    placed_pct: int
    unsupervised_pct: int
    raising_pct: int
    forgotten_pct: int
    """Children that their parents never get."""
    poison: int
    """Tasks that always take their scheduler down."""
    deadly: int
    """Tasks whose values take down the schedulers that read them."""

    # the bounds of the core
    attempts_max: int
    fish_max: int
    want_max: int
    start_max: int
    room: int
    guards_max: int
    parked_max: int
    give_bytes_max: int
    remembered_crashes_max: int
    piece_cost_us: int
    pieces_bytes_max: int
    code_bytes_max: int
    fair_us: int
    park_ms: int
    fish_deadline_ms: int
    backoff_max_ms: int

    # the faults
    kills: int
    """Node processes that are killed: their ports refuse from then on."""
    power_losses: int
    """Nodes that fall silent for ever, in the middle of a message."""
    ambushes: int
    """Nodes that die just when they send or get a message of some kind: in such a moment things get lost."""
    departures: int
    """Nodes that are told to leave, with more time than they need or less."""
    cancels: int
    """Futures that the program cancels before they are full."""
    crashes: int
    """Schedulers that die for no reason while they run a task, which is blamed."""
    blameless: int
    """Schedulers that are killed from outside."""
    cuts: int
    """Links cut both ways."""
    one_way_cuts: int
    isolations: int
    """Nodes cut off from everybody."""
    stalls: int
    """Node processes stopped for a while, some with their schedulers."""
    root_stalls: int
    crowds: int
    """Nodes for whose links too much waits, for a while."""
    long_pct: int
    """Of cuts and stalls, those that outlast the detection."""
    returns: int
    """1: a node that was declared dead, or has lost the root, and runs, joins again as soon as it reaches the root."""
    joins: int
    repeats_pct: int
    """Replies and notices that arrive a second time, later."""
    abrupt: int
    """1: the program ends as soon as it has its results, whatever orphans still run."""


def draw(seed: int, fixed: Mapping[str, int] | None = None) -> Draw:
    """What this seed draws.

    Args:
        fixed: numbers that are not left to chance.

    Raises:
        UsageError: there is no such number, or it cannot have this value.
    """
    fixed = fixed or {}
    for name, value in fixed.items():
        if name not in _DRAWN:
            raise UsageError(f"a seed draws no {name}; it draws {', '.join(_DRAWN)}")
        least, most = _LIMITS.get(name, (0, NUMBER_MAX))
        if not least <= value <= most:
            raise UsageError(f"{name} is a number from {least} to {most}, not {value}")
    chosen = {name: choose(stream(seed, name)) for name, choose in _DRAWN.items() if name not in fixed}
    return Draw(**chosen, **fixed)


def stream(seed: int, name: str) -> Random:
    """A source of chance for one purpose, the same on every machine."""
    return Random(int.from_bytes(blake2b(f"{seed} {name}".encode(), digest_size=8).digest(), "big"))


Chooser = Callable[[Random], int]


def _between(least: int, most: int) -> Chooser:
    return lambda chance: chance.randint(least, most)


def _one_of(*values: int) -> Chooser:
    return lambda chance: chance.choice(values)


def _geometric(least: int, most: int) -> Chooser:
    """Small ones as likely as large ones, by the order of magnitude."""

    def choose(chance: Random) -> int:
        bits = most.bit_length() - least.bit_length()
        top = least << chance.randint(0, bits)
        return min(most, chance.randint(top, 2 * top - 1) if top > 1 else top)

    return choose


def _sometimes(percent: int, choose: Chooser) -> Chooser:
    """Else 0: a kind of fault that is off."""
    return lambda chance: choose(chance) if chance.randrange(100) < percent else 0


def _tight(percent: int, tight: Chooser, default: int) -> Chooser:
    """Else what runs have by default: a bound under pressure."""
    return lambda chance: tight(chance) if chance.randrange(100) < percent else default


def _nodes(chance: Random) -> int:
    kind = chance.randrange(1000)
    if kind < 950:
        return chance.randint(2, 8)
    return chance.randint(16, 64) if kind < 999 else chance.randint(65, 128)


def _pieces_bytes(chance: Random) -> int:
    """None at all, some, or all."""
    kind = chance.randrange(10)
    if kind < 2:
        return 0
    return chance.randint(100, 4000) if kind < 4 else 256 << 20


_DRAWN: dict[str, Chooser] = {
    "nodes": _nodes,
    "cores": _one_of(1, 1, 2, 2, 3, 4),
    "latency_us": _geometric(5, 4000),
    "jitter_pct": _one_of(0, 10, 50, 300),
    "slow_pct": _sometimes(50, _one_of(5, 20, 50)),
    "byte_ns": _one_of(0, 0, 1, 8, 1000),
    "large_pct": _sometimes(35, _one_of(5, 30, 100)),
    "local_us": _one_of(1, 10, 10, 100),
    "skew_ppm": _sometimes(50, _one_of(10, 1000, 100_000)),
    "detect_ms": _one_of(10, 30, 100),
    "notice_us": _geometric(10, 20_000),
    "shape": _between(0, len(DRAWN_SHAPES) - 1),
    "tasks": _geometric(8, 3000),
    "depth_max": _geometric(1, 60),
    "rounds": _one_of(1, 1, 1, 2, 3),
    "cost_us": _geometric(20, 4000),
    "payload_bytes": _one_of(4, 4, 100, 3000),
    "eager": _one_of(0, 0, 1),
    "speculate": _one_of(0, 0, 1),
    "sampled_pct": _one_of(100, 100, 50),
    "lifo": _one_of(0, 1),
    "placed_pct": _sometimes(30, _between(1, 30)),
    "unsupervised_pct": _sometimes(20, _one_of(5, 30, 100)),
    "raising_pct": _sometimes(20, _between(1, 20)),
    "forgotten_pct": _sometimes(20, _between(1, 20)),
    "poison": _sometimes(25, _between(1, 3)),
    "deadly": _sometimes(15, _between(1, 3)),
    "attempts_max": _one_of(3, 3, 4),
    "fish_max": _tight(50, _between(1, 4), 3),
    "want_max": _tight(50, _between(1, 4), 16),
    "start_max": _tight(50, _between(1, 3), 16),
    "room": _tight(50, _between(1, 4), 16),
    "guards_max": _tight(50, _between(1, 3), 64),
    "parked_max": _tight(50, _between(0, 2), 256),
    "give_bytes_max": _tight(50, _between(0, 4000), 16 << 20),
    "remembered_crashes_max": _tight(50, _between(1, 4), 1024),
    "piece_cost_us": _geometric(1, 2000),
    "pieces_bytes_max": _pieces_bytes,
    "code_bytes_max": _tight(50, _between(1, 3000), 32 << 20),
    "fair_us": _sometimes(50, _one_of(100, 1000, 10_000)),
    "park_ms": _one_of(1, 5, 20, 100),
    "fish_deadline_ms": _one_of(5, 20, 100, 3000),
    "backoff_max_ms": _one_of(2, 10, 100),
    "kills": _sometimes(45, _between(1, 3)),
    "power_losses": _sometimes(35, _between(1, 2)),
    "ambushes": _sometimes(50, _between(1, 3)),
    "departures": _sometimes(25, _between(1, 2)),
    "cancels": _sometimes(30, _one_of(1, 2, 8, 100)),
    "crashes": _sometimes(35, _between(1, 4)),
    "blameless": _sometimes(35, _between(1, 4)),
    "cuts": _sometimes(40, _between(1, 4)),
    "one_way_cuts": _sometimes(35, _between(1, 4)),
    "isolations": _sometimes(30, _between(1, 2)),
    "stalls": _sometimes(40, _between(1, 4)),
    "root_stalls": _sometimes(15, _between(1, 2)),
    "crowds": _sometimes(30, _one_of(1, 2, 8)),
    "long_pct": _one_of(0, 50, 50, 100),
    "returns": _one_of(0, 1, 1),
    "joins": _sometimes(40, _between(1, 3)),
    "repeats_pct": _sometimes(40, _one_of(1, 5, 20)),
    "abrupt": _one_of(0, 0, 0, 1),
}

_LIMITS = {
    "nodes": (1, NODES_MAX),
    "cores": (1, 256),
    "latency_us": (1, NUMBER_MAX),
    "local_us": (1, NUMBER_MAX),
    "detect_ms": (1, NUMBER_MAX),
    "notice_us": (1, NUMBER_MAX),
    "skew_ppm": (0, 500_000),
    "shape": (0, len(SHAPES) - 1),
    "tasks": (1, 10**7),
    "rounds": (1, 1000),
    "payload_bytes": (4, 1 << 20),
    "attempts_max": (3, 100),
    **dict.fromkeys(("eager", "lifo", "returns", "abrupt"), (0, 1)),
    **dict.fromkeys(("fish_max", "want_max", "start_max", "room", "guards_max"), (1, NUMBER_MAX)),
    **dict.fromkeys(("remembered_crashes_max", "park_ms", "fish_deadline_ms", "backoff_max_ms"), (1, NUMBER_MAX)),
}
"""Outside of (0, `NUMBER_MAX`).  One poisoned descendant and one `crashes` may both be blamed on the same innocent
task: so attempts_max begins with 3."""

assert [field.name for field in fields(Draw)] == list(_DRAWN)
