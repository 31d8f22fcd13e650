"""What is set aside while another task runs, and put back."""

from __future__ import annotations

import asyncio
import io
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import trio

from hdphrs.contexts.aspects import Aspect, Aspects, Loop, ThreadLocals, aspects, filters, streams


def test_streams_are_those_of_the_process_while_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    base, mine, childs = sys.stdout, io.StringIO(), io.StringIO()
    one = Aspects(streams())
    monkeypatch.setattr(sys, "stdout", mine)
    before = one.set_aside()
    assert sys.stdout is base
    sys.stdout = childs
    one.put_back(before)
    assert sys.stdout is mine


def test_filters_of_warnings_are_those_of_the_process_while_set_aside() -> None:
    one = filters()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("error")
        before = one.set_aside()
        inside = warnings.filters
        one.put_back(before)
        assert warnings.filters is not inside
        with pytest.raises(UserWarning, match="mine"):
            warnings.warn("mine", stacklevel=1)
    assert not seen


def test_what_is_begun_with_can_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Aspects(streams())
    new = io.StringIO()
    monkeypatch.setattr(sys, "stderr", new)
    one.rebase()
    one.set_aside()
    assert sys.stderr is new
    one.clear()
    assert sys.stderr is new


def in_asyncio(look: Callable[[], Any]) -> Any:
    async def run() -> Any:
        return look()

    return asyncio.run(run())


def in_trio(look: Callable[[], Any]) -> Any:
    async def run() -> Any:
        return look()

    return trio.run(run)


@pytest.mark.parametrize("outer", [in_asyncio, in_trio])
@pytest.mark.parametrize("inner", [in_asyncio, in_trio])
def test_a_loop_may_run_while_another_is_set_aside(outer: Callable[..., Any], inner: Callable[..., Any]) -> None:
    one = Aspects(Loop(), ThreadLocals())

    def parent() -> Any:
        hooks = sys.get_asyncgen_hooks()
        before = one.set_aside()
        assert asyncio._get_running_loop() is None
        value = inner(lambda: 7)
        one.put_back(before)
        assert sys.get_asyncgen_hooks() == hooks
        return value

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # trio warns where it meets another's wakeup descriptor
        assert outer(parent) == 7


def test_a_loop_that_is_set_for_the_thread_is_set_again() -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    one: Aspect = Loop()
    before = one.set_aside()
    asyncio.run(asyncio.sleep(0))
    one.put_back(before)
    assert asyncio.get_event_loop() is loop
    one.clear()
    asyncio.set_event_loop(None)
    loop.close()


def test_an_aspect_that_is_noticed_later_was_not_there_before(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Aspects()
    before = one.set_aside()
    base = sys.stdout
    one.add(streams())
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    one.put_back(before)
    assert sys.stdout is base


def test_all_are_there_for_a_process_in_which_anything_may_have_been_set() -> None:
    assert len(aspects()) >= 4
    assert not Aspects().all
    assert Aspects(*aspects()).all
