"""Random damage to the files of a ledger, and what a run then makes of them.

What lives here: the damages, and one trial: spoil a sound ledger, open it, read all, write some, read again.  Whatever
was done to it, there is no wrong value and no error; and after it has been verified, what is written is there.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from hdphrs.ledger import open_store
from tests.ledger.support import BYTES_MAX, entry_of, right

ENTRIES = {"directory": 60, "objects": 30}
"""How many there are; an object is a file of its own, and none is damaged more easily among more of them."""
BLOCK = 4096


def flip(file: Path, rng: random.Random) -> None:
    """Another bit, or several."""
    data = bytearray(file.read_bytes())
    for _ in range(rng.choice([1, 1, 1, 10, 100])):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


def truncate(file: Path, rng: random.Random) -> None:
    """The end is missing."""
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.truncate(rng.choice([0, rng.randrange(size + 1), size // BLOCK // 2 * BLOCK]))


def zero(file: Path, rng: random.Random) -> None:
    """A stretch of zeros, as after a crash of the machine."""
    overwrite(file, rng, bytes(rng.choice([1, 16, 512, BLOCK])))


def scribble(file: Path, rng: random.Random) -> None:
    """A stretch of anything."""
    overwrite(file, rng, rng.randbytes(rng.choice([1, 4, 100, BLOCK])))


def swap(file: Path, rng: random.Random) -> None:
    """Two blocks have changed their places."""
    data = file.read_bytes()
    size = rng.choice([64, 512, BLOCK])
    blocks = [data[i : i + size] for i in range(0, len(data), size)]
    if blocks:
        one, other = rng.randrange(len(blocks)), rng.randrange(len(blocks))
        blocks[one], blocks[other] = blocks[other], blocks[one]
    file.write_bytes(b"".join(blocks))


def repeat(file: Path, rng: random.Random) -> None:
    """A part of it once more at its end."""
    data = file.read_bytes()
    start = rng.randrange(len(data) + 1)
    file.write_bytes(data + data[start : start + rng.randrange(2 * BLOCK)])


def delete(file: Path, rng: random.Random) -> None:
    """It is gone."""
    file.unlink()


def overwrite(file: Path, rng: random.Random, stretch: bytes) -> None:
    """Put a stretch of bytes somewhere."""
    data = bytearray(file.read_bytes())
    start = rng.randrange(len(data) + 1)
    data[start : start + len(stretch)] = stretch[: max(0, len(data) - start)]
    file.write_bytes(data)


def exchange(file: Path, rng: random.Random) -> None:
    """Two files have changed their names."""
    others = [other for other in sorted(file.parent.iterdir()) if other != file and other.is_file()]
    if others:
        other = rng.choice(others)
        kept = file.read_bytes()
        file.write_bytes(other.read_bytes())
        other.write_bytes(kept)


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (
    flip,
    flip,
    truncate,
    zero,
    scribble,
    swap,
    repeat,
    delete,
    exchange,
)


def make_ledger(folder: Path, kind: str) -> str:
    """A sound ledger as a killed run has left it, with a write-ahead log that holds half of it; its location."""
    location = str(folder) if kind == "directory" else f"file://{folder}"
    store = open_store(location, BYTES_MAX, print)
    entries = ENTRIES[kind]
    if kind != "directory":
        store.write(map(entry_of, range(entries)))
        return location
    store.write(map(entry_of, range(entries // 2)))
    store.close()
    store = open_store(location, BYTES_MAX, print)
    store.write(map(entry_of, range(entries // 2, entries)))
    killed = folder.with_name("killed")
    shutil.copytree(folder, killed)
    store.close()
    shutil.rmtree(folder)
    killed.rename(folder)
    assert (folder / "ledger-1.sqlite-wal").stat().st_size > 0
    return location


def trial(sound: Path, folder: Path, kind: str, seed: int) -> tuple[int, int]:
    """Spoil a copy of a sound ledger; (entries that are left, complaints)."""
    rng, entries = random.Random(seed), ENTRIES[kind]
    shutil.copytree(sound, folder)
    try:
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
            if files:
                rng.choice(DAMAGES)(rng.choice(files), rng)
        complaints: list[str] = []
        store = open_store(str(folder) if kind == "directory" else f"file://{folder}", BYTES_MAX, complaints.append)
        left = right(store, range(entries))
        store.write(map(entry_of, range(entries, entries + 5)))
        right(store, range(entries + 5))
        store.verify(remove=True)
        store.write(map(entry_of, range(entries, entries + 5)))
        assert right(store, range(entries, entries + 5)) == 5
        store.shrink(0)
        store.close()
        return left, len(complaints)
    finally:
        shutil.rmtree(folder)
