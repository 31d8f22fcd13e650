"""A program whose tasks set what others must not see, run in every way in which a task may run; prints JSON.

python seeing.py WAYS...

Each scenario is a task that does something before, between and after the spawn and the get of a child, which is made to
run in one of the ways.  What it returns must not depend on the way.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import decimal
import io
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import trio

import hdphrs

LABEL: contextvars.ContextVar[str] = contextvars.ContextVar("LABEL", default="none")
LOCKED: contextvars.ContextVar[Any] = contextvars.ContextVar("LOCKED", default="none")

Run = Callable[..., Any]


# How a child runs.


def in_place(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    future = hdphrs.spawn(function, *args)
    return lambda: hdphrs.get(future)


def on_a_stack(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """By the loop of the scheduler, which interrupts its parent."""
    future = hdphrs.spawn(function, *args)
    return lambda: future.get(timeout=100)


def placed(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    future = hdphrs.spawn_at(0, function, *args)
    return lambda: hdphrs.get(future)


def stolen(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """By another scheduler, or else by this one after it has left."""
    future = hdphrs.spawn(function, *args)

    def get() -> Any:
        end_s = time.monotonic() + 20
        while future._function is not None and time.monotonic() < end_s:
            pass
        return hdphrs.get(future)

    return get


def in_a_map(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """As one of several items of a task; the first must not be seen by the second."""
    values = hdphrs.par_map_chunked(4, lambda _: function(*args), range(4))
    return lambda: values[-1]


WAYS: dict[str, Run] = {way.__name__: way for way in (in_place, on_a_stack, placed, stolen, in_a_map)}


# What tasks see, and set.


def third() -> str:
    return str(Decimal(1) / 3)


def third_of_five() -> str:
    decimal.getcontext().prec = 5
    return third()


def decimals_in_a_block(start: Run) -> Any:
    with decimal.localcontext() as context:
        context.prec = 9
        get = start(third)
        inner = get()
    return inner, third()


def decimals_set_by_a_child(start: Run) -> Any:
    return start(third_of_five)(), third()


def decimals_set_after_the_spawn(start: Run) -> Any:
    decimal.getcontext().prec = 8
    get = start(third)
    decimal.getcontext().prec = 4
    return get(), third()


def label() -> str:
    before = LABEL.get()
    LABEL.set("the child's")
    return before


def variable(start: Run) -> Any:
    LABEL.set("the parent's")
    return start(label)(), LABEL.get()


def variable_of_another_task(start: Run) -> Any:
    start(label)()
    return LABEL.get()


def locked() -> str:
    return str(LOCKED.get())


def variable_that_cannot_travel(start: Run) -> Any:
    LOCKED.set(threading.Lock())
    return start(locked)()


def within_a_context(start: Run) -> Any:
    def inside() -> Any:
        LABEL.set("inside")
        return start(label)(), LABEL.get()

    return contextvars.copy_context().run(inside), LABEL.get()


def divides() -> str:
    try:
        np.ones(1) / np.zeros(1)
    except FloatingPointError:
        return "raises"
    return "goes on"


def ignores() -> str:
    np.seterr(all="ignore")
    np.set_printoptions(precision=2)
    return divides()


def errstate(start: Run) -> Any:
    with np.errstate(divide="raise"):
        inside = start(divides)(), start(ignores)(), divides()
    return inside, str(np.array([1 / 3]))


def runs_a_loop(value: int) -> int:
    async def answer() -> int:
        await asyncio.sleep(0)
        return value

    return asyncio.run(answer())


def loop_within_a_loop(start: Run) -> Any:
    async def parent() -> Any:
        here = asyncio.get_running_loop(), asyncio.current_task()
        value = start(runs_a_loop, 7)()
        await asyncio.sleep(0)
        return value, here == (asyncio.get_running_loop(), asyncio.current_task())

    with asyncio.Runner() as runner:
        return runner.run(parent())


def loop_that_is_set(start: Run) -> Any:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        start(runs_a_loop, 7)()
        return asyncio.get_event_loop() is loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def runs_trio(value: int) -> int:
    async def answer() -> int:
        await trio.sleep(0)
        return value

    return trio.run(answer)


def trio_within_trio(start: Run) -> Any:
    async def parent() -> Any:
        task = trio.lowlevel.current_task()
        value = start(runs_trio, 7)()
        await trio.sleep(0)
        return value, task is trio.lowlevel.current_task()

    return trio.run(parent)


def trio_within_asyncio(start: Run) -> Any:
    async def parent() -> Any:
        value = start(runs_trio, 7)()
        await asyncio.sleep(0)
        return value

    return asyncio.run(parent())


def says() -> bool:
    sys.stdout = io.StringIO()
    print("not shown")
    return True


def stream(start: Run) -> Any:
    mine = io.StringIO()
    with contextlib.redirect_stdout(mine):
        get = start(says)
        print("before")
        get()
        print("after")
    before = sys.stdout
    start(says)()
    return mine.getvalue(), sys.stdout is before


def sees_a_stream_of_another() -> bool:
    return isinstance(sys.stderr, io.StringIO)


def stream_of_a_child(start: Run) -> Any:
    with contextlib.redirect_stderr(io.StringIO()):
        return start(sees_a_stream_of_another)(), isinstance(sys.stderr, io.StringIO)


def warns() -> str:
    try:
        warnings.warn("careful", FutureWarning, stacklevel=1)
    except FutureWarning:
        return "raises"
    return "goes on"


def filters(start: Run) -> Any:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("error", FutureWarning)
        child, mine = start(warns)(), warns()
        warnings.simplefilter("always", FutureWarning)
        warns()
    return child, mine, len(seen)


def handler_of_another() -> bool:
    found = signal.getsignal(signal.SIGUSR1) in (signal.SIG_DFL, None)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    return found


def handlers(start: Run) -> Any:
    mine: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _: mine.append(number))
    seen = start(handler_of_another)()
    signal.raise_signal(signal.SIGUSR1)
    return seen, mine == [signal.SIGUSR1]


def waits_in_a_loop(value: int) -> Any:
    async def answer() -> Any:
        loop = asyncio.get_running_loop()
        got = [hdphrs.get(hdphrs.spawn_at(0, abs, -value)) for _ in range(5)]
        await asyncio.sleep(0)
        return max(got), asyncio.get_running_loop() is loop

    return asyncio.run(answer())


def loops_of_neighbours(start: Run) -> Any:
    """Two that wait in their loops, in turn."""
    gets = [start(waits_in_a_loop, value) for value in (7, 8)]
    return [get() for get in gets]


def labels() -> Iterator[str]:
    yield LABEL.get()
    LABEL.set("b")
    yield LABEL.get()


def generator(start: Run) -> Any:
    """It has the context of whoever asks it for the next value."""
    LABEL.set("a")
    values = labels()
    seen = [next(values), start(label)()]
    return [*seen, next(values)]


class LateError(Exception):
    pass


def late(*_: Any) -> None:
    raise LateError


def spins(duration_s: float = 0.05) -> str:
    end_s = time.monotonic() + duration_s
    while time.monotonic() < end_s:
        pass
    return "unharmed"


def alarm(start: Run) -> Any:
    """It rings while the child runs, or before; the child is not harmed, and the parent gets it."""
    signal.signal(signal.SIGALRM, late)
    get = start(spins)
    seen = []
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        seen.append(get())
        spins(20)  # a loop here would not be part of the try: https://github.com/python/cpython/issues/130279
    except LateError:
        seen.append("late")
    return seen[-1], get()


@contextlib.contextmanager
def labelled(name: str) -> Iterator[None]:
    token = LABEL.set(name)
    try:
        yield
    finally:
        LABEL.reset(token)


def stack_of_contexts(start: Run) -> Any:
    seen = []
    with contextlib.ExitStack() as stack:
        for name in "ab":
            stack.enter_context(labelled(name))
            seen.append(start(label)())
        stack.enter_context(decimal.localcontext(prec=3))
        seen.append(start(third)())
    return seen, LABEL.get()


def deep(depth: int) -> str:
    if depth == 0:
        return third()
    decimal.getcontext().prec += 1
    return hdphrs.get(hdphrs.spawn(deep, depth - 1))


def nested(start: Run) -> Any:
    return len(start(deep, 150)()), third()


def two_generations(start: Run) -> Any:
    def child() -> Any:
        LABEL.set(LABEL.get() + "b")
        return hdphrs.get(hdphrs.spawn(LABEL.get)), LABEL.get()

    LABEL.set("a")
    return start(child)(), LABEL.get()


SCENARIOS: tuple[Callable[[Run], Any], ...] = (
    decimals_in_a_block,
    decimals_set_by_a_child,
    decimals_set_after_the_spawn,
    variable,
    variable_of_another_task,
    variable_that_cannot_travel,
    within_a_context,
    errstate,
    loop_within_a_loop,
    loop_that_is_set,
    loops_of_neighbours,
    trio_within_trio,
    trio_within_asyncio,
    stream,
    stream_of_a_child,
    filters,
    generator,
    stack_of_contexts,
    nested,
    two_generations,
)
SIGNALS: tuple[Callable[[Run], Any], ...] = (handlers, alarm)
"""In sequential mode handlers are the program's."""


