"""The ledger as the root uses it: what is asked of it when the program makes tasks, and what is written to it.

What lives here: `Book`, which stands between the program and the core.  A task whose call is in the ledger never gets
to the core; one of which an earlier run has left parts gets there behind these parts.  What becomes of results that
arrive is none of the core's business either: they are noted, and written in batches by another thread.

Nothing in here can end a run.  A ledger that cannot be used is turned off, with one line.  One that cannot be written
is still read, with one line, and one at the end that says how much is not in it.  Damage is told of once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import trio

from hdphrs.config import LEDGER_COST_S, CoreConfig
from hdphrs.errors import LedgerError
from hdphrs.ledger import Entry, Label, Store, open_store
from hdphrs.node.threads import run_in_thread
from hdphrs.protocol.events import Cancelled, Event, Exported, Kept, Placed
from hdphrs.protocol.paths import first_index
from hdphrs.protocol.pieces import is_keen, is_memo
from hdphrs.protocol.tasks import PROGRAM, Outcome, Piece, Task, Verdict
from hdphrs.wire.bulk import bulk_of

T = TypeVar("T")

BATCH_S = 0.1
"""How long results wait for others; what is killed loses no more than this."""

CLOSE_S = 10.0
"""How long the end of a run waits until all is written."""

PENDING_BYTES_MAX = 64 << 20
"""Results that wait to be written; if it is more, the store is too slow for this run, and misses some."""

RETRY_S = 5.0
"""How long results wait when the store could not be written, until that is tried once more."""

READ_MAX = 256
"""Entries that are read at a time."""

COUNTERS = ("ledger_hits", "ledger_parts", "ledger_written", "ledger_missed", "ledger_unsigned")


class Book:
    """The ledger of one run."""

    def __init__(
        self,
        location: str,
        bytes_max: int,
        *,
        handle: Callable[[Sequence[Event]], None],
        deliver: Callable[[int, Outcome], None],
        say: Callable[[str], None],
        counters: dict[str, int],
        key: bytes | None = None,
    ) -> None:
        """
        Args:
            location: a directory or a URL.
            handle: takes events for the core.
            deliver: fills a future of the program.
            say: prints a line for the user.
            counters: where to count.
            key: as for `open_store`.
        """
        self._location = location
        self._bytes_max = bytes_max
        self._handle = handle
        self._deliver = deliver
        self._say = say
        self._counters = counters
        self._key = key
        counters.update(dict.fromkeys(COUNTERS, 0))
        self._store: Store | None = None
        self._one_at_a_time = trio.CapacityLimiter(1)
        self._said: set[str] = set()
        """Matters of which one line is enough."""
        self._is_refused = False
        """Whether the store could not be written the last time."""
        self._shelves = Shelves(())
        self._tasks: dict[int, Task] = {}
        """By slot, those of the program that run."""
        self._tops: dict[bytes, bytes] = {}
        """Their memos, by path."""
        self._pending: list[Entry] = []
        self._pending_bytes = 0
        self._spoilt: list[bytes] = []
        """Keys of results that take down who unpickles them, which are to go."""
        self._noted = trio.Event()
        self._nursery: trio.Nursery | None = None
        self.opened: trio.Event = trio.Event()

    # ---- life ------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        """Open the store, and find out what is there."""

        def find() -> tuple[Store, list[Label]]:
            store = open_store(self._location, self._bytes_max, self._complain, key=self._key)
            return store, store.labels()

        found = await self._do(find)
        if found is not None:
            self._store, labels = found
            self._shelves = Shelves(labels)

    async def run(self) -> None:
        """Serve until cancelled; the program may begin when it has `opened`."""
        await self._open()
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self.opened.set()
            while True:
                await self._noted.wait()
                await trio.sleep(RETRY_S if self._is_refused else BATCH_S)
                await self._write()

    async def close(self) -> None:
        """Write what is left."""
        with trio.move_on_after(CLOSE_S) as scope:
            await self._write()
            store, self._store = self._store, None
            if store is not None:
                await self._do(store.close)
        if scope.cancelled_caught:
            self._say(f"the ledger {self._location} is too slow: the last results are not in it")
        self._counters["ledger_missed"] += len(self._pending)
        missed = self._counters["ledger_missed"]
        if missed:
            results = "1 result" if missed == 1 else f"{missed} results"
            self._say(f"{results} of this run could not be written to the ledger {self._location}")

    # ---- the program's tasks ---------------------------------------------------------------------------------

    def admit(self, events: Iterable[Event]) -> None:
        """Events from the program: hold back the tasks that the ledger knows something of, pass on all else."""
        passed: list[Event] = []
        for event in events:
            match event:
                case Exported(origin, tasks):
                    new = tuple((slot, task) for slot, task in tasks if not self._holds(slot, task, None))
                    if new:
                        passed.append(Exported(origin, new))
                case Placed(_, slot, task, _):
                    if not self._holds(slot, task, event):
                        passed.append(event)
                case Cancelled(_, slots):
                    for slot in slots:
                        self._tasks.pop(slot, None)
                    passed.append(event)
                case _:
                    passed.append(event)
        if passed:
            self._handle(passed)

    def _holds(self, slot: int, task: Task, placed: Placed | None) -> bool:
        if not task.memo or self._store is None:
            return False
        self._tasks[slot] = task
        self._tops[task.path] = task.memo
        keys = self._shelves.of(task)
        if not keys:
            return False
        assert self._nursery is not None
        self._nursery.start_soon(self._recall, slot, task, placed, keys)
        return True

    async def _recall(self, slot: int, task: Task, placed: Placed | None, keys: list[bytes]) -> None:
        """Read what there is of a task; then it is finished, or goes to the core with its parts."""
        if keys == [task.memo]:
            entries = await self._read(keys)
            if slot not in self._tasks:
                return  # it was cancelled meanwhile
            if entries:
                del self._tasks[slot]
                self._counters["ledger_hits"] += 1
                self._deliver(slot, _outcome(entries[0]))
                return
            self._shelves.forget(task.memo)
            keys = self._shelves.of(task)
        size = 0
        for start in range(0, len(keys), READ_MAX):
            asked = keys[start : start + READ_MAX]
            entries = await self._read(asked)
            for key in {*asked} - {entry.key for entry in entries}:
                self._shelves.forget(key)
            size += sum(len(entry.data) for entry in entries)
            self._counters["ledger_parts"] += len(entries)
            self._handle([Kept(tuple(_piece(entry, task) for entry in entries))])
            if size > CoreConfig().pieces_bytes_max:
                break
        if slot in self._tasks:
            self._handle([Exported(PROGRAM, ((slot, task),)) if placed is None else placed])

    async def _read(self, keys: Sequence[bytes]) -> list[Entry]:
        store = self._store
        if store is None:
            return []
        entries = await self._do(partial(_fetch, store, keys)) or []
        self._counters["ledger_unsigned"] = store.unsigned
        if store.unsigned and not self._said_before("unsigned"):
            self._say(f"the ledger {self._location} holds entries without the signature of its key; they are not used")
        return entries

    # ---- results ---------------------------------------------------------------------------------------------

    def on_outcome(self, slot: int, outcome: Outcome) -> None:
        """A task of the program has ended."""
        task = self._tasks.pop(slot, None)
        if task is None or outcome.verdict is not Verdict.VALUE:
            return
        if is_keen(task.memo) or outcome.cost_s >= LEDGER_COST_S:
            self._note(Entry(task.memo, task.memo, task.path, task.name, outcome.cost_s, outcome.data))

    def on_piece(self, piece: Piece) -> None:
        """The core keeps this from now on."""
        if is_memo(piece.check) and piece.outcome.verdict is Verdict.VALUE:
            top = self._tops.get(first_index(piece.path), b"")
            self._note(Entry(piece.check, top, piece.path, "", piece.outcome.cost_s, piece.outcome.data))

    def on_discard(self, piece: Piece) -> None:
        """It has taken down who unpickled it: no later run is to find it."""
        key = piece.check
        if self._store is None or key not in self._shelves:
            return
        self._shelves.forget(key)
        self._pending = [entry for entry in self._pending if entry.key != key]
        self._pending_bytes = sum(len(entry.data) for entry in self._pending)
        self._spoilt.append(key)
        self._noted.set()

    def _note(self, entry: Entry) -> None:
        if self._store is None or entry.key in self._shelves:
            return
        if self._pending_bytes > PENDING_BYTES_MAX:
            self._counters["ledger_missed"] += 1
            return
        self._shelves.add(entry.key)
        self._pending.append(entry)
        self._pending_bytes += len(entry.data)
        self._noted.set()

    async def _write(self) -> None:
        batch, self._pending, self._pending_bytes, self._noted = self._pending, [], 0, trio.Event()
        spoilt, self._spoilt = self._spoilt, []
        store = self._store
        if store is None or not (batch or spoilt):
            return
        try:
            if spoilt:  # before what is new, which may be one of them, computed again
                await self._in_turn(partial(store.remove, spoilt))
                spoilt = []
            if batch:
                await self._in_turn(partial(store.write, batch))
        except LedgerError as error:
            if not self._said_before("refused"):
                self._say(f"{error}; this run goes on, and its results are not kept as long as that is so")
            self._is_refused = True
            self._spoilt = spoilt + self._spoilt
            self._pending = batch + self._pending
            self._pending_bytes += sum(len(entry.data) for entry in batch)
            self._noted.set()
        else:
            self._is_refused = False
            self._counters["ledger_written"] += len(batch)

    # ---- the store -------------------------------------------------------------------------------------------

    async def _do(self, action: Callable[[], T]) -> T | None:
        """Do something with the store in another thread; None if that turns out to be impossible."""
        try:
            return await self._in_turn(action)
        except LedgerError as error:
            self._store = None
            self._pending.clear()
            if not self._said_before("off"):  # others may have waited for their turn meanwhile
                self._say(f"{error}; this run goes on without it")
            return None

    async def _in_turn(self, action: Callable[[], T]) -> T:
        return await run_in_thread(action, abandon_on_cancel=True, limiter=self._one_at_a_time)

    def _complain(self, sentence: str) -> None:
        if not self._said_before("damaged"):
            self._say(sentence)

    def _said_before(self, matter: str) -> bool:
        was_said = matter in self._said
        self._said.add(matter)
        return was_said


class Shelves:
    """Which entries there are, by what one knows when one looks for them."""

    def __init__(self, labels: Iterable[Label]) -> None:
        """`labels` come newest first."""
        self._keys: set[bytes] = set()
        self._parts: dict[bytes, list[tuple[bytes, bytes]]] = {}
        """(path, key) of all that belongs to one task of the program."""
        newest: dict[bytes, bytes] = {}
        for label in labels:
            self._keys.add(label.key)
            if label.top and label.top != label.key:
                self._parts.setdefault(label.top, []).append((label.path, label.key))
            newest.setdefault(label.path, label.key)
        self._paths = sorted(newest.items())

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    def add(self, key: bytes) -> None:
        """It is there now; nothing is looked for below it, since whoever made it is running."""
        self._keys.add(key)

    def forget(self, key: bytes) -> None:
        """It is not there after all."""
        self._keys.discard(key)

    def of(self, task: Task) -> list[bytes]:
        """Keys to read: that of the task itself; or those of its parts, made by the same call, or else at its place."""
        if task.memo in self._keys:
            return [task.memo]
        parts = self._parts.get(task.memo)
        if parts is None:
            start = bisect_left(self._paths, (task.path, b"\xff"))
            parts = []
            for path, key in self._paths[start:]:
                if not path.startswith(task.path):
                    break
                if path != task.path:
                    parts.append((path, key))
        chosen: list[bytes] = []
        above: bytes | None = None
        for path, key in sorted(parts):
            if above is None or not path.startswith(above) or not path:
                chosen.append(key)
                above = path or None
        return chosen


def _fetch(store: Store, keys: Sequence[bytes]) -> list[Entry]:
    return [replace(entry, data=bulk_of(entry.data)) for entry in store.read(keys)]


def _outcome(entry: Entry) -> Outcome:
    return Outcome(Verdict.VALUE, entry.data, (), entry.cost_s)


def _piece(entry: Entry, task: Task) -> Piece:
    """The entry as a part of this task, which may have another place in the program than it had."""
    place = task.path + entry.path[len(first_index(entry.path)) :]
    return Piece(place, entry.key, _outcome(entry))
