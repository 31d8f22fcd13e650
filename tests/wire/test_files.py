"""The bound of open files: raised as far as it is allowed, and no further than is of use."""

from __future__ import annotations

import resource

import pytest

from hdphrs.wire.files import OPEN_MAX, allow_many

ALL = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [(256, 4096, 4096), (1024, 1 << 20, OPEN_MAX), (1024, ALL, OPEN_MAX), (4096, 4096, None), (1 << 20, 1 << 20, None)],
)
def test_bound_is_raised_as_far_as_allowed_and_never_lowered(
    soft: int, hard: int, raised: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, bounds: asked.append(bounds))
    allow_many()
    assert asked == ([] if raised is None else [(raised, hard)])


def test_system_that_refuses_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: int, bounds: tuple[int, int]) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, ALL))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    allow_many()
