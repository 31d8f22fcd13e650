"""How long tasks have run, and how much work is behind a value.

What lives here: one `Account` for each task that has a stack of its own, and the `Meter` that charges the running one.
What does not: what becomes of these figures, see `docs/recovery.md`.  The meter is told only when a stack starts, stops
or ends; a `get` that runs a child in place costs nothing more.

The work behind a value is what its task has run for, children in place included, and the work behind all values that
its descendants got from elsewhere.  Of that, a part exists nowhere else yet: what this process has done, and what other
processes of this node have.  Once the value, or a piece of it, has left, it is the *share* that is safe.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

from hdphrs.api.future import Future
from hdphrs.wire.page import Line


class Share(NamedTuple):
    """Work that is nowhere else, in seconds."""

    own_s: float
    """Of this process."""
    here_s: float
    """Of the other processes of this node."""


NOTHING = Share(0.0, 0.0)


class Left(NamedTuple):
    """Pieces that have left, none of them below another, in seconds for which their stack ran."""

    at_s: float
    """When the last one did."""
    sum_s: float
    dearest_s: float


class Account:
    """The work of one task so far, in seconds."""

    __slots__ = ("_left", "below_s", "function", "here_s", "other_s", "own_s", "ran_s")

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.function: Callable[..., Any] | None = function
        """What the task calls, if that is known here."""
        self.ran_s: float = 0.0
        """By its own stack."""
        self.own_s: float = 0.0
        self.here_s: float = 0.0
        self.other_s: float = 0.0
        """Done elsewhere, or by now also known elsewhere."""
        self.below_s: dict[Future[Any], float] = {}
        """What children that ran in place on this stack got from elsewhere."""
        self._left: list[Left] = []

    @property
    def cost_s(self) -> float:
        """All the work."""
        return self.own_s + self.here_s + self.other_s

    def left(self, for_s: float) -> Left:
        """The pieces that have left while the stack ran for the last so many seconds."""
        left = self._take_left(for_s)
        if left.sum_s:
            self._left.append(left)  # for what is around this
        return left

    def give(self, cost_s: float, ran_s: float) -> Share:
        """A piece of this work becomes known elsewhere; what of it was not, as far as one can tell.

        Args:
            cost_s: all the work of the piece.
            ran_s: for how long this stack ran for it, at least.
        """
        self._take_left(ran_s)
        self._left.append(Left(self.ran_s, ran_s, ran_s))
        own_s = min(self.own_s, cost_s)
        here_s = min(self.here_s, cost_s - own_s)
        self.own_s -= own_s
        self.here_s -= here_s
        self.other_s += own_s + here_s
        return Share(own_s, here_s)

    def _take_left(self, for_s: float) -> Left:
        since_s = self.ran_s - for_s
        sum_s = dearest_s = 0.0
        while self._left and self._left[-1].at_s > since_s:
            latest = self._left.pop()
            sum_s += latest.sum_s
            dearest_s = max(dearest_s, latest.dearest_s)
        return Left(self.ran_s, sum_s, dearest_s)


class Meter:
    """Charges the running stack of this process."""

    def __init__(self, line: Line, clock: Callable[[], float] = perf_counter) -> None:
        self.account: Account | None = None
        """Of the running stack."""
        self._line = line
        self._clock = clock
        self._since_s = 0.0
        self.stack_since_s: float = 0.0
        """Since when that stack has run without another one in between."""
        self._busy_s = 0.0
        self._accounts: dict[Future[Any], Account] = {}
        """By the task at the bottom of the stack."""

    def open(self, future: Future[Any], function: Callable[..., Any] | None = None) -> Account:
        """This task is about to get a stack."""
        account = self._accounts[future] = Account(function)
        return account

    def lend(self, future: Future[Any], account: Account) -> None:
        """This task runs on the stack of an account that others have had, and will have."""
        self._accounts[future] = account

    def owners(self) -> list[Future[Any]]:
        """All that have; the helper thread may ask too."""
        return list(self._accounts)  # GIL: reading what another thread changes

    def owner(self, future: Future[Any]) -> Account | None:
        """The account of this task, if it has a stack of its own."""
        return self._accounts.get(future)

    def close(self, future: Future[Any]) -> Account:
        """It has ended."""
        return self._accounts.pop(future)

    def enter(self, account: Account | None, at_s: float | None = None) -> None:
        """From now on this stack runs, or none; or since a moment ago, which may be before the last call of this."""
        now_s = self._clock() if at_s is None else at_s
        if self.account is not None:
            for_s = now_s - self._since_s
            self.account.ran_s += for_s
            self.account.own_s += for_s
            self._busy_s += for_s
        if account is not self.account:
            self.stack_since_s = now_s
        self.account = account
        self._since_s = now_s
        self._line.ran(self._busy_s, 0.0 if account is None else now_s)

    def ran_s(self) -> float:
        """For how long the running stack has run; the helper thread may ask too."""
        account = self.account
        return 0.0 if account is None else account.ran_s + self._clock() - self._since_s

    def credit(self, future: Future[Any], cost_s: float, share: Share = NOTHING) -> None:
        """This future has got its value from elsewhere: the work behind that counts for the tasks above it."""
        between: list[Future[Any]] = []
        above = getattr(future, "_parent", None)
        while above is not None and above not in self._accounts:
            between.append(above)
            above = above._parent
        if above is None:
            return  # its parent has ended, and did not want it
        account = self._accounts[above]
        account.own_s += share.own_s
        account.here_s += share.here_s
        account.other_s += cost_s - share.own_s - share.here_s
        for one in between:
            account.below_s[one] = account.below_s.get(one, 0.0) + cost_s
