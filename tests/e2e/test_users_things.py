"""What processes of ours leave alone: shared memory, logging, warnings, streams, signals, threads; and how they end."""

from __future__ import annotations

from multiprocessing import shared_memory
from pathlib import Path

import pytest

from tests.e2e.harness import SOON_S, Cluster, eventually, written


def run(cluster: Cluster, program: str, *options: object, python: bool = True, said: str = "") -> list[str]:
    """What a program prints that must end well; its standard error has this in it, if anything is given."""
    process = cluster.start(*options, cluster.write(program), python=python)
    output, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    assert said in errors
    assert "Traceback" not in errors, errors
    return output.splitlines()


# ---- shared memory ----------------------------------------------------------------------------------------------

BLOCKS = """
    import os
    import hdphrs
    from multiprocessing import shared_memory

    def add(name):
        block = shared_memory.SharedMemory(name=name)
        block.buf[0] += 1
        block.close()
        return os.getpid()

    def make(value):
        block = shared_memory.SharedMemory(create=True, size=100)
        block.buf[0] = value
        block.close()
        return block.name

    def unlink(name):
        block = shared_memory.SharedMemory(name=name)
        block.close()
        block.unlink()

    @hdphrs.task(attempts=1)
    def die(name):
        add(name)
        os._exit(3)

    def value(name):
        block = shared_memory.SharedMemory(name=name)
        found = block.buf[0]
        block.close()
        return found

    def killed(name):
        try:
            hdphrs.run(die, name)
        except hdphrs.errors.TaskCrashedError:
            pass
"""


@pytest.mark.parametrize("options", [None, ["--cores", 1], ["--local-nodes", 2, "--cores", 1]])
def test_a_block_of_the_program_outlives_the_schedulers_that_have_opened_it(
    cluster: Cluster, options: list[object] | None
) -> None:
    program = (
        BLOCKS
        + """
    if __name__ == "__main__":
        block = shared_memory.SharedMemory(create=True, size=100)
        futures = [hdphrs.spawn_at(node, add, block.name) for node in hdphrs.all_nodes()]
        added = len([hdphrs.get(future) for future in futures])
        killed(block.name)
        hdphrs.run(add, block.name)
        print(value(block.name) - added)
        with hdphrs.Executor(1) as executor:
            executor.submit(add, block.name).result()
        print(value(block.name) - added)
        block.close()
        block.unlink()
    """
    )
    assert run(cluster, program, *(options or ()), python=options is None) == ["2", "3"]


def test_a_block_of_a_task_outlives_its_scheduler_and_another_task_may_unlink_it(cluster: Cluster) -> None:
    program = (
        BLOCKS
        + """
    if __name__ == "__main__":
        name = hdphrs.run(make, 5)
        killed(name)
        killed(name)
        hdphrs.run(add, name)
        print(value(name))
        hdphrs.run(unlink, name)
        print(os.path.exists("/dev/shm/" + name))
    """
    )
    assert run(cluster, program) == ["8", "False"]


def test_what_a_task_leaves_behind_is_deleted_when_the_run_is_over(cluster: Cluster) -> None:
    program = (
        BLOCKS
        + """
    if __name__ == "__main__":
        print(hdphrs.run(make, 5))
    """
    )
    (name,) = run(cluster, program, said="leaked shared_memory")

    def is_gone() -> bool:
        try:
            shared_memory.SharedMemory(name=name).close()
        except FileNotFoundError:
            return True
        return False

    eventually(is_gone, SOON_S, "the block is deleted")


def test_a_pool_and_semaphores_in_a_task_work(cluster: Cluster) -> None:
    program = (
        BLOCKS
        + """
    import math, multiprocessing

    def pools(method):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            lock = context.Lock()
            with lock:
                return pool.map(math.factorial, range(5))

    if __name__ == "__main__":
        for method in ("fork", "spawn", "forkserver"):
            print(hdphrs.run(pools, method))
    """
    )
    assert run(cluster, program) == ["[1, 1, 2, 6, 24]"] * 3


# ---- hooks ------------------------------------------------------------------------------------------------------

