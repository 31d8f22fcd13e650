"""The loop, turns and the dialogue with the node, in this process: what they have the helper thread do, and when."""

from __future__ import annotations

import builtins
import os
import socket
from collections.abc import Iterator
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest

from hdphrs.api import future as fast
from hdphrs.api.options import use
from hdphrs.lookout import FAR_S
from hdphrs.protocol.tasks import Outcome, Verdict
from hdphrs.scheduler import dialogue
from hdphrs.scheduler.answers import LATE_S, LEDGER_LATE_S, LONG_S, WAIT_S
from hdphrs.scheduler.bundles import OVERDUE_S, Bundle, Call
from hdphrs.scheduler.dialogue import POLL_S
from hdphrs.scheduler.habits import ROOM_FIRST, WORTH_S
from hdphrs.scheduler.hub import Hub
from hdphrs.scheduler.imports import REST_S
from hdphrs.scheduler.note import plain
from hdphrs.scheduler.turn import TURN_S
from hdphrs.wire import local
from hdphrs.wire.items import pack_outcome
from hdphrs.wire.page import Page
from tests.scheduler.test_export import assigned

OF_A_TASK: list[Any] = [[0, 1, 0], 0, [0, b"", [], 0.0, 0.0], 0.0, 0.0]

LONG_AFTER_S = 1000.0
"""Longer than any test is held up on a slow machine."""


class Bench:
    """A scheduler whose helper thread is not started, and its node's end of the link."""

    def __init__(self, *, ledger: bool = False) -> None:
        work, near = socket.socketpair()
        self._control, self._far = socket.socketpair()
        self.page = Page.create(2)
        self.line = self.page.line(0)
        self.node, self._work = local.Link(near), local.Link(work)
        self.hub = Hub(self._work, self._control, self.line, reliable=True, ledger=ledger)
        self._pipe = self.hub._helper._woken, self.hub._helper._bell
        self.hurried = 0
        helper: Any = SimpleNamespace(hurry=self._hurry, stir=lambda: None)
        self.hub._helper = self.hub._turn._helper = helper

    def _hurry(self) -> None:
        self.hurried += 1

    def say(self, *messages: list[Any]) -> None:
        """What the node says, and the scheduler hears."""
        self.node.send(*messages)
        self.line.post()
        self.hub._dialogue.receive(block=True)

    def heard(self) -> list[list[Any]]:
        """What the scheduler has said."""
        messages = self.node.receive(block=False)
        assert messages is not None, "the link is closed"
        return messages

    def close(self) -> None:
        for end in (self.node, self._work, self._control, self._far, self.page):
            end.close()
        for descriptor in self._pipe:
            os.close(descriptor)


@pytest.fixture
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """With a ledger if the parameter says so."""
    monkeypatch.setattr(use, "on_begin", use.on_begin)
    monkeypatch.setattr(use, "begun", False)  # another test of this process may have used options of tasks
    monkeypatch.setattr(fast, "keep", fast.keep)
    monkeypatch.setattr(fast.here, "ran", 0)
    monkeypatch.setattr(fast.here, "task", None)
    fast.sparks.clear()
    bench = Bench(ledger=getattr(request, "param", False))
    yield bench
    bench.close()
    fast.sparks.clear()


# Turns.


def test_a_turn_is_over_when_a_stack_has_run_for_a_while_and_others_are_aside(bench: Bench) -> None:
    hub = bench.hub
    hub._turn.enter(assigned(1), hub._meter.open(assigned(1)), perf_counter() - 2 * TURN_S)
    assert bench.line.is_calm
    assert not hub._turn.end(), "nobody else is there"
    hub._stacks.aside = 1
    assert hub._turn.end()
    assert not bench.line.is_calm, "it is asked at its next spawn"


def test_a_turn_is_not_over_before_or_when_nothing_runs(bench: Bench) -> None:
    hub = bench.hub
    hub._stacks.aside = 1
    assert not hub._turn.end()
    hub._turn.enter(assigned(1), hub._meter.open(assigned(1)), perf_counter() + LONG_AFTER_S)
    assert not hub._turn.end()
    assert bench.line.is_calm


# What is not to wait for a tick that is far.


def test_a_stack_that_is_left_while_a_timer_is_set_makes_the_helper_hurry(bench: Bench) -> None:
    hub = bench.hub
    hub._stacks.suspend = lambda: None  # type: ignore[method-assign]
    hub._turn.suspend()
    assert bench.hurried == 0
    hub._timers.add(1.0, lambda: None)
    hub._turn.suspend()
    assert bench.hurried == 1


