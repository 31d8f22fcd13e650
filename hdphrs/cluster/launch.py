"""`hdphrs run`: starts everything, watches it, and leaves nothing behind.

    launcher ── leash ──▶ root node ◀── program link ──▶ program ◀── leash ── launcher
        ├───── leash ──▶ node, node, ...        (this host; forked by the root, unless a Python is named for them)
        └── ssh, leash ─▶ node, node, ...        (other hosts)

The launcher is one thread around one selector: signals and dead children wake it through a pipe.  It makes the
sockets between root and program, and the one that the root listens on, before anybody is started; so every address is
known beforehand and processes start side by side.  It uses neither trio nor TLS: what it imports delays the start
of everything.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from hdphrs.cluster.addresses import listen
from hdphrs.cluster.briefing import RootDescriptors, brief_nodes
from hdphrs.cluster.forked import ForkedNode, can_be_forked
from hdphrs.cluster.lines import LineReader
from hdphrs.cluster.nodes import LocalNode, Node, RemoteNode, describe_status
from hdphrs.cluster.options import RunOptions
from hdphrs.cluster.orphans import taking_on
from hdphrs.cluster.plan import NodePlan
from hdphrs.cluster.program import forget_outer_run, start_program
from hdphrs.cluster.relay import Relay
from hdphrs.cluster.returns import Returns
from hdphrs.cluster.signals import wakened_by_signals
from hdphrs.config import EXIT_S, JOIN_DEADLINE_S, LEDGER_END_S
from hdphrs.errors import StartError
from hdphrs.wire.files import allow_many
from hdphrs.wire.settings import FAILED, READY, TOLD_STATUS, NodeSettings

START_DEADLINE_S = JOIN_DEADLINE_S + 5.0
"""Our own patience, longer than that of the nodes, which know better what keeps them."""
END_S_MAX = 1.5
"""How long nodes may take to end by themselves after the program has ended."""
AFTER_ROOT_S_MAX = 0.5
"""How long of that after the root node has ended, which waits for the others."""
FAREWELL_S_MAX = 0.5
"""How long a program may take to end by itself after the root node died, and again after SIGTERM; and whoever reads
what we show to read the rest of it."""
UNREAD_S_MAX = 5.0
"""How long a run that has ended waits for whoever reads what tasks on other hosts have printed, and takes nothing; when
it was told to end, it does not."""

ROOT_LOST_STATUS = 1
"""Exit status of a program that the loss of the root node has ended."""


class Saboteur(Protocol):
    """Somebody who wants nodes dead (test mode)."""

    @property
    def next_s(self) -> float | None:
        """When to call `strike` next, in seconds after all nodes have joined; None: never again."""

    def ready(self) -> None:
        """All nodes have joined."""

    def strike(self, elapsed_s: float, nodes: Sequence[Node]) -> None:
        """Do what is due at this time."""


ORDERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a program on somebody's order."""


