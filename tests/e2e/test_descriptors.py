"""Tasks and programs that close, replace or write into descriptors that are not theirs: a task is charged, a program is
told, and nothing hangs."""

from __future__ import annotations

import json
import textwrap

import pytest

from tests.e2e.harness import SOON_S, Cluster

OURS = """
    import contextlib, ctypes, json, os, socket, threading, time
    import hdphrs
    from hdphrs.errors import TaskCrashedError

    def reap(pid):
        "A copy that C code makes may wait for ever, in CPython, for a thread that it has not."
        for _ in range(100):
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
            time.sleep(0.02)
        os.kill(pid, 9)
        os.waitpid(pid, 0)

    def ours(what):
        "Descriptors of this process beyond the standard ones: sockets, pipes, or shared memory."
        found = []
        for number in sorted(int(name) for name in os.listdir("/proc/self/fd")):
            try:
                target = os.readlink(f"/proc/self/fd/{number}")
            except OSError:
                continue
            if number > 2 and what in target:
                found.append(number)
        return found

    def null(path=os.devnull):
        return os.open(path, os.O_RDWR)

    def write(data, what="socket:"):
        for fd in ours(what):
            with contextlib.suppress(OSError):  # it is for reading alone
                os.write(fd, data)

    def good(n):
        return n * n

    opened = []
"""

MAIN = """
    if __name__ == "__main__":
        before = [hdphrs.spawn(good, n) for n in range(30)]
        bad = hdphrs.spawn(do)
        after = [hdphrs.spawn(good, n) for n in range(30, 60)]
        values = [hdphrs.get(future) for future in before + after]
        try:
            said = ["value", hdphrs.get(bad)]
        except TaskCrashedError as error:
            said = ["crashed", len(error.attempts), *sorted({attempt.how for attempt in error.attempts})]
        print(json.dumps([values == [n * n for n in range(60)], said]))
"""

LOST = "lost its links to the node (their descriptors were closed or replaced)"
SPOILT = "wrote something of its own into the descriptors of its links to the node"

STAY = "time.sleep(1000)"

FATAL = {
    "closes all": ("os.closerange(3, 65536)", LOST),
    "closes all, and opens files": (
        "os.closerange(3, 65536); opened[:] = [open(os.devnull) for _ in range(600)]",
        LOST,
    ),
    "closes all, and opens sockets": (
        "os.closerange(3, 65536); opened[:] = [socket.socketpair() for _ in range(300)]",
        LOST,
    ),
    "closes all, and goes on for long": (f"os.closerange(3, 65536); {STAY}", LOST),
    "closes all, and waits for a child": (
        "child = hdphrs.spawn(good, 3); os.closerange(3, 65536); return hdphrs.get(child)",
        LOST,
    ),
    "closes all in a thread that it leaves behind": (
        "threading.Timer(0.05, os.closerange, (3, 65536)).start(); time.sleep(0.2)",
        LOST,
    ),
    "closes all, with a copy that keeps them": (
        "ctypes.PyDLL(None).fork() or os.execlp('sleep', 'sleep', '3'); os.closerange(3, 65536)",
        LOST,
    ),
    "closes all, with a copy of itself that keeps them": (
        "ctypes.PyDLL(None).fork() or time.sleep(3); os.closerange(3, 65536)",
        LOST,
    ),
    "closes the sockets": ("[os.close(fd) for fd in ours('socket:')]", LOST),
    "closes the pipes": ("[os.close(fd) for fd in ours('pipe:')]", LOST),
    "replaces the sockets": (f"[os.dup2(null(), fd) for fd in ours('socket:')]; {STAY}", LOST),
    "replaces the pipes": (f"[os.dup2(null(), fd) for fd in ours('pipe:')]; {STAY}", LOST),
    "replaces all by zeros": (f"[os.dup2(null('/dev/zero'), fd) for fd in ours('')]; {STAY}", LOST),
    "writes text into the sockets": (f"write(b'hello, world' * 9); {STAY}", SPOILT),
    "writes text into the sockets, and returns": ("write(b'hello, world' * 9)", SPOILT),
    "writes a number into the sockets, and returns": ("write(b'\\0\\0\\0\\1\\5')", SPOILT),
    "writes text into the pipes": (f"write(b'hello, world', 'pipe:'); {STAY}", LOST),
    "writes nulls into the sockets": (f"write(bytes(99)); {STAY}", SPOILT),
    "writes a number into the sockets": (f"write(b'\\0\\0\\0\\1\\5'); {STAY}", SPOILT),
    "writes an unknown message": (f"write(b'\\0\\0\\0\\3\\x91\\x91\\5'); {STAY}", SPOILT),
    "writes a result that is none": (f"write(b'\\0\\0\\0\\4\\x91\\x92\\6\\5'); {STAY}", SPOILT),
}
"""What a task does that takes its scheduler down, and how that is said to have ended."""

HARMLESS = {
    "closes what is not open": "os.closerange(600, 1000)",
    "closes the standard streams": "[os.close(fd) for fd in (0, 1, 2)]",
    "forks a daemon": """
        if os.fork() == 0:
            os.closerange(0, 65536)
            os._exit(0)
        os.wait()
    """,
    "has a fork that returns": """
        if os.fork():
            os.wait()
    """,
    "has a copy that returns": """
        if pid := ctypes.PyDLL(None).fork():
            reap(pid)
    """,
    "has a copy that spawns, prints and gets": """
        pid = ctypes.PyDLL(None).fork()
        print("words")
        child = hdphrs.spawn(good, 1)
        pid and reap(pid)
        return hdphrs.get(child)
    """,
    "looks for the page, which it must not find": "assert not ours('memfd:')",
    "leaves a child behind that never stops writing": """
        if os.fork() == 0:
            for _ in range(200_000):
                os.write(2, b"x" * 79 + b"\\n")
            os._exit(0)
    """,
}
"""What a task does that nobody minds."""


