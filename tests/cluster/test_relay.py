"""What other hosts say, and a user who does not read it."""

from __future__ import annotations

import os
import selectors
from collections.abc import Iterator
from contextlib import closing
from time import monotonic

import pytest

from hdphrs.cluster.lines import LineReader
from hdphrs.cluster.relay import Relay
from hdphrs.console import WAITING_BYTES_MAX, Outlet
from tests.pipes import FILLER, full_pipe

LINE = b"x" * 99 + b"\n"
PATIENCE_S = 20.0


@pytest.fixture
def unread() -> Iterator[tuple[int, int]]:
    with full_pipe() as ends:
        yield ends


def test_streams_of_other_hosts_wait_until_somebody_reads_and_nothing_is_lost(unread: tuple[int, int]) -> None:
    selector = selectors.DefaultSelector()
    with selector, closing(Relay(selector)) as relay:
        relay._outlets[1] = Outlet(unread[1], relay._ring)
        reading, writing = os.pipe()
        with open(reading, "rb", buffering=0) as stream:
            reader = LineReader(reading, lambda line: relay.put(1, line))

            def read() -> None:
                if relay.has_room(1, stream, read):
                    reader.read()

            selector.register(stream, selectors.EVENT_READ, read)

            def serve(within_s: float) -> None:
                for key, _ in selector.select(within_s):
                    key.data()

            os.set_blocking(writing, False)
            written = 0
            while stream in selector.get_map():  # until there is no room any more
                written += os.write(writing, LINE)
                serve(0.0)
            assert WAITING_BYTES_MAX <= written < 2 * WAITING_BYTES_MAX
            assert not relay.is_empty

            os.set_blocking(unread[0], False)
            shown, end_s = 0, monotonic() + PATIENCE_S
            while shown < written:
                assert monotonic() < end_s
                try:
                    shown += len(os.read(unread[0], 1 << 20).lstrip(FILLER))
                except BlockingIOError:
                    serve(0.01)  # it is woken when there is room
            while not relay.is_empty:
                serve(PATIENCE_S)
            assert shown == written
        os.close(writing)
