"""What waits for all peers together, and when that is too much."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hdphrs.protocol.messages import Code
from hdphrs.protocol.tasks import NodeId, Payload
from hdphrs.transport.interface import Lightened
from hdphrs.transport.session import Load, Session
from hdphrs.wire.bulk import BULK_BYTES_MIN, bulk_of
from tests.transport.support import cluster, numbered, run
from tests.transport.test_session import End, exchange, reconnect, write

SIZE = 2 * BULK_BYTES_MIN
ONE = NodeId(1)


def large() -> Payload:
    return bulk_of(bytes(SIZE))


def loaded(load: Load) -> End:
    end = End()
    end.session = Session(load=load)
    end.connect()
    return end


def test_it_is_full_above_its_bound_until_half_of_that_has_gone() -> None:
    load = Load(100)
    load.add(100)
    assert not load.is_full
    load.add(1)
    assert load.is_full
    load.lighten(50)
    assert load.is_full
    assert not load.has_lightened
    load.lighten(1)
    assert not load.is_full
    assert load.has_lightened


def test_small_messages_are_not_counted() -> None:
    load = Load()
    end = loaded(load)
    end.session.push(["x" * 1000])
    assert load.bytes == 0


def test_large_payloads_count_until_they_are_acknowledged_by_their_peers() -> None:
    load = Load()
    first, second, other = loaded(load), loaded(load), End()
    first.session.push([large(), large()])
    second.session.push([large()])
    assert load.bytes == 3 * SIZE
    while (batch := first.session.batch()) != b"":
        other.under_way += batch
    assert load.bytes == 3 * SIZE  # they are in the kernel's hands, and may have to be sent again
    first.session.ask()
    exchange(first, other)
    assert load.bytes == SIZE


def test_what_was_for_a_peer_that_is_fenced_counts_no_more() -> None:
    load = Load()
    end = loaded(load)
    end.session.push([large()])
    end.session.push([large()])
    end.session.end()
    end.session.end()
    assert load.bytes == 0


@given(st.lists(st.tuples(st.sampled_from(["small", "large", "write", "take", "break"]), st.integers(1, SIZE))))
def test_connection_breaks_anywhere_then_nothing_is_left_over_at_the_end(script: list[tuple[str, int]]) -> None:
    load = Load()
    end, other = loaded(load), End()
    for action, count in script:
        match action:
            case "small":
                end.session.push(["x"])
            case "large":
                end.session.push([large()])
            case "write":
                write(end, other)
            case "take":
                other.take(count)
            case "break":
                reconnect(end, other)
        assert 0 <= load.bytes <= SIZE * sum(action == "large" for action, _ in script)
    end.session.ask()
    exchange(end, other)
    assert end.session.settled
    assert load.bytes == 0


def test_a_node_is_told_when_its_peers_have_acknowledged_what_was_too_much() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, new = await c.pair()
            root.transport._load.bytes_max = SIZE
            root.transport.send(ONE, Code(b"d" * 16, large()))
            assert not root.transport.is_crowded
            root.transport.send(ONE, Code(b"d" * 16, large()))
            assert root.transport.is_crowded
            await new.inbox.message()
            await new.inbox.message()
            assert await root.transport.flush(ONE, 5.0)
            assert await root.inbox.expect(Lightened) == Lightened()
            assert not root.transport.is_crowded
            new.transport.send(NodeId(0), numbered(1))  # and is told once
            assert await root.inbox.message() == numbered(1)

    run(main)


def test_a_node_is_crowded_no_more_when_the_peer_is_fenced_for_whom_it_was() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, _ = await c.pair()
            root.transport._load.bytes_max = SIZE - 1
            root.transport.send(ONE, Code(b"d" * 16, large()))
            assert root.transport.is_crowded
            root.transport.fence(ONE)
            assert not root.transport.is_crowded

    run(main)
