"""Planted bugs: each rule of `rules.pml` broken in turn, and the check that catches it.

What lives here: the list, and `run`.  `tests/mutants` plants the same bugs in the core.  README.md tells which holes
make no sense in a model.  `python -m spin.mutants` prints the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from spin.pan import WITNESS, Search, search
from spin.runs import ONE_SPARK, TWO_SPARKS


@dataclass(frozen=True, slots=True)
class Mutant:
    """A broken rule, in a scope in which it is found in seconds."""

    name: str
    plants: str
    model: str
    switches: tuple[str, ...]
    unseen: str | None = None
    """The counter-property that can no longer be witnessed; None if the mutant breaks a check."""


@dataclass(frozen=True, slots=True)
class Caught:
    """How a mutant was found out."""

    check: str
    depth: int
    trace: list[str]
    """Steps to the violation, a line each; empty where the check is that something is no longer seen."""


class SurvivedError(AssertionError):
    """No check has noticed the mutant."""


SMALL = ("-DNODES=3", "-DKILLS=2")

MUTANTS: tuple[Mutant, ...] = (
    Mutant("R1", "the death of a supervisor leaves its guards and its sparks", TWO_SPARKS, ("-DMORTAL_SUPERVISOR",)),
    Mutant("R2", "a thread is placed on a node known dead", ONE_SPARK, (*SMALL, "-DPUSHED", "-DFISH_MAX=1")),
    Mutant("R3A", "a late OBSOLETE discards another spark", TWO_SPARKS, ("-DDUPLICATES=1",)),
    Mutant("R3B", "a late DENIED opens another guard, whose thief is not told", TWO_SPARKS, ("-DDUPLICATES=1",)),
    Mutant("R3C", "a late AUTH sends another spark", TWO_SPARKS, ("-DDUPLICATES=1",)),
    Mutant("R4", "a dead victim is not forgotten", ONE_SPARK, SMALL),
    Mutant("R5", "a lost fish is waited for", ONE_SPARK, (*SMALL, "-DLOSSES=1", "-DFISH_MAX=1")),
    Mutant("R6", "REQ or ACK of a finished task raises", ONE_SPARK, SMALL),
    Mutant("R15", "REQ towards a dead thief is granted", ONE_SPARK, SMALL),
    Mutant("R16", "the last spark of a pool is kept", ONE_SPARK, SMALL, unseen="STEAL"),
    Mutant("R21", "any ACK moves the record", ONE_SPARK, SMALL),
    Mutant(
        "R22", "REQ is granted to a node that the record does not name", TWO_SPARKS, ("-DDUPLICATES=1", "-DKILLS=0")
    ),
    Mutant("R23", "both ends of a broken link take it for a death", ONE_SPARK, SMALL),
    Mutant("NO_ACK", "the thief forgets the ACK", ONE_SPARK, SMALL, unseen="SECOND_STEAL"),
    Mutant("REPLICA", "a re-created spark keeps its replica number", ONE_SPARK, SMALL),
    Mutant("SECOND_WRITE", "a second result overwrites the first", ONE_SPARK, SMALL),
    Mutant("PURGE", "the purge at a death takes results along", ONE_SPARK, SMALL),
)


def run(mutant: Mutant) -> Caught:
    """Plant it and search.

    Raises:
        SurvivedError: nothing was found.
        PanError: a tool failed.
    """
    planted = (f"-DM_{mutant.name}", *mutant.switches)
    if mutant.unseen is None:
        # Breadth first gives the shortest story, but two sparks have too many states for that.
        report = search(Search(mutant.model, planted, shortest=mutant.model == ONE_SPARK), trace=True)
        if report.violated is None:
            raise SurvivedError(f"{mutant.name} ({mutant.plants}): {report.states:,} states, and no check has failed")
        return Caught(report.violated, report.depth, list(report.trace))
    report = search(Search(mutant.model, (*planted, "-DUNMONITORED", f"-DGOAL={mutant.unseen}")))
    if report.violated == WITNESS:
        raise SurvivedError(f"{mutant.name} ({mutant.plants}): {mutant.unseen} is still seen")
    what = mutant.unseen.lower().replace("_", " ")
    return Caught(report.violated or f"counter-property: no {what} is seen any more", report.depth, list(report.trace))


def main() -> None:
    """Print what catches each."""
    for mutant in MUTANTS:
        caught = run(mutant)
        print(f"{mutant.name:<13} {mutant.plants:<56} {caught.depth:>5}  {caught.check}", flush=True)


if __name__ == "__main__":
    main()
