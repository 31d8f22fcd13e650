"""The thread that sends.

What lives here: it sleeps until there is something to send, and sends what there is in one frame.  No other thread ever
writes to the link, so that a Ctrl-C cannot cut a frame in two; but for a lone call, which the thread that spawns it
sends in one step (decision 24).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any, Final

from hdphrs.program.calls import CallFuture, Calls
from hdphrs.program.listener import LOOK_S, Listener
from hdphrs.program.surroundings import Outlook
from hdphrs.room import OwnThread, start_thread
from hdphrs.wire import local

BATCH_MAX = 4096
"""Tasks that leave together at most."""

TASKS: Final = (local.EXPORT, local.PLACE)
"""Messages with tasks, which need the program's surroundings."""


class Sender:
    """That of one program."""

    def __init__(
        self,
        link: local.Link,
        calls: Calls,
        listener: Listener,
        outlook: Outlook,
        released: Callable[[], list[bytes]],
        tidy: Callable[[], None],
        lose: Callable[[], None],
    ) -> None:
        """`calls` are sent when there is room for them, and what the `listener` wants to hear, when that changes.

        Args:
            outlook: looks whether the program's surroundings have changed, which then go ahead of the tasks.
            released: the digests of code that is not needed any more.
            tidy: called whenever the thread is woken: for what no signal handler may interrupt.
            lose: called if this process has no link any more; that the other end is gone, the receiver sees.
        """
        self._lose = lose
        self._link = link
        self._calls = calls
        self._listener = listener
        self._outlook = outlook
        self._released = released
        self._tidy = tidy
        self.is_stale: bool = False
        """Whether something has been spawned since it was looked whether the surroundings have changed; set before it
        can be sent."""
        self._posted: deque[list[Any]] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._asleep = False
        self._ended = threading.Event()
        self._runner = OwnThread(self._run, "hdphrs-sender")

    @property
    def ident(self) -> int | None:
        """Of its thread, once that has begun."""
        return self._runner.ident

    def start(self) -> None:
        """Begin, as soon as there is room for a thread, unless it has begun.

        Raises:
            RuntimeError: there was none for a while.
        """
        if self._runner.ident is None:
            start_thread(self._runner)

    def post(self, message: list[Any]) -> None:
        """This is to be sent, too."""
        try:
            if message[0] in TASKS:
                self.is_stale = True
            self._posted.append(message)
            self.wake()
        except BaseException:  # a signal handler has raised, perhaps when it was posted and nobody knew
            self.wake()
            raise

    def send(self, future: CallFuture[Any]) -> bool:
        """Send a call at once, in the thread that has spawned it, if there is nothing else to send; whether it has.

        What the listener wants to hear goes the other way, so the sender must be about to ask for that.
        """
        # In this order: what the call needs was posted, and has been sent if the sender is asleep after that.
        if self._posted or not self._asleep or not self._listener.unsure:
            return False
        if not self._calls.is_idle or self._outlook.has_changed():  # in this order: the latter takes longer
            return False
        item = self._calls.send(future)
        if item is None:
            return False
        message = [local.EXPORT, [item]]
        try:
            if not self._link.send_at_once(message):
                self.post(message)
        except OSError as error:
            self._failed(error)
        return True

    def wake(self) -> None:
        """There may be something to send.  Any thread may say so, the more often the better."""
        if self._asleep:
            self._bell.put(None)

    def end(self, deadline_s: float) -> bool:
        """Send what was posted, and that the program has ended; wait for that so long, whether it has happened."""
        self.post([local.BYE])
        return self._ended.wait(deadline_s)

    def _run(self) -> None:
        while not self._ended.is_set():
            self._sleep()
            self._tidy()
            released = self._released()
            # In this order: nothing overtakes its code, nor a cancellation what it cancels.
            exported = list(self._calls.take(BATCH_MAX))
            posted = []
            with suppress(IndexError):
                while True:
                    posted.append(self._posted.popleft())
            messages = list(_together(posted, exported))
            if self.is_stale:  # in this order: what is spawned from here on is looked out for again
                self.is_stale = False
                news = self._outlook.news()
                if news is not None:
                    messages.insert(0, [local.CODE, *news])
            if released:
                messages.append([local.RELEASE, released])
            wanted = self._listener.wanted()
            if wanted is not None:
                messages.insert(0, wanted)
            if messages:
                try:
                    self._link.send(*messages)
                except OSError as error:
                    self._failed(error)
            if [local.BYE] in posted:
                self._ended.set()
            del exported, posted, messages  # they may be large, and the next ones far

    def _failed(self, error: OSError) -> None:
        if not isinstance(error, ConnectionError):  # else the receiver sees the end of the link too
            self._lose()

    def _sleep(self) -> None:
        """Until there may be something to send."""
        self._asleep = True
        self._tidy()
        if not self._posted and not self._calls.are_due:
            with suppress(Empty):
                self._bell.get(timeout=LOOK_S if self._listener.unsure else None)
        self._asleep = False
        for _ in range(self._bell.qsize()):
            self._bell.get()


def _together(posted: Iterable[list[Any]], exported: list[list[Any]]) -> Iterator[list[Any]]:
    """What was posted, around the exports: code before them."""
    codes = [message for message in posted if message[0] == local.CODE]
    yield from codes
    yield from ([local.EXPORT, chunk] for chunk in local.chunks(exported, local.exported_bytes))
    for kind, group in groupby((message for message in posted if message[0] != local.CODE), lambda one: one[0]):
        if kind == local.EXPORT:
            items = (item for _, [item] in group)
            yield from ([local.EXPORT, chunk] for chunk in local.chunks(items, local.exported_bytes))
        elif kind == local.CANCEL:
            yield [local.CANCEL, [slot for _, slots in group for slot in slots]]
        else:
            yield from group
