"""The searches of `python -m spin`: which model, in which scope, for which formula.

What lives here: the list.  Scopes are as wide as five minutes on one core allow; README.md tells their figures.
"""

from __future__ import annotations

from dataclasses import dataclass

from spin.pan import Search

ONE_SPARK = "one_spark"
NESTED = "nested"
TWO_SPARKS = "two_sparks"
SMALL = ("-DNODES=3", "-DKILLS=2")
THREE = "3 mortal, 3 deaths"
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


def _claim(model: str, scope: str, claim: str, formula: str, *switches: str, counter: bool = False) -> Run:
    return Run(scope, formula, Search(model, ("-DLTL", "-DUNMONITORED", *switches), claim=claim), counter)


def _witness(model: str, goal: str, what: str, *switches: str) -> Run:
    search = Search(
        model, (f"-DGOAL={goal}", "-DUNMONITORED", *(SMALL if model == ONE_SPARK else ()), *switches), shortest=True
    )
    return Run("", f"[] !({what})", search, counter=True)


RUNS: tuple[Run, ...] = (
    _holds(ONE_SPARK, f"{THREE}, 2 fish each", FAST),
    _holds(ONE_SPARK, f"{THREE}, spawn_at", "-DPUSHED", "-DFISH_MAX=1", "-DROOT_FISH_MAX=1"),
    _holds(ONE_SPARK, "3 mortal, 1 death, 1 fenced", "-DFISH_MAX=1", "-DKILLS=1", "-DFENCES=1"),
    _holds(ONE_SPARK, "2 mortal, 2 deaths, parked fish", *SMALL, "-DPARKED", "-DROOT_FISH_MAX=1"),
    _holds(ONE_SPARK, "2 mortal, 2 deaths, 1 fish lost", *SMALL, "-DLOSSES=1"),
    _claim(ONE_SPARK, THREE, "alive", "[] all_workers_alive", "-DFISH_MAX=1", counter=True),
    _claim(ONE_SPARK, THREE, "until", "[] (ivar_empty U any_result_sent)", "-DFISH_MAX=1"),
    _claim(ONE_SPARK, THREE, "fills", "<>[] ivar_full", "-DFISH_MAX=1"),
    _witness(ONE_SPARK, "ALL_DIE", "all workers die"),
    _witness(ONE_SPARK, "STEAL", "a spark is stolen"),
    _witness(ONE_SPARK, "SECOND_STEAL", "it is stolen again, from its thief"),
    _witness(ONE_SPARK, "DEATH_IN_TRANSIT", "a node dies with it in transition"),
    _witness(ONE_SPARK, "DENIED_MET", "a steal is denied"),
    _witness(ONE_SPARK, "OBSOLETE_MET", "an obsolete replica is met"),
    _witness(ONE_SPARK, "KEPT", "AUTH comes after the thief's death"),
    _witness(ONE_SPARK, "DUPLICATE", "a duplicate result arrives"),
    _witness(ONE_SPARK, "PUSH_RECOVERED", "a pushed thread is recovered", "-DPUSHED"),
    _witness(ONE_SPARK, "FENCED_ANSWERS", "a fenced node answers", "-DFENCES=1", "-DKILLS=0"),
    _holds(NESTED, "2 mortal, 2 deaths"),
    _holds(NESTED, "2 mortal, 2 deaths, 2 fish each", "-DFISH_MAX=2", FAST),
    _holds(NESTED, "2 mortal, 1 death, 1 scheduler", "-DKILLS=1", "-DCRASHES=1"),
    _holds(NESTED, "2 mortal, 1 death, 1 fenced", "-DKILLS=1", "-DFENCES=1"),
    _claim(NESTED, "2 mortal, 2 deaths", "fills", "<>[] ivar_full"),
    _witness(NESTED, "ORPHAN", "an orphan is met"),
    _witness(NESTED, "PURGED", "PURGE drops a copy", "-DCRASHES=1", "-DKILLS=0"),
    _holds(TWO_SPARKS, "2 mortal, 1 death"),
    _holds(TWO_SPARKS, "2 mortal, 2 deaths, a supervisor's", "-DMORTAL_SUPERVISOR", "-DKILLS=2"),
    _holds(TWO_SPARKS, "2 mortal, 1 death, a reply twice", "-DDUPLICATES=1"),
    _claim(TWO_SPARKS, "2 mortal, 1 death", "fills", "<>[] both ivars are full"),
    _witness(TWO_SPARKS, "BOTH_GUARDED", "a node guards both"),
    _witness(TWO_SPARKS, "STALE_REPLY", "a stale reply arrives", "-DDUPLICATES=1", "-DKILLS=0"),
    _witness(TWO_SPARKS, "ORPHAN", "an orphan is met", "-DMORTAL_SUPERVISOR"),
)