@pytest.mark.parametrize(("wanted", "hurried"), [(True, 1), (False, 0)])
def test_results_that_stay_make_it_hurry_if_somebody_may_wait_for_them(
    bench: Bench, wanted: bool, hurried: int
) -> None:
    hub, following = bench.hub, assigned(2).spark.task
    hub._habits.learn(following, WAIT_S / 2, 0)
    hub._dialogue.is_hungry = True
    hub._answers.add(OF_A_TASK)
    now_s = hub._answers._since_s
    hub._answers._clock = lambda: now_s
    bench.line.want(wanted)
    hub._pass_on(following)
    assert (bench.hurried, bench.heard()) == (hurried, [])


@pytest.mark.parametrize(("bench", "late_s"), [(False, LATE_S), (True, LEDGER_LATE_S)], indirect=["bench"])
def test_with_a_ledger_results_wait_for_less_long(bench: Bench, late_s: float) -> None:
    answers, now_s = bench.hub._answers, 0.0
    answers._clock = lambda: now_s
    answers.add(OF_A_TASK)
    now_s = late_s - LONG_S / 2
    assert not answers.are_due(LONG_S / 3, nobody_waits=True)
    assert answers.are_due(LONG_S * 2 / 3, nobody_waits=True)


def test_a_bundle_may_be_late_that_has_begun_some_time_ago_or_for_which_somebody_waits(bench: Bench) -> None:
    bundles = bench.hub._bundles
    assert not bundles.may_be_late(somebody_waits=True)
    bundle = Bundle(1, assigned(1).spark)
    bundles._begun[bundle] = None
    bundle.since_s = perf_counter()
    assert bundles.may_be_late(somebody_waits=True)
    bundle.since_s = perf_counter() + LONG_AFTER_S
    assert not bundles.may_be_late(somebody_waits=False)
    bundle.since_s = perf_counter() - 0.6 * OVERDUE_S
    assert bundles.may_be_late(somebody_waits=False)


# The dialogue.


def test_hunger_is_said_once_until_something_comes_for_which_the_node_takes_it_back(bench: Bench) -> None:
    talk = bench.hub._dialogue
    comings: list[list[Any]] = [
        [local.START, []],
        [local.STOP, []],
        [local.DELIVER, 7, pack_outcome(Outcome(Verdict.VALUE, b"")), 0.0, 0.0],
    ]
    for coming in comings:
        fast.here.ran += 2
        talk.flush(hungry=True)
        talk.flush(hungry=True)
        assert bench.heard() == [[local.HUNGRY, ROOM_FIRST, 2, local.NOW]], (
            "that, and how many sparks have been run since the last time"
        )
        bench.say(coming)
        assert not talk.is_hungry
    talk.flush()
    assert bench.heard() == []


def test_hunger_that_was_said_ahead_is_said_once_more_when_nothing_runs(bench: Bench) -> None:
    talk = bench.hub._dialogue
    for ahead in (True, True, False, False, True):
        talk.flush(hungry=True, ahead=ahead)
    assert bench.heard() == [[local.HUNGRY, ROOM_FIRST, 0, how] for how in (local.AHEAD, local.AGAIN)]
    bench.say([local.START, []])
    talk.flush(hungry=True)
    talk.flush(hungry=True, ahead=True)
    assert bench.heard() == [[local.HUNGRY, ROOM_FIRST, 0, local.NOW]]


@pytest.mark.parametrize(
    ("last_s", "nodes", "idles", "asks"),
    [
        (WORTH_S, 1, False, True),
        (WORTH_S, 2, False, False),
        (WORTH_S, 1, True, False),
        (WORTH_S / 2, 1, False, False),
        (None, 1, False, False),
    ],
    ids=["worth it", "other nodes", "somebody who has nothing to do comes first", "short", "unknown"],
)
def test_more_is_asked_for_before_the_last_task_begins_though_no_result_leaves(
    bench: Bench, last_s: float | None, nodes: int, idles: bool, asks: bool
) -> None:
    hub = bench.hub
    other = bench.page.line(1)
    hub._others = [other]
    if idles:
        bench.line.want(True)
    else:
        other.run(1, careful=False, again=False)
    last = assigned(1)
    if last_s is not None:
        hub._habits.learn(last.spark.task, last_s, 0)
    hub._keeper.nodes = nodes
    heard: list[list[Any]] = []
    hub._execute_assigned = lambda future: heard.extend(bench.heard())  # type: ignore[method-assign]
    hub._execute(last, plain)
    assert [(kind, how) for kind, _, _, how in heard] == [(local.HUNGRY, local.AHEAD)] * asks


