"""What runs in a scheduler, and who has the core next.

What lives here: the root of the running stack, leaving that stack where it is, and turns: a task that has had the core
for a while lets others have it at its next spawn.  What does not: the stacks themselves (`stacks.py`), and the loop
that runs tasks on them (`hub.py`).
"""

from __future__ import annotations

import threading
from time import perf_counter

from greenlet import getcurrent

from hdphrs.api import future as fast
from hdphrs.api.options import use
from hdphrs.scheduler.assigned import Assigned
from hdphrs.scheduler.bundles import Bundle, Bundles
from hdphrs.scheduler.dialogue import Dialogue
from hdphrs.scheduler.helper import Helper
from hdphrs.scheduler.links import Links
from hdphrs.scheduler.meter import Account, Meter
from hdphrs.scheduler.note import Noter
from hdphrs.scheduler.stacks import Stacks
from hdphrs.scheduler.stop import Stopper
from hdphrs.scheduler.timers import Timers
from hdphrs.scheduler.waiting import Waiting
from hdphrs.scheduler.watch import Watcher
from hdphrs.wire.page import NOTHING, Line

TURN_S = 20e-3
"""How long a stack has the core before the helper thread, at its next tick, has it let others have theirs."""


class Turn:
    """That of one scheduler, made by its main thread."""

    def __init__(
        self,
        line: Line,
        links: Links,
        meter: Meter,
        stacks: Stacks,
        waiting: Waiting,
        timers: Timers,
        watcher: Watcher,
        noter: Noter | None,
        *,
        explain: bool,
    ) -> None:
        self.root: Assigned | None = None
        """Of the running stack, if one runs: what the node has handed over."""
        self.is_over: bool = False
        """Whether the running task has had the core for a while, and others are to have theirs at its next spawn."""
        self._line = line
        self._links = links
        self._meter = meter
        self._stacks = stacks
        self._waiting = waiting
        self._timers = timers
        self._watcher = watcher
        self._noter = noter
        self._explain = explain
        self._thread = threading.get_ident()

    def meet(self, bundles: Bundles, stopper: Stopper, dialogue: Dialogue, helper: Helper) -> None:
        """Those that need this, and that this needs: before anything runs."""
        self._bundles = bundles
        self._stopper = stopper
        self._dialogue = dialogue
        dialogue.on_first = self.interrupt
        self._helper = helper

    @property
    def is_main_thread(self) -> bool:
        """Whether the caller is in the thread that runs the tasks."""
        return threading.get_ident() == self._thread

    @property
    def owed(self) -> int:
        """How many of the newest sparks begin before whatever is ready."""
        return self._dialogue.first

    def enter(self, root: Assigned | None, account: Account | None, at_s: float | None = None) -> None:
        """From now on a stack runs that has this root, or none; or since a moment ago, by `perf_counter`."""
        if root is None and self.root is not None:
            self._links.check()
            self._links.last = self.root.serial
        self.root = root
        self._meter.enter(account, at_s)
        self.mark()
        if root is None:
            self._watcher.leave()
        else:
            self._helper.stir()

    def mark(self) -> None:
        """In the page: what runs, and whether it is to be asked at each spawn."""
        root = self.root
        if root is None:
            self._line.run(0, careful=False, again=False)
        else:
            asked = use.begun or (self._noter is not None and self._noter.on) or bool(self._stopper.stopping)
            again = asked or root.reuse is not None or self._explain
            self._line.run(root.serial, careful=root.careful, again=again)

    def suspend(self) -> None:
        """Leave the running task where it is until somebody has its greenlet go on."""
        task = fast.here.task, self.root, self._meter.account, self._watcher.leave()
        label = self._line.unpickle(NOTHING)  # a value may wait in the middle of being unpickled
        if isinstance(self.root, Bundle):
            self._bundles.pass_on(self.root)
        if self._timers.calls:
            self._helper.hurry()
        self.enter(None, None)
        own = fast.isolation.suspend() if fast.isolates else None
        self._stacks.suspend()
        if fast.isolates:
            fast.isolation.resume(own)
        fast.here.task, root, account, sample = task
        self.enter(root, account)
        self._line.unpickle(label)
        self._watcher.resume(sample)

    def give_way(self) -> None:
        """The running task spawns: those whose time has come go on before it, and others if it has had its turn."""
        if not self.is_main_thread:
            return
        self._timers.fire()
        if self.is_over:
            self.is_over = False
            self.mark()
            self._dialogue.receive(block=False)
            self._waiting.look()
        if self._dialogue.first:
            self.is_over = False  # that is what it was about
        if self._stacks.ready or self._dialogue.first:
            self._stacks.ready.append(getcurrent())
            self.suspend()
            self._stopper.check()

    def end(self) -> bool:
        """In the helper thread: if what runs has had the core for a while, and there are others, they have theirs at
        its next spawn; whether that is so."""
        runs_s = 0.0 if self._meter.account is None else perf_counter() - self._meter.stack_since_s
        if not self._stacks.aside or runs_s < TURN_S:
            return False
        self.interrupt()
        return True

    def interrupt(self) -> None:
        """In any thread: others are to have the core at the next spawn of what runs."""
        self.is_over = True
        self._line.again()
