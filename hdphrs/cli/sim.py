"""`hdphrs sim`: its options, and what it says."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from hdphrs.errors import UsageError

if TYPE_CHECKING:
    from hdphrs.sim.run import Result
    from hdphrs.sim.world import Happening

JOBS_MAX = 256

SHRUNK_MAX = 3
"""Failures of a batch that are shrunk and told in full."""

EXIT_VACUOUS = 1


@click.command(short_help="Run the protocol's core in simulated clusters.")
@click.option("--seed", metavar="N", help="One run; 0x... is hexadecimal.")
@click.option("--seeds", metavar="A..B", help="All runs from A to B, both included.")
@click.option("--jobs", type=click.IntRange(1, JOBS_MAX), default=1, metavar="J", help="Processes for --seeds.")
@click.option(
    "--set", "fixed", multiple=True, metavar="NAME=VALUE", help="Fix a number that the seed draws; may be repeated."
)
@click.option(
    "--benchmark",
    metavar="NAME",
    help="sum_euler, liouville, queens or mandelbrot, in a quiet cluster, and what deaths cost (--set kills=K).",
)
@click.option("--until-event", type=click.IntRange(1), metavar="N", help="Stop after N events, and show the last ones.")
@click.option("--trace", metavar="FILE", help="Write all events there; - is the standard output.")
def sim(
    seed: str | None,
    seeds: str | None,
    jobs: int,
    fixed: tuple[str, ...],
    benchmark: str | None,
    until_event: int | None,
    trace: str | None,
) -> int:
    """Run whole clusters of the shipped core in virtual time.

    A seed draws the cluster, the program, the bounds and the faults; the invariants are checked after every event.
    When the faults have stopped, the program must end with the right value, and every node must halt.

    The exit status is 0 if all is right, 127 after an exception out of the core, 128 if a program does not end, 129 if
    an invariant or a value is wrong; 1 if a batch of 2,000 seeds or more is right but has left something out that it is
    meant to try.

    With --benchmark nothing is left to chance but delays and the moments of deaths, and what is printed is what these
    cost: the work that was lost with processes, what was computed again, and how long it took, against the time in
    which the cores that live at each moment do everything once.
    """
    if (seed is None) == (seeds is None):
        raise UsageError("give either --seed N or --seeds A..B")
    numbers = _profile(benchmark) | dict(_fixed(text) for text in fixed)
    if seeds is not None:
        if until_event is not None or trace is not None:
            raise UsageError("--until-event and --trace are for one --seed")
        return _many(_range(seeds), jobs, numbers, tolls=benchmark is not None)
    assert seed is not None
    return _one(_number(seed, "--seed"), numbers, until_event, trace)


def _one(seed: int, fixed: dict[str, int], until_event: int | None, trace: str | None) -> int:
    from hdphrs.sim.run import RIGHT, run
    from hdphrs.sim.tell import tell_draw, tell_event

    try:
        file = nullcontext() if trace is None else click.open_file(trace, "w")
    except OSError as error:
        raise UsageError(f"cannot write the trace {trace}: {error.strerror}") from error
    with file as writer:

        def narrate(happening: Happening) -> None:
            assert writer is not None
            writer.write(tell_event(happening) + "\n")

        result = run(seed, fixed, until_event=until_event, narrate=None if writer is None else narrate)
    if result.status == RIGHT:
        click.echo(f"drawn: {tell_draw(result.drawn)}")
        if until_event is not None:
            for happening in result.tail:
                click.echo(f"  {tell_event(happening)}")
        click.echo(f"{result.events} events, {result.virtual_s:.3f} s of virtual time")
        click.echo(f"computed: {result.work}")
    else:
        _tell_failure(result, shrunk=until_event is None)
    click.echo(f"trace: {result.trace}")
    return result.status


def _many(seeds: range, jobs: int, fixed: dict[str, int], *, tolls: bool) -> int:
    from hdphrs.sim.table import run_batch
    from hdphrs.sim.toll import tell_tolls

    told: list[Result] = []

    def tell(failed: Result) -> None:
        told.append(failed)
        if len(told) <= SHRUNK_MAX:
            _tell_failure(failed, shrunk=True)
        else:
            click.echo(f"seed {failed.seed:#x} too, with status {failed.status}: {failed.told}")

    batch = run_batch(seeds, jobs, fixed, tell, keep=tolls)
    for line in tell_tolls(batch.results) if tolls else batch.table():
        click.echo(line)
    if batch.failures:
        return batch.failures[0].status
    if batch.missing:
        click.echo(f"vacuous: none of all these runs had any {', '.join(batch.missing)}")
        return EXIT_VACUOUS
    return 0


def _tell_failure(failed: Result, *, shrunk: bool) -> None:
    from hdphrs.sim.shrink import shrink
    from hdphrs.sim.tell import rerun, tell_failure

    for line in tell_failure(failed):
        click.echo(line)
    if shrunk:
        smallest, tries = shrink(failed)
        click.echo(f"shrunk in {tries} runs to {smallest.events} events: {smallest.told}")
        click.echo(f"rerun shrunk: {rerun(smallest)}")


def _profile(benchmark: str | None) -> dict[str, int]:
    from hdphrs.sim.draw import SHAPES
    from hdphrs.sim.paper import BENCHMARKS, PROFILE

    if benchmark is None:
        return {}
    if benchmark not in BENCHMARKS:
        raise UsageError(f"--benchmark takes one of {', '.join(BENCHMARKS)}, not {benchmark!r}")
    return PROFILE | {"shape": SHAPES.index(benchmark)}


def _fixed(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set takes NAME=VALUE, not {text!r}")
    if name == "shape":
        from hdphrs.sim.draw import SHAPES

        if value in SHAPES:
            return name, SHAPES.index(value)
    return name, _number(value, f"--set {name}")


def _range(text: str) -> range:
    first, dots, last = text.partition("..")
    seeds = range(_number(first, "--seeds"), _number(last, "--seeds") + 1) if dots else range(0)
    if not seeds:
        raise UsageError(f"--seeds takes a range like 0..99, not {text!r}")
    return seeds


def _number(text: str, option: str) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if number < 0:
        raise UsageError(f"{option} takes a natural number, not {text!r}")
    return number
