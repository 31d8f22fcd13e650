"""The ledger between the program and the core."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from hdphrs.errors import LedgerError
from hdphrs.ledger import Entry, Label, open_store
from hdphrs.node.ledger import Book
from hdphrs.protocol.events import Event, Exported, Kept, Learned, Placed
from hdphrs.protocol.paths import child_path
from hdphrs.protocol.tasks import FAIR, KEEN, PROGRAM, ROOT, Outcome, Piece, Task, Verdict

BYTES_MAX = 1 << 20


def memo(number: int, letter: bytes = FAIR) -> bytes:
    """Some memo."""
    return letter + number.to_bytes(20, "big")


def task(slot: int, number: int, letter: bytes = FAIR) -> Task:
    """A task that the program has spawned as its `slot`-th."""
    return Task(f"f{number}", child_path(b"", slot), b"code", b"payload", True, memo(number, letter))


def entry(number: int, top: int, *path: int) -> Entry:
    """What an earlier run has left."""
    place = b""
    for index in path:
        place = child_path(place, index)
    return Entry(memo(number), memo(top), place, "f", 2.0, b"value %d" % number)


def value(number: int, cost_s: float = 2.0) -> Outcome:
    """The value of a task, or of an entry."""
    return Outcome(Verdict.VALUE, b"value %d" % number, (), cost_s)


class Root:
    """A root's driver, as far as the ledger needs one."""

    def __init__(self, location: Path | str, key: bytes | None = None) -> None:
        self.events: list[Event] = []
        self.delivered: dict[int, Outcome] = {}
        self.said: list[str] = []
        self.counters: dict[str, int] = {}
        self.book = Book(
            str(location),
            BYTES_MAX,
            handle=self._handle,
            deliver=self.delivered.__setitem__,
            say=self.said.append,
            counters=self.counters,
            key=key,
        )

    def _handle(self, events: Sequence[Event]) -> None:
        self.events += events

    def run(self, *steps: Callable[[], object]) -> None:
        """Serve, and do these one after the other, each when nothing is left to be done of the last."""

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.book.run)
                await self.book.opened.wait()
                for step in steps:
                    step()
                    await trio.testing.wait_all_tasks_blocked(0.02)
                    while self.book._one_at_a_time.borrowed_tokens:
                        await trio.testing.wait_all_tasks_blocked(0.02)
                await self.book.close()
                nursery.cancel_scope.cancel()

        trio.run(main)


def store(location: Path, *entries: Entry) -> None:
    """Leave these in a ledger."""
    left = open_store(str(location), BYTES_MAX, print)
    left.write(entries)
    left.close()


def left(location: Path) -> dict[bytes, Entry]:
    """What is in a ledger."""
    opened = open_store(str(location), BYTES_MAX, print)
    found = opened.read([label.key for label in opened.labels()])
    opened.close()
    return {one.key: one for one in found}


def test_a_task_that_the_ledger_knows_is_answered_and_never_gets_to_the_core(tmp_path: Path) -> None:
    store(tmp_path, entry(7, 7, 3))
    root = Root(tmp_path)
    known, new, other = task(0, 7), task(1, 8), Learned(b"digest", b"code")
    root.run(lambda: root.book.admit([other, Exported(PROGRAM, ((0, known), (1, new)))]))
    assert root.events == [other, Exported(PROGRAM, ((1, new),))]
    assert root.delivered == {0: value(7)}
    assert root.counters["ledger_hits"] == 1


def test_a_task_of_which_parts_are_left_gets_to_the_core_behind_them_at_whatever_place(tmp_path: Path) -> None:
    parts = entry(10, 7, 3, 0), entry(11, 7, 3, 1), entry(12, 7, 3, 1, 5), entry(13, 9, 4, 1)
    store(tmp_path, *parts)
    root = Root(tmp_path)
    placed = Placed(PROGRAM, 0, task(200, 7), ROOT)
    root.run(lambda: root.book.admit([placed]))
    here = child_path(b"", 200)
    pieces = Piece(child_path(here, 0), memo(10), value(10)), Piece(child_path(here, 1), memo(11), value(11))
    assert root.events == [Kept(pieces), placed]
    assert root.counters["ledger_parts"] == 2


