"""Threads that have streams and filters of warnings of their own for a while."""

from __future__ import annotations

import io
import os
import pickle
import queue
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hdphrs.api.threads import on_start
from hdphrs.contexts.apart import Entries, PerThread, Stream, function, inherited, per_thread
from hdphrs.contexts.aspects import Aspect, Aspects, filters, streams


def in_thread(body: Callable[[], Any]) -> Any:
    """What `body()` returns in another thread."""
    said: list[Any] = []
    thread = threading.Thread(target=lambda: said.append(body()))
    thread.start()
    thread.join()
    return said[0]


@pytest.fixture
def mine() -> io.StringIO:
    """The standard output of the main thread, set after the process's has been noted."""
    return io.StringIO()


def both() -> Aspects:
    return Aspects(streams(), filters())


def test_main_thread_keeps_its_own_while_a_task_runs_in_another_one(
    mine: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, all_, classes = sys.stdout, both(), (type(sys), type(warnings))
    monkeypatch.setattr(sys, "stdout", mine)
    seen: list[tuple[bool, ...]] = []
    running, go_on = threading.Event(), threading.Event()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        of_main = warnings.filters

        def child() -> None:
            before = all_.set_aside()
            running.set()
            go_on.wait()
            seen.append((sys.stdout is base, warnings.filters is not of_main))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                warnings.warn("nothing here", UserWarning, stacklevel=1)
                sys.stdout = io.StringIO()
            all_.put_back(before)
            seen.append((sys.stdout is mine, warnings.filters is of_main))

        thread = threading.Thread(target=child)
        thread.start()
        running.wait()
        assert sys.stdout is mine
        assert warnings.filters is of_main
        print("main")
        with pytest.raises(UserWarning, match="an error"):
            warnings.warn("an error", UserWarning, stacklevel=1)
        warnings.simplefilter("ignore", FutureWarning)
        assert of_main[0][0] == "ignore"
        go_on.set()
        thread.join()
    assert seen == [(True, True), (True, True)]
    assert (mine.getvalue(), sys.stdout) == ("main\n", mine)
    assert (type(sys), type(warnings)) == classes


@pytest.fixture
def module() -> types.ModuleType:
    made = types.ModuleType("tests.contexts.made")
    made.stream, made.entries, made.call = io.StringIO(), [1, 2], str.upper  # type: ignore[attr-defined]
    return made


@pytest.fixture
def apart(module: types.ModuleType) -> PerThread:
    return PerThread(module, {"stream": Stream, "entries": Entries, "call": function, "missing": function})


def test_stand_ins_pass_on_to_the_calling_threads_value(apart: PerThread, module: Any) -> None:
    shared = vars(module).copy()
    own = {"stream": io.StringIO(), "entries": [7], "call": str.lower}

    def body() -> list[Any]:
        apart.begin(own)
        started.set()
        looked.wait()
        inside = vars(module)
        inside["stream"].write("own")
        inside["entries"].insert(0, 6)
        said = [inside["call"]("Abc"), list(inside["entries"]), 7 in inside["entries"], module.stream is own["stream"]]
        module.call = str.title
        said.append(module.call("abc"))
        apart.end(None)
        return [*said, module.call("abc")]

    started, looked, said = threading.Event(), threading.Event(), []
    thread = threading.Thread(target=lambda: said.extend(body()))
    thread.start()
    started.wait()
    vars(module)["stream"].write("shared")
    vars(module)["entries"].append(3)
    assert module.call("abc") == vars(module)["call"]("abc") == "ABC"
    assert module.entries is shared["entries"]
    module.added = 1
    kept = vars(module)["call"]
    looked.set()
    thread.join()
    assert said == ["abc", [6, 7], True, True, "Abc", "ABC"]
    assert shared["stream"].getvalue() == "shared"
    assert own["stream"].getvalue() == "own"  # type: ignore[attr-defined]
    assert (module.entries, own["entries"]) == ([1, 2, 3], [6, 7])
    assert {name: vars(module)[name] for name in shared} == shared
    assert (type(module), module.added, kept("abc")) == (types.ModuleType, 1, "ABC")


def test_two_threads_that_come_and_go_leave_nothing(apart: PerThread, module: Any) -> None:
    entered, left = threading.Barrier(2), threading.Barrier(2)

    def body(own: list[int]) -> bool:
        apart.begin({"stream": None, "entries": own, "call": None})
        entered.wait()
        is_own = module.entries is own
        left.wait()
        apart.end(None)
        return is_own

    said: list[bool] = []
    several = [threading.Thread(target=lambda n=n: said.append(body([n]))) for n in range(2)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    assert said == [True, True]
    assert (type(module), module.entries) == (types.ModuleType, [1, 2])


def test_code_that_asks_often_finds_the_same(apart: PerThread, module: Any) -> None:
    """The interpreter adapts it."""
    own: list[int] = []

    def ask() -> list[Any]:
        return [module.entries for _ in range(100)]

    shared = ask()
    apart.begin({"stream": None, "entries": own, "call": None})
    assert all(entries is own for entries in ask())
    assert not hasattr(module, "missing")
    with pytest.raises(AttributeError, match="has no attribute 'missing'"):
        _ = module.missing
    apart.end(None)
    assert ask() == shared


@pytest.fixture
def inheriting() -> Iterator[None]:
    undo = on_start(lambda body: body)
    yield
    undo()


@pytest.mark.usefixtures("inheriting")
def test_thread_that_a_thread_starts_shares_what_that_has(apart: PerThread, module: Any) -> None:
    def body() -> tuple[bool, bool]:
        apart.begin({"stream": None, "entries": own, "call": None})
        try:
            return in_thread(lambda: module.entries is own), in_thread(lambda: setattr(module, "call", len)) is None
        finally:
            apart.end(None)

    own: list[int] = []
    assert in_thread(body) == (True, True)
    assert module.call is str.upper


def test_child_that_a_thread_of_a_childs_runs_leaves_that_what_it_has(mine: io.StringIO) -> None:
    """All in one process; the thread shares the streams of its task until it runs a child itself."""
    base, one = sys.stdout, streams()
    undo = on_start(lambda body: body)
    try:

        def grandchild() -> tuple[bool, ...]:
            shares = sys.stdout is mine
            before = one.set_aside()
            inside.set()
            looked.wait()
            is_base = sys.stdout is base
            one.put_back(before)
            return shares, is_base, sys.stdout is mine

        def child() -> tuple[object, ...]:
            before = one.set_aside()
            sys.stdout = mine
            said: list[object] = []
            thread = threading.Thread(target=lambda: said.append(grandchild()))
            thread.start()
            inside.wait()
            is_mine = sys.stdout is mine
            looked.set()
            thread.join()
            one.put_back(before)
            return *said, is_mine, sys.stdout is base

        inside, looked = threading.Event(), threading.Event()
        assert in_thread(child) == ((True, True, True), True, True)
    finally:
        undo()


def test_module_pickles_meanwhile() -> None:
    apart = per_thread(warnings, {"filters": Entries})
    assert per_thread(warnings, {}) is apart

    def body() -> bool:
        apart.begin({"filters": []})
        try:
            return pickle.loads(pickle.dumps(warnings)) is warnings
        finally:
            apart.end(None)

    assert in_thread(body)


def test_clearing_in_a_thread_that_has_nothing_of_its_own_changes_nothing(
    mine: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    one: Aspect = streams()
    monkeypatch.setattr(sys, "stdout", mine)
    in_thread(one.clear)
    assert sys.stdout is mine


# ---- threads of the main thread's tasks ------------------------------------------------------------------------------


class Thread:
    """One that answers questions."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._answer)
        self._thread.start()

    def _answer(self) -> None:
        while (question := self._asked.get()) is not None:
            self._said.put(question())

    def __call__(self, question: Callable[[], Any]) -> Any:
        self._asked.put(question)
        return self._said.get(timeout=30)

    def end(self) -> None:
        self._asked.put(None)
        self._thread.join()


@pytest.fixture
def classes() -> Iterator[tuple[type, type]]:
    """Of the modules, which are these again at the end."""
    before = type(sys), type(warnings)
    yield before
    assert (type(sys), type(warnings)) == before


@pytest.mark.usefixtures("inheriting")
def test_threads_of_the_main_threads_task_have_what_it_has_while_another_runs(
    mine: io.StringIO, monkeypatch: pytest.MonkeyPatch, classes: tuple[type, type]
) -> None:
    base, all_, theirs = sys.stdout, both(), io.StringIO()

    def child() -> tuple[bool, bool]:
        before = all_.set_aside()
        is_base = sys.stdout is base
        all_.put_back(before)
        return is_base, sys.stdout is mine

    monkeypatch.setattr(sys, "stdout", mine)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        of_main = warnings.filters
        thread = Thread()
        assert (type(sys), type(warnings)) == classes  # nothing is paid for a thread alone
        before = all_.set_aside()
        sys.stdout = theirs  # another task's
        assert thread(lambda: (sys.stdout is mine, warnings.filters is of_main)) == (True, True)
        assert thread(lambda: in_thread(lambda: sys.stdout is mine))
        assert thread(child) == (True, True)
        thread(lambda: print("a thread's"))
        nested = all_.set_aside()  # and another one, of whose threads there are none
        assert thread(lambda: sys.stdout is mine)
        assert sys.stdout is base
        all_.put_back(nested)
        assert sys.stdout is theirs
        thread(lambda: setattr(sys, "stderr", mine))
        assert sys.stderr is not mine
        stderr = sys.stderr
        all_.put_back(before)
        assert (sys.stdout, sys.stderr, warnings.filters) == (mine, mine, of_main)
        assert thread(lambda: (sys.stdout is mine, warnings.filters is of_main)) == (True, True)
        sys.stderr = stderr
        thread.end()
        assert (type(sys), type(warnings)) == classes
        all_.put_back(all_.set_aside())
        assert (type(sys), type(warnings)) == classes
    assert (mine.getvalue(), theirs.getvalue()) == ("a thread's\n", "")


@pytest.mark.usefixtures("inheriting", "classes")
def test_tasks_within_each_other_have_threads_each(monkeypatch: pytest.MonkeyPatch) -> None:
    all_, streams_, threads, left = both(), [io.StringIO() for _ in range(3)], [], []
    for stream in streams_:
        monkeypatch.setattr(sys, "stdout", stream)
        threads.append(Thread())
        left.append(all_.set_aside())

    def see() -> list[int]:
        return [streams_.index(thread(lambda: sys.stdout)) for thread in threads]

    assert see() == [0, 1, 2]
    for k in (2, 1, 0):
        all_.put_back(left[k])
        assert see() == [0, 1, 2]
        assert sys.stdout is streams_[k]
        streams_[k] = sys.stdout = io.StringIO()
        assert see() == [0, 1, 2]
    for thread in threads:
        thread.end()


@pytest.mark.usefixtures("inheriting", "classes")
@pytest.mark.parametrize("how", ["ended", "cleared"])
def test_thread_that_outlives_its_task_has_what_that_had_last(mine: io.StringIO, how: str) -> None:
    base, all_ = sys.stdout, both()
    before = all_.set_aside()
    sys.stdout = mine
    thread = Thread()
    if how == "ended":
        all_.put_back(before)
    else:
        all_.clear()
    assert sys.stdout is base
    assert thread(lambda: sys.stdout) is mine
    own = all_.set_aside()
    assert thread(lambda: sys.stdout) is mine
    all_.put_back(own)
    thread.end()


@pytest.mark.usefixtures("inheriting", "classes")
def test_thread_that_cannot_be_started_leaves_nothing() -> None:
    all_, one = both(), per_thread(sys, {})
    body = inherited(print)
    home = one._home and one._home()
    assert home is one.home()
    del home
    before = all_.set_aside()
    assert one._homes
    del body
    assert not one._homes
    all_.put_back(before)


@pytest.mark.usefixtures("inheriting", "classes")
def test_threads_start_look_and_end_while_another_has_the_lock(
    mine: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be in a finaliser that waits for them."""
    all_ = both()
    monkeypatch.setattr(sys, "stdout", mine)
    first = Thread()
    before = all_.set_aside()
    with per_thread(sys, {}).lock, per_thread(warnings, {}).lock:
        assert first(lambda: sys.stdout is mine)
        second = Thread()
        assert second(lambda: sys.stdout is not mine)
        second.end()
        first.end()
    all_.put_back(before)  # the class has stayed until now


@pytest.mark.usefixtures("inheriting", "classes")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_copy_of_the_process_has_the_lock_free() -> None:
    both()
    lock, held, go_on = per_thread(sys, {}).lock, threading.Event(), threading.Event()

    def hold() -> None:
        for _ in range(2000):
            with lock:
                held.set()
        go_on.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    for _ in range(5):
        pid = os.fork()
        if not pid:
            os._exit(0 if lock.acquire(timeout=20) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    go_on.set()
    holder.join()


@pytest.mark.usefixtures("inheriting", "classes")
def test_what_a_thread_sets_while_tasks_take_turns_is_not_lost() -> None:
    all_, rounds = both(), 300
    before = all_.set_aside()
    seen: list[bool] = []

    def body() -> None:
        for _ in range(rounds):
            stream = sys.stdout = io.StringIO()
            seen.append(sys.stdout is stream)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread = threading.Thread(target=body)
        thread.start()
        while thread.is_alive():
            other = all_.set_aside()
            all_.put_back(other)
        thread.join()
    finally:
        sys.setswitchinterval(interval)
        all_.put_back(before)
    assert seen == [True] * rounds
