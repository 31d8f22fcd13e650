"""Who waits looks out for an answer before it sleeps, if one may come at once."""

from __future__ import annotations

import os

import pytest

from hdphrs import lookout
from hdphrs.lookout import FAR_S, NEAR_S, Lookout, leaves_room, look_out, look_out_s

STEP_S = NEAR_S / 4
"""What a look takes; who sleeps sleeps until something comes, or the time is over."""


class Place:
    """Where something comes at given times."""

    def __init__(self, *come_s: float) -> None:
        self.now_s = 0.0
        self.waits: list[float | None] = []
        self._come_s = list(come_s)

    def poll(self, for_s: float | None) -> list[float]:
        self.waits.append(for_s)
        if for_s == 0.0:
            self.now_s += STEP_S
        else:
            till_s = self._come_s[0] if self._come_s else 1e9
            self.now_s = max(self.now_s, till_s if for_s is None else min(till_s, self.now_s + for_s))
        return [self._come_s.pop(0)] if self._come_s and self._come_s[0] <= self.now_s else []

    def clock(self) -> float:
        return self.now_s


def waits(place: Place, *, count: int) -> list[list[float | None]]:
    """How often and how long it polls in each of so many waits."""
    out = Lookout(place.poll, place.clock)
    seen = []
    for _ in range(count):
        place.waits = []
        out.wait()
        seen.append(place.waits)
    return seen


def test_one_sleeps_at_first_and_looks_out_after_a_short_wait() -> None:
    assert waits(Place(STEP_S, 3 * STEP_S), count=2) == [[None], [0.0, 0.0]]


def test_one_looks_out_for_a_moment_and_then_sleeps_and_next_time_at_once() -> None:
    assert waits(Place(STEP_S, 1.0, 1.0 + STEP_S, 1.0 + 2 * STEP_S), count=4) == [
        [None],
        [0.0] * 4 + [None],
        [None],
        [0.0],
    ]


def test_one_who_waits_for_a_time_gets_nothing_when_it_is_over() -> None:
    place = Place(STEP_S)
    out = Lookout(place.poll, place.clock)
    assert out.wait(1.0) == [STEP_S]
    assert out.wait(1.0) == []
    assert place.waits == [1.0] + [0.0] * 4 + [1.0 - 4 * STEP_S]
    assert place.now_s == STEP_S + 1.0


def test_one_does_not_look_out_for_longer_than_one_waits() -> None:
    place = Place(STEP_S)
    out = Lookout(place.poll, place.clock)
    out.wait()
    assert out.wait(2 * STEP_S) == []
    assert place.waits == [None, 0.0, 0.0, 0.0]


def test_one_who_waits_again_and_again_for_what_does_not_come_sleeps() -> None:
    place = Place(STEP_S)
    out = Lookout(place.poll, place.clock)
    out.wait()
    out.wait(STEP_S)
    place.waits = []
    assert out.wait(STEP_S) == []
    assert place.waits == [pytest.approx(STEP_S)]


def test_one_looks_out_for_as_long_as_one_is_told() -> None:
    place = Place(STEP_S, FAR_S, FAR_S + 6 * STEP_S)
    out = Lookout(place.poll, place.clock)
    out.for_s = FAR_S
    out.wait()
    out.wait()
    place.waits = []
    assert out.wait() == [FAR_S + 6 * STEP_S], "more than what is near takes"
    assert place.waits == [0.0] * 6


def test_who_only_looks_out_never_sleeps() -> None:
    place = Place(3 * STEP_S)
    assert look_out(place.poll, 2 * STEP_S, place.clock) == []
    assert look_out(place.poll, 2 * STEP_S, place.clock) == [3 * STEP_S]
    assert place.waits == [0.0] * 3


def test_whoever_wants_the_core_may_have_it_after_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[None] = []
    monkeypatch.setattr(lookout, "_give_way", lambda: ways.append(None))
    waits(Place(STEP_S, 4 * STEP_S), count=2)
    assert len(ways) == 2


@pytest.mark.skipif(not hasattr(os, "sched_yield"), reason="the system has no such call")
def test_the_way_is_that_of_the_system() -> None:
    assert lookout._give_way is os.sched_yield


def test_who_is_not_to_look_out_always_sleeps() -> None:
    place = Place(STEP_S, 2 * STEP_S, 3 * STEP_S)
    out = Lookout(place.poll, place.clock)
    out.for_s = 0.0
    for _ in range(3):
        out.wait()
    assert place.waits == [None] * 3


@pytest.mark.parametrize(
    ("nodes", "cores", "for_s"),
    [
        ([[0, "a", 2]], 2, NEAR_S),
        ([[0, "a", 3]], 2, 0.0),
        ([[0, "a", 2], [1, "b", 2], [2, "b", 2]], 2, FAR_S),
        ([[0, "a", 1], [1, "a", 1]], 2, FAR_S),
        ([[0, "a", 2], [1, "a", 1]], 2, 0.0),
        ([[2, "b", 2], [0, "a", 2], [1, "b", 2]], 3, 0.0),
        ([[0, "a", 1], [1, "", 0]], 1, 0.0),
    ],
    ids=["alone", "too-many", "others-elsewhere", "roomy", "crowded", "crowded-elsewhere", "nobody-knows"],
)
def test_one_looks_out_for_longer_if_there_are_other_nodes_and_not_at_all_where_schedulers_lack_cores(
    nodes: list[list[object]], cores: int, for_s: float
) -> None:
    assert look_out_s(nodes, cores) == for_s
    assert leaves_room(nodes, cores) is (for_s > 0.0)