LOOK = """
    import faulthandler, io, logging, os, signal, subprocess, sys, threading, warnings
    import hdphrs

    def look():
        names = ("SIGTERM", "SIGPIPE", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGALRM", "SIGCHLD", "SIGHUP", "SIGRTMAX")
        child = subprocess.run([sys.executable, "-c", CHILD], close_fds=False, capture_output=True, text=True).stdout
        return {
            "handlers": (logging.getLogger().handlers, logging.getLogger("x").hasHandlers()),
            "hooks": (sys.excepthook is sys.__excepthook__, sys.unraisablehook is sys.__unraisablehook__,
                      threading.excepthook is threading.__excepthook__, sys.displayhook is sys.__displayhook__,
                      warnings.showwarning is warnings._showwarning_orig),
            "streams": [(isinstance(each, io.TextIOWrapper), each.name, each.mode, each.fileno())
                        for each in (sys.stdout, sys.stderr)],
            "own": (sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__),
            "signals": [repr(signal.getsignal(getattr(signal, name))) for name in names],
            "mask": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
            "threads": (threading.active_count(), len(threading.enumerate())),
            "main": threading.current_thread() is threading.main_thread(),
            "variables": sorted(name for name in os.environ if "HDPHRS" in name or name == "PYTHONSAFEPATH"),
            "child": child,
        }

    CHILD = (
        "import os; status = dict(line.split(':', 1) for line in open('/proc/self/status'));"
        "print([status[name] for name in ('SigBlk', 'SigIgn', 'SigCgt')], len(os.listdir('/proc/self/fd')),"
        "sorted(name for name in os.environ if 'HDPHRS' in name or name == 'PYTHONSAFEPATH'))"
    )

    def differences(one, other):
        return {name: (one[name], other[name]) for name in one if one[name] != other[name]}
"""


