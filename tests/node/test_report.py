"""What the root says of lost work."""

from __future__ import annotations

import os

import pytest

from hdphrs.config import CoreConfig
from hdphrs.node import report as reporting
from hdphrs.node.books import Work
from hdphrs.node.report import Report
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import ROOT, Member, NodeId, Outcome, Parting, Verdict
from hdphrs.wire.page import Page, Totals
from hdphrs.wire.settings import NodeSettings

ONE = NodeId(1)


class Clock:
    now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(reporting, "monotonic", clock)
    return clock


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(reporting, "say", said.append)
    return said


@pytest.fixture
def report(clock: Clock, said: list[str]) -> Report:
    settings = NodeSettings(root=True, host="host", slots=1, secret=b"")
    report = Report(Node.root(CoreConfig(), lambda count: 0), settings)
    report.joined(Member(ONE, "host", 1, ("host", 1), 7))
    return report


def test_nothing_is_said_when_nothing_was_lost(report: Report, said: list[str]) -> None:
    report.worked(ONE, Work(done_s=3.0, away_s=1.0))
    report.tell_loss()
    assert not said


def test_dead_node_loses_what_it_had_told_nobody(report: Report, said: list[str]) -> None:
    report.worked(ONE, Work(done_s=3.0, away_s=1.0, lost_s=0.5))
    report.gone(ONE, 0, Parting.DIED)
    report.worked(ROOT, Work(done_s=4.0))
    report.used(5.0)
    report.tell_loss()
    assert said[-1] == "lost 2.0 s of work with 1 node, computed 2.0 s again"


def test_chains_of_the_program_are_joined_where_their_values_arrive(clock: Clock) -> None:
    report = Report(
        Node.root(CoreConfig(), lambda count: 0),
        NodeSettings(root=True, host="host", slots=1, secret=b"", explain=True),
    )
    report.made([0, 1])
    report.ended(0, Outcome(Verdict.VALUE, b"", (), cost_s=4.0, span_s=2.0))
    report.made([2])
    report.ended(2, Outcome(Verdict.VALUE, b"", (), cost_s=4.0, span_s=3.0))
    report.ended(1, Outcome(Verdict.VALUE, b"", (), cost_s=5.0, span_s=4.0))
    explained = report._explained()
    assert (explained.work_s, explained.span_s) == (13.0, 5.0)


def test_dead_scheduler_is_told_of_too(report: Report, said: list[str]) -> None:
    report.worked(ROOT, Work(done_s=4.0, lost_s=1.0))
    report.used(3.0)
    report.tell_loss()
    assert said == ["lost 1.0 s of work with scheduler processes, computed 1.0 s again"]


def test_node_is_taken_to_have_gone_on_for_one_beat(report: Report, clock: Clock, said: list[str]) -> None:
    for done_s in (0.0, 0.1):
        clock.now_s += 0.1
        report.worked(ONE, Work(done_s=done_s))
    clock.now_s += 10.0
    report.gone(ONE, 0, Parting.DIED)
    clock.now_s += 10.0
    report.tell_loss()
    assert said[-1] == "lost 0.1 s of work with 1 node, computed 0.2 s again"


def test_what_a_dead_node_of_this_host_had_done_is_read_from_its_page(
    clock: Clock, report: Report, said: list[str]
) -> None:
    lines = 7  # no other page of this process, which other tests have left, is of that size
    page = Page.create(lines)
    report.joined(Member(NodeId(2), "host", lines, ("host", 1), os.getpid()))
    page.line(0).ran(3.0, 0.0)
    page.line(1).ran(4.0, 0.0)
    page.totals[Totals.BURIED], page.totals[Totals.AWAY], page.totals[Totals.LOST] = 1.0, 5.0, 0.5
    page.close()
    report.worked(NodeId(2), Work(done_s=2.0))
    report.gone(NodeId(2), 0, Parting.DIED)
    report.used(2.0)
    report.tell_loss()
    assert said[-1] == "lost 3.0 s of work with 1 node, computed 6.0 s again"
