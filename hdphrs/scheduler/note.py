"""In a run with a ledger: children that run in place and take some milliseconds (decision 9).

What lives here: `Noter`.  The samples of `watch.py` only find tasks that run for two beats; a ledger is to have those
of a few milliseconds too.  So at each look the helper thread counts how many children have been run in place since the
last one.  If they were few, tasks are coarse, and every spark that waits, and every one that is spawned from then on,
is timed on its own: its function is put into a `Timed`, which costs a microsecond or two.  As soon as they are many,
the fast path is left alone again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hdphrs.api import future as fast
from hdphrs.api.future import Future
from hdphrs.api.memo import Wish, wish_of

FEW = 25
"""Children in place between two looks: a millisecond each."""

FUNCTIONS_MAX = 1024
"""Functions whose wrappers are remembered."""

Keep = Callable[["Timed", Future[Any], Any, float, float], None]
"""Called with a function, the task that it was, its value, and the stack's time before and after."""


class Wrapped:
    """A function that something is done about each time a task calls it."""

    __slots__ = ("__weakref__", "function")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Callable[..., Any] = function

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


class Timed(Wrapped):
    """A function that is timed each time a task calls it."""

    __slots__ = ("_clock", "_keep", "wish")

    def __init__(self, function: Callable[..., Any], clock: Callable[[], float], keep: Keep) -> None:
        super().__init__(function)
        self.wish: Wish = wish_of(function)
        self._clock = clock
        self._keep = keep

    def __call__(self, *args: Any) -> Any:
        future = fast.here.task
        assert future is not None, "only tasks are timed"
        began_s = self._clock()
        value = self.function(*args)
        self._keep(self, future, value, began_s, self._clock())
        return value


class Noter:
    """Decides whether the tasks of one scheduler are timed, and has it done."""

    def __init__(self, clock: Callable[[], float], keep: Keep) -> None:
        """
        Args:
            clock: for how long the running stack has run.
            keep: what to do with the value of a timed task, before anybody sees it.
        """
        self.on: bool = False
        self._clock = clock
        self._keep = keep
        self._ran = fast.here.ran
        self._timed: dict[int, Timed] = {}

    def look(self) -> bool:
        """In the helper thread, now and then; whether tasks are timed from now on that were not before."""
        ran, self._ran = fast.here.ran - self._ran, fast.here.ran
        was_on, self.on = self.on, ran <= FEW
        if not self.on or was_on:
            return False
        for future in list(fast.sparks):
            self.time(future)
        return True

    def time(self, future: Future[Any]) -> None:
        """Have this spark timed, if nobody has taken it; one that the node has handed over is timed anyway."""
        function = future._function
        if function is None or isinstance(function, Timed) or future._parent is None:
            return
        timed = self._timed.get(id(function))
        if timed is None or timed.function is not function:
            if len(self._timed) >= FUNCTIONS_MAX:
                self._timed.clear()
            timed = self._timed[id(function)] = Timed(function, self._clock, self._keep)
        # No call between the two, so that nobody takes it meanwhile (see `hdphrs.api.future`).
        if future._function is function:  # GIL: taking a future
            future._function = timed


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    while isinstance(function, Wrapped):
        function = function.function
    return function