def program(do: str) -> str:
    """A program of which one task does this."""
    body = textwrap.indent(textwrap.dedent(do).strip(), " " * 4)
    return "\n".join([textwrap.dedent(OURS), "def do():", body, "    return 1", textwrap.dedent(MAIN)])


def outcome(cluster: Cluster, do: str) -> object:
    """Whether the program has got all its tasks but one, and what of that which does this."""
    completed = cluster.run(cluster.write(program(do)), python=True, deadline_s=6 * SOON_S)
    assert completed.returncode == 0, completed.stderr
    assert "Traceback" not in completed.stderr
    return json.loads(completed.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", FATAL)
def test_task_that_meddles_with_the_links_of_its_scheduler_fails_alone(cluster: Cluster, kind: str) -> None:
    do, how = FATAL[kind]
    assert outcome(cluster, do) == [True, ["crashed", 3, how]]


@pytest.mark.parametrize("kind", HARMLESS)
def test_task_that_meddles_with_what_nobody_needs_has_its_value(cluster: Cluster, kind: str) -> None:
    assert outcome(cluster, HARMLESS[kind]) == [True, ["value", 1]]


SCRIBBLED = """
    def pages():
        return [os.readlink(f"/proc/self/fd/{fd}") for fd in ours("hdphrs-page")]

    def scribble():
        write(b"\\x7f" * 4096, "")
        time.sleep(1000)

    if __name__ == "__main__":
        bad = hdphrs.spawn(scribble)
        try:
            hdphrs.get(bad)
        except TaskCrashedError:
            print(hdphrs.get(hdphrs.spawn(pages)))
"""


def test_task_that_writes_into_all_descriptors_does_not_reach_what_the_page_says_of_the_work(cluster: Cluster) -> None:
    source = cluster.write(textwrap.dedent(OURS) + textwrap.dedent(SCRIBBLED))
    report = cluster.folder / "report"
    completed = cluster.run("--cores", 2, "--report", report, source, deadline_s=3 * SOON_S)
    assert (completed.returncode, completed.stdout) == (0, "[]\n"), completed.stderr
    told = json.loads(report.read_text())
    assert 0 <= told["lost_s"] < SOON_S
    assert 0 <= told["recomputed_s"] < SOON_S


MEDDLING = """
    import os, sys, time
    import hdphrs

    def square(n):
        return n * n

    def links():
        found = "/proc/self/fd"
        return [int(name) for name in os.listdir(found) if "socket:" in os.path.realpath(f"{found}/{name}")]

    def meddle():
        null = os.open(os.devnull, os.O_RDWR)
        match sys.argv[1]:
            case "closes all":
                os.closerange(3, 65536)
            case "closes all, and opens files":
                os.closerange(3, 65536)
                global kept
                kept = [open(os.devnull) for _ in range(600)]
            case "replaces its link":
                [os.dup2(null, fd) for fd in links()]
            case "writes into its link":
                [os.write(fd, b"hello, world" * 9) for fd in links()]

    if __name__ == "__main__":
        assert hdphrs.get(hdphrs.spawn(square, 3)) == 9
        under_way = hdphrs.spawn(time.sleep, 1000)
        print("begun", flush=True)
        meddle()
        for n in range(1000):
            hdphrs.get(hdphrs.spawn(square, n))
        hdphrs.get(under_way)
        print("not reached")
"""

WAYS = {"python": ([], True), "run": ([], False), "nodes": (["--local-nodes", 2], False)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "kind", ["closes all", "closes all, and opens files", "replaces its link", "writes into its link"]
)
def test_program_that_meddles_with_its_link_is_told_and_ends(cluster: Cluster, kind: str, way: str) -> None:
    """What is under way is lost; a program with a node of its own may go on with the next one."""
    options, python = WAYS[way]
    completed = cluster.run(*options, cluster.write(MEDDLING), kind, python=python, deadline_s=3 * SOON_S)
    assert (completed.returncode, completed.stdout) == (1, "begun\n"), completed.stderr
    if kind == "writes into its link":
        assert (
            "hdphrs: the program has written something of its own into the descriptor of its link" in completed.stderr
        )
    else:
        assert "this program has closed or replaced the descriptor of its link to the root node" in completed.stderr
    assert completed.stderr.count("Traceback") == (1 if way == "python" else 0), completed.stderr


@pytest.mark.parametrize("way", WAYS)
def test_program_that_becomes_a_daemon_before_it_spawns_has_its_values(cluster: Cluster, way: str) -> None:
    """Under `hdphrs run` it has its link before that: its daemon has a node of its own.

    Newer Pythons warn of a fork beside other threads, and a program that is attached has two of ours.
    """
    options, python = WAYS[way]
    source = """
        import os, warnings
        import hdphrs
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)

        def square(n):
            return n * n

        if __name__ == "__main__":
            if pid := os.fork():
                os.waitpid(pid, 0)
                os._exit(0)
            os.setsid()
            os.closerange(3, 65536)
            print(hdphrs.get(hdphrs.spawn(square, 3)))
    """
    completed = cluster.run(*options, cluster.write(source), python=python, deadline_s=3 * SOON_S)
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "9\n", "")
