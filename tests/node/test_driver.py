"""The driver: what it does by itself, without being told."""

from __future__ import annotations

from collections.abc import Sequence

import trio
import trio.testing

from hdphrs.config import CoreConfig
from hdphrs.node.books import Work
from hdphrs.node.driver import WORK_S, Driver
from hdphrs.protocol import events as ev
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import Origin
from tests.node.virtual import VirtualCrew

FIRST, SECOND = Origin(1), Origin(2)


class Looked(VirtualCrew):
    """Counts how often somebody asks what has been done."""

    looks = 0

    def work(self) -> Work:
        self.looks += 1
        return Work()


def test_a_node_without_anything_to_do_looks_at_its_work_again_only_when_it_has_something() -> None:
    crew = Looked()
    driver = Driver(Node.root(CoreConfig(), lambda n: 0), crew)

    async def main() -> Sequence[int]:
        seen = []
        driver.handle([ev.SchedulerUp(FIRST), ev.Hungry(FIRST, 1)])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(driver.keep_telling)
            for _ in range(2):
                await trio.sleep(10.5 * WORK_S)
                seen.append(crew.looks)
                driver.handle([ev.SchedulerUp(SECOND)])  # until it is hungry, it counts as busy
            nursery.cancel_scope.cancel()
        return seen

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) == [1, 11]
