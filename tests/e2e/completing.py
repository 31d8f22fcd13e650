"""A program whose futures are waited for in other people's ways; it prints what came of each (`test_completion.py`).

Where a case says `gate`, a task runs until the case has gone on: were the case held up, it would never end.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import io
import queue
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import trio

import hdphrs

DEADLINE_S = 60.0


def square(n: int) -> int:
    time.sleep(0.005)
    return n * n


def fails(n: int) -> int:
    raise ValueError(n)


def until(gate: str) -> str:
    """Runs, and spawns, until there is a file."""
    while not Path(gate).exists():
        hdphrs.get(hdphrs.spawn(time.sleep, 0.001))
    return "through"


@contextlib.contextmanager
def closed_gate() -> Iterator[Path]:
    gate = Path(tempfile.mkdtemp()) / "gate"  # it stays: somebody may not have looked yet
    try:
        yield gate
    finally:
        gate.touch()


def looks(gate: str) -> tuple[bool, bool]:
    """Whether a stream, and a filter, of its parent show, when that has gone on; sets some itself."""
    while not Path(gate).exists():
        time.sleep(0.001)
    seen = isinstance(sys.stdout, io.StringIO), ("error", None, FutureWarning, None, 0) in warnings.filters
    with contextlib.redirect_stdout(io.StringIO()) as mine, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        thread = threading.Thread(target=lambda: print("a thread's"))
        thread.start()
        thread.join()
        print("a child's")
    return (*seen, mine.getvalue() == "a thread's\na child's\n") == (False, False, True), sys.stdout is sys.__stdout__


def what_is_set_meanwhile() -> object:
    """By a task that goes on while its child runs, in a thread of its process perhaps."""
    return hdphrs.run(sets_meanwhile)


def sets_meanwhile() -> object:
    async def main(gate: Path) -> object:
        child = hdphrs.spawn(looks, str(gate))
        threads = ThreadPoolExecutor(2)
        calls = [threads.submit(lambda: hdphrs.get(hdphrs.spawn(looks, str(gate)))) for _ in range(2)]

        async def goes_on() -> None:
            for n in range(30):
                print(n)
                await asyncio.sleep(0.005)
            gate.touch()

        going = asyncio.create_task(goes_on())
        seen = [await child, await asyncio.wrap_future(calls[0]), await asyncio.wrap_future(calls[1])]
        await going
        try:
            warnings.warn("mine", FutureWarning, stacklevel=1)
        except FutureWarning:
            print("end")
        return seen

    with closed_gate() as gate, contextlib.redirect_stdout(io.StringIO()) as mine, warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        seen = asyncio.run(main(gate))
        is_mine = sys.stdout is mine
    return seen, mine.getvalue().split() == [*map(str, range(30)), "end"], is_mine


def in_executor() -> object:
    async def main() -> object:
        loop = asyncio.get_running_loop()
        with hdphrs.Executor() as executor:
            one = await loop.run_in_executor(executor, square, 3)
            several = await asyncio.gather(*(loop.run_in_executor(executor, square, n) for n in range(5)))
            try:
                await loop.run_in_executor(executor, fails, 7)
            except ValueError as error:
                return one, several, error.args
            return None

    return asyncio.run(main())


def asyncios_own_ways() -> object:
    async def main() -> object:
        executor = hdphrs.Executor()
        wrapped = await asyncio.wrap_future(executor.submit(square, 4))
        calls = [asyncio.wrap_future(executor.submit(square, n)) for n in range(4)]
        completed = sorted([await call for call in asyncio.as_completed(calls)])

        async def one(n: int) -> int:
            return await asyncio.wrap_future(executor.submit(square, n))

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(n)) for n in range(3)]
        return wrapped, completed, [task.result() for task in tasks]

    return asyncio.run(main())


def asked_in_a_loop() -> object:
    async def main() -> object:
        executor = hdphrs.Executor()
        loop = asyncio.get_running_loop()
        there = executor.submit(square, 5).result(DEADLINE_S)
        default = await loop.run_in_executor(None, lambda: hdphrs.get(hdphrs.spawn(square, 6)))
        return there, default, await asyncio.to_thread(executor.submit(square, 7).result)

    return asyncio.run(main())


def loops_in_loops() -> object:
    return asyncio.run(nested(4))


async def nested(depth: int) -> int:
    if depth == 0:
        return square(2)
    loop = asyncio.get_running_loop()
    return 1 + await loop.run_in_executor(hdphrs.Executor(), lambda: asyncio.run(nested(depth - 1)))


def callbacks() -> object:
    executor = hdphrs.Executor()
    told = threading.Event()
    values: queue.Queue[int] = queue.Queue()
    seen: list[int] = []

    def tell(call: concurrent.futures.Future[int]) -> None:
        seen.append(call.result())
        told.set()

    executor.submit(square, 3).add_done_callback(tell)
    assert told.wait(DEADLINE_S)
    for n in range(4):
        executor.submit(square, n).add_done_callback(lambda call: values.put(call.result()))
    return seen, sorted(values.get(timeout=DEADLINE_S) for _ in range(4))


def callbacks_that_go_on() -> object:
    executor = hdphrs.Executor()
    ended: queue.SimpleQueue[int] = queue.SimpleQueue()

    def go_on(call: concurrent.futures.Future[int]) -> None:
        if call.result() > 1000:
            ended.put(call.result())
        else:
            executor.submit(square, call.result()).add_done_callback(go_on)

    executor.submit(square, 2).add_done_callback(go_on)
    return ended.get(timeout=DEADLINE_S)


def standard_waits() -> object:
    executor = hdphrs.Executor()
    calls = [executor.submit(square, n) for n in range(5)]
    done, _ = concurrent.futures.wait(calls, DEADLINE_S, concurrent.futures.FIRST_COMPLETED)
    all_done, none = concurrent.futures.wait(calls)
    completed = concurrent.futures.as_completed([executor.submit(square, n) for n in range(5)], DEADLINE_S)
    with ThreadPoolExecutor(1) as pool:
        both = concurrent.futures.wait([executor.submit(square, 1), pool.submit(square, 2)]).done
    return bool(done), len(all_done), len(none), sorted(call.result() for call in completed), len(both)


def asked_again_and_again() -> object:
    future, call = hdphrs.spawn(square, 8), hdphrs.Executor().submit(square, 9)
    while not (future.done() and call.done()):
        time.sleep(0.002)
    return hdphrs.get(future), call.result()


def awaited() -> object:
    async def main() -> object:
        first = await hdphrs.spawn(square, 2)
        several = await asyncio.gather(*(hdphrs.spawn(square, n) for n in range(4)))
        timely = await asyncio.wait_for(hdphrs.spawn(square, 5), DEADLINE_S)
        with contextlib.suppress(ValueError):
            await hdphrs.spawn(fails, 1)
            return None
        return first, several, timely

    return asyncio.run(main())


def awaited_in_trio() -> object:
    async def main() -> object:
        values: list[int] = []

        async def one(n: int) -> None:
            values.append(await hdphrs.spawn(square, n))

        async with trio.open_nursery() as nursery:
            for n in range(4):
                nursery.start_soon(one, n)
        told, token = trio.Event(), trio.lowlevel.current_trio_token()
        executor = hdphrs.Executor()
        executor.submit(square, 3).add_done_callback(lambda call: trio.from_thread.run_sync(told.set, trio_token=token))
        await told.wait()
        return sorted(values), await trio.to_thread.run_sync(executor.submit(square, 6).result)

    return trio.run(main)


def threads() -> object:
    found: dict[int, object] = {}

    def body(k: int) -> None:
        in_order = [hdphrs.get(future) for future in [hdphrs.spawn(square, n + k) for n in range(3)]]
        completed = sorted(hdphrs.get(one) for one in hdphrs.as_completed([hdphrs.spawn(square, n) for n in range(3)]))
        first = hdphrs.get_any([hdphrs.spawn(square, 4)])
        with hdphrs.scope() as tasks:
            inner = tasks.spawn(square, 5)
        failure: object = None
        try:
            with hdphrs.scope() as tasks:
                tasks.spawn(fails, 1)
        except ValueError as error:
            failure = error.args
        mapped = hdphrs.par_map(square, range(3))
        with hdphrs.Executor() as executor:
            called = list(executor.map(square, range(3)))
        found[k] = in_order, completed, first, hdphrs.get(inner), failure, mapped, called

    started = [threading.Thread(target=body, args=(k,)) for k in range(3)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    with ThreadPoolExecutor(2) as pool:
        pooled = list(pool.map(lambda n: hdphrs.get(hdphrs.spawn(square, n)), range(4)))
    return [found[k] for k in range(3)], pooled


def late() -> object:
    """With a limit that is over: not in sequential mode, where nothing is ever waited for."""

    async def main(gate: Path) -> object:
        executor = hdphrs.Executor()
        loop = asyncio.get_running_loop()
        told = []
        try:
            await asyncio.wait_for(loop.run_in_executor(executor, until, str(gate)), 0.05)
        except TimeoutError:
            told.append("late")
        future = hdphrs.spawn(until, str(gate))
        try:
            await asyncio.wait_for(future, 0.05)
        except TimeoutError:
            told.append("late")
        with contextlib.suppress(hdphrs.Cancelled):
            await future
            told.append("not cancelled")
        kept = hdphrs.spawn(until, str(gate))
        try:
            await asyncio.wait_for(asyncio.shield(kept), 0.05)
        except TimeoutError:
            told.append("late")
        gate.touch()
        told.append(await kept)
        return told

    with closed_gate() as gate:
        return asyncio.run(main(gate))


def late_in_trio() -> object:
    async def main(gate: Path) -> object:
        future = hdphrs.spawn(until, str(gate))
        with trio.move_on_after(0.05) as limit:
            await future
        with contextlib.suppress(hdphrs.Cancelled):
            hdphrs.get(future)
            return "not cancelled"
        return limit.cancelled_caught

    with closed_gate() as gate:
        return trio.run(main, gate)


def set_aside() -> object:
    """The child has begun on this scheduler and waits there, when its parent's event loop takes the thread."""

    def outer(gate: str) -> str:
        hdphrs.wait([hdphrs.spawn(until, gate)], timeout=DEADLINE_S)
        return "outer"

    async def main(child: hdphrs.Future[str], gate: Path) -> str:
        asyncio.get_running_loop().call_later(0.02, gate.touch)
        return await child

    with closed_gate() as gate:
        child = hdphrs.spawn(outer, str(gate))
        with contextlib.suppress(hdphrs.errors.WaitTimeoutError):
            child.get(timeout=0.02)
        return asyncio.run(main(child, gate))


