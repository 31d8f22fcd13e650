"""The search visits what there is, finds what is planted, and says the shortest way to it.

What a planted bug shows, it shows twice: in the search's tables, and on live cores that replay the scenario.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hdphrs.explore.names import State
from hdphrs.explore.scenario import Chooser, play, read, replay, write
from hdphrs.explore.scope import SCOPES, Job, Scope
from hdphrs.explore.search import search
from hdphrs.explore.space import Space
from tests.mutants.patching import planted
from tests.mutants.planted import MUTANTS

BUGS = {mutant.name: mutant for mutant in MUTANTS}
SMALL = ("guards", "orphans", "newcomer")


@pytest.mark.parametrize("name", SMALL)
def test_scope_is_searched_to_its_end_and_clean(name: str) -> None:
    report = search(SCOPES[name])
    assert report.complete
    assert report.violation is None
    assert report.ends > 0
    assert not report.vacuous, report.met


@pytest.mark.parametrize("name", SMALL)
def test_states_that_stand_for_their_permutations_leave_nothing_out(name: str) -> None:
    """Without symmetry there are more states, of which each has a representative that the other search has visited."""
    reduced, full = search(SCOPES[name]), search(SCOPES[name], symmetric=False)
    assert (full.violation, full.depth, full.met.keys()) == (None, reduced.depth, reduced.met.keys())
    assert _representatives(SCOPES[name]) == reduced.states < full.states < 2 * reduced.states


def _representatives(scope: Scope) -> int:
    """How many states there are without symmetry, counted up to names."""
    space = Space(scope)
    first = space.names.numbered(space.initial)
    seen: dict[State, None] = {first: None}
    waiting = [first]
    while waiting:
        state = waiting.pop()
        for _, _, raw, _ in () if space.is_quiet(state) else space.expand(state):
            after = space.names.numbered(raw)
            if after not in seen:
                seen[after] = None
                waiting.append(after)
    return len({space.names.canonical(state) for state in seen})


@pytest.mark.parametrize(
    ("bug", "scope", "invariant", "length"),
    [
        ("no-recovery", "guards", 1, 4),
        ("replica-stays", "guards", 2, 10),
        ("R21", "guards", 1, 13),
        ("R1a", "orphans", 5, 15),
        ("R2", "placed", None, 3),
        ("R7", "orphans", None, 28),
        ("R16", "guards", 5, 0),
        ("newcomer-untold", "newcomer", 5, 19),
        ("stranger-ignored", "joining", 1, 18),
    ],
)
def test_planted_bug_is_found_by_a_shortest_way(bug: str, scope: str, invariant: int | None, length: int) -> None:
    with planted(BUGS[bug]):
        found = search(SCOPES[scope]).violation
        assert found is not None
        assert (found.invariant, len(found.moves)) == (invariant, length)
        again, moves = read(write(SCOPES[scope], found.told, found.moves))
        assert (again, moves) == (SCOPES[scope], list(found.moves))
        with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever the broken core raises
            replay(again, moves)
        assert invariant in (None, 5, getattr(raised.value, "invariant", 0))
    replay(again, moves)


@pytest.mark.parametrize(
    "scope",
    [
        SCOPES["orphans"],
        Scope(
            "all", "", (Job(1), Job(1, at=2)), root_works=True, deaths=1, suspicions=1, crashes=1, gives=True, lates=1
        ),
        Scope("four", "", (Job(1), Job()), nodes=4, deaths=2, suspicions=2, rests=True),
        Scope("joined", "", (Job(1), Job(1, at=3)), joins=1, root_works=True, deaths=2, suspicions=1, gives=True),
    ],
    ids=lambda scope: scope.name,
)
def test_tables_agree_with_live_cores(scope: Scope) -> None:
    """Random walks: after each move the live cluster is in the state that the tables say."""
    space = Space(scope)
    draw = random.Random(scope.name)
    for _ in range(30):
        chooser = Chooser()
        cluster = scope.cluster(chooser)
        state = space.start(cluster)
        assert state == space.initial
        for _ in range(60):
            moves = list(space.expand(state))
            if not moves:
                break
            move, _, raw, _ = draw.choice(moves)
            chooser.script = list(move.choices)
            play(cluster, scope, move)
            state = space.names.numbered(raw)
            assert space.names.numbered(space.look(cluster, raw[-1])) == state, move


def test_search_that_has_not_met_what_it_is_for_is_vacuous() -> None:
    scope = replace(SCOPES["guards"], deaths=0)
    assert search(scope).vacuous == ("replicas", "deaths_seen", "stale", "denied", "obsolete")


def test_search_that_is_cut_short_says_so() -> None:
    report = search(SCOPES["guards"], states_max=100)
    assert not report.complete
    assert report.states > 100


SCRIPT = """
from hdphrs.explore.scope import SCOPES
from hdphrs.explore.search import search
report = search(SCOPES["orphans"])
print(report.states, report.transitions, report.depth, report.ends, report.met)
"""


def test_search_does_not_depend_on_the_hash_seed() -> None:
    root = Path(__file__).parents[2]
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] != ""
