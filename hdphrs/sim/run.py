"""One run: a seed becomes a cluster, a program and faults, and the run a verdict.

What lives here: `run`, and what a failure is called.  The exit statuses of `hdphrs sim` are these.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from hdphrs.audit.violation import Violation
from hdphrs.sim.cluster import Cluster
from hdphrs.sim.draw import Draw, draw, stream
from hdphrs.sim.errors import Stuck, Wrong
from hdphrs.sim.faults import Faults
from hdphrs.sim.work import Totals
from hdphrs.sim.world import Happening, World

RIGHT = 0
CRASH = 127
"""An exception out of the core, or of the simulator itself."""
LIVENESS = 128
"""The program does not end."""
WRONG = 129
"""A violated invariant, or a wrong value."""

TRACE_BYTES = 8


@dataclass(slots=True)
class Result:
    """What came of one seed."""

    seed: int
    drawn: Draw
    fixed: dict[str, int]
    status: int = RIGHT
    told: str = ""
    """What was wrong."""
    trace: str = ""
    """Digest of all events and of the final counters."""
    events: int = 0
    virtual_s: float = 0.0
    tallies: dict[str, int] = field(default_factory=dict)
    """What has happened, how often."""
    work: Totals = field(default_factory=Totals)
    tail: list[Happening] = field(default_factory=list)


def simulate(seed: int, **fixed: int) -> Result:
    """Run one seed to its end; see `run`."""
    return run(seed, fixed)


def run(
    seed: int,
    fixed: Mapping[str, int],
    *,
    until_event: int | None = None,
    narrate: Callable[[Happening], None] | None = None,
) -> Result:
    """Run one seed.

    Args:
        fixed: numbers of `Draw` that are not left to chance.
        until_event: stop after so many events.
        narrate: told of every event of every node.

    Raises:
        UsageError: a number that is no number of `Draw`, or out of its limits.
    """
    result = Result(seed, draw(seed, fixed), dict(fixed))
    world = World()
    world.narrate = narrate
    cluster: Cluster | None = None
    try:
        cluster = Cluster(seed, result.drawn, world)
        _play(cluster, seed, until_event)
    except (Violation, Wrong) as violation:
        result.status, result.told = WRONG, str(violation)
    except Stuck as stuck:
        result.status, result.told = LIVENESS, str(stuck)
    except Exception as error:  # whatever the core raises is what we look for
        result.status, result.told = CRASH, _told(error)
    result.events = world.events
    result.virtual_s = world.now_ns / 1e9
    if cluster is None:
        result.tallies = world.tallies
    else:
        result.tallies, result.work = _tallies(cluster), cluster.accounts.totals()
    result.tail = list(world.tail)
    summary = repr((world.fold, world.events, world.now_ns, sorted(result.tallies.items())))
    result.trace = blake2b(summary.encode(), digest_size=TRACE_BYTES).hexdigest()
    return result


def _play(cluster: Cluster, seed: int, until_event: int | None) -> None:
    drawn, world = cluster.drawn, cluster.world
    faults = Faults(cluster, drawn, stream(seed, "faults"))
    faults.plan()
    cluster.start()
    size = drawn.nodes * drawn.cores + drawn.tasks
    patience_ns = 20 * (faults.calm_ns + cluster.program.work_ns + drawn.detect_ms * 1_000_000) + 20_000_000_000
    world.post(faults.calm_ns + patience_ns, cluster.give_up)
    world.run(1_000_000 + 2_000 * size, until_event)


def _tallies(cluster: Cluster) -> dict[str, int]:
    """The counters of all cores, what was sent, and what struck."""
    tallies = dict(cluster.world.tallies)
    for core in (*cluster.retired, *cluster.cores.values()):
        for name, value in core.counters.items():
            tallies[name] = tallies.get(name, 0) + value
    for kind, count in cluster.network.sent.items():
        tallies[kind.__name__.upper()] = count
    return tallies


def _told(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} (in {frame.name}, {frame.filename.rpartition('/')[2]}:{frame.lineno})"