def first_of_several() -> object:
    def with_others(n: int) -> list[hdphrs.Future[Any]]:
        return [hdphrs.spawn(square, n), *(hdphrs.spawn(until, str(gate)) for _ in range(3))]

    def cancel(futures: list[hdphrs.Future[Any]]) -> None:
        for future in futures:
            future.cancel()

    failed: object = None
    with closed_gate() as gate:
        futures = with_others(3)
        first: object = hdphrs.get(next(hdphrs.as_completed(futures)))
        cancel(futures)
        futures = with_others(4)
        any_of_them: object = hdphrs.get_any(futures)
        cancel(futures)
        try:
            with hdphrs.scope() as tasks:
                tasks.spawn(square, 2)
                tasks.spawn(fails, 5)
                for _ in range(100):
                    tasks.spawn(until, str(gate))
        except ValueError as error:
            failed = error.args
        executor = hdphrs.Executor()
        calls: list[concurrent.futures.Future[Any]] = [executor.submit(square, 1)]
        calls += [executor.submit(until, str(gate)) for _ in range(3)]
        done = concurrent.futures.wait(calls, return_when=concurrent.futures.FIRST_COMPLETED).done
        return first, any_of_them, failed, [call.result() for call in done]


def drawn() -> object:
    """What tasks of threads draw depends on nothing but their places."""

    def draw() -> int:
        return hdphrs.seed()

    def body(found: list[object]) -> None:
        found.append([hdphrs.seed(), hdphrs.get(hdphrs.spawn(draw)), hdphrs.get(hdphrs.spawn(draw))])

    found: list[list[object]] = [[], []]
    started = [threading.Thread(target=body, args=(one,)) for one in found]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return [hdphrs.get(hdphrs.spawn(draw)), *found]


ANYWHERE: list[Callable[[], object]] = [
    in_executor,
    asyncios_own_ways,
    asked_in_a_loop,
    callbacks,
    callbacks_that_go_on,
    standard_waits,
    asked_again_and_again,
    awaited,
    awaited_in_trio,
    threads,
]
WITH_PROCESSES: list[Callable[[], object]] = [
    late,
    late_in_trio,
    loops_in_loops,
    set_aside,
    first_of_several,
    what_is_set_meanwhile,
]


def everything(cases: list[Callable[[], object]]) -> dict[str, object]:
    return {case.__name__: case() for case in cases}


if __name__ == "__main__":
    mode, which = sys.argv[1:]
    cases: Any = {"anywhere": ANYWHERE, "processes": WITH_PROCESSES, "drawn": [drawn]}[which]
    print("result:", everything(cases) if mode == "program" else hdphrs.run(everything, cases))
