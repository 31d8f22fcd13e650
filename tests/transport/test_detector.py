"""Silence of others, and silence of one's own."""

from __future__ import annotations

import math

from hdphrs.protocol.tasks import NodeId
from hdphrs.transport.detector import Detector

ONE, TWO = NodeId(1), NodeId(2)


def watching() -> Detector:
    detector = Detector(detect_after_s=4.0, late_s_max=1.0)
    detector.heard(ONE, 0.0)
    detector.heard(TWO, 1.0)
    return detector


def test_peer_silent_for_the_whole_time_is_suspected_and_only_once() -> None:
    detector = watching()
    assert detector.deadline() == 4.0
    assert detector.check(3.9, due=3.9) == []
    assert detector.check(4.0, due=4.0) == [ONE]
    assert detector.check(4.5, due=4.5) == []
    assert detector.deadline() == 5.0


def test_suspected_peer_that_is_heard_again_is_watched_again() -> None:
    detector = watching()
    detector.check(4.0, due=4.0)
    detector.heard(ONE, 4.5)
    detector.heard(TWO, 8.0)
    assert detector.check(8.5, due=8.5) == [ONE]


def test_timer_came_late_then_nobody_is_accused_and_all_counts_begin_anew() -> None:
    detector = watching()
    assert detector.check(60.0, due=4.0) == []
    assert detector.check(63.9, due=63.9) == []
    assert detector.check(64.0, due=64.0) == [ONE, TWO]


def test_timer_came_a_little_late_then_it_still_counts() -> None:
    assert watching().check(4.9, due=4.0) == [ONE]


def test_silence_that_is_excused_does_not_count_and_the_suspected_are_not_watched_for_it() -> None:
    detector = watching()
    detector.check(4.0, due=4.0)
    detector.excuse(ONE, 4.5)
    detector.excuse(TWO, 4.5)
    assert detector.check(8.4, due=8.4) == []
    assert detector.check(8.5, due=8.5) == [TWO]


def test_peer_accused_on_other_evidence_is_news_once() -> None:
    detector = watching()
    assert detector.accuse(ONE)
    assert not detector.accuse(ONE)
    assert detector.check(4.0, due=4.0) == []


def test_forgotten_peer_is_never_suspected() -> None:
    detector = watching()
    detector.forget(ONE)
    detector.forget(TWO)
    detector.forget(TWO)
    assert detector.check(60.0, due=60.0) == []
    assert detector.deadline() == math.inf
