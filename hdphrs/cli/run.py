"""`hdphrs run`: its options, and what follows from them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from hdphrs.choices import CORES_VARIABLE, choices
from hdphrs.cli.checks import check_exclusive, check_ledger, check_ledger_key, check_report, check_trace
from hdphrs.cli.values import command_words, hourly, memory, silence, size, span, times
from hdphrs.cluster.hosts import LOCALHOST, SLOTS_MAX, Host, read_hosts
from hdphrs.cluster.plan import NodePlan, plan_nodes
from hdphrs.config import ATTEMPTS_MAX, DETECT_AFTER_S, GRACE_S, LEDGER_BYTES_MAX, REJOIN_FOR_S, SEED_MAX, SEED_VARIABLE
from hdphrs.console import say
from hdphrs.errors import StartError, UsageError
from hdphrs.gil import why_not
from hdphrs.program.entry import entry_of
from hdphrs.records import dataclass
from hdphrs.wire.settings import (
    ADVICE_VARIABLE,
    DETECT_STOPPED_VARIABLE,
    LEDGER_KEY_VARIABLE,
    LEDGER_VARIABLE,
    OUTPUT_VARIABLE,
    PREFIXED,
    RAW,
    prefixed_streams,
    usable_cores,
)

if TYPE_CHECKING:
    from hdphrs.chaos.monkey import Monkey

LOCAL_NODES_MAX = 256
_SEED_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options as given, each of its own right type; what they mean together is found out later."""

    cores: int | None
    nodes: str | None
    local_nodes: int | None
    unreliable: bool
    speculate: bool
    sequential: bool
    detect_after: float | None
    detect_stopped: float | None
    grace: float
    rejoin_for: float
    restarts: int
    kill_at: tuple[float, ...] | None
    chaos_monkey: bool
    seed: int | None
    report: str | None
    trace_protocol: str | None
    ledger: str | None
    ledger_max: int | None
    ledger_key: str | None
    ssh: str
    attempts: int
    memory_max: int | None
    output: str | None
    advice: bool
    explain: bool
    verbose: bool
    module: bool
    program: str
    args: tuple[str, ...]


