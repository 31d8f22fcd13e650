"""The searches of `python -m spin`: which model, in which scope, for which formula.

What lives here: the list.  Scopes are as wide as five minutes on one core allow; README.md tells their figures.
"""

from __future__ import annotations

from dataclasses import dataclass

from spin.pan import Search

FAST = "-DFAST"
INVARIANTS = "invariants 1-4, no deadlock"


@dataclass(frozen=True, slots=True)
class Run:
    """A row of the table."""

    scope: str
    formula: str
    search: Search
    counter: bool = False
    """A counter-property: it must be refuted, which shows that the thing happens."""

    @property
    def tracks_lines(self) -> bool:
        """Whether pan knows which lines it has reached: not inside a d_step, and not where it stops at a witness."""
        return not self.counter and FAST not in self.search.switches


def _holds(model: str, scope: str, *switches: str) -> Run:
    return Run(scope, INVARIANTS, Search(model, switches))


def _eventually(model: str, scope: str, claim: str, formula: str, *switches: str) -> Run:
    return Run(scope, formula, Search(model, ("-DLTL", "-DGHOSTS", "-DUNMONITORED", *switches), claim=claim))


def _witness(model: str, goal: str, what: str, *switches: str) -> Run:
    search = Search(
        model, (f"-DGOAL={goal}", "-DUNMONITORED", *(SMALL if model == ONE_SPARK else ()), *switches), shortest=True
    )
    return Run("", f"[] !({what})", search, counter=True)


ONE_SPARK = "one_spark"
NESTED = "nested"
TWO_SPARKS = "two_sparks"
SMALL = ("-DNODES=3", "-DKILLS=2")
THREE = "1 root, 3 mortal, 3 deaths"

RUNS: tuple[Run, ...] = (
    _holds(ONE_SPARK, f"{THREE}, 1 fish each, pushed", "-DPUSHED", "-DFISH_MAX=1", "-DROOT_FISH_MAX=1"),
    _holds(ONE_SPARK, "1 root, 3 mortal, 1 death, 1 false", "-DFISH_MAX=1", "-DKILLS=1", "-DFENCES=1"),
    _eventually(ONE_SPARK, f"{THREE}, 1 fish each", "fills", "<>[] ivar_full", "-DFISH_MAX=1"),
    _eventually(ONE_SPARK, f"{THREE}, 1 fish each", "until", "[] (ivar_empty U any_result_sent)", "-DFISH_MAX=1"),
    _witness(ONE_SPARK, "STEAL", "a spark is stolen"),
    _witness(ONE_SPARK, "SECOND_STEAL", "it is stolen again, from the thief"),
    _witness(ONE_SPARK, "DEATH_IN_TRANSIT", "a node dies while the spark is in transition"),
    _witness(ONE_SPARK, "DENIED_MET", "DENIED"),
    _witness(ONE_SPARK, "OBSOLETE_MET", "OBSOLETE: an old replica is met"),
    _witness(ONE_SPARK, "KEPT", "AUTH for a thief that has died"),
    _witness(ONE_SPARK, "DUPLICATE", "a second result arrives"),
    _witness(ONE_SPARK, "PUSH_RECOVERED", "a pushed thread is recovered", "-DPUSHED", "-DFISH_MAX=1"),
    _witness(ONE_SPARK, "FENCED_ANSWERS", "a fenced node answers", "-DFENCES=1", "-DKILLS=0", "-DFISH_MAX=1"),
    _witness(ONE_SPARK, "ALL_DIE", "all workers die", "-DFISH_MAX=1"),
    _holds(NESTED, "1 root, 2 mortal, 2 deaths, 1 fish each"),
    _holds(NESTED, "1 root, 2 mortal, 1 death, 1 crash", "-DKILLS=1", "-DCRASHES=1"),
    _eventually(NESTED, "1 root, 2 mortal, 2 deaths, 1 fish each", "fills", "<>[] ivar_full", "-DFISH_MAX=1"),
    _witness(NESTED, "ORPHAN", "an orphan is met"),
    _witness(NESTED, "PURGED", "a PURGE drops a copy", "-DCRASHES=1", "-DKILLS=1"),
)