class Launcher:
    """One run of a program; must be used in the main thread."""

    def __init__(self, options: RunOptions, saboteur: Saboteur | None) -> None:
        self._options = options
        self._saboteur = saboteur
        self._selector = selectors.DefaultSelector()
        self._relay = Relay(self._selector)
        root, *others = options.nodes
        self._forked = [can_be_forked(plan, root) for plan in others]
        """Which of the nodes after the root that forks."""
        self._nodes: list[Node] = []
        """In the order of the plan."""
        self._settings: list[NodeSettings] = []
        self._returns = Returns(options.rejoin_s, self._start_again, options.say)
        self._unborn: deque[ForkedNode] = deque()
        """Those that the root is to fork, in this order."""
        self._program: subprocess.Popen[bytes] | None = None
        self._early_signals: list[int] = []
        """Those that came before there was a program, Ctrl-C too."""
        self._leash: int | None = None
        self._status_fd: int | None = None
        self._status: LineReader | None = None
        """What the root says to us."""
        self._why: str | None = None
        """Why the root has ended, in its own words."""
        self._ready_at_s: float | None = None
        self._end_at_s: float | None = None
        self._told_to_end = False
        self._root_lost_first = False
        self.loss: str | None = None
        """After `run`: who died that the program could not go on without, in a few words; None if nobody did."""

    def run(self) -> int:
        """Run the program on its nodes, from start to nothing left.

        Returns:
            The program's exit status; -N if signal N ended it.

        Raises:
            StartError: a node could not be started, or not all joined in time; everything has been ended.
        """
        forget_outer_run()
        allow_many()
        with (
            wakened_by_signals(self._on_signal, ORDERS) as wakeup,
            self._selector,
            contextlib.ExitStack() as until_ready,
        ):
            self._selector.register(wakeup, selectors.EVENT_READ, lambda: os.read(wakeup, 4096))
            try:
                if any(self._forked) and not until_ready.enter_context(taking_on()):
                    self._forked = [False for _ in self._forked]
                program = self._start()
                if not self._await_ready(program):
                    return program.returncode
                until_ready.close()
                return self._watch(program)
            finally:
                self._clean_up()

    # ---- starting

    def _start(self) -> subprocess.Popen[bytes]:
        ours, theirs = socket.socketpair()
        self._status_fd, writing = os.pipe()
        plans = self._options.nodes
        several = len(plans) > 1
        remote = any(plan.remote for plan in plans)
        leashes = [os.pipe() if forked else None for forked in self._forked]
        root = RootDescriptors(
            program=theirs,
            status=writing,
            listener=listen(beyond_loopback=remote) if several else None,
            leashes=tuple(leash[0] for leash in leashes if leash),
        )
        self._status = LineReader(self._status_fd, self._hear_root)
        self._selector.register(self._status_fd, selectors.EVENT_READ, self._read_status)
        with ours, contextlib.closing(root):
            settings = self._settings = brief_nodes(self._options, root)
            others = list(zip(plans[1:], settings[1:], leashes, strict=True))
            self._unborn.extend(ForkedNode(plan, told, leash[1]) for plan, told, leash in others if leash)
            forked = iter(list(self._unborn))
            self._nodes.append(LocalNode(plans[0], settings[0], root.numbers))
            leash, self._leash = os.pipe()
            try:
                self._program = start_program(
                    self._options.program, self._options.args, self._options.seed, ours.fileno(), leash
                )
            finally:
                os.close(leash)
            for number in self._early_signals:
                self._program.send_signal(number)
            for plan, told, has_leash in others:
                self._nodes.append(next(forked) if has_leash else self._start_other(plan, told))
        if self._options.verbose:
            for node, plan in zip(self._nodes, plans, strict=True):
                self._options.say(f"started {node.label}, {plan.slots or 'all'} schedulers")
            self._options.say(f"the seed of this run is {self._options.seed}; --seed {self._options.seed} repeats it")
        return self._program

    def _start_other(self, plan: NodePlan, settings: NodeSettings) -> Node:
        if plan.remote:
            return RemoteNode(plan, settings, self._options.ssh, self._selector, self._relay)
        return LocalNode(plan, settings)

    def _start_again(self, place: int) -> RemoteNode:
        """The node of another host, whose ssh has ended."""
        self._nodes[place].destroy()
        settings = replace(self._settings[place], comeback=True)
        node = RemoteNode(self._options.nodes[place], settings, self._options.ssh, self._selector, self._relay)
        self._nodes[place] = node
        return node

    def _await_ready(self, program: subprocess.Popen[bytes]) -> bool:
        """Wait until all nodes have joined; False if the program has ended before."""
        deadline_s = time.monotonic() + START_DEADLINE_S
        while self._ready_at_s is None:
            self._pump(deadline_s - time.monotonic())
            self._pump(0.0)  # whoever has ended in the meantime, what it had said before is heard first
            if self._ready_at_s is not None:
                break
            root, *others = self._nodes
            if root.returncode or self._why:
                raise StartError(self._why or root.why_not_started())
            if program.returncode is not None:
                return False
            for node in (root, *others):
                if node.returncode is not None:
                    raise StartError(node.why_not_started())
            if time.monotonic() >= deadline_s:
                where = ", ".join(dict.fromkeys(plan.host for plan in self._options.nodes))
                raise StartError(f"not all nodes joined within {START_DEADLINE_S:g} s (hosts: {where})")
        for node in self._nodes:
            node.ready()
        if self._saboteur is not None:
            self._saboteur.ready()
        return True

    def _read_status(self) -> None:
        assert self._status is not None
        assert self._status_fd is not None
        if not self._status.read():
            self._selector.unregister(self._status_fd)

    def _hear_root(self, line: bytes) -> None:
        word = line.decode().rstrip()
        if word == READY:
            self._ready_at_s = time.monotonic()
        elif word.startswith(FAILED):
            self._why = word.removeprefix(FAILED).strip()
        else:
            self._unborn.popleft().begin(int(word))

    # ---- watching

    def _watch(self, program: subprocess.Popen[bytes]) -> int:
        """Wait for the program's end; its exit status, or that of a run whose root died."""
        root, *others = self._nodes
        self._tell_deaths(others)  # what happens between the root's word and this wakes nobody any more
        while program.returncode is None:
            waits = [wait_s for wait_s in (self._until_next_kill(), self._returns.wait_s) if wait_s is not None]
            self._pump(min(waits, default=None))
            if root.returncode:
                return self._root_lost(program)
            self._strike()
            self._tell_deaths(others)
            if program.returncode is None:
                self._returns.look(self._nodes)
        return program.returncode

    def _tell_deaths(self, living: list[Node]) -> None:
        """The root tells what a death means for the run; how a node died, only we know."""
        for node in [node for node in living if node.returncode]:
            living.remove(node)
            if self._options.verbose:
                self._options.say(f"{node.label} died ({describe_status(node.returncode or 0)})")

    def _until_next_kill(self) -> float | None:
        if self._saboteur is None or self._saboteur.next_s is None or self._ready_at_s is None:
            return None
        return max(0.0, self._ready_at_s + self._saboteur.next_s - time.monotonic())

    def _strike(self) -> None:
        if self._until_next_kill() == 0.0 and self._saboteur is not None and self._ready_at_s is not None:
            self._saboteur.strike(time.monotonic() - self._ready_at_s, self._nodes)

    def _root_lost(self, program: subprocess.Popen[bytes]) -> int:
        """The root is dead and with it all that the program waits for; the exit status, never 0."""
        self._root_lost_first = True
        self._let_go_of_others()
        self._end_at_s = time.monotonic() + END_S_MAX
        self._say_root_lost()
        for end in (None, program.terminate, program.kill):
            if end is not None:
                end()
            if self._pump_until(lambda: program.returncode is not None, FAREWELL_S_MAX):
                break
        return max(program.returncode or 1, 1)

    def _let_go_of_others(self) -> None:
        """The root is gone for good: without a leash they do not try to join it again."""
        for node in self._nodes[1:]:
            node.release()

    def _say_root_lost(self) -> None:
        """Unless it is said with what is done about it."""
        if not self._options.restarts_max or self._nodes[0].returncode == TOLD_STATUS:
            self._options.say(f"{self._why or self._fate_of_root()}; the program cannot go on")

    def _fate_of_root(self) -> str:
        root = self._nodes[0]
        told = root.returncode == TOLD_STATUS
        return f"the {root.label} {'was told to end' if told else f'died ({describe_status(root.returncode or 0)})'}"

    # ---- ending

    def _judge(self) -> None:
        """Whether the program has come to its own end, or has been lost; before anything is ended by force."""
        program, root = self._program, self._nodes[0].returncode if self._nodes else None
        if program is None or program.returncode in (None, 0) or self._told_to_end:
            return
        root_lost_last = bool(root) and program.returncode == ROOT_LOST_STATUS and not self._root_lost_first
        if root_lost_last and self._ready_at_s is not None:
            self._say_root_lost()  # its links are closed before it has ended, and the program has seen that first
        if root == TOLD_STATUS:
            return
        if self._root_lost_first or root_lost_last:
            self.loss = self._fate_of_root()
        elif program.returncode < 0 and -program.returncode not in ORDERS:
            self.loss = f"the program was {describe_status(program.returncode)}"

    def _clean_up(self) -> None:
        """End everything that is still there; after a failure to start at once, else after a moment."""
        if self._program is None or self._program.poll() is None:  # not started, or not to be
            self._end_at_s = time.monotonic()
            if self._program is not None:
                self._program.kill()
                self._program.wait()
        if self._leash is not None:
            os.close(self._leash)
        self._await_reader()
        if self._end_at_s is None:
            end_s = END_S_MAX if self._options.ledger is None else LEDGER_END_S
            self._end_at_s = time.monotonic() + end_s + EXIT_S
        self._pump_until(lambda: self._ended(self._nodes[:1]), self._end_at_s - time.monotonic())
        if self._nodes and self._nodes[0].returncode:
            self._let_go_of_others()
        within_s = min(AFTER_ROOT_S_MAX + EXIT_S, self._end_at_s - time.monotonic())
        self._pump_until(lambda: self._ended(self._nodes), within_s)
        self._judge()
        for node in (*self._unborn, *self._nodes):
            node.release()
        for node in self._nodes:
            node.destroy()
            if self._status is not None:
                self._status.read()  # whom the root, the first of them, had forked when it ended
        if self._status_fd is not None:
            os.close(self._status_fd)
        self._await_reader()
        self._pump_until(lambda: self._relay.is_empty, FAREWELL_S_MAX)
        self._relay.close()

    def _await_reader(self) -> None:
        """As long as somebody reads what nodes on other hosts have printed, however slowly."""
        taken = -1
        while not self._told_to_end and taken != self._relay.written:
            taken = self._relay.written
            self._pump_until(lambda: self._relay.is_empty or self._told_to_end, UNREAD_S_MAX)

    def _ended(self, nodes: Sequence[Node]) -> bool:
        return all(node.returncode is not None for node in nodes)

    # ---- the loop

    def _pump(self, timeout_s: float | None) -> None:
        """Wait for something to happen, serve it, and look who has ended."""
        for key, _ in self._selector.select(None if timeout_s is None else max(0.0, timeout_s)):
            key.data()
        for node in self._nodes:
            node.poll()
        if self._program is not None:
            self._program.poll()

    def _pump_until(self, done: Callable[[], bool], within_s: float) -> bool:
        deadline_s = time.monotonic() + within_s
        while not done():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return False
            self._pump(left_s)
        return True

    def _on_signal(self, number: int) -> None:
        """Ctrl-C reaches the program without us; what is meant for us alone is handed on to it."""
        self._told_to_end = True
        if self._program is None:
            self._early_signals.append(number)
        elif number != signal.SIGINT:
            self._program.send_signal(number)  # does nothing if it has been waited for