@click.command(
    context_settings={"allow_interspersed_args": False},
    short_help="Run a program on the cores of several nodes.",
)
@click.option(
    "--cores",
    type=click.IntRange(1, SLOTS_MAX),
    metavar="N",
    help="Schedulers for each node; by default the usable cores of this host, shared by its nodes; "
    f"also {CORES_VARIABLE}.  What the hosts file says counts before it.",
)
@click.option("--nodes", metavar="FILE", help="Hosts, one a line: host [slots=N] [python=PATH].")
@click.option(
    "--local-nodes",
    type=click.IntRange(1, LOCAL_NODES_MAX),
    metavar="N",
    help="Nodes on this host; 1 by default.",
)
@click.option("--unreliable", is_flag=True, help="No supervision: a node that dies takes its tasks along.")
@click.option(
    "--speculate", is_flag=True, help="Start the last few tasks once more if they take long; the first answer wins."
)
@click.option("--sequential", is_flag=True, help="Everything in the program, in spawn order: for debugging.")
@click.option(
    "--detect-after",
    type=silence,
    metavar="S",
    help=f"Silence of a node that counts as its death; {DETECT_AFTER_S:g} s by default.",
)
@click.option(
    "--detect-stopped",
    envvar=DETECT_STOPPED_VARIABLE,
    type=silence,
    metavar="S",
    help="Replace a scheduler process that has been stopped (SIGSTOP) for so many seconds; by default a line says so, "
    f"and no more; also {DETECT_STOPPED_VARIABLE}.",
)
@click.option(
    "--grace",
    type=span,
    metavar="S",
    default=GRACE_S,
    help=f"What a node that is told to leave (SIGTERM, hdphrs drain) may take for it; {GRACE_S:g} s by default.",
)
@click.option(
    "--rejoin-for",
    type=span,
    metavar="S",
    default=REJOIN_FOR_S,
    help=f"How long a node that was cut off tries to join again; {REJOIN_FOR_S:g} s by default, 0 for not at all.",
)
@click.option(
    "--restarts",
    type=hourly,
    metavar="5/h",
    default="0",
    help="Start the run again when the program's process or the root node has died, at most so often within an hour.",
)
@click.option("--kill-at", type=times, metavar="3,5.5", help="Test: kill -9 a node at each of these seconds.")
@click.option("--chaos-monkey", is_flag=True, help="Test: kill -9 nodes at drawn times within 30 s.")
@click.option(
    "--seed",
    envvar=SEED_VARIABLE,
    type=click.IntRange(0, SEED_MAX),
    metavar="N",
    help=f"Draws the program's random numbers (hdphrs.rng), who dies when, and who robs whom; also {SEED_VARIABLE}.",
)
@click.option("--report", metavar="FILE", help="Write what each node did, as JSON.")
@click.option(
    "--trace-protocol",
    metavar="DIR",
    help="Record what the nodes tell each other, tasks and their arguments included, for hdphrs replay; each host "
    "keeps the files of its own nodes.",
)
@click.option(
    "--ledger",
    envvar=LEDGER_VARIABLE,
    metavar="DIR|URL",
    help=f"Keep results there, and compute none of them again, in this run or a later one; also {LEDGER_VARIABLE}.",
)
@click.option(
    "--ledger-max",
    type=size,
    metavar="2G",
    help="What the ledger may hold, 1G by default; what is of least use goes first.",
)
@click.option(
    "--ledger-key",
    envvar=LEDGER_KEY_VARIABLE,
    metavar="FILE",
    help="Sign what is kept with the key in FILE, and use only what is signed with it (hdphrs ledger key makes one); "
    f"also {LEDGER_KEY_VARIABLE}.",
)
@click.option("--ssh", metavar="COMMAND", default="ssh", help="How to reach another host; ssh by default.")
@click.option(
    "--attempts",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=ATTEMPTS_MAX,
    help=f"Crashes after which a task fails for good; {ATTEMPTS_MAX} by default.",
)
@click.option(
    "--memory-max",
    type=memory,
    metavar="2G",
    help="What each scheduler may allocate: a task that wants more gets a MemoryError.",
)
@click.option(
    "--output",
    envvar=OUTPUT_VARIABLE,
    type=click.Choice([RAW, PREFIXED]),
    help="What tasks print: with a prefix that says where, counted if many print the same; or raw, all of it. By "
    f"default it is prefixed, but for a standard output that is no terminal; also {OUTPUT_VARIABLE}.",
)
@click.option("--explain", is_flag=True, help="Say at the end what became of the time, and what to change.")
@click.option(
    "--advice/--no-advice",
    envvar=ADVICE_VARIABLE,
    default=True,
    help=f"Whether to say when tasks are too small, too large, or wait; they do by default; also {ADVICE_VARIABLE}=0.",
)
@click.option("-v", "--verbose", is_flag=True, help="Say what is started.")
@click.option("-m", "module", is_flag=True, help="prog.py is the name of a module, as for python -m.")
@click.argument("program", metavar="prog.py")
@click.argument("args", metavar="ARGS...", nargs=-1, type=click.UNPROCESSED)
def run(**options: object) -> int:
    """Run prog.py, whose arguments, standard streams and exit status are its own, on the cores of several nodes.

    As for python it may also be a folder or a zip archive with a __main__.py, or, after -m, the name of a module.
    Options before prog.py are ours; all that follows it is the program's.
    """
    return run_program(Asked(**options))  # type: ignore[arg-type]


