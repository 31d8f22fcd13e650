"""Every property of every skeleton, in sequential mode."""

from __future__ import annotations

import pytest

from hdphrs.skeletons import walk
from tests.skeletons.conftest import run_sequentially
from tests.skeletons.properties import PROPERTIES

EXAMPLES = 80


@pytest.mark.parametrize("name", PROPERTIES)
def test_it_computes_what_plain_python_computes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "SPLIT_S", 0.0)
    monkeypatch.setattr(walk, "LISTEN_S", 0.0)
    PROPERTIES[name](run_sequentially, EXAMPLES, 0)
