"""What a run is asked to be, checked already."""

from __future__ import annotations

from collections.abc import Callable

from hdphrs.cluster.plan import NodePlan
from hdphrs.config import LEDGER_BYTES_MAX, REJOIN_FOR_S
from hdphrs.program.entry import Entry
from hdphrs.records import dataclass
from hdphrs.wire.settings import Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """All that the launcher needs to know; made by the command line."""

    program: Entry
    args: tuple[str, ...]
    nodes: tuple[NodePlan, ...]
    """The root first."""
    restarts_max: int
    """How often within an hour it is started again when the program or its node has died."""
    ssh: tuple[str, ...]
    """The words of the command that reaches another host."""
    reliable: bool
    speculate: bool
    """Whether the last few tasks are started once more when they take too long."""
    attempts_max: int
    memory_bytes_max: int | None
    detect_after_s: float
    grace_s: float
    detect_stopped_s: float | None = None
    """For how long the process of a scheduler may be stopped before it is replaced."""
    rejoin_s: float = REJOIN_FOR_S
    """How long a node that was cut off, or the host of one whose ssh has ended, is tried for."""
    seed: int
    report: str | None
    """The absolute path of the report, if one is wanted."""
    trace: str | None
    """The absolute path of the folder for traces, if they are wanted; the same on every host."""
    ledger: str | None = None
    """The absolute path or the URL of the ledger."""
    ledger_bytes_max: int = LEDGER_BYTES_MAX
    ledger_key: bytes | None = None
    advice: bool = True
    explain: bool = False
    prefixed: Streams = Streams.NONE
    """What of the tasks' standard streams the program shows."""
    verbose: bool
    say: Callable[[str], None]
    """Prints one line for a person, on the standard error."""
