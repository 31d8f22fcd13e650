"""Each task in a context of its own: what it sets is not seen by its parent, nor by its neighbours (decision 49).

What lives here: running a task in place so that it cannot tell whether it was stolen.  What does not: what is set aside
(`hdphrs/contexts`), and how a scheduler notices that there is something (`hdphrs/scheduler/notice.py`).

Theory of operation
-------------------

A process that has not been able to set anything does nothing of this.  When it begins to, tasks are on its stacks that
began before; none of them had set anything then.  So when such a task ends, whoever goes on gets an empty context
(`renew`), and what was spawned before runs in one.

`Context.run` costs some 25 ns more than a call, but it takes a piece of the C stack, which is shared by all greenlets
and copied when they switch.  So tasks that are nested deeper than `NESTED_MAX` get their context from the greenlet,
which costs ten times as much, and nothing of the C stack.

Each thread counts for itself: the main one leaves tasks where they are, with their number, while others begin and end
theirs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import Context, copy_context
from threading import get_ident
from typing import Any, Final, TypeVar

from greenlet import getcurrent

from hdphrs.api.future import Future
from hdphrs.contexts.aspects import Aspect, Aspects
from hdphrs.contexts.travel import handed_on, own, pack, snapshot

T = TypeVar("T")

NESTED_MAX: Final = 100
"""Tasks on one stack that are run by `Context.run`."""

NO_KEYWORDS: Final[Mapping[str, Any]] = {}


class _OfThread(threading.local):
    nested: int = 0


class Isolation:
    """That of one process."""

    def __init__(self, *aspects: Aspect, of_items: Iterable[Aspect] = ()) -> None:
        self.aspects: Aspects = Aspects(*aspects)
        """What is looked at beside context variables."""
        self._of_items = Aspects(*of_items)
        """And what tasks have for themselves anyway, but not the items of one."""
        self.nested: int = 0
        """Tasks on the running stack of the main thread that have a context of their own."""
        self._main = threading.main_thread().ident
        self._of_thread = _OfThread()
        """The same for the other threads, which run tasks only once there are aspects: `run` has not to ask for it."""
        self._plain_max = 0 if aspects else NESTED_MAX
        """While fewer are nested, `run` calls a task without keywords by itself."""

    def add(self, aspect: Aspect) -> None:
        """From now on this is looked at too."""
        self.aspects.add(aspect)
        self._plain_max = 0

    snapshot: Callable[[], Context] = staticmethod(snapshot)
    copy_context: Callable[[], Context] = staticmethod(copy_context)
    handed_on: Callable[[Context], Context] = staticmethod(handed_on)
    pack: Callable[[Context | None], bytes] = staticmethod(pack)

    def run(
        self,
        future: Future[T],
        function: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any] = NO_KEYWORDS,
    ) -> T:
        """Call the function of a task as another process would: in the context of its spawn, with nothing else set."""
        context: Context
        try:
            context = future._context
        except AttributeError:  # spawned before this process isolated tasks
            context = future._context = Context()
        if context:
            context = own(context)  # the other stays as it was spawned, by which a piece knows it
        nested, aspects = self.nested, self.aspects
        if kwargs or nested >= self._plain_max:
            if kwargs or aspects.all:
                return self.call(context, function, args, kwargs)
            stack = getcurrent()  # here, since one more call would take from how deep tasks may be nested
            outer, stack.gr_context = stack.gr_context, context
            self.nested = nested + 1
            try:
                return function(args[0]) if len(args) == 1 else function(*args)
            finally:
                self.nested = nested
                stack.gr_context = outer
                if aspects.all:  # since a moment ago
                    aspects.clear()
        self.nested = nested + 1
        try:
            return context.run(function, args[0]) if len(args) == 1 else context.run(function, *args)
        finally:
            self.nested = nested
            if aspects.all:  # since a moment ago
                aspects.clear()

    def call(self, context: Context, function: Callable[..., T], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> T:
        """The same with a context that nobody else has."""
        aspects = self.aspects
        before = aspects.set_aside() if aspects.all else []
        count = self if get_ident() == self._main else self._of_thread
        count.nested = nested = count.nested + 1
        try:
            if nested <= NESTED_MAX:
                return context.run(function, *args, **kwargs)
            stack = getcurrent()
            outer, stack.gr_context = stack.gr_context, context
            try:
                return function(args[0]) if len(args) == 1 and not kwargs else function(*args, **kwargs)
            finally:
                stack.gr_context = outer
        finally:
            count.nested = nested - 1
            if aspects.all:
                aspects.put_back(before)

    def call_item(self, function: Callable[..., T], args: tuple[Any, ...]) -> T:
        """Call a function for one of several items of the running task, as if that were a child."""
        before = self._of_items.set_aside()
        try:
            return self.call(snapshot(), function, args, NO_KEYWORDS)
        finally:
            self._of_items.put_back(before)

    def renew(self) -> None:
        """A task has ended that began before this process isolated tasks: its parent goes on as it began."""
        getcurrent().gr_context = Context()
        self.aspects.clear()

    def renew_item(self) -> None:
        """The same where not a task has ended, but one of several items of a task."""
        self.renew()
        self._of_items.clear()

    def suspend(self) -> tuple[int, Any]:
        """The running task is left where it is; its context is its greenlet's.  Returns what `resume` takes."""
        nested, self.nested = self.nested, 0
        return nested, self.aspects.set_aside()

    def resume(self, before: tuple[int, Any] | None) -> None:
        """It goes on; None if it was left before this process isolated tasks."""
        self.nested, aspects = before or (0, [])
        self.aspects.put_back(aspects)
