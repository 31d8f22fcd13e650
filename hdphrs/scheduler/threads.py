"""Threads that tasks have started, and which task a thread belongs to (decision 50).

What lives here: the identity of a thread, which is the parent of what the thread spawns, and `here` of a process in
which such threads live.  What does not: how a thread waits (`completion.py`).

Theory of operation
-------------------

`here.task` is one slot, which costs next to nothing, as long as the main thread alone runs tasks.  When a task starts a
thread, the class of `here` is changed to `ThreadedHere`, whose attributes are properties that look at the thread first:
the main thread finds what it has left there, in the same slots, even in the middle of a `get`.  When the last such
thread has ended the class is changed back.  So the code of `spawn` and `get` is the same for all.

A thread's identity is a future that nobody gets.  Its parent is the task that has started the thread, so that the tasks
of the thread are cancelled with that one, and its path is the task's with the number of the thread: the first thread
that a task starts is always the same one, and what it spawns too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

from hdphrs.api import future as fast
from hdphrs.api.future import Future, Here
from hdphrs.api.threads import FIRST_THREAD, Body, free_in_forks, on_start
from hdphrs.errors import UsageError
from hdphrs.scheduler.notice import notice

CALLBACK: Final = 1 << 30
"""Index, below a future, of the callbacks that are called when it is full."""

REMEMBERED_MAX: Final = 64
"""Tasks that have started threads, before it is looked which of them have ended."""

ENDED: Final = "the task that has started this thread has ended; its threads can spawn and get no more"


class Identity(Future[Any]):
    """Stands for a thread of a task, or for the callbacks of a future: the parent of what they spawn."""

    __slots__ = ("_has_ended", "_owner")

    _owner: Future[Any]

    def __init__(self, owner: Future[Any], parent: Future[Any], index: int, has_ended: Callable[[Future[Any]], bool]):
        """
        Args:
            owner: the task after whose end nothing may be spawned.
            parent: the task below which the path is.
            index: the place there.
            has_ended: whether a task has.
        """
        self._function = None
        self._parent = parent
        self._index = index
        self._spawned = 0
        while isinstance(owner, Identity):
            owner = owner._owner
        self._owner = owner
        self._has_ended = has_ended

    def check(self) -> None:
        """
        Raises:
            UsageError: the task has ended.
        """
        if self._has_ended(self._owner):
            raise UsageError(ENDED)


class _Own(threading.local):
    """What a thread has for itself."""

    is_known: bool = False
    """Whether it is a thread of a task; else it is the main one, or speaks for that."""
    task: Future[Any] | None = None
    ran: int = 0


_own: Final = _Own()
_main: Final = [0]
"""The thread that runs the tasks."""


_task_of_main: Final[Any] = Here.__dict__["task"]
_ran_by_main: Final[Any] = Here.__dict__["ran"]
"""The slots themselves: they are there of whichever class `here` is, which another thread may change at any time, also
while a thread is inside one of the properties below."""


class ThreadedHere(Here):
    """What this process does, asked by any of its threads."""

    __slots__ = ()

    if not TYPE_CHECKING:

        @property
        def task(self):
            """The running task of the calling thread."""
            if get_ident() == _main[0] or not _own.is_known:
                return _task_of_main.__get__(self)
            task = _own.task
            if type(task) is Identity:
                task.check()
            return task

        @task.setter
        def task(self, task):
            if get_ident() == _main[0]:
                _task_of_main.__set__(self, task)
            else:
                _own.task = task

        @property
        def ran(self):
            """Sparks that have been run by the calling thread."""
            return _own.ran if _own.is_known else _ran_by_main.__get__(self)

        @ran.setter
        def ran(self, ran):
            if _own.is_known:
                _own.ran = ran
            else:
                _ran_by_main.__set__(self, ran)


class Threads:
    """Those of one scheduler."""

    def __init__(self, has_ended: Callable[[Future[Any]], bool]) -> None:
        """`has_ended` tells whether a task that has begun has."""
        self.live: int = 0
        """How many threads of tasks there are."""
        self.begun: int = 0
        """And how many there have been, those included."""
        self._has_ended = has_ended
        self._lock = threading.Lock()
        self._started: dict[Future[Any], Iterator[int]] = {}
        """By task, the number of the next thread that it starts."""

    def install(self) -> None:
        """In the main thread: from now on threads belong to the task that starts them."""
        _main[0] = get_ident()
        on_start(self._prepare)
        free_in_forks(self._lock)

    def of_callbacks(self, future: Future[Any]) -> Future[Any] | None:
        """Who spawns in the callbacks of a child's future."""
        parent = future._parent
        return None if parent is None else Identity(parent, future, CALLBACK, self._has_ended)

    @contextmanager
    def joined(self, task: Future[Any] | None) -> Iterator[None]:
        """In a thread other than the main one: what it runs meanwhile is run by this task, or by none."""
        notice.threads()
        _own.is_known, _own.task = True, task
        with self._lock:
            self.begun += 1
            self.live += 1
            fast.here.__class__ = ThreadedHere
        try:
            yield
        finally:
            with self._lock:
                self.live -= 1
                if not self.live:
                    fast.here.__class__ = Here
            _own.is_known, _own.task = False, None

    def _prepare(self, body: Body) -> Body:
        """The body of a thread that belongs to the task which starts it."""
        task = fast.here.task
        if task is None:
            return body
        notice.threads()  # before the task may be left for another one
        identity = self._identity(task)

        def run_thread(*args: Any, **kwargs: Any) -> None:
            with self.joined(identity):
                body(*args, **kwargs)

        return run_thread

    def _identity(self, task: Future[Any]) -> Identity:
        """Without the lock: a finaliser, which may start a thread too, can come in between."""
        if len(self._started) > REMEMBERED_MAX:
            for one in list(self._started):
                if not isinstance(one, Identity) and self._has_ended(one):
                    self._started.pop(one, None)
        number = next(self._started.setdefault(task, count()))  # GIL: counting the threads of a task
        return Identity(task, task, FIRST_THREAD + number, self._has_ended)
