"""Settings and bounds, with their units, in one place.

What lives here: plain frozen data with defaults.  Every queue, retry and frame of the system is bounded by a name that
ends in `_max`; durations end in `_s`, sizes in `_bytes`.
"""

from __future__ import annotations

from hdphrs.records import dataclass

WIRE_VERSION = 18
"""Raised with every change of a frame's meaning; nodes of different versions refuse each other."""

FRAME_BYTES_MAX = 1 << 30
"""A single frame, either on a local link or between nodes."""


ATTEMPTS_MAX = 3
"""Crashes of its scheduler that are charged to one task before its future fails."""

CANCEL_GRACE_S = 1.0
"""How long a cancelled task may go on before its scheduler is replaced."""

PIECE_COST_S = 0.03
"""A result goes to the root as a piece if it took this long for each node of the cluster (decision 8)."""

PIECE_BYTE_COST_S = 2e-6
"""And this long for each of its bytes, a hundred times what the way there takes."""

RETAINED_COST_S = 0.001
"""A result that a node gives away is retained there if it took so long."""

LEDGER_PIECE_COST_S = 0.004
LEDGER_PIECE_BYTE_COST_S = 1e-7
"""`PIECE_COST_S` and `PIECE_BYTE_COST_S` in a run with a ledger: what is kept there counts even if nobody dies in this
run."""

LEDGER_COST_S = 0.001
"""A task of the program is written to the ledger if it took this long: some twenty times what writing it takes."""

LEDGER_END_S = 12.0
"""How long the root node may take to end in a run with a ledger, which may be far away and slow."""

LEDGER_BYTES_MAX = 1 << 30
"""What a ledger may hold."""


PRIORITY_MAX = 100
"""Priorities of tasks are from the negative of this to this."""

FAIR_S = 10e-3
"""How long a call that no scheduler serves waits while nothing is handed out, before it is started beside others."""


@dataclass(frozen=True, slots=True)
class CoreConfig:
    """What the protocol core of one node needs to know beforehand."""

    reliable: bool = True
    attempts_max: int = ATTEMPTS_MAX
    fish_max: int = 3
    """Fish of one thief in flight, each to another victim."""
    want_max: int = 16
    """Sparks asked for by one fish."""
    give_bytes_max: int = 16 << 20
    """Payloads that a fish is answered with at once; a single larger one goes alone."""
    guards_max: int = 64
    """Sparks of one victim that wait for their supervisors' answers."""
    start_max: int = 16
    """Tasks handed to one scheduler at a time."""
    parked_max: int = 256
    """Fish that a victim without sparks keeps for a while instead of refusing them."""
    park_s: float = 0.1
    park_max_s: float = 2.0
    """How long such a fish is kept; as long as nobody has had sparks, within these bounds."""
    fish_deadline_s: float = 5.0
    """After this a fish counts as lost (hole R5); more than `park_max_s`."""
    backoff_min_s: float = 0.001
    backoff_max_s: float = 0.1
    """How long a thief rests after a round of refusals; doubles from min to max."""
    piece_cost_s: float = PIECE_COST_S
    piece_byte_cost_s: float = PIECE_BYTE_COST_S
    pieces_bytes_max: int = 256 << 20
    """What the root keeps; 0 for no pieces at all."""
    retained_cost_s: float = RETAINED_COST_S
    retained_bytes_max: int = 32 << 20
    """Results that a node has given away and retains; with their arguments."""
    speculate: bool = False
    """Whether the last few tasks of many are started once more when they take too long."""
    stragglers_max: int = 64
    """A node that supervises more than so many tasks has no last few."""
    siblings_min: int = 4
    """So many of a kind must have ended for each that has not."""
    straggler_s: float = 1.0
    """The least that a task is waited for in idleness."""
    straggler_ratio: float = 2.0
    """And it is waited for so many times as long as others of its kind have taken."""
    fair_s: float = 0.0
    """A call without a core is started beside others when nothing has been handed out for so long; 0 for never."""
    share_max: int = 4
    """Tasks of a scheduler at a time that were started so."""
    cancel_grace_s: float = CANCEL_GRACE_S
    code_bytes_max: int = 16 << 20
    """A node looks for code that no task needs any more when it has got so much since it looked last."""
    remembered_crashes_max: int = 1024
    """Paths of crashed tasks that a node remembers."""


SEED_MAX = 2**53
"""Seeds survive JSON."""

SEED_VARIABLE = "HDPHRS_SEED"
"""Gives the seed of a run for which --seed is not given."""

CONTEXTS_VARIABLE = "HDPHRS_CONTEXTS"
"""Set to 0, tasks share contexts, loops and streams with whatever runs in the same process (decision 49)."""

DETECT_AFTER_S = 5.0
"""Silence of a peer that counts as its death (the paper's default)."""

GRACE_S = 25.0
"""How long a node that is told to leave may take; hosts that are about to be taken away give 30 s or more."""

REJOIN_FOR_S = 600.0
"""How long a node that has lost the root, or was declared dead, tries to join again; 0 for not at all."""

REJOIN_PAUSE_MIN_S = 0.1
REJOIN_PAUSE_MAX_S = 5.0
"""How long it rests between two attempts, and before it joins again after a short life; doubles from min to max."""

JOIN_DEADLINE_S = 30.0
"""How long the root waits for the nodes that it expects."""

TERM_DEADLINE_S = 1.0
"""How long the root waits for the others to stop (hole R13)."""

EXIT_S = 5.0
"""How long a scheduler may take for what is to be done at the end of a process: exit handlers, threads that are no
daemons, files that are open."""
