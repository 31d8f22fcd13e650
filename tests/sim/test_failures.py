"""Planted bugs: the exit status tells of which kind, the rerun line shows it again, and shrinking shrinks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from hdphrs.protocol.outcomes import Outcomes
from hdphrs.protocol.supervisor import OnNode, Record, Supervisor
from hdphrs.protocol.tasks import NodeId, Outcome, Task, TaskRef
from hdphrs.protocol.thief import Thief
from hdphrs.protocol.victim import Victim
from hdphrs.sim.draw import draw
from hdphrs.sim.run import CRASH, LIVENESS, RIGHT, WRONG, Result, run, simulate
from hdphrs.sim.shrink import shrink
from hdphrs.sim.tell import rerun, tell_failure

SEEDS = 60


def first_failure() -> Result:
    """The first of the seeds that sees the planted bug."""
    for seed in range(SEEDS):
        result = simulate(seed)
        if result.status != RIGHT:
            return result
    pytest.fail("no seed has seen the bug")


def later_results_are_delivered_too(self: Supervisor, ref: TaskRef, replica: int) -> Record:
    return self._records.pop(ref, None) or Record(Task("late", b"", b"", b"", True, b""), OnNode(ref.node), ())


def nothing_is_recreated(self: Supervisor, dead: int, parting: int) -> tuple[list[Any], list[Any]]:
    return [], []


def authorised_sparks_are_dropped(self: Victim, request: int) -> list[Any]:
    self._guards.pop(request, None)  # type: ignore[call-overload]
    return []


def results_raise(self: Outcomes, ref: TaskRef, replica: int, outcome: Outcome, source: NodeId) -> list[Any]:
    raise KeyError(str(ref))


def nobody_hunts(self: Thief, others: Any, now: float) -> list[Any]:
    return []


BUGS: list[tuple[type, str, Callable[..., Any], tuple[int, ...]]] = [
    (Supervisor, "on_result", later_results_are_delivered_too, (WRONG,)),
    (Supervisor, "on_death", nothing_is_recreated, (LIVENESS, WRONG)),
    (Victim, "on_auth", authorised_sparks_are_dropped, (LIVENESS, WRONG)),
    (Outcomes, "fill", results_raise, (CRASH,)),
]


@pytest.mark.parametrize(("owner", "method", "bug", "statuses"), BUGS, ids=[bug[2].__name__ for bug in BUGS])
def test_planted_bug_is_seen_rerun_and_shrunk(
    monkeypatch: pytest.MonkeyPatch, owner: type, method: str, bug: Callable[..., Any], statuses: tuple[int, ...]
) -> None:
    monkeypatch.setattr(owner, method, bug)
    failed = first_failure()
    assert failed.status in statuses, failed.told

    again = run(failed.seed, failed.fixed, until_event=failed.events)
    assert (again.status, again.told, again.trace) == (failed.status, failed.told, failed.trace)

    smallest, tries = shrink(failed, tries_max=25)
    assert smallest.status == failed.status
    assert 1 <= tries <= 25
    assert smallest.fixed
    line = rerun(smallest)
    assert run(failed.seed, fixed_of(line), until_event=until_of(line)).status == failed.status


def test_failure_tells_what_was_drawn_and_what_happened_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Supervisor, "on_result", later_results_are_delivered_too)
    failed = first_failure()
    lines = tell_failure(failed)
    assert failed.told in lines[0]
    assert f"nodes={draw(failed.seed).nodes}" in lines[1]
    assert any(re.match(r" *\d+\.\d{6} s  node \d+: ", line) for line in lines)
    assert lines[-1].startswith(f"rerun with: hdphrs sim --seed={failed.seed:#x} --until-event=")


def test_run_without_failure_cannot_be_missed_by_who_stops_it_early() -> None:
    whole = simulate(5)
    assert run(5, {}, until_event=whole.events // 2).events < whole.events


def fixed_of(line: str) -> dict[str, int]:
    """What a rerun line fixes."""
    return {name: int(value) for name, value in re.findall(r"--set (\w+)=(\d+)", line)}


def until_of(line: str) -> int:
    """Where a rerun line stops."""
    (until,) = re.findall(r"--until-event=(\d+)", line)
    return int(until)