def outcome(scenario: Callable[[Run], Any], way: str) -> Any:
    try:
        return scenario(WAYS[way])
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def of_the_program() -> dict[str, Any]:
    """What the program has set is what its tasks see; alone, in a bundle, placed, and by an executor."""
    decimal.getcontext().prec = 6
    LABEL.set("the program's")
    LOCKED.set(threading.Lock())
    bundle = [hdphrs.spawn(spins_a_moment, n) for n in range(200)]
    with hdphrs.Executor() as executor:
        return {
            "alone": [hdphrs.get(hdphrs.spawn(third)), hdphrs.get(hdphrs.spawn(label)), hdphrs.run(locked)],
            "bundle": sorted(set(map(hdphrs.get, bundle))),
            "placed": hdphrs.get(hdphrs.spawn_at(0, label)),
            "executor": [executor.submit(third).result(), *executor.map(label_of, range(3))],
            "after": [third(), LABEL.get()],
        }


def spins_a_moment(_: int) -> str:
    time.sleep(50e-6)
    return label() + third()


def label_of(_: int) -> str:
    return label()


def main(scenarios: Iterable[Callable[[Run], Any]]) -> None:
    ways = [way for way in sys.argv[1:] if way in WAYS]
    seen = {f"{one.__name__} {way}": hdphrs.run(outcome, one, way) for way in ways for one in scenarios}
    if "program" in sys.argv:
        seen["program"] = of_the_program()
    print(json.dumps(seen), os.getpid(), sep="\n")


if __name__ == "__main__":
    main(SCENARIOS if "--no-signals" in sys.argv else SCENARIOS + SIGNALS)
