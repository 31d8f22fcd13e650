"""Killing things: the answer stays right, nothing hangs, nothing is left."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import monotonic

import pytest

from tests.e2e.harness import DEADLINE_S, GONE_S, MARK, SOON_S, Cluster, eventually, result_of
from tests.processes import send


@pytest.fixture(autouse=True)
def recorded(cluster: Cluster) -> None:
    """Every run here is replayed in the end, see `Cluster.replay`."""
    cluster.recorded = True


RUNS = int(os.environ.get("HDPHRS_CHAOS_RUNS", "8"))
"""Seeded runs for each kind of victim; the release check sets more."""

WORK = [
    ("queens.py", ["13", "--skeleton", "par"]),
    ("queens.py", ["13", "--skeleton", "push"]),
    ("sum_euler.py", ["5500", "--skeleton", "par"]),
    ("sum_euler.py", ["5500", "--skeleton", "push"]),
    ("liouville.py", ["100000000", "--skeleton", "par"]),
    ("liouville.py", ["100000000", "--skeleton", "push"]),
    ("mandelbrot.py", ["520", "--skeleton", "par"]),
    ("mandelbrot.py", ["520", "--skeleton", "push"]),
]
"""Examples of about two seconds of processor time, with their arguments."""


_UNDISTURBED: dict[str, tuple[str, float]] = {}
"""What `undisturbed` has found, by program; it runs each of them once, since it says the same to all seeds."""


def undisturbed(cluster: Cluster, example: str, arguments: list[str], *, again: bool = False) -> tuple[str, float]:
    """The answer of a run without failure, and how long the program took."""
    program = " ".join([example, *arguments[:3]])
    if again or program not in _UNDISTURBED:
        cluster.start_announced("--local-nodes", 4, example=example, arguments=arguments)
        started_s = monotonic()
        answer = result_of(cluster.finish())
        _UNDISTURBED[program] = answer, monotonic() - started_s
    return _UNDISTURBED[program]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(RUNS))
@pytest.mark.parametrize("victims", ["1 node", "2 nodes", "3 nodes", "scheduler"])
def test_random_kills_leave_the_answer_right_and_the_time_bounded(cluster: Cluster, victims: str, seed: int) -> None:
    chance = random.Random(f"{victims} {seed}")
    example, arguments = chance.choice(WORK)
    if example == "mandelbrot.py":
        arguments = [*arguments, "--output", str(cluster.folder / "picture.png")]
    answer, usual_s = undisturbed(cluster, example, arguments)
    process = cluster.start_announced("--local-nodes", 4, example=example, arguments=arguments, hold=True)
    if victims == "scheduler":
        eventually(lambda: len(cluster.schedulers()) >= 4, DEADLINE_S, "four schedulers")
        chosen = chance.sample(cluster.schedulers(), 1)
    else:
        chosen = chance.sample(cluster.nodes()[1:], int(victims[0]))
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    started_s = monotonic()
    for pid, when_s in zip(chosen, sorted(chance.uniform(0, usual_s) for _ in chosen), strict=True):
        while monotonic() - started_s < when_s:
            assert cluster.process is not None
            if cluster.process.poll() is not None:
                break
            signal.sigtimedwait([], 0.01)
        if not send(pid, signal.SIGKILL):
            break
    assert result_of(cluster.finish()) == answer
    took_s = monotonic() - started_s
    if took_s >= 3 * usual_s:  # the machine itself may be slower than it was a moment ago: ask it again
        usual_s = max(usual_s, undisturbed(cluster, example, arguments, again=True)[1])
    assert took_s < 3 * usual_s


@pytest.mark.slow
def test_a_stopped_node_is_declared_dead_and_harms_nothing_when_it_returns(cluster: Cluster) -> None:
    process = cluster.start_announced(
        "--local-nodes", 3, "--detect-after", 1, example="queens.py", arguments=["13", "--skeleton", "push"], hold=True
    )
    victim = cluster.nodes()[1]
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    os.kill(victim, signal.SIGSTOP)
    assert process.stderr is not None
    assert "has died" in process.stderr.readline()
    os.kill(victim, signal.SIGCONT)
    assert result_of(cluster.finish()) == "73712"


POISON = """
    import ctypes, os, signal, sys
    import hdphrs

    def good(n):
        return n * n

    def segfault():
        return ctypes.string_at(0)

    def leave():
        os._exit(3)

    def tree(low, high, poison):
        if high - low == 1:
            return poison() if low == 500 else [good(low)]
        middle = (low + high) // 2
        left = hdphrs.spawn(tree, low, middle, poison)
        right = hdphrs.spawn(tree, middle, high, poison)
        values = []
        for future in (left, right):
            try:
                values += hdphrs.get(future)
            except hdphrs.errors.TaskCrashedError as error:
                values.append(f"crashed: {error}")
        return values

    def flat(poison):
        futures = [hdphrs.spawn(good, n) for n in range(1000)]
        futures.insert(500, hdphrs.spawn(poison))
        values = []
        for future in futures:
            try:
                values.append(hdphrs.get(future))
            except hdphrs.errors.TaskCrashedError as error:
                values.append(f"crashed: {error}")
        return values

    def show(values, expected):
        assert sorted(value for value in values if isinstance(value, int)) == expected, len(values)
        print(*(value for value in values if not isinstance(value, int)), sep="\\n")

    for poison in (segfault, leave):
        if sys.argv[1] == "flat":
            show(flat(poison), [n * n for n in range(1000)])
        elif sys.argv[1] == "flat-in-a-task":
            show(hdphrs.run(flat, poison), [n * n for n in range(1000)])
        else:
            show(hdphrs.run(tree, 0, 1001, poison), [n * n for n in range(1001) if n != 500])
        print("alive")
