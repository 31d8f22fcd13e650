"""How long the chains of tasks are that cannot run side by side (`--explain`, decision 23).

What lives here: the *span* of each task, as if there were a core for everything: its own time, and for each child the
length of the chain at its spawn, and then the child's span, whichever is longer.  A run that is to be explained pays
for this some microseconds a spawn, since each is wrapped; any other run pays nothing.

A child that runs in place is joined where it runs, at its `get`; one that ran elsewhere where its value arrives, which
is before the `get` that wants it: what its parent does between the two counts twice if the child's chain is the longer
one.  So the span is an upper bound, and the parallelism a lower one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hdphrs.api import future as fast
from hdphrs.api.future import Future, name_of
from hdphrs.scheduler.meter import Account, Meter
from hdphrs.scheduler.note import FUNCTIONS_MAX, Wrapped, plain
from hdphrs.wire import local

OTHERS = "(others)"
"""The name of all functions beyond `FUNCTIONS_MAX`."""


class _Strand:
    """What one task does by itself, and the chain that leads there."""

    __slots__ = ("account", "began_s", "covered", "name", "own_s", "since_s", "span_s")

    def __init__(self, account: Account, since_s: float) -> None:
        self.account = account
        self.covered = False
        """Whether a child runs in place of it just now."""
        self.began_s = since_s
        self.name = ""
        """Of the function that it calls in place."""
        self.own_s = 0.0
        self.since_s = since_s
        """Up to when its own time is in the span, by the time of its stack."""
        self.span_s = 0.0


class Strands:
    """Those of one scheduler."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._stacks: dict[Account, list[_Strand]] = {}
        self._spawned: dict[Future[Any], tuple[_Strand, float]] = {}
        """By child: who has spawned it, and how long the chain was then."""
        self._wrapped: dict[int, Stranded] = {}
        self._calls: dict[str, list[float]] = {}
        """By name of a function: how often it has been called, its seconds and those without children in place."""

    def begin(self, account: Account) -> None:
        """A task is about to run on this stack."""
        self._stacks[account] = [_Strand(account, account.ran_s)]

    def end(self, account: Account, name: str) -> float:
        """It has ended, a call of the function of this name; its span in seconds."""
        strand = self._stacks.pop(account)[0]
        self._advance(strand)
        self._count(name, strand, strand.since_s - strand.began_s)
        return strand.span_s

    def gathered(self) -> list[list[Any]]:
        """A message about the functions that have been called since the last one."""
        calls, self._calls = self._calls, {}
        return [[local.CALLS, [[name, *figures] for name, figures in calls.items()]]] if calls else []

    def _count(self, name: str, strand: _Strand, total_s: float) -> None:
        if name not in self._calls and len(self._calls) >= FUNCTIONS_MAX:
            name = OTHERS
        figures = self._calls.setdefault(name, [0.0, 0.0, 0.0])
        figures[0] += 1
        figures[1] += total_s
        figures[2] += strand.own_s

    def spawned(self, future: Future[Any]) -> None:
        """The running task has a child."""
        account = self._meter.account
        assert account is not None, "only tasks spawn"
        strand = self._stacks[account][-1]
        self._advance(strand)
        self._spawned[future] = strand, strand.span_s

    def wrap(self, future: Future[Any]) -> None:
        """Have this spark, which has just been spawned, looked at when it runs in place."""
        self.spawned(future)
        function = future._function
        if function is None:
            return
        wrapped = self._wrapped.get(id(function))
        if wrapped is None or wrapped.function is not function:
            if len(self._wrapped) >= FUNCTIONS_MAX:
                self._wrapped.clear()
            wrapped = self._wrapped[id(function)] = Stranded(function, self)
        # GIL: taking a future.  No call between the two, so that nobody takes it meanwhile (see `hdphrs.api.future`).
        if future._function is function:
            future._function = wrapped

    def joined(self, future: Future[Any], span_s: float) -> None:
        """A child has ended, here or elsewhere."""
        strand, at_s = self._spawned.pop(future, (None, 0.0))
        if strand is not None:
            self._advance(strand)
            strand.span_s = max(strand.span_s, at_s + span_s)

    def run_in_place(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Call the function of the child that has just become the running task."""
        future, account = fast.here.task, self._meter.account
        assert future is not None
        assert account is not None
        stack = self._stacks[account]
        above = stack[-1]
        self._advance(above)
        above.covered = True
        mine = _Strand(account, above.since_s)
        mine.name = name_of(plain(function))
        is_recursive = any(strand.name == mine.name for strand in stack)
        stack.append(mine)
        try:
            return function(*args)
        finally:
            self._advance(mine)
            stack.pop()
            self._count(mine.name, mine, 0.0 if is_recursive else mine.since_s - mine.began_s)
            above.covered = False
            above.since_s = mine.since_s
            self.joined(future, mine.span_s)

    def _advance(self, strand: _Strand) -> None:
        if not strand.covered:
            account = strand.account
            now_s = self._meter.ran_s() if account is self._meter.account else account.ran_s
            strand.span_s += now_s - strand.since_s
            strand.own_s += now_s - strand.since_s
            strand.since_s = now_s


class Stranded(Wrapped):
    """A function whose calls by tasks are looked at."""

    __slots__ = ("_strands",)

    def __init__(self, function: Callable[..., Any], strands: Strands) -> None:
        super().__init__(function)
        self._strands = strands

    def __call__(self, *args: Any) -> Any:
        return self._strands.run_in_place(self.function, args)
