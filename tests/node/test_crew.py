"""When a node may look out for what its schedulers say."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from hdphrs.node import crew
from hdphrs.node.crew import Crew
from hdphrs.protocol.tasks import Origin
from hdphrs.wire.page import Page
from hdphrs.wire.settings import NodeSettings


@pytest.mark.parametrize(("cores", "hungry", "has_core"), [(2, True, True), (2, False, False), (1, True, False)])
def test_it_takes_the_core_of_a_scheduler_that_waits_and_of_nobody_else(
    monkeypatch: pytest.MonkeyPatch, cores: int, hungry: bool, has_core: bool
) -> None:
    monkeypatch.setattr(crew, "usable_cores", lambda: cores)
    settings = NodeSettings(root=True, host="here", slots=1, secret=b"")
    with closing(Page.create(1)) as page:
        one = Crew(page, [], settings=settings, say=print)
        with closing(one.exchange):
            one.tell_nodes([[0, "here", 1], [1, "here", 1]])
            waits: Any = SimpleNamespace(hungry=hungry)
            one._schedulers[Origin(1)] = waits
            assert one._has_core() is has_core
