"""Who reads the link of a program: its receiver, or a thread that waits for a result (decision 24).

What lives here: the part of the reader, and how it changes hands.  What does not: what is done with messages.

Theory of operation
-------------------

Whoever has put its token into `_part` reads, and nobody else.  Mostly that is the receiver.  When a thread waited
while it has heard a message that the thread could have taken, it steps back, and rests: the next thread that waits
reads for itself, which saves two changes of threads in each round trip.  When nobody has read for a moment, or
something has come that a waiting thread does not take, or somebody waits who cannot read, the receiver has the part
again.

A signal handler may interrupt a waiting thread anywhere, and raise, as Ctrl-C does.  So its token has locks that
it holds in a `with`: those of a thread that has left without giving the part back are not locked.  Such a thread reads
in one step (`Link.catch`), and what it has read stays in the link until it is dealt with, if need be by the receiver.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, get_ident
from typing import Any, Final, NamedTuple

from hdphrs.wire import local

REST_S: Final = 2e-3
"""For so long the receiver leaves the link to threads that may wait again."""

Messages = list[list[Any]]


class _Token(NamedTuple):
    """Of a thread that reads; it holds both locks as long as it does."""

    held: Lock
    """Nobody else ever takes this one."""
    gate: Lock
    """Here others wait until the thread has left."""


class Reader:
    """That of one program."""

    def __init__(
        self,
        link: local.Link,
        hear: Callable[[Messages], bool],
        take: Callable[[Messages], bool],
        is_needed: Callable[[], bool],
        nudge: Callable[[], None],
    ) -> None:
        """
        Args:
            hear: deals with messages in the receiver; whether a waiting thread could have done it.
            take: deals with messages in a waiting thread; False if they are for the receiver.  It may be interrupted,
                and called again, or `hear`, with the same messages.
            is_needed: whether somebody waits who cannot read.
            nudge: has the node send a message.
        """
        self._link = link
        self._hear = hear
        self._take = take
        self._is_needed = is_needed
        self._nudge = nudge
        self._receiver = _Token(Lock(), Lock())
        """Its token."""
        self._part: dict[None, _Token] = {None: self._receiver}
        self._tokens: dict[int, _Token] = {}
        """By waiting thread, the last one."""
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._resting = False
        self._stood_in = False
        """The receiver has the part while a thread waits that could read itself."""
        self._reads = 0
        """How often waiting threads have had the part."""
        self._closed = False

    # ---- the threads of the program ---------------------------------------------------------------------------

    @property
    def is_lent(self) -> bool:
        """Whether a waiting thread has the part, and sees nothing else."""
        return self._part.get(None, self._receiver) is not self._receiver

    def read_until(self, is_here: Callable[[], bool]) -> bool:
        """Read in this thread, unless somebody else does, until that is the case; whether it is.  If not, the receiver
        reads on."""
        me = get_ident()
        outer = self._tokens.get(me)
        if outer is not None and outer.held.locked() and self._part.get(None) is outer:
            return self._read_within(is_here)
        if self._closed:
            return False
        token = self._tokens[me] = _Token(Lock(), Lock())
        with token.gate, token.held:
            if self._part.setdefault(None, token) is not token:
                self._stood_in = True
                return False
            self._reads += 1
            while not (came := is_here()) and self._read():
                pass
            self._part.clear()
        if came or is_here():
            return True
        self.stir()
        return False

    def stir(self) -> None:
        """Something may come that no waiting thread reads for itself."""
        if self._resting:
            self._bell.put(None)

    def close(self) -> None:
        """From now on only the receiver reads."""
        self._closed = True
        self.stir()

    def _read(self) -> bool:
        try:
            messages = self._link.catch()
        except OSError:
            return False
        if messages is None or not self._take(messages):
            return False
        self._link.drop()
        return True

    def _read_within(self, is_here: Callable[[], bool]) -> bool:
        """In a signal handler, whose thread has the part: nobody else can read."""
        while not is_here():
            try:
                messages = self._link.receive(block=True)
            except OSError:
                return False
            if messages is None:
                return False
            self._hear(messages)
        self._nudge()  # what was read may have been what the thread is going to wait for
        return True

    # ---- the receiver ------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Read whenever no waiting thread does, until the node is gone; in the receiver."""
        while True:
            self._take_part()
            try:
                messages = self._link.receive(block=True)
            except OSError:  # this program has closed its descriptor
                return
            if messages is None:
                return
            simple = self._hear(messages)
            del messages  # they may be large, and the next ones far
            if simple and self._stood_in and not self._closed and not self._is_needed():
                self._stood_in = False
                self._part.clear()
                self._rest()

    def _take_part(self) -> None:
        while (token := self._part.setdefault(None, self._receiver)) is not self._receiver:
            with token.gate:  # when its thread leaves
                if self._part.get(None) is token:  # that was interrupted, and nobody else puts it back
                    self._part.clear()

    def _rest(self) -> None:
        """Until nobody has taken the part for a moment, or the receiver is wanted."""
        self._resting = True
        before = -1
        while before != self._reads and not self._closed:
            before = self._reads
            with suppress(Empty):
                self._bell.get(timeout=REST_S)
                break
        self._resting = False
        while not self._bell.empty():
            self._bell.get()
