"""What a forked process has of the one that it is a copy of."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from hdphrs.node.process import MODULE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="schedulers are forked on Linux only")

LOOK = """
import json, os, sys
from functools import partial
from hdphrs.node.fork import Fork, become

def live(answer, kept, errors):
    become(["hdphrs.scheduler"], [kept, answer], None, errors)
    print("to the standard error", file=sys.stderr, flush=True)
    seen = {
        "open": sorted(int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")),
        "input": sys.stdin.read(),
        "command": open("/proc/self/cmdline", "rb").read().decode().split("\\0"),
        "main": sorted(vars(sys.modules["__main__"])),
    }
    os.write(answer, json.dumps(seen).encode())
    os._exit(3)

reading, answer = os.pipe()
reading_errors, errors = os.pipe()
kept, other = os.pipe()
child = Fork(partial(live, answer, kept, errors))
os.close(answer), os.close(errors)
status = child.wait()
print(json.dumps([status, child.wait(), [kept], os.read(reading, 9999).decode(), os.read(reading_errors, 99).decode()]))
"""


def test_forked_process_is_as_a_new_one_would_be(tmp_path: Path) -> None:
    script = tmp_path / "a_script_whose_name_is_long_enough_for_the_other_command_line.py"
    script.write_text(LOOK)
    completed = subprocess.run(
        [sys.executable, str(script)], input="not for a scheduler", capture_output=True, text=True, check=True
    )
    status, again, kept, answer, errors = json.loads(completed.stdout)
    seen = json.loads(answer)
    assert (status, again, errors) == (3, 3, "to the standard error\n")
    assert set(seen["open"]) >= {0, 1, 2, *kept}
    assert len(seen["open"]) == 5, "the two that are kept, and the standard ones"
    assert seen["input"] == ""
    assert [word for word in seen["command"] if word] == [sys.executable, "-m", MODULE]
    assert "LOOK" not in seen["main"]
    assert "live" not in seen["main"]


KILLED = """
import sys, time
from functools import partial
from hdphrs.node.fork import Fork
child = Fork(partial(time.sleep, 60))
child.kill()
print(child.wait())
child.kill()
print(Fork(lambda: 1 / 0).wait())
"""


def test_forked_process_can_be_killed_and_one_that_fails_says_why() -> None:
    completed = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=True)
    assert completed.stdout.split() == [str(-signal.SIGKILL), "70"]
    assert "ZeroDivisionError" in completed.stderr


def test_forked_process_of_a_dead_node_ends() -> None:
    ours, theirs = socket.socketpair()
    script = f"""
import os, sys
from hdphrs.node.process import SchedulerProcess
from hdphrs.wire.page import Page
link = {theirs.fileno()}
if os.fork() == 0:  # a node, which dies as soon as its scheduler is there
    page = Page.create(1)
    process = SchedulerProcess(page, 0, "reliable", None, on_fork=lambda: None)
    os.write(link, b"%d " % process.pid)
    process.work.recv(1)
    os._exit(0)
os.wait()
"""
    with ours, theirs:
        subprocess.run([sys.executable, "-c", script], pass_fds=[theirs.fileno()], check=True, timeout=120)
        pid = int(ours.recv(20))
    with suppress(ProcessLookupError):
        ended = os.pidfd_open(pid)
        assert select.select([ended], [], [], 20)[0]
        os.close(ended)


def test_forked_scheduler_loads_nothing_of_ours_anew() -> None:
    script = """
import sys
from hdphrs.node.process import SchedulerProcess
from hdphrs.wire.page import Page
if __name__ == "__main__":
    process = SchedulerProcess(
        Page.create(1), 0, "reliable", None, on_fork=lambda: print(*sys.modules, flush=True)
    )
    process.work.recv(1)  # it is ready
    process.kill()
"""
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    assert {"hdphrs.scheduler.hub", "hdphrs.scheduler.process"} <= set(said.split())
    assert "trio" not in said.split()


PROFILED = """
import os, sys
from functools import partial
from hdphrs.node.fork import Fork, become

def live(errors):
    become(["hdphrs.scheduler"], [], None, errors)
    files = [os.open(name, os.O_RDWR | os.O_CREAT) for name in sys.argv[1:]]
    for number in range(100):
        exec(f"def function_{number}(): pass\\nfunction_{number}()")
    os._exit(0)

child = Fork(partial(live, 2))
assert child.wait() == 0
for process in os.getpid(), child.pid:
    os.remove(f"/tmp/perf-{process}.map")
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there is nothing to be switched on for perf")
def test_what_the_interpreter_writes_for_perf_goes_nowhere_else(tmp_path: Path) -> None:
    files = [tmp_path / str(number) for number in range(5)]
    script = tmp_path / "script.py"
    script.write_text(PROFILED)
    subprocess.run(
        [sys.executable, str(script), *map(str, files)], env=os.environ | {"PYTHONPERFSUPPORT": "1"}, check=True
    )
    assert [file.read_bytes() for file in files] == [b""] * 5


APART = """
import os, sys
from hdphrs.cluster.orphans import taking_on
from hdphrs.node.fork import fork_apart

def live():
    os._exit(7)

opened = len(os.listdir("/proc/self/fd"))
with taking_on() as works:
    pid = fork_apart(live)
print(works, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), len(os.listdir("/proc/self/fd")) - opened)

mine = os.getpid()
if sys.argv[1:]:
    fork = os.fork
    def refuse():
        if sys.argv[1] == "at once" or os.getpid() != mine:
            raise BlockingIOError(11, "not now")
        return fork()
    os.fork = refuse
    fork_apart(live)
"""


def test_process_that_is_forked_apart_is_taken_on() -> None:
    completed = subprocess.run([sys.executable, "-c", APART], capture_output=True, text=True, check=True)
    assert (completed.stdout, completed.stderr) == ("True 7 0\n", "")


@pytest.mark.parametrize("when", ["at once", "then"])
def test_system_without_room_for_another_node_says_so(when: str) -> None:
    completed = subprocess.run([sys.executable, "-c", APART, when], capture_output=True, text=True, check=False)
    assert completed.stdout == "True 7 0\n"
    last = completed.stderr.splitlines()[-1]
    assert last.endswith("StartError: cannot start another node on this host: Resource temporarily unavailable")
    assert completed.stderr.count("Traceback") == 1, "of this script alone"
