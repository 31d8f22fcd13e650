"""A thousand cancellations leave nothing behind: futures, slots, greenlets, descriptors, memory, processes.

What is left in the cores is counted in `tests/protocol/test_cancelling.py`, where they can be looked into.
"""

from __future__ import annotations

import pytest

from tests.e2e.harness import Cluster, result_of

PROGRAM = """
    import gc, os, sys, time
    import hdphrs
    from greenlet import greenlet
    from hdphrs.api import future as fast

    MB = 1 << 20
    GREENLETS_MAX = 70                          # those that are kept for reuse, and a few
    MEMORY_MAX = 8 * MB                         # what an allocator may keep to itself

    def tree(depth):
        if depth == 0:
            time.sleep(0.002)
            return bytes(1000)
        return [hdphrs.get(one) for one in [hdphrs.spawn(tree, depth - 1) for _ in range(3)]]

    def memory(pid):
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(pid):
        return len(os.listdir(f"/proc/{pid}/fd"))

    def look():
        "In a scheduler: what it has, and what its node has."
        hub = fast.state.port
        gc.collect()
        objects = gc.get_objects()
        return {
            "futures": sum(isinstance(one, fast.Future) for one in objects),
            "greenlets": sum(isinstance(one, greenlet) for one in objects),
            "away": len(hub._exporter._away),
            "stopping": len(hub._stopper.stopping),
            "waiting": len(hub._waiting._waiters) + len(hub._waiting.calls) + len(hub._waiting.in_place),
            "accounts": len(hub._meter.owners()),
            "sparks": len(fast.sparks),
            "descriptors": (descriptors("self"), descriptors(os.getppid())),
            "memory": (memory("self"), memory(os.getppid())),
            "pid": os.getpid(),
        }

    def give_up(rounds):
        "In all ways there are, from whoever calls; how many futures were cancelled in time."
        given_up = 0
        for number in range(rounds):
            nodes = hdphrs.all_nodes()
            futures = [hdphrs.spawn(tree, number % 4), hdphrs.spawn_at(nodes[number % len(nodes)], tree, 2)]
            if number % 3 == 0:
                hdphrs.get(futures[0])
            elif number % 3 == 1:
                hdphrs.get(hdphrs.spawn_at(nodes[-1], tree, 1))     # meanwhile they run
            given_up += sum(future.cancel() for future in futures)
            if number % 5 == 0:
                try:
                    with hdphrs.scope() as tasks:
                        given_up += 2
                        later = [tasks.spawn(tree, 3) for _ in range(2)]
                        raise KeyError
                except KeyError:
                    pass
            if number % 25 == 0:
                with hdphrs.Executor() as executor:
                    calls = [executor.submit(tree, 3) for _ in range(4)]
                    executor.abandon()
        return given_up

    def threads():
        "Of the program."
        return len(os.listdir("/proc/self/task"))

    def settled():
        "What there is when all has been said; a scheduler is looked at by a task, which itself takes a future or two."
        for _ in range(3000):
            looks = {node: hdphrs.get(hdphrs.spawn_at(node, look)) for node in hdphrs.all_nodes()}
            if not any(one["away"] or one["waiting"] or one["sparks"] or one["stopping"] for one in looks.values()):
                break
            time.sleep(0.02)
        return looks

    def both(rounds):
        return hdphrs.run(give_up, rounds) + give_up(rounds)

    both(50)                                    # whatever is made once is made now
    before, mine = settled(), memory("self")
    ours = descriptors("self")
    begun = threads()
    given_up = 0
    while given_up < 1000:
        given_up += both(50)
    after = settled()
    port = fast.state.port
    calls = port._calls
    assert [len(some) for some in (calls._alone, calls._bundles, calls._waiting, port._waiters)] == [0, 0, 0, 0]
    gc.collect()
    assert sum(isinstance(one, fast.Future) for one in gc.get_objects()) <= 2, "futures of the program"
    assert descriptors("self") <= ours + 2, (descriptors("self"), ours)
    for _ in range(3000):                       # a thread may be about to end
        if threads() <= begun:
            break
        time.sleep(0.02)
    assert threads() <= begun, (threads(), begun)
    assert memory("self") <= mine + MEMORY_MAX
    for node, now in after.items():
        then = before[node]
        assert now["pid"] == then["pid"], "a scheduler was replaced"
        assert (now["away"], now["waiting"], now["sparks"], now["stopping"]) == (0, 0, 0, 0), now
        assert now["accounts"] <= 1, now       # its own
        assert now["futures"] <= 1, now        # the task that looks
        assert now["greenlets"] <= GREENLETS_MAX, now
        for what, most in (("descriptors", 2), ("memory", MEMORY_MAX)):
            for one, other in zip(now[what], then[what]):
                assert one <= other + most, (what, then, now)
    print("result: nothing is left of", given_up // 1000, "thousand")
"""


@pytest.mark.slow
def test_a_thousand_cancellations_leave_nothing_behind(cluster: Cluster) -> None:
    cluster.recorded = True  # and replayed: the invariants held all the time
    cluster.start("--local-nodes", 2, "--cores", 1, cluster.write(PROGRAM))
    assert result_of(cluster.finish()) == "nothing is left of 1 thousand"