def run_program(asked: Asked) -> int:
    """Check what is asked for, then do it; returns the program's exit status, -N if signal N ended it.

    Raises:
        UsageError: the options contradict each other, or an input is unusable.
        StartError: a node could not be started.
    """
    _check_contradictions(asked)
    program = entry_of(asked.program, module=asked.module)
    seed = int.from_bytes(os.urandom(_SEED_BYTES)) if asked.seed is None else asked.seed
    if asked.sequential:
        from hdphrs.cluster.program import run_sequentially

        run_sequentially(program, asked.args, seed)
    if (sentence := why_not()) is not None:
        raise StartError(sentence)
    plan = _plan(asked)
    monkey = _monkey(asked, seed, len(plan))
    report = None if asked.report is None else check_report(asked.report)
    trace = None if asked.trace_protocol is None else check_trace(asked.trace_protocol)
    ledger = None if not asked.ledger else check_ledger(asked.ledger)
    ledger_key = None if ledger is None or not asked.ledger_key else check_ledger_key(asked.ledger_key)
    ssh = command_words(asked.ssh, "--ssh")

    from hdphrs.cluster.options import RunOptions
    from hdphrs.cluster.restarts import launch_again

    options = RunOptions(
        program=program,
        args=asked.args,
        nodes=tuple(plan),
        restarts_max=asked.restarts,
        ssh=ssh,
        reliable=not asked.unreliable,
        speculate=asked.speculate,
        attempts_max=asked.attempts,
        memory_bytes_max=asked.memory_max,
        detect_after_s=DETECT_AFTER_S if asked.detect_after is None else asked.detect_after,
        detect_stopped_s=asked.detect_stopped,
        grace_s=asked.grace,
        rejoin_s=asked.rejoin_for,
        seed=seed,
        report=report,
        trace=trace,
        ledger=ledger,
        ledger_key=ledger_key,
        ledger_bytes_max=LEDGER_BYTES_MAX if asked.ledger_max is None else asked.ledger_max,
        advice=asked.advice,
        explain=asked.explain,
        prefixed=prefixed_streams(asked.output, for_people=os.isatty(1)),
        verbose=asked.verbose,
        say=say,
    )
    return launch_again(options, monkey)


def _check_contradictions(asked: Asked) -> None:
    given = {
        "--cores": asked.cores is not None,
        "--nodes": asked.nodes is not None,
        "--local-nodes": asked.local_nodes is not None,
        "--unreliable": asked.unreliable,
        "--speculate": asked.speculate,
        "--sequential": asked.sequential,
        "--kill-at": asked.kill_at is not None,
        "--chaos-monkey": asked.chaos_monkey,
        "--report": asked.report is not None,
        "--restarts": asked.restarts > 0,
        "--trace-protocol": asked.trace_protocol is not None,
        "--explain": asked.explain,
        "--ledger-max": asked.ledger_max is not None,
    }
    check_exclusive(
        given,
        ("--nodes", "--local-nodes"),
        ("--kill-at", "--chaos-monkey"),
        ("--restarts", "--trace-protocol"),
        *(("--sequential", other) for other in given if other != "--sequential"),
    )


def _plan(asked: Asked) -> list[NodePlan]:
    local = [Host(LOCALHOST)] * (asked.local_nodes or 1)
    hosts = local if asked.nodes is None else read_hosts(asked.nodes)
    return plan_nodes(hosts, asked.cores or choices.value("cores", None), usable_cores())


def _monkey(asked: Asked, seed: int, nodes: int) -> Monkey | None:
    """Who is to die; refuses what cannot be done, so that a test which asks for deaths has them."""
    if not asked.chaos_monkey and asked.kill_at is None:
        return None
    from hdphrs.chaos.monkey import Monkey
    from hdphrs.chaos.schedule import kills_at, monkey_kills

    if asked.chaos_monkey and nodes < 2:
        raise UsageError("--chaos-monkey needs a second node: the root node is never killed")
    if asked.kill_at is None:
        return Monkey(monkey_kills(seed, nodes), seed, say)
    if len(asked.kill_at) > nodes - 1:
        others = {1: "is no node", 2: "is 1 node"}.get(nodes, f"are {nodes - 1} nodes")
        raise UsageError(
            f"--kill-at names {len(asked.kill_at)} times, but there {others} beside the root node, "
            "which is never killed"
        )
    return Monkey(kills_at(seed, asked.kill_at, nodes), seed, say)