def test_a_task_whose_code_has_changed_may_still_have_parts_that_have_not(tmp_path: Path) -> None:
    store(tmp_path, entry(10, 7, 3, 0), entry(3, 3, 3), entry(13, 9, 4, 1))
    root = Root(tmp_path)
    exported = Exported(PROGRAM, ((0, task(3, 8)),))
    root.run(lambda: root.book.admit([exported]))
    assert root.events == [Kept((Piece(child_path(child_path(b"", 3), 0), memo(10), value(10)),)), exported]


def test_results_that_have_cost_enough_or_are_wanted_are_written(tmp_path: Path) -> None:
    root = Root(tmp_path)
    tasks = tuple((slot, task(slot, slot, KEEN if slot == 2 else FAIR)) for slot in range(4))
    failed = Outcome(Verdict.RAISED, b"oh", (), 5.0)

    def end() -> None:
        for slot, outcome in enumerate([value(0), value(1, 0.0001), value(2, 0.0001), failed]):
            root.book.on_outcome(slot, outcome)
        root.book.on_outcome(99, value(99))
        root.book.on_piece(Piece(child_path(child_path(b"", 1), 5), memo(20), value(20)))
        root.book.on_piece(Piece(child_path(child_path(b"", 1), 6), b"only a check....", value(21)))

    root.run(lambda: root.book.admit([Exported(PROGRAM, tasks)]), end)
    found = left(tmp_path)
    assert found.keys() == {memo(0), memo(2, KEEN), memo(20)}
    assert (found[memo(0)].top, found[memo(20)].top) == (memo(0), memo(1))
    assert (found[memo(0)].name, found[memo(0)].data, found[memo(0)].cost_s) == ("f0", b"value 0", 2.0)
    assert root.counters["ledger_written"] == 3


def test_a_damaged_entry_is_a_miss_with_one_line_and_then_parts_count(tmp_path: Path) -> None:
    store(tmp_path, entry(7, 7, 3), entry(8, 8, 4), entry(10, 7, 3, 0))
    file = tmp_path / "ledger-1.sqlite"
    file.write_bytes(file.read_bytes().replace(b"value 7", b"value 9").replace(b"value 8", b"value 9"))
    root = Root(tmp_path)
    exported = Exported(PROGRAM, ((0, task(0, 7)), (1, task(1, 8))))
    root.run(lambda: root.book.admit([exported]))
    assert root.delivered == {}
    assert [event for event in root.events if isinstance(event, Kept)] == [
        Kept((Piece(child_path(child_path(b"", 0), 0), memo(10), value(10)),))
    ]
    assert {event.tasks[0][0] for event in root.events if isinstance(event, Exported)} == {0, 1}
    (line,) = root.said
    assert "is damaged" in line


def test_a_ledger_that_cannot_be_used_is_turned_off_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    root = Root(tmp_path / "file")
    exported = Exported(PROGRAM, ((0, task(0, 7)),))
    root.run(lambda: root.book.admit([exported]), lambda: root.book.on_outcome(0, value(7)))
    assert root.events == [exported]
    (line,) = root.said
    assert line.endswith("cannot be used: it is no directory; this run goes on without it")
    assert root.counters["ledger_written"] == 0


