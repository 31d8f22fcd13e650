"""Tasks and programs that close, replace or write into descriptors that are not theirs: a task is charged, a program is
told, and nothing hangs."""

from __future__ import annotations

import json

import pytest

from tests.e2e.harness import SOON_S, Cluster

OURS = """
    import ctypes, json, os, re, signal, socket, stat, sys, threading, time
    import hdphrs
    from hdphrs.errors import TaskCrashedError

    def ours(what):
        "Descriptors of this scheduler process that a task has not made: sockets, pipes, or shared memory."
        found = []
        for number in sorted(int(name) for name in os.listdir("/proc/self/fd")):
            try:
                target = os.readlink(f"/proc/self/fd/{number}")
            except OSError:
                continue
            if number > 2 and what in target:
                found.append(number)
        return found

    def good(n):
        return n * n
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

FATAL = {
    "closes all": ("os.closerange(3, 65536)", LOST),
    "closes all, and opens files": (
        "os.closerange(3, 65536); global kept; kept = [open(os.devnull) for _ in range(600)]",
        LOST,
    ),
    "closes all, and opens sockets": (
        "os.closerange(3, 65536); global kept; kept = [socket.socketpair() for _ in range(300)]",
        LOST,
    ),
    "closes all, and goes on for long": ("os.closerange(3, 65536); time.sleep(1000)", LOST),
    "closes all, and waits for a child": (
        "child = hdphrs.spawn(good, 3); os.closerange(3, 65536); return hdphrs.get(child)",
        LOST,
    ),
    "closes the sockets": ("[os.close(fd) for fd in ours('socket:')]", LOST),
    "closes the pipes": ("[os.close(fd) for fd in ours('pipe:')]", LOST),
    "replaces the sockets": (
        "null = os.open(os.devnull, os.O_RDWR); [os.dup2(null, fd) for fd in ours('socket:')]; time.sleep(1000)",
        LOST,
    ),
    "replaces the pipes": (
        "null = os.open(os.devnull, os.O_RDWR); [os.dup2(null, fd) for fd in ours('pipe:')]; time.sleep(1000)",
        LOST,
    ),
    "replaces all by zeros": (
        "zero = os.open('/dev/zero', os.O_RDWR); [os.dup2(zero, fd) for fd in ours('')]; time.sleep(1000)",
        LOST,
    ),
    "closes all, with a copy that keeps them": (
        "ctypes.CDLL(None).fork() or time.sleep(3); os.closerange(3, 65536)",
        LOST,
    ),
    "writes text into the sockets": (
        "[os.write(fd, b'hello, world' * 9) for fd in ours('socket:')]; time.sleep(1000)",
        SPOILT,
    ),
    "writes nulls into the sockets": ("[os.write(fd, bytes(99)) for fd in ours('socket:')]; time.sleep(1000)", SPOILT),
    "writes an object into the sockets": (
        "[os.write(fd, b'\\0\\0\\0\\1\\5') for fd in ours('socket:')]; time.sleep(1000)",
        SPOILT,
    ),
    "writes an unknown message": (
        "[os.write(fd, b'\\0\\0\\0\\3\\x91\\x91\\5') for fd in ours('socket:')]; time.sleep(1000)",
        SPOILT,
    ),
    "writes a result that is none": (
        "[os.write(fd, b'\\0\\0\\0\\4\\x91\\x92\\6\\5') for fd in ours('socket:')]; time.sleep(1000)",
        SPOILT,
    ),
}
"""What a task does that takes its scheduler down, and how that is said to have ended."""

HARMLESS = {
    "closes what is not open": ("os.closerange(600, 1000); return 1"),
    "closes the standard streams": "[os.close(fd) for fd in (0, 1, 2)]; return 1",
    "becomes a daemon's child": "pid = os.fork()\n    if pid == 0:\n        os.closerange(0, 65536); os._exit(0)\n    os.waitpid(pid, 0); return 1",
    "has a fork that returns": "pid = os.fork()\n    if pid: os.waitpid(pid, 0)\n    return 1",
    "has a copy that returns": "pid = ctypes.CDLL(None).fork()\n    if pid: os.waitpid(pid, 0)\n    return 1",
    "has a copy that spawns, prints and returns": (
        "pid = ctypes.CDLL(None).fork()\n    print('words')\n    child = hdphrs.spawn(good, 1)\n"
        "    if pid: os.waitpid(pid, 0)\n    return hdphrs.get(child)"
    ),
    "writes into the pages": "[os.pwrite(fd, b'\\xff' * 64, 0) for fd in ours('memfd:')]; return 1",
    "truncates the pages": (
        "for fd in ours('memfd:'):\n        try: os.ftruncate(fd, 0)\n        except OSError: pass\n    return 1"
    ),
}
"""What a task does that nobody minds."""


def outcome(cluster: Cluster, what: str) -> object:
    """What the program has got of a task that does this, and whether it has all others."""
    program = cluster.write(OURS + f"\n    def do():\n        {what.replace(chr(10), chr(10) + '    ')}\n" + MAIN)
    completed = cluster.run(program, python=True, deadline_s=6 * SOON_S)
    assert completed.returncode == 0, completed.stderr
    assert "Traceback" not in completed.stderr
    return json.loads(completed.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", FATAL)
def test_task_that_meddles_with_the_links_of_its_scheduler_fails_alone(cluster: Cluster, kind: str) -> None:
    what, how = FATAL[kind]
    assert outcome(cluster, what) == [True, ["crashed", 3, how]]


@pytest.mark.parametrize("kind", HARMLESS)
def test_task_that_meddles_with_what_nobody_needs_has_its_value(cluster: Cluster, kind: str) -> None:
    assert outcome(cluster, HARMLESS[kind]) == [True, ["value", 1]]