"""


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["flat", "flat-in-a-task", "nested"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_poison_task_fails_alone_after_three_attempts(cluster: Cluster, shape: str, nodes: int) -> None:
    """And so does another one after it."""
    completed = cluster.run("--local-nodes", nodes, cluster.write(POISON), shape)
    assert completed.returncode == 0, completed.stderr
    first, alive, second, still = completed.stdout.splitlines()
    assert (alive, still) == ("alive", "alive")
    for poison, how, crash in (("segfault", "SIGSEGV", first), ("leave", "status 3", second)):
        assert re.search(rf"task {poison}|task tree", crash)
        assert crash.count(how) == 3


@pytest.mark.slow
def test_poison_that_outlives_who_spawned_it_is_given_up_too(cluster: Cluster) -> None:
    """Nobody waits for it, and the task that made it has ended: it died with nobody to blame, again and again.

    If the other node is still hungry when it is spawned, it travels, and is blamed itself: then once more.
    """
    program = cluster.write(
        """
        import os
        import signal
        import sys
        import time
        import hdphrs

        def poison(log):
            open(log, "a").close()
            os.kill(os.getpid(), signal.SIGKILL)

        def child(log):
            hdphrs.spawn(poison, log)
            return 1

        def slow(log):
            while not os.path.exists(log):
                time.sleep(0.01)
            time.sleep(0.3)
            return 2

        def parent(log):
            (other,) = [node for node in hdphrs.all_nodes() if node != hdphrs.my_node()]
            far = hdphrs.spawn_at(other, slow, log)
            near = hdphrs.spawn(child, log)
            return hdphrs.get(far) + hdphrs.get(near)

        if __name__ == "__main__":
            print(hdphrs.get(hdphrs.spawn(parent, sys.argv[1])))
        """
    )
    left, said = "while it ran what task child had left behind", ""
    for attempt in range(5):
        if left not in said:
            completed = cluster.run("--local-nodes", 2, "--cores", 1, program, cluster.folder / f"begun-{attempt}")
            assert (completed.returncode, completed.stdout) == (0, "3\n"), completed.stderr
            said = completed.stderr
    assert left in said


@pytest.mark.slow
def test_task_whose_poison_never_leaves_its_process_shares_its_fate_though_it_has_ended(cluster: Cluster) -> None:
    """Such a poison cannot be made to crash alone, and took who waited in the same process down, again and again.

    On a busy machine the child may take so long that its value is kept, and its parent goes on with that when it is run
    again: then there is no more poison.
    """
    program = cluster.write(
        """
        import os
        import signal
        import sys
        import time
        import hdphrs

        @hdphrs.task(stealable=False)
        def poison(log):
            with open(log, "a") as file:
                file.write(".")
            os.kill(os.getpid(), signal.SIGKILL)

        def child(log):
            hdphrs.spawn(poison, log)
            return 1

        def slow(log):
            died, since_s = 0, time.monotonic()
            while not os.path.exists(log + " given up") and died < 20 and time.monotonic() < since_s + 3:
                time.sleep(0.01)
                if os.path.exists(log) and os.path.getsize(log) > died:
                    died, since_s = os.path.getsize(log), time.monotonic()
            return 2

        def parent(log):
            (other,) = [node for node in hdphrs.all_nodes() if node != hdphrs.my_node()]
            far = hdphrs.spawn_at(other, slow, log)
            near = hdphrs.spawn(child, log)
            try:
                return hdphrs.get(near) + hdphrs.get(far)
            except hdphrs.errors.TaskCrashedError as error:
                open(log + " given up", "w").close()
                return str(error).split(" took")[0]

        if __name__ == "__main__":
            print(hdphrs.get(hdphrs.spawn(parent, sys.argv[1])), os.path.getsize(sys.argv[1]))
        """
    )
    completed = cluster.run("--local-nodes", 2, "--cores", 1, program, cluster.folder / "died")
    assert completed.returncode == 0, completed.stderr
    result, died = completed.stdout.rsplit(maxsplit=1)
    assert result in ("task child", "3"), completed.stdout
    assert int(died) <= 4, completed.stderr


@pytest.mark.slow
def test_error_of_a_poison_task_tells_arguments_signal_and_last_words(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import ctypes
        import sys
        import hdphrs

        def doomed(x, y):
            print("about to die", file=sys.stderr)
            ctypes.string_at(0)

        if __name__ == "__main__":
            try:
                hdphrs.get(hdphrs.spawn(doomed, 3, y=[4]))
            except hdphrs.errors.TaskCrashedError as error:
                print(str(error).split(" took")[0])
                for attempt in error.attempts:
                    print(attempt.host, attempt.how, attempt.arguments)
                print(error.__notes__[2])
        """
    )
    completed = cluster.run("--cores", 1, program)
    assert completed.returncode == 0, completed.stderr
    first, *attempts, note = completed.stdout.split("\n", 4)
    assert first == "task doomed(3, y=[4])"
    assert attempts == ["localhost was killed by SIGSEGV "] + ["localhost was killed by SIGSEGV 3, y=[4]"] * 2
    for words in ("about to die", "Fatal Python error: Segmentation fault", "in doomed"):
        assert words in note
        assert completed.stderr.count(words) == 3
    assert "hub.py" not in note


