"""Large payloads: what goes in comes out, nobody can change it on the way, and nothing of it is left."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.wire import bulk as bulks
from hdphrs.wire.bulk import ALIGNMENT, BULK_BYTES_MIN, Bulk, Incoming, bulk_of, gather, scatter, view_of

LARGE = bytes(range(256)) * 512


@pytest.fixture(params=["descriptors", "heap"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where bulks are."""
    if request.param == "heap":
        monkeypatch.setattr(bulks, "DESCRIPTORS_MAX", 0)
    return str(request.param)


@pytest.fixture(autouse=True)
def descriptors() -> Iterator[None]:
    """Every test closes what it has opened."""
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    yield
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def large(payload: bytes) -> Bulk:
    assert isinstance(payload, Bulk)
    return payload


@pytest.mark.usefixtures("memory")
@given(
    st.binary(max_size=100),
    st.binary(max_size=100),
    st.lists(st.integers(0, 3 * ALIGNMENT), max_size=4),
    st.booleans(),
)
def test_payload_comes_apart_into_what_it_was_made_of(
    front: bytes, pickled: bytes, sizes: list[int], is_large: bool
) -> None:
    pickled = b"\x80" + pickled + bytes(BULK_BYTES_MIN * is_large)
    buffers = [memoryview(bytes([number]) * size) for number, size in enumerate(sizes, 1)]
    payload = gather(front, pickled, buffers)
    if not buffers and not is_large:
        assert payload == front + pickled if len(front + pickled) < BULK_BYTES_MIN else len(payload) >= BULK_BYTES_MIN
        return
    view = view_of(payload)
    assert view[: len(front)] == front
    found, parts = scatter(view, bulks.aligned(len(front)))
    assert found == pickled
    assert parts == buffers
    assert bytes(payload) == bytes(view)


def test_size_says_whether_a_payload_is_a_bulk() -> None:
    assert not isinstance(gather(b"", bytes(BULK_BYTES_MIN - 1)), Bulk)
    assert isinstance(gather(b"", bytes(BULK_BYTES_MIN)), Bulk)


@pytest.mark.usefixtures("memory")
def test_what_is_written_to_a_view_is_seen_there_alone() -> None:
    bulk = large(bulk_of(LARGE))
    view = bulk.view()
    view[:4] = b"mine"
    assert bytes(bulk) == LARGE
    assert bulk.view()[:4] == LARGE[:4]
    assert bulk.read(5, 10) == LARGE[5:15]
    assert bulk.read(len(LARGE) - 2, 10) == LARGE[-2:]


def test_memory_is_sealed() -> None:
    bulk = large(bulk_of(LARGE))
    assert bulk.descriptor is not None
    for change in (
        lambda number: os.pwrite(number, b"x", 0),
        lambda number: os.ftruncate(number, 0),
        lambda number: os.ftruncate(number, 1 << 20),
    ):
        with pytest.raises(PermissionError):
            change(bulk.descriptor)


def test_view_outlives_its_bulk() -> None:
    view = large(bulk_of(LARGE)).view()
    gc.collect()
    assert bytes(view) == LARGE


def test_too_many_descriptors_then_the_heap_takes_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulks, "DESCRIPTORS_MAX", len(bulks._open) + 2)
    made = [large(bulk_of(LARGE)) for _ in range(4)]
    assert [bulk.descriptor is None for bulk in made] == [False, False, True, True]
    assert {bytes(bulk) for bulk in made} == {LARGE}
    views = [made[0].view() for _ in range(4)]
    assert {bytes(view) for view in views} == {LARGE}
    del made[0]
    assert large(bulk_of(LARGE)).descriptor is not None


def test_no_room_then_the_heap_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, parts: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "writev", full)
    bulk = large(bulk_of(LARGE))
    assert bulk.descriptor is None
    assert bytes(bulk) == LARGE


@pytest.mark.usefixtures("memory")
@given(st.lists(st.binary(max_size=1000), max_size=10))
def test_pieces_become_a_bulk(pieces: list[bytes]) -> None:
    incoming = Incoming()
    for piece in pieces:
        incoming.write(memoryview(piece))
    assert bytes(incoming.finish()) == b"".join(pieces)


def test_room_ends_between_pieces_then_the_heap_takes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    incoming = Incoming()
    incoming.write(b"first")
    written = os.writev

    def full(descriptor: int, parts: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "writev", full)
    incoming.write(b"second")
    monkeypatch.setattr(os, "writev", written)
    incoming.write(b"third")
    assert bytes(incoming.finish()) == b"firstsecondthird"


def test_half_a_bulk_that_is_dropped_leaves_nothing() -> None:
    Incoming().write(LARGE)


@given(st.binary(max_size=60))
def test_nonsense_is_a_value_error(rest: bytes) -> None:
    with contextlib.suppress(ValueError):
        scatter(memoryview(b"\x00" + rest))
