"""What code sets for whatever its thread runs next, and no context variable holds.

What lives here: `Aspects`, which sets it aside while another task runs, and puts it back.  What does not: when, and how
it is noticed that there is something (`hdphrs/scheduler/notice.py`).

An aspect is looked at only once something of its kind has been set in this process, or could have been: each look costs
some 50 ns, at each child that runs in place.  A task begins without any of it, since it might run in another process:
the standard streams are the process's own, no event loop runs, warnings are filtered as they were before any task.
"""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from operator import is_
from threading import get_ident
from types import ModuleType
from typing import Any, Final, Protocol

from hdphrs.contexts.apart import Current, Entries, Left, Stream, function, per_thread


class Aspect(Protocol):
    """One kind of thing."""

    def set_aside(self) -> Any:
        """From now on it is as it is for a task that begins; returns what it has been."""

    def put_back(self, before: Any) -> None:
        """From now on it is as it was then, whatever it is now."""

    def clear(self) -> None:
        """From now on it is as it is for a task that begins."""

    def rebase(self) -> None:
        """As it is now it is for every task that begins."""


class Attributes:
    """Attributes of a module that code replaces and restores.

    They are the process's, so a task in another thread than the main one has values of its own (`apart.py`).
    """

    def __init__(
        self,
        module: ModuleType,
        stands: Mapping[str, Callable[[Current], Any]],
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        """
        Args:
            stands: by name, what may stand for an attribute that differs between threads.
            changed: called when some have been set.
        """
        self._apart = per_thread(module, stands)
        self._names = tuple(name for name in stands if name in vars(module))
        self._changed = changed
        self._thread = self._apart.main = get_ident()
        self.rebase()

    def rebase(self) -> None:
        """See `Aspect`."""
        with self._apart.lock:
            values = self._apart.values
            self._base = [values[name] for name in self._names]

    def set_aside(self) -> Any:
        """See `Aspect`."""
        if get_ident() == self._thread:
            return self._turn(self._base)
        # This thread may share what it has with those that it has started.
        former = self._apart.begin(dict(zip(self._names, self._base, strict=True)))
        self._changed()
        return (former,)

    def put_back(self, before: Any) -> None:
        """See `Aspect`."""
        if isinstance(before, tuple):
            self._apart.end(*before)
            self._changed()
        else:
            self._turn(before)

    def clear(self) -> None:
        """See `Aspect`."""
        if get_ident() == self._thread:
            self._turn(self._base)
        elif (own := self._apart.own()) is not None:  # else they are those of the thread's task
            own.update(zip(self._names, self._base, strict=True))
            self._changed()

    def _turn(self, to: list[Any] | Left) -> list[Any] | Left:
        """In the main thread: another task runs from now on, which has these; what the former has."""
        apart = self._apart
        if type(to) is list:
            with apart.lock:
                values = apart.plain
                if values is not None:
                    before = [values.get(name) for name in self._names]
                    if not all(map(is_, before, to)):
                        values.update(zip(self._names, to, strict=True))
                        self._changed()
                    return before
            to = Left(dict(zip(self._names, to, strict=True)))
        assert isinstance(to, Left)
        left = apart.exchange(to)
        if not all(left.values.get(name) is value for name, value in to.values.items()):
            self._changed()
        return left


class ThreadLocals:
    """Of modules, the thread-locals in which an event loop keeps that it runs."""

    NAMES: Final = (
        ("trio._core._run", "GLOBAL_RUN_CONTEXT"),
        ("sniffio._impl", "thread_local"),
        ("anyio._core._eventloop", "threadlocals"),
        ("anyio.from_thread", "threadlocals"),
        ("curio.meta", "_locals"),
    )

    def __init__(self) -> None:
        self._found: list[threading.local] = []
        self._modules = 0
        """How many there were when they were looked for."""

    def set_aside(self) -> Any:
        """See `Aspect`."""
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            values = [getattr(sys.modules.get(module), name, None) for module, name in self.NAMES]
            self._found = [value for value in values if isinstance(value, threading.local)]
        before = []
        for found in self._found:
            if attributes := found.__dict__:
                before.append((found, attributes.copy()))
                attributes.clear()
        return before

    def put_back(self, before: Any) -> None:
        """See `Aspect`."""
        self.clear()
        for found, attributes in before:
            found.__dict__.update(attributes)

    def clear(self) -> None:
        """See `Aspect`."""
        self.set_aside()

    def rebase(self) -> None:
        """See `Aspect`; nothing runs in a process before its tasks do."""


class Loop:
    """The event loop of asyncio that runs in this thread, the one that is set, and what loops set for the thread."""

    def set_aside(self) -> Any:
        """See `Aspect`."""
        hooks, descriptor = sys.get_asyncgen_hooks(), -1
        if hooks != (None, None):  # some loop runs, perhaps not asyncio's
            sys.set_asyncgen_hooks(None, None)
            descriptor = _set_wakeup(-1)
        events = sys.modules.get("asyncio.events")
        running = task = None
        get_running = getattr(events, "_get_running_loop", None)
        if get_running is not None and (running := get_running()) is not None:
            task = _swap_task(running, None)
            events._set_running_loop(None)  # type: ignore[union-attr]
        local = getattr(getattr(events, "_event_loop_policy", None), "_local", None)
        current = None
        if local is not None and local.__dict__:
            current = local.__dict__.copy()
            local.__dict__.clear()
        return hooks, descriptor, running, task, local, current

    def put_back(self, before: Any) -> None:
        """See `Aspect`."""
        self.clear()
        hooks, descriptor, running, task, local, current = before
        if running is not None:
            sys.modules["asyncio.events"]._set_running_loop(running)
            _swap_task(running, task)
        if current is not None:
            local.__dict__.update(current)
        if hooks != (None, None):
            sys.set_asyncgen_hooks(*hooks)
            _set_wakeup(descriptor)

    def clear(self) -> None:
        """See `Aspect`."""
        self.set_aside()

    def rebase(self) -> None:
        """See `Aspect`; nothing runs in a process before its tasks do."""


def _swap_task(loop: Any, task: Any) -> Any:
    """Since Python 3.12 what task a thread runs must be set aside too; before, each loop knows its own."""
    swap = getattr(sys.modules.get("asyncio.tasks"), "_swap_current_task", None)
    return None if swap is None else swap(loop, task)


def _set_wakeup(descriptor: int) -> int:
    with suppress(ValueError, OSError):  # not in this thread; closed
        return signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
    return -1


class NumpyOne:
    """NumPy 1 keeps its `errstate` for the thread."""

    def __init__(self, umath: Any) -> None:
        self._umath = umath
        self.rebase()

    def rebase(self) -> None:
        """See `Aspect`."""
        self._base = self._umath.geterrobj()

    def set_aside(self) -> Any:
        """See `Aspect`."""
        before = self._umath.geterrobj()
        if before != self._base:
            self._umath.seterrobj(self._base)
        return before

    def put_back(self, before: Any) -> None:
        """See `Aspect`."""
        self._umath.seterrobj(before)

    def clear(self) -> None:
        """See `Aspect`."""
        self._umath.seterrobj(self._base)


STREAMS: Final[Mapping[str, Callable[[Current], Any]]] = dict.fromkeys(("stdin", "stdout", "stderr"), Stream)
WARNINGS: Final[Mapping[str, Callable[[Current], Any]]] = {
    "filters": Entries,
    "showwarning": function,
    "_showwarnmsg_impl": function,
}


def filters_changed() -> None:
    """Have the interpreter look at the filters of warnings again."""
    if call := getattr(warnings, "_filters_mutated", None):
        call()
    elif call := getattr(warnings, "_filters_mutated_lock_held", None):
        with warnings._lock:  # type: ignore[attr-defined]  # since Python 3.14
            call()


def streams() -> Aspect:
    """The standard streams, as they are now for those who begin."""
    return Attributes(sys, STREAMS)


def filters() -> Aspect:
    """The filters of warnings, and who shows them."""
    return Attributes(warnings, WARNINGS, filters_changed)


def aspects() -> tuple[Aspect, ...]:
    """All there are, for a process in which anything may have been set."""
    umath: Any = sys.modules.get("numpy.core._multiarray_umath")
    numpy = (NumpyOne(umath),) if hasattr(umath, "geterrobj") else ()
    return streams(), filters(), Loop(), ThreadLocals(), *numpy


class Aspects:
    """Those that are looked at in this process."""

    def __init__(self, *aspects: Aspect) -> None:
        self.all: tuple[Aspect, ...] = aspects
        """Empty if nothing is to be done."""

    def add(self, aspect: Aspect) -> None:
        """From now on this one too; what it is now for those who begin, it has been from the beginning."""
        self.all = (*self.all, aspect)

    def set_aside(self) -> list[tuple[Aspect, Any]]:
        """Another task is about to run, as if in a process of its own; returns what `put_back` takes."""
        return [(aspect, aspect.set_aside()) for aspect in self.all]

    def put_back(self, before: list[tuple[Aspect, Any]]) -> None:
        """And the former goes on."""
        if len(before) != len(self.all):  # of what has been noticed since, nothing had been set
            self.clear()
        for aspect, values in before:
            aspect.put_back(values)

    def clear(self) -> None:
        """No task runs, or one that has not set anything."""
        for aspect in self.all:
            aspect.clear()

    def rebase(self) -> None:
        """Whoever calls this runs no task, and has changed what tasks begin with."""
        for aspect in self.all:
            aspect.rebase()
