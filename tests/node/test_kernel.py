"""What the kernel says of a process."""

from __future__ import annotations

import os
import threading

import pytest

from hdphrs.node.kernel import OURS, stat_of, threads_beyond


@pytest.mark.skipif(stat_of(os.getpid()) is None, reason="there is no /proc")
def test_threads_beyond_the_share_are_counted() -> None:
    stat = stat_of(os.getpid())
    assert stat is not None
    before, done = stat.threads, threading.Event()
    threads = [threading.Thread(target=done.wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    try:
        assert threads_beyond(os.getpid(), before - OURS) == 5
        assert threads_beyond(os.getpid(), before + 100) == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_a_process_that_is_gone_has_none() -> None:
    assert threads_beyond(2**22 + 1, 1) == 0