def test_what_has_taken_down_its_reader_goes_whether_it_was_written_or_not_and_may_come_again(tmp_path: Path) -> None:
    store(tmp_path, entry(10, 7, 3, 0), entry(11, 7, 3, 1))
    root = Root(tmp_path)
    top = child_path(b"", 0)
    pieces = [Piece(child_path(top, index), memo(10 + index), value(10 + index)) for index in range(5)]

    def kill() -> None:
        for piece in pieces[2:]:
            root.book.on_piece(piece)
        for index in (0, 2, 3):
            root.book.on_discard(pieces[index])
        root.book.on_discard(Piece(top, b"only a check....", value(1)))
        root.book.on_piece(pieces[3])

    root.run(lambda: root.book.admit([Exported(PROGRAM, ((0, task(0, 7)),))]), kill)
    assert left(tmp_path).keys() == {memo(11), memo(13), memo(14)}


def test_a_ledger_that_cannot_be_used_removes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    root = Root(tmp_path / "file")
    root.run(lambda: root.book.on_discard(Piece(b"", memo(1), value(1))))
    (line,) = root.said
    assert line.endswith("this run goes on without it")


class Faulty:
    """A store with two entries, which does not do what it is told not to."""

    def __init__(self, *broken: str) -> None:
        self.broken = set(broken)
        self.written: list[Entry] = []
        self.unsigned = 0

    def labels(self) -> list[Label]:
        return [Label(one.key, one.top, one.path) for one in (entry(7, 7, 3), entry(8, 8, 4))]

    def read(self, keys: Sequence[bytes], *, use: bool = True) -> list[Entry]:
        self._try("read")
        return [one for one in (entry(7, 7, 3), entry(8, 8, 4)) if one.key in keys]

    def write(self, entries: Iterable[Entry]) -> None:
        self._try("write")
        self.written += entries

    def close(self) -> None:
        self._try("close")

    def _try(self, action: str) -> None:
        if action in self.broken:
            raise LedgerError(f"the ledger cannot {action}: no space left")


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Faulty:
    """Whatever is opened is this."""
    store = Faulty()
    monkeypatch.setattr("hdphrs.node.ledger.open_store", lambda *_, **__: store)
    return store


def test_what_cannot_be_written_is_still_read_with_one_line_and_the_count_at_the_end(faulty: Faulty) -> None:
    faulty.broken = {"write"}
    root = Root("anywhere")
    new = tuple((slot, task(slot, slot + 20)) for slot in range(3))
    steps = [partial(root.book.on_outcome, slot, value(slot)) for slot in range(3)]
    known = partial(root.book.admit, [Exported(PROGRAM, ((7, task(7, 7)), (8, task(8, 8))))])
    root.run(partial(root.book.admit, [Exported(PROGRAM, new)]), *steps, known)
    assert root.delivered == {7: value(7), 8: value(8)}
    assert root.said == [
        "the ledger cannot write: no space left; this run goes on, and its results are not kept as long as that is so",
        "3 results of this run could not be written to the ledger anywhere",
    ]
    assert (root.counters["ledger_written"], root.counters["ledger_missed"]) == (0, 3)