@pytest.mark.slow
def test_task_that_wants_more_memory_than_it_may_have_gets_a_memory_error(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs

        def hog(size):
            return len(bytearray(size))

        if __name__ == "__main__":
            for size in (1 << 20, 1 << 29):
                try:
                    print(hdphrs.get(hdphrs.spawn(hog, size)))
                except MemoryError:
                    print("no memory")
        """
    )
    completed = cluster.run("--memory-max", "256M", program)
    assert completed.stdout == f"{1 << 20}\nno memory\n", completed.stderr
    assert "replaced" not in completed.stderr


def _is_empty(file: Path) -> bool:
    return not file.read_text()


@pytest.fixture
def small_cgroup() -> Iterator[Path]:
    """A memory cgroup of 250 MB, made by the test; or no test."""
    name = f"hdphrs-test-{uuid.uuid4().hex}"
    for parent, bound in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
        group = Path("/sys/fs/cgroup") / parent / name
        try:
            group.mkdir()
            (group / bound).write_text("250000000")
        except OSError:
            if group.is_dir():
                group.rmdir()
            continue
        yield group
        eventually(partial(_is_empty, group / "cgroup.procs"), SOON_S, "the end of all in the group")
        group.rmdir()
        return
    pytest.skip("no memory cgroup can be made here")


@pytest.mark.slow
def test_kill_for_want_of_memory_is_told_from_other_kills(cluster: Cluster, small_cgroup: Path) -> None:
    program = cluster.write(
        """
        import os
        import signal
        import hdphrs

        def hog(size):
            block = bytearray(size)
            block[::4096] = b"x" * len(block[::4096])

        def kill(pid):
            os.kill(os.getpid(), signal.SIGKILL)

        if __name__ == "__main__":
            for function, argument in ((hog, 1 << 29), (kill, 0)):
                try:
                    hdphrs.get(hdphrs.spawn(function, argument))
                except hdphrs.errors.TaskCrashedError as error:
                    print([attempt.how for attempt in error.attempts])
        """
    )
    launch = f'echo $$ > {small_cgroup}/cgroup.procs; exec "$0" "$@"'
    completed = subprocess.run(
        ["sh", "-c", launch, sys.executable, "-m", "hdphrs", "run", "--cores", "1", program],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env=os.environ | {MARK: cluster.mark},
    )
    killed = "was killed by SIGKILL"
    assert completed.stdout == f"{[killed + ', out of memory'] * 3}\n{[killed] * 3}\n", completed.stderr


@pytest.mark.slow
def test_a_task_that_holds_the_gil_for_long_costs_nobody_their_life(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import ctypes
        import hdphrs

        def hold(seconds):
            ctypes.PyDLL(None).sleep(seconds)
            return seconds

        def good(n):
            return n * n

        holders = [hdphrs.spawn_at(node, hold, 8) for node in hdphrs.all_nodes()]
        squares = [hdphrs.spawn(good, n) for n in range(100)]
        assert [hdphrs.get(f) for f in squares] == [n * n for n in range(100)]
        print([hdphrs.get(f) for f in holders])
        """
    )
    completed = cluster.run("--local-nodes", 2, "--cores", 1, "--detect-after", 5, program)
    assert completed.stdout == "[8, 8]\n", completed.stderr
    assert completed.stderr == ""


def test_r11_after_kill_9_of_the_root_node_everything_ends_and_the_program_with_one_line(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, time
        print("begun", flush=True)
        hdphrs.get(hdphrs.spawn(time.sleep, 60))
        """
    )
    process = cluster.start("--local-nodes", 2, program)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    os.kill(cluster.nodes()[0], signal.SIGKILL)
    completed = cluster.finish(SOON_S)
    assert completed.returncode != 0
    lines = [line for line in completed.stderr.splitlines() if "root node" in line]
    assert lines, completed.stderr
    assert "Traceback" not in completed.stderr


@pytest.mark.parametrize("victim", ["program", "launcher"])
def test_after_kill_9_of_program_or_launcher_nothing_is_left(cluster: Cluster, victim: str) -> None:
    program = cluster.write(
        """
        import hdphrs, time
        def long(): time.sleep(60)
        future = hdphrs.spawn(long)
        print("begun", flush=True)
        hdphrs.get(future)
        """
    )
    process = cluster.start("--local-nodes", 2, program)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    pid = process.pid if victim == "launcher" else cluster.processes("hdphrs.program")[0]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not cluster.processes(), GONE_S, "the end of all processes")
