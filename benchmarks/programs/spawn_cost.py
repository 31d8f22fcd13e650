"""Runs fib once in a process that is nothing but a scheduler's fast path: spawn and get as a task calls them, no node.

python -m benchmarks.programs.spawn_cost spawned|plain NUMBER [--bytecodes]

For those who count what is executed: valgrind from outside, or this program itself, which then prints how many bytecode
instructions the call has run, in all Python code that it enters.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from benchmarks.programs.fib_cost import Fib, plain_fib, spawned_fib
from hdphrs.api import future as fast
from hdphrs.wire.page import Page

KINDS: dict[str, Fib] = {"plain": plain_fib, "spawned": spawned_fib}


def bytecodes_of(fib: Fib, number: int) -> int:
    """How many the call executes."""
    executed = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal executed
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        executed += event == "opcode"
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 looks at this only when a tracer is set
    sys.settrace(trace)
    try:
        fib(number)
    finally:
        sys.settrace(before)
    return executed


def main() -> None:
    kind, number, *options = sys.argv[1:]
    fast.here.task = first = fast.Future[int]()  # the task that a scheduler would have begun
    first._spawned = 0
    fast.demand = Page.create(1).line(0).flags
    if options:
        print(bytecodes_of(KINDS[kind], int(number)))
    else:
        KINDS[kind](int(number))


if __name__ == "__main__":
    main()
