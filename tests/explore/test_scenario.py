"""Scenarios are read, written and replayed; those in `scenarios/` once broke a core, planted or real, and must not."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest

from hdphrs.errors import UsageError
from hdphrs.explore.moves import CRASHES, READER, Move, arrivals
from hdphrs.explore.scenario import play, read, replay, write
from hdphrs.explore.scope import SCOPES
from hdphrs.protocol import messages as msg
from hdphrs.protocol.tasks import PROGRAM, ROOT, FishId, NodeId, Outcome, TaskRef, Verdict
from tests.mutants.patching import planted
from tests.mutants.planted import MUTANTS

SCENARIOS = sorted(Path(__file__).with_name("scenarios").glob("*.txt"))
BUGS = {mutant.name: mutant for mutant in MUTANTS}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario_is_clean(path: Path) -> None:
    replay(*read(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", [path for path in SCENARIOS if path.stem in BUGS], ids=lambda path: path.stem)
def test_scenario_of_a_planted_bug_breaks_the_core_that_has_it(path: Path) -> None:
    with planted(BUGS[path.stem]), pytest.raises((AssertionError, KeyError, AttributeError)):
        replay(*read(path.read_text(encoding="utf-8")))


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 10


def test_every_word_can_be_written_and_read() -> None:
    moves = [
        Move("deliver", 1, 2, (1, 0)),
        Move("deliver", 1, 2, (1,), 3),
        Move("hungry", 1, 1, (1,)),
        Move("suspect", 0, 2),
        Move("place", 0, 1),
        Move("join", 0, 0),
        *[Move(word, 2, 1) for word in ("run", "give", *CRASHES, READER)],
        *[Move(word, 2) for word in ("rested", "refuse", "late", "kill", "halt")],
    ]
    text = write(SCOPES["one"], "told\nin two lines", moves)
    assert text.startswith("# told\n# in two lines\nscope one\ndeliver 2 -> 1 choose 1 0\n")
    assert read(text) == (SCOPES["one"], moves)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "a scenario begins with its scope"),
        ("# only a remark\n", "a scenario begins with its scope"),
        ("hungry 1.1\n", "line 1: expected `scope` and one of"),
        ("scope nowhere\n", "line 1: expected `scope` and one of"),
        ("scope one\n\nfly 1\n", "line 3: there is no move 'fly 1'"),
        ("scope one\ndeliver 1\n", "line 2: there is no move 'deliver 1'"),
        ("scope one\nhungry 1.1 choose\n", "line 2: there is no move"),
    ],
)
def test_line_that_is_none_is_told(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read(text)


@pytest.mark.parametrize(
    "line",
    [
        "deliver 1 -> 0",
        "run 1.1",
        "give 1.1",
        "run 1.7",
        "hungry 9.1",
        "crash 1.1",
        "rested 1",
        "refuse 1",
        "late 1",
        "place 0",
        "join 0",
        "kill 3",
        "halt 3",
        "deliver 0 -> 3",
        "suspect 7 by 0",
    ],
)
def test_move_that_is_not_possible_is_told(line: str) -> None:
    with pytest.raises(UsageError, match=r"move 1, .* is not possible there"):
        replay(*read(f"scope one\n{line}\n"))


def test_fish_goes_ahead_of_what_may_be_large_and_past_nothing_else() -> None:
    scope = SCOPES["losing"]
    assert arrivals(scope, []) == []
    assert arrivals(scope, [msg.Fish, msg.Fish]) == [0]
    queue = [msg.Result, msg.Leaving, msg.Schedule, msg.Result, msg.Fish, msg.Ack]
    assert arrivals(scope, queue) == [0, 2, 4]
    assert arrivals(SCOPES["one"], queue) == [0]
    assert arrivals(scope, [msg.Leaving, msg.Result, msg.Fish]) == [0]


def test_message_that_overtakes_is_delivered_in_a_replay() -> None:
    cluster = SCOPES["losing"].cluster()
    result = msg.Result(TaskRef(ROOT, PROGRAM, 9), 0, Outcome(Verdict.VALUE, b""))
    cluster.queues[NodeId(2), NodeId(1)] = deque([result, msg.NoWork(FishId(9), 0.0)])
    play(cluster, SCOPES["losing"], Move("deliver", 1, 2, past=1))
    assert cluster.in_flight(2, 1) == [result]