@pytest.mark.parametrize("output", ["raw", "prefixed"])
def test_a_task_sees_what_a_program_sees_and_so_do_its_children(
    cluster: Cluster, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HDPHRS_TEST_MARK", raising=False)
    program = (
        LOOK
        + """
    if __name__ == "__main__":
        before = look()
        inside = hdphrs.run(look)
        print(differences(before, inside))
        print(differences(before, look()))
    """
    )
    monkeypatch.setenv("HDPHRS_OUTPUT", output)
    assert run(cluster, program) == ["{}", "{}"]


def test_waiting_for_all_threads_that_python_shows_ends(cluster: Cluster) -> None:
    program = """
    import threading, hdphrs

    def join_all():
        for thread in threading.enumerate():
            if thread is not threading.current_thread():
                thread.join()
        return threading.active_count()

    if __name__ == "__main__":
        print(hdphrs.run(join_all), join_all())
    """
    assert run(cluster, program) == ["1 1"]


def test_the_hook_of_a_program_under_hdphrs_run_is_its_own(cluster: Cluster) -> None:
    program = """
    import sys
    print(sys.excepthook is sys.__excepthook__)
    """
    assert run(cluster, program, "--cores", 1, python=False) == ["True"]


def test_sigterm_set_to_its_default_again_in_a_task_looks_so_and_children_die_of_it(cluster: Cluster) -> None:
    program = """
    import os, signal, hdphrs

    def check():
        mine = lambda number, frame: None
        before = signal.signal(signal.SIGTERM, mine)
        set_one = signal.getsignal(signal.SIGTERM) is mine
        signal.signal(signal.SIGTERM, before)
        after = signal.getsignal(signal.SIGTERM)
        child = os.fork()
        if child == 0:
            signal.raise_signal(signal.SIGTERM)
            os._exit(0)
        return before.name, set_one, after.name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    if __name__ == "__main__":
        print(hdphrs.run(check))
    """
    assert run(cluster, program) == ["('SIG_DFL', True, 'SIG_DFL', -15)"]


def test_logging_is_configured_in_a_task_as_in_a_program(cluster: Cluster) -> None:
    program = """
    import io, logging, hdphrs

    def configured():
        file = io.StringIO()
        logging.basicConfig(stream=file, level=logging.INFO, format="%(levelname)s %(message)s")
        logging.getLogger("some.library").info("one")
        logging.info("two")
        return file.getvalue()

    def plain():
        logging.getLogger("some.library").warning("three")
        logging.warning("four")

    if __name__ == "__main__":
        kept = logging.StreamHandler(io.StringIO())
        logging.getLogger().addHandler(kept)
        hdphrs.run(plain)
        print(kept.stream.getvalue().split())
        print(hdphrs.run(configured).split())
    """
    assert run(cluster, program) == ["['three', 'four']", "['INFO', 'one', 'INFO', 'two']"]


# ---- the end ----------------------------------------------------------------------------------------------------


def test_a_normal_end_calls_exit_handlers_joins_threads_and_closes_files(cluster: Cluster) -> None:
    program = f"""
    import atexit, concurrent.futures, gzip, logging.handlers, multiprocessing, multiprocessing.util, os, sys
    import threading, time, weakref, zipfile
    import hdphrs

    FOLDER = {str(cluster.folder)!r}
    KEPT = []

    class Thing:
        pass

    def note(text):
        with open(os.path.join(FOLDER, "noted"), "a") as file:
            file.write(text + "\\n")

    def leave_behind():
        atexit.register(note, "atexit")
        def late():
            threading.main_thread().join()  # that is when the others are waited for
            note("thread")
        threading.Thread(target=late).start()
        thing = Thing()
        weakref.finalize(thing, note, "finalize")
        multiprocessing.util.Finalize(None, note, ("multiprocessing",), exitpriority=1)
        pool = concurrent.futures.ThreadPoolExecutor(1)
        pool.submit(time.sleep, 0)
        file = open(os.path.join(FOLDER, "text"), "w")
        file.write("text")
        binary = open(os.path.join(FOLDER, "binary"), "wb")
        binary.write(b"binary")
        packed = gzip.open(os.path.join(FOLDER, "packed.gz"), "wt")
        packed.write("packed")
        archive = zipfile.ZipFile(os.path.join(FOLDER, "archive.zip"), "w")
        archive.writestr("name", "archived")
        memory = logging.handlers.MemoryHandler(100, target=logging.FileHandler(os.path.join(FOLDER, "log")))
        logger = logging.getLogger("mine")
        logger.addHandler(memory)
        logger.warning("logged")
        KEPT.extend([thing, pool, file, binary, packed, archive, memory])
        atexit.register(print, "said at the end")
        return os.getpid()

    if __name__ == "__main__":
        hdphrs.run(leave_behind)
    """
    assert run(cluster, program) == ["said at the end"]
    folder = cluster.folder
    assert sorted(written(folder / "noted")) == ["atexit", "finalize", "multiprocessing", "thread"]
    assert ((folder / "text").read_text(), (folder / "binary").read_text()) == ("text", "binary")
    import gzip
    import zipfile

    assert gzip.decompress((folder / "packed.gz").read_bytes()) == b"packed"
    with zipfile.ZipFile(folder / "archive.zip") as archive:
        assert archive.read("name") == b"archived"
    assert (folder / "log").read_text() == "logged\n"


@pytest.mark.parametrize("options", [["--cores", 1], ["--local-nodes", 2, "--cores", 1]])
def test_the_end_of_a_run_of_several_nodes_does_so_on_each(cluster: Cluster, options: list[object]) -> None:
    program = f"""
    import atexit, hdphrs

    def note(node):
        open({str(cluster.folder / "noted")!r}, "a").write(f"{{node}}\\n")

    def leave_behind(node):
        atexit.register(note, node)

    if __name__ == "__main__":
        nodes = hdphrs.all_nodes()
        for node in nodes:
            hdphrs.get(hdphrs.spawn_at(node, leave_behind, node))
        print(len(nodes))
    """
    (nodes,) = run(cluster, program, *options, python=False)
    assert len(set(written(cluster.folder / "noted"))) == int(nodes)


def test_a_killed_scheduler_calls_nothing_and_one_that_hangs_at_its_end_is_ended(cluster: Cluster) -> None:
    program = f"""
    import atexit, os, signal, time, hdphrs

    def note(text):
        open({str(cluster.folder / "noted")!r}, "a").write(text + "\\n")

    @hdphrs.task(attempts=1)
    def killed():
        atexit.register(note, "killed")
        os.kill(os.getpid(), signal.SIGKILL)

    def hangs():
        atexit.register(time.sleep, 3600)
        atexit.register(note, "begun")

    if __name__ == "__main__":
        try:
            hdphrs.run(killed)
        except hdphrs.errors.TaskCrashedError:
            hdphrs.run(hangs)
    """
    assert run(cluster, program) == []
    assert written(cluster.folder / "noted") == ["begun"]


def test_an_exit_handler_that_fails_is_told_and_the_others_are_called(cluster: Cluster, tmp_path: Path) -> None:
    program = f"""
    import atexit, hdphrs

    def note():
        open({str(cluster.folder / "noted")!r}, "a").write("noted\\n")

    def leave_behind():
        atexit.register(note)
        atexit.register(lambda: 1 / 0)

    if __name__ == "__main__":
        hdphrs.run(leave_behind)
    """
    process = cluster.start(cluster.write(program), python=True)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 0
    assert "ZeroDivisionError" in errors
    assert written(cluster.folder / "noted") == ["noted"]
