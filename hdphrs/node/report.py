"""The report of a run: what each node did, as JSON.

What lives here: what the root gathers for `--report FILE`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from time import monotonic
from typing import Any, NamedTuple

from hdphrs.console import say
from hdphrs.node.books import Work, work_of
from hdphrs.node.driver import work_beat_s
from hdphrs.node.explain import Explained, NodeFigures
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import ROOT, Member, NodeId, Outcome, Parting
from hdphrs.wire.page import Page
from hdphrs.wire.private import open_private
from hdphrs.wire.settings import NodeSettings

COUNTERS = {
    "tasks_run": "Tasks that ended on this node, in place or from its pool.",
    "sparks_made": "Sparks that tasks of this node have spawned, and that it has run or exported.",
    "exported": "Sparks that left their scheduler, or the program, for the node.",
    "placed": "Threads made by spawn_at.",
    "stolen": "Sparks that arrived from other nodes.",
    "given": "Sparks that left for other nodes.",
    "fish_sent": "Steal attempts.",
    "fish_answered": "Steal attempts of others that were answered with sparks.",
    "replicas": "Tasks re-created because a node died.",
    "deaths_seen": "Nodes declared dead.",
    "leaves_seen": "Nodes that took their leave.",
    "crashes": "Scheduler processes that died.",
    "duplicates_run": "Results that came when the future was full already.",
    "stale": "Late replies that were ignored.",
    "pieces": "Finished parts of unfinished tasks that the root has got, to be used if these run again.",
    "pieces_used": "Pieces that tasks which ran again did not compute again.",
    "pieces_mismatched": "Pieces that were not used because the program spawned another call in their place.",
    "ledger_hits": "Tasks of the program that the ledger has answered (root).",
    "ledger_parts": "Finished parts of other tasks that came from the ledger (root).",
    "ledger_written": "Results that have been written to the ledger (root).",
    "ledger_missed": "Results that could not be written to the ledger (root).",
    "ledger_unsigned": "Entries of the ledger that were not used, for lack of the signature of its key (root).",
    "doubled": "Tasks started once more because they took long (--speculate).",
    "orphans": "Sparks dropped because their supervisor was gone.",
}
"""What the report tells of each node, and what it means."""


TICK_S = 1e-3
"""Less than this between two tellings says nothing about what a node does."""

ALONE_S = 5.0
"""A task that ran for so long, and has spawned nothing, is worth a word."""

TOLD_S_MIN = 0.05
"""Work that is worth a line at the end when it was lost."""

CORE_NAMES = {"duplicates_run": "duplicates"}
"""Where the core counts under another name."""


class _Told(NamedTuple):
    """What a node has told last."""

    at_s: float
    work: Work
    rate: float
    """Schedulers that it has kept busy since it told that before."""

    def up_to(self, now_s: float, most_s: float) -> _Told:
        """As if it had gone on like that, for at most so long; what it would lose stays as much, one with another."""
        more_s = self.rate * min(now_s - self.at_s, most_s)
        work = self.work._replace(done_s=self.work.done_s + more_s, away_s=self.work.away_s + more_s)
        return _Told(now_s, work, self.rate)


class Report:
    """Gathers what is worth telling at the root; `write` at the end."""

    def __init__(self, core: Node, settings: NodeSettings) -> None:
        self._core = core
        self._settings = settings
        self._started_s = monotonic()
        self._members = {ROOT: Member(ROOT, settings.host, settings.slots, ("", 0), os.getpid())}
        self._died_s: dict[NodeId, float] = {}
        self._left: dict[NodeId, Parting] = {}
        self._told: dict[NodeId, _Told] = {}
        self._pages: dict[NodeId, Page] = {}
        """Of nodes of this host."""
        self._used_s = 0.0
        self._span_s = 0.0
        self._made_s: dict[int, float] = {}
        """By slot of a task of the program: how long the chain before it is."""

    def begun(self) -> None:
        """The program starts now."""
        self._started_s = monotonic()

    def joined(self, member: Member) -> None:
        """A node is there."""
        self._members[member.node] = member
        if member.host == self._settings.host and (page := Page.of_process(member.pid, member.slots)) is not None:
            self._pages[member.node] = page

    def gone(self, node: NodeId, recreated: int, parting: Parting) -> None:
        """A node was declared dead, or has left; this one has re-created so many tasks for it."""
        if parting is Parting.DIED:
            self._died_s[node] = monotonic() - self._started_s
            self._close_account(node)
        else:
            self._left[node] = parting
        member = self._members[node]
        tasks = "1 task runs" if recreated == 1 else f"{recreated} tasks run"
        again = f"; {tasks} again from here" if recreated else ""
        how = "has died" if parting is Parting.DIED else "has left"
        say(f"node {node} on {member.host} (process {member.pid}) {how}{again}")

    def _close_account(self, node: NodeId) -> None:
        """A node has died: what it has done up to now, if it can be seen, or else about."""
        now_s, page = monotonic(), self._pages.pop(node, None)
        if page is not None:
            self._told[node] = _Told(now_s, work_of(page.totals, page.all_lines()), 0.0)
            page.close()
        elif node in self._told:
            self._told[node] = self._told[node].up_to(now_s, work_beat_s(len(self._members)))

    def worked(self, node: NodeId, work: Work) -> None:
        """What a node has done so far."""
        now_s, before = monotonic(), self._told.get(node)
        rate = 0.0 if before is None else (work.done_s - before.work.done_s) / max(now_s - before.at_s, TICK_S)
        self._told[node] = _Told(now_s, work, min(max(rate, 0.0), self._members[node].slots))

    def made(self, slots: Iterable[int]) -> None:
        """The program has made these tasks."""
        if self._settings.explain:
            self._made_s.update(dict.fromkeys(slots, self._span_s))

    def ended(self, slot: int, outcome: Outcome) -> None:
        """The program has got the value of this one."""
        self.used(outcome.cost_s)
        self._span_s = max(self._span_s, self._made_s.pop(slot, 0.0) + outcome.span_s)

    def used(self, cost_s: float) -> None:
        """The program has got a value with so much work behind it."""
        self._used_s += cost_s

    def tell_loss(self) -> None:
        """Say what deaths have cost, if it is worth a word."""
        lost_s = self._all_lost_s
        if lost_s < TOLD_S_MIN:
            return
        dead = sum(map(self._took_along, self._members))
        whom = "scheduler processes" if not dead else "1 node" if dead == 1 else f"{dead} nodes"
        say(f"lost {lost_s:.1f} s of work with {whom}, computed {self._again_s:.1f} s again")

    def _lost_s(self, node: NodeId) -> float:
        work = self._work(node)
        return work.lost_s + (work.at_risk_s if self._took_along(node) else 0.0)

    def _took_along(self, node: NodeId) -> bool:
        """Whether what ran there is lost: it died, or left too late."""
        return node in self._died_s or self._left.get(node) is Parting.LEFT

    @property
    def _again_s(self) -> float:
        return max(0.0, sum(told.work.done_s for told in self._told.values()) - self._used_s)

    @property
    def _all_lost_s(self) -> float:
        return sum(self._lost_s(node) for node in self._told)

    def _work(self, node: NodeId) -> Work:
        told = self._told.get(node)
        return Work() if told is None else told.work

    def write(self) -> None:
        """Explain the run, and write the file, as far as that was asked for; if the latter fails, say so."""
        explained = self._explained()
        if self._settings.explain:
            for sentence in explained.sentences():
                say(sentence)
        elif self._settings.advice:
            self._advise(explained)
        if self._settings.report is None:
            return
        nodes = [self._describe(member) for member in self._members.values()]
        report = {
            "wall_s": round(explained.wall_s, 6),
            "seed": self._settings.seed,
            "reliable": self._settings.reliable,
            "work_s": round(self._used_s, 6),
            "recomputed_s": round(self._again_s, 6),
            "lost_s": round(self._all_lost_s, 6),
            "explained": explained.as_json(),
            "nodes": nodes,
        }
        try:
            with open(open_private(self._settings.report), "w") as file:
                file.write(json.dumps(report, indent=2) + "\n")
        except OSError as error:
            say(f"the report could not be written to {self._settings.report}: {error.strerror}")

    def _advise(self, explained: Explained) -> None:
        """A program that leaves its cores alone hears of it."""
        if explained.busy_s >= ALONE_S and explained.is_alone:
            say(f"advice: {explained.advice()[0]}")

    def _explained(self) -> Explained:
        nodes = [
            NodeFigures(node, member.host, member.slots, self._work(node).done_s, self._counters(node))
            for node, member in self._members.items()
        ]
        return Explained(monotonic() - self._started_s, nodes, self._used_s, self._span_s)

    def _counters(self, node: NodeId) -> dict[str, int]:
        return dict(self._core.counters if node == self._core.me else self._core.reports.get(node, {}))

    def _describe(self, member: Member) -> dict[str, Any]:
        counters = self._counters(member.node)
        died_s = self._died_s.get(member.node)
        return {
            "node": member.node,
            "host": member.host,
            "pid": member.pid,
            "slots": member.slots,
            "died": False if died_s is None else round(died_s, 6),
            "left": member.node in self._left,
            "work_s": round(self._work(member.node).done_s, 6),
            "lost_s": round(self._lost_s(member.node), 6),
            **{name: counters.get(CORE_NAMES.get(name, name), 0) for name in COUNTERS},
        }
