"""Calls that block, in threads beside trio, while there is no room for a thread."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from hdphrs.node.threads import run_in_thread

NO_THREAD = "can't start new thread"


def run(times: int, error: Exception, monkeypatch: pytest.MonkeyPatch) -> tuple[str, float]:
    """What comes of a call whose thread could not be started so many times, and after how long (virtual)."""
    left = [error] * times

    async def run_sync(action: Any, **options: Any) -> Any:
        if left:
            raise left.pop()
        return action()

    async def main() -> tuple[str, float]:
        return await run_in_thread(lambda: "done"), trio.current_time()

    monkeypatch.setattr(trio.to_thread, "run_sync", run_sync)
    clock = MockClock(autojump_threshold=0)
    began_s = clock.current_time()
    value, now_s = trio.run(main, clock=clock)
    return value, now_s - began_s


def test_it_is_tried_again_with_growing_pauses_and_said_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    value, took_s = run(4, RuntimeError(NO_THREAD), monkeypatch)
    assert value == "done"
    assert took_s == pytest.approx(0.05 + 0.1 + 0.2 + 0.4)
    said = f"hdphrs: no room for another thread on this host ({NO_THREAD}); trying again\n"
    assert capfd.readouterr().err == said


def test_other_errors_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="another"):
        run(1, RuntimeError("another"), monkeypatch)


def test_what_the_action_raises_is_raised_though_it_sounds_like_that() -> None:
    def action() -> None:
        raise RuntimeError(NO_THREAD)

    with pytest.raises(RuntimeError, match=NO_THREAD):
        trio.run(run_in_thread, action)