@pytest.mark.parametrize("idles", [True, False])
def test_in_the_midst_of_a_bundle_more_is_asked_for_unless_somebody_runs_nothing(bench: Bench, idles: bool) -> None:
    hub, other = bench.hub, bench.page.line(1)
    hub._others = [other]
    bench.line.want(True)
    other.run(0 if idles else 1, careful=False, again=False)
    bundle = Bundle(1, assigned(1).spark)
    bundle.since_s = perf_counter()
    hub._look_ahead(Call(bundle, 0))
    assert [how for _, _, _, how in bench.heard()] == [local.AHEAD] * (not idles)


def test_nobody_idles_who_runs_something_or_is_about_to(bench: Bench) -> None:
    hub, other = bench.hub, bench.page.line(1)
    assert not hub._somebody_idles(), "it is alone"
    hub._others = [other]
    assert hub._somebody_idles()
    other.run(1, careful=False, again=False)
    assert not hub._somebody_idles()
    other.run(0, careful=False, again=False)
    other.ran(0.0, since_s=100.0)
    assert not hub._somebody_idles()


def test_what_leaves_takes_along_what_has_gathered_words_first_and_hunger_last(bench: Bench) -> None:
    hub = bench.hub
    hub.voice._waiting.append([])
    hub._keeper.gathered = lambda: [[local.KEEP, [], 0.0, 0.0]]  # type: ignore[method-assign]
    hub._bundles._more.append((1, 0))
    hub._answers.add(OF_A_TASK)
    hub._dialogue.flush(hungry=True)
    expected = [local.SAID, local.KEEP, local.CALLED, local.RESULTS, local.HUNGRY]
    assert [kind for kind, *_ in bench.heard()] == expected


def test_pieces_alone_are_laid_down(bench: Bench) -> None:
    laid: list[str] = []
    bench.hub._keeper.send = lambda: laid.append("pieces")  # type: ignore[method-assign]
    bench.hub._dialogue.flush()
    assert (laid, bench.heard()) == (["pieces"], [])


def test_what_has_just_been_read_has_not_come_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node says that it has written after it has, and by then that may have been read."""
    now_s = [100.0]
    monkeypatch.setattr(dialogue, "perf_counter", lambda: now_s[0])
    bench.line.post()
    assert not bench.hub._has_nothing
    bench.say([local.START, []])
    bench.line.post()
    assert bench.hub._has_nothing
    now_s[0] += 2 * POLL_S
    assert not bench.hub._has_nothing


def told_of_imports(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What it imports from now on, of two modules that another scheduler has told it of."""
    names: list[str] = []
    monkeypatch.setattr(builtins, "__import__", lambda name, *_: names.append(name))
    bench.say([local.IMPORTED, [], ["ahead_one", "ahead_two"]])
    return names


def test_who_has_nothing_to_do_imports_what_others_have_and_looks_for_tasks_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, imported = bench.hub, told_of_imports(bench, monkeypatch)
    assert imported == [], "not while it hears of it"
    hub._starve()
    assert imported == ["ahead_one"]
    bench.node.send([local.START, []])
    bench.line.post()
    hub._starve()
    assert imported == ["ahead_one"]
    assert not hub._dialogue.is_hungry, "it has been read"
    assert hub._imports.patience_s == REST_S, "where one task came, another may follow"
    bench.line.post()  # nothing has come, though it seems so
    hub._starve()
    assert imported == ["ahead_one", "ahead_two"]
    assert hub._imports.patience_s is None, "it waits for as long as it takes"


def test_a_task_whose_time_has_come_goes_before_what_is_imported_ahead(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, imported = bench.hub, told_of_imports(bench, monkeypatch)
    hub._starve()
    timer = hub._timers.add(0.0, lambda: None)
    hub._starve()
    assert imported == ["ahead_one"]
    assert hub._imports.patience_s == REST_S
    hub._timers.drop(timer)


@pytest.mark.parametrize(("cores", "for_s"), [(1, 0.0), (2, FAR_S)])
def test_who_hears_of_other_nodes_looks_out_for_longer_or_not_at_all(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, cores: int, for_s: float
) -> None:
    monkeypatch.setattr(dialogue, "usable_cores", lambda: cores)
    bench.say([local.NODES, [[0, "here", 1], [1, "here", 1]]])
    assert bench.hub._mail.lookout.for_s == for_s
    assert bench.hub._keeper.nodes == 2