def test_what_could_not_be_written_for_a_while_is_written_when_it_can(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdphrs.node.ledger.RETRY_S", 0.02)
    faulty.broken = {"write"}
    root = Root("anywhere")
    new = tuple((slot, task(slot, slot + 20)) for slot in range(3))

    async def main() -> None:
        with trio.fail_after(30):
            await serve()

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(root.book.run)
            await root.book.opened.wait()
            root.book.admit([Exported(PROGRAM, new)])
            root.book.on_outcome(0, value(0))
            while not root.said:
                await trio.sleep(0.001)
            root.book.on_outcome(1, value(1))
            faulty.broken = set()
            while len(faulty.written) < 2:
                await trio.sleep(0.001)
            root.book.on_outcome(2, value(2))
            await root.book.close()
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert [one.key for one in faulty.written] == [memo(20), memo(21), memo(22)]
    assert len(root.said) == 1
    assert (root.counters["ledger_written"], root.counters["ledger_missed"]) == (3, 0)


def test_what_waits_for_a_store_that_cannot_be_written_is_bounded(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdphrs.node.ledger.PENDING_BYTES_MAX", 20)
    faulty.broken = {"write"}
    root = Root("anywhere")
    new = tuple((slot, task(slot, slot + 20)) for slot in range(9))
    steps = [partial(root.book.on_outcome, slot, value(slot)) for slot in range(9)]
    root.run(partial(root.book.admit, [Exported(PROGRAM, new)]), *steps)
    assert root.said[-1] == "9 results of this run could not be written to the ledger anywhere"
    assert len(root.book._pending) < 9


def test_many_reads_that_fail_at_once_turn_the_ledger_off_with_one_line(faulty: Faulty) -> None:
    faulty.broken = {"read"}
    root = Root("anywhere")
    exported = [Exported(PROGRAM, ((slot, task(slot, 7 + slot % 2)),)) for slot in range(22)]
    root.run(lambda: root.book.admit(exported))
    assert {event.tasks[0][0] for event in root.events if isinstance(event, Exported)} == set(range(22))
    assert root.said == ["the ledger cannot read: no space left; this run goes on without it"]


def test_an_entry_without_the_signature_of_the_key_is_a_miss_with_one_line(tmp_path: Path) -> None:
    key = bytes(range(32))
    store(tmp_path, entry(7, 7, 3), entry(8, 8, 4), entry(10, 7, 3, 0))
    signed = open_store(str(tmp_path), BYTES_MAX, print, key=key)
    signed.write([entry(9, 9, 5)])
    signed.close()
    root = Root(tmp_path, key)
    exported = Exported(PROGRAM, ((0, task(0, 7)), (1, task(1, 8)), (2, task(2, 9))))
    root.run(lambda: root.book.admit([exported]), lambda: root.book.on_outcome(0, value(7)))
    assert root.delivered == {2: value(9)}
    assert not any(piece for event in root.events if isinstance(event, Kept) for piece in event.pieces)
    assert root.said == [
        f"the ledger {tmp_path} holds entries without the signature of its key; they are not used",
    ]
    assert root.counters["ledger_unsigned"] == 3
    signed = open_store(str(tmp_path), BYTES_MAX, print, key=key)
    assert {one.key for one in signed.read([memo(number) for number in range(20)])} == {memo(7), memo(9)}
    signed.close()


def test_a_part_that_could_not_be_used_is_written_when_it_has_been_computed(tmp_path: Path) -> None:
    """Else whoever plants a part would keep the right one out for ever."""
    key = bytes(range(32))
    store(tmp_path, entry(10, 7, 3, 0))
    root = Root(tmp_path, key)
    piece = Piece(child_path(child_path(b"", 0), 0), memo(10), value(10))
    root.run(
        lambda: root.book.admit([Exported(PROGRAM, ((0, task(0, 7)),))]),
        lambda: root.book.on_piece(piece),
    )
    signed = open_store(str(tmp_path), BYTES_MAX, print, key=key)
    assert [one.key for one in signed.read([memo(10)])] == [memo(10)]
    signed.close()


def test_a_ledger_that_is_deleted_meanwhile_costs_one_line_and_the_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdphrs.node.ledger.BATCH_S", 0)
    folder = tmp_path / "ledger"
    store(folder, entry(7, 7, 3))
    root = Root(folder)
    new = tuple((slot, task(slot, slot + 20)) for slot in range(3))
    root.run(
        lambda: root.book.admit([Exported(PROGRAM, new)]),
        lambda: root.book.on_outcome(0, value(0)),
        lambda: shutil.rmtree(folder),
        lambda: root.book.on_outcome(1, value(1)),
        lambda: root.book.admit([Exported(PROGRAM, ((7, task(7, 7)),))]),
        lambda: root.book.on_outcome(2, value(2)),
    )
    assert root.delivered == {7: value(7)}
    assert root.said == [
        f"the ledger {folder} has been deleted; this run goes on, and its results are not kept as long as that is so",
        f"2 results of this run could not be written to the ledger {folder}",
    ]
