"""One `__main__` per process: what tasks see of the program's main module."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tests.e2e.harness import Cluster

DEFINITIONS = """
    import abc, collections, contextvars, dataclasses, enum, functools, inspect, logging, pickle, queue, re, struct, sys
    import threading, traceback, typing, warnings, weakref
    import hdphrs
    from hdphrs import get, par_map, spawn

    PACKER = struct.Struct(">I")
    LOCK, RLOCK, CONDITION, EVENT = threading.Lock(), threading.RLock(), threading.Condition(), threading.Event()
    SEMAPHORE, LOCAL, QUEUE = threading.Semaphore(2), threading.local(), queue.Queue()
    VARIABLE = contextvars.ContextVar("VARIABLE", default=7)
    HANDLER = logging.StreamHandler()
    NOTHING = object()
    WEAK = weakref.WeakValueDictionary()
    WORD = re.compile("[a-z]+")
    MODE = "as imported"
    CACHE = {}
    REGISTRY = {"cache": CACHE}
    Point = collections.namedtuple("Point", "x y")
    T = typing.TypeVar("T")

    class Color(enum.Enum):
        RED = 1

    class Flags(enum.Flag):
        A = 1
        B = 2

    class Pair(typing.NamedTuple):
        a: int
        b: int = 2

    class Options(typing.TypedDict):
        deep: bool

    class Sized(typing.Protocol):
        def size(self) -> int: ...

    class Box(typing.Generic[T]):
        def __init__(self, held: T) -> None: self.held = held

    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self) -> float: ...

    class Square(Shape):
        def __init__(self, side): self.side = side
        def area(self): return self.side ** 2

    @dataclasses.dataclass
    class Base:
        name: str
        count: int = 3
        items: list = dataclasses.field(default_factory=list)
        marks: dataclasses.InitVar[int] = 0

    @dataclasses.dataclass(slots=True, frozen=True)
    class Slotted:
        a: int = 1

    class Model:
        def __init__(self): self.x = 5
        @functools.cached_property
        def double(self): return 2 * self.x
        @functools.singledispatchmethod
        def of(self, value): return "object"
        @of.register
        def _(self, value: int): return "int"

    @functools.singledispatch
    def kind(value): return "object"
    @kind.register
    def _(value: int): return "int"
    @kind.register(Model)
    def _(value): return "model"

    @functools.lru_cache(maxsize=None)
    def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)

    def square(x): return x * x

    def standard():
        with LOCK, RLOCK, CONDITION, SEMAPHORE:
            LOCAL.x = 1
            QUEUE.put(3)
        return (PACKER.pack(3), VARIABLE.get(), EVENT.is_set(), QUEUE.get(), HANDLER.level, len(WEAK),
                WORD.match("ab").group())

    def functional():
        model = Model()
        return model.double, model.of(3), model.of(""), kind(3), kind(""), kind(model), fib(30)

    def derived():
        @dataclasses.dataclass
        class Derived(Base):
            weight: float = 0.0
            _: dataclasses.KW_ONLY
            late: int = 4
        @dataclasses.dataclass(frozen=True)
        class Thin(Slotted):
            b: list = dataclasses.field(default_factory=list)
        return (dataclasses.astuple(Derived("a")), dataclasses.replace(Derived("b"), count=1, marks=0).count,
                dataclasses.astuple(Thin()), dataclasses.fields(Base)[0].default is dataclasses.MISSING)

    def classes():
        class Cube(Square): pass
        class Colored(Pair): pass
        try: Shape()
        except TypeError: abstract = True
        return (Cube(2).area(), Colored(1), Color(1) is Color.RED, Flags.A | Flags.B == Flags(3), Box[int](3).held,
                Options(deep=True), isinstance(Square(1), Shape), abstract, Point(1, 2)._replace(x=3).x)

    def default(given=NOTHING, other=inspect.Parameter.empty):
        return given is NOTHING, other is inspect._empty

    def by_name():
        return pickle.loads(pickle.dumps(Model())).x, pickle.loads(pickle.dumps(square)) is square, \\
            pickle.loads(pickle.dumps([Color.RED, Pair(1)])) == [Color.RED, Pair(1)]

    def from_file(path):
        with open(path, "rb") as file:
            return pickle.load(file)

    def same(*values):
        return [type(value) for value in values] == [Model, Color, Pair, Square, Slotted] and values[1] is Color.RED

    def fill(i):
        CACHE[i] = True
        return sorted(CACHE)

    def filled(): return len(CACHE), REGISTRY["cache"] is CACHE

    def mode(): return MODE

    def check(path):
        assert get(spawn(standard)) == (b"\\0\\0\\0\\3", 7, False, 3, 0, 0, "ab")
        assert get(spawn(functional)) == (10, "int", "object", "int", "object", "model", 832040)
        assert get(spawn(derived)) == (("a", 3, [], 0.0, 4), 1, (1, []), True)
        assert get(spawn(classes)) == (4, (1, 2), True, True, 3, {"deep": True}, True, True, 3)
        assert get(spawn(default)) == get(spawn(default, NOTHING, inspect._empty)) == (True, True)
        assert get(spawn(by_name)) == (5, True, True)
        with open(path, "wb") as file:
            pickle.dump(Base("saved"), file)
        assert get(spawn(from_file, path)) == Base("saved")
        values = (Model(), Color.RED, Pair(1), Square(2), Slotted())
        assert get(spawn(same, *values)) and same(*get(spawn(lambda: values)))
        assert get(spawn(lambda: (NOTHING, square, Model, dataclasses.MISSING, inspect._empty))) == (
            NOTHING, square, Model, dataclasses.MISSING, inspect._empty)
        assert get(spawn(mode)) == "as imported"
        global MODE
        MODE = "rebound"
        assert get(spawn(mode)) == "rebound" and get(spawn(lambda: MODE)) == "rebound"
        assert CACHE == {}
        print("checked")
"""

GUARDED = f"""{DEFINITIONS}
    if __name__ == "__main__":
        check(sys.argv[1])
"""


@pytest.mark.parametrize("way", ["python", "run", "nodes", "module"])
def test_a_guarded_file_is_one_main_module_for_its_tasks(way: str, cluster: Cluster) -> None:
    program = cluster.write(GUARDED)
    saved = cluster.folder / "saved"
    if way == "python":
        completed = cluster.run(program, saved, python=True)
    elif way == "module":
        package = cluster.folder / "package"
        package.mkdir()
        (package / "__init__.py").write_text("LEVEL = 1\n")
        (package / "tool.py").write_text(
            textwrap.dedent(GUARDED).replace("import hdphrs\n", "import hdphrs\nfrom . import LEVEL\n")
        )
        words = [sys.executable, "-m", "package.tool", str(saved)]
        start = f"import os; os.chdir({str(cluster.folder)!r}); os.execv({words[0]!r}, {words!r})"
        completed = cluster.run("-c", start, python=True)
    else:
        options = ["--local-nodes", "2", "--cores", "1"] if way == "nodes" else []
        completed = cluster.run(*options, program, saved)
    assert (completed.stdout, completed.returncode) == ("checked\n", 0), completed.stderr


@pytest.mark.parametrize("way", ["script", "command", "input"])
def test_without_a_guard_globals_travel_by_value(way: str, cluster: Cluster) -> None:
    saved = cluster.folder / "saved"
    source = textwrap.dedent(f"{DEFINITIONS}\n    check({str(saved)!r})\n")
    if way == "script":
        completed = cluster.run(cluster.write(source), python=True)
    elif way == "command":
        completed = cluster.run("-c", source, python=True)
    else:
        process = cluster.start("-", python=True)
        out, err = process.communicate(source, timeout=60)
        completed = subprocess.CompletedProcess([], process.returncode, out, err)
    assert (completed.stdout, completed.returncode) == ("checked\n", 0), completed.stderr


def test_processes_that_a_task_starts_find_what_the_program_defines(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import multiprocessing, sys
        from concurrent.futures import ProcessPoolExecutor
        import hdphrs

        class Model:
            def __init__(self, x): self.x = x

        def square(model): return Model(model.x ** 2)

        def pool(method):
            with multiprocessing.get_context(method).Pool(1) as pool:
                return [model.x for model in pool.map(square, [Model(2), Model(3)])]

        def executor():
            with ProcessPoolExecutor(1) as pool:
                return pool.submit(square, Model(4)).result().x

        if __name__ == "__main__":
            print(*[hdphrs.get(hdphrs.spawn(pool, method)) for method in ("fork", "spawn", "forkserver")])
            print(hdphrs.get(hdphrs.spawn(executor)))
        """
    )
    completed = cluster.run(program, python=True)
    assert (completed.stdout, completed.returncode) == ("[4, 9] [4, 9] [4, 9]\n16\n", 0), completed.stderr


def test_a_module_that_was_started_by_its_name_is_run_by_its_name(cluster: Cluster) -> None:
    package = cluster.folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("LEVEL = 1\n")
    source = """
        import multiprocessing, sqlite3, hdphrs
        from . import LEVEL
        DATABASE = sqlite3.connect(":memory:")
        def square(x): return x * x + LEVEL
        def pool():
            with multiprocessing.get_context("spawn").Pool(1) as pool: return pool.map(square, [1, 2])
        def ask(): return DATABASE.execute("select 3").fetchone()
        if __name__ == "__main__":
            print(hdphrs.get(hdphrs.spawn(pool)), hdphrs.get(hdphrs.spawn(ask)))
    """
    (package / "tool.py").write_text(textwrap.dedent(source))
    words = [sys.executable, "-m", "package.tool"]
    start = f"import os; os.chdir({str(cluster.folder)!r}); os.execv({words[0]!r}, {words!r})"
    completed = cluster.run("-c", start, python=True)
    assert (completed.stdout, completed.returncode) == ("[2, 5] (3,)\n", 0), completed.stderr


def test_an_initializer_sets_globals_that_the_calls_read(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import sqlite3, hdphrs
        STATE = None
        OPENED = None
        def prepare(value):
            global STATE, OPENED
            STATE = value
            OPENED = sqlite3.connect(":memory:")
        def read(i): return STATE, OPENED.execute("select 1").fetchone(), nested()
        def nested(): return STATE
        with hdphrs.Executor(2, initializer=prepare, initargs=("ready",)) as executor:
            print(set(executor.map(read, range(50))))
            print(set(executor.map(lambda i: STATE, range(50))))
        print(STATE, OPENED)
        """
    )
    completed = cluster.run(program, python=True)
    expected = "{('ready', (1,), 'ready')}\n{'ready'}\nNone None\n"
    assert (completed.stdout, completed.returncode) == (expected, 0), completed.stderr


def test_tasks_of_one_scheduler_share_caches_and_connections(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import functools, os, hdphrs
        CACHE = {}
        OPENED = 0
        def connection():
            global OPENED
            OPENED += 1
            return object()
        @functools.cache
        def opened(): return connection()
        class Store:
            kept = []
            def add(self, i): self.kept.append(i); return len(self.kept)
        def fill(i): opened(); CACHE[i] = 1; return len(CACHE), OPENED, Store().add(i)
        def other(i): opened(); CACHE[i] = 1; return len(CACHE), OPENED, Store().add(i)
        calls = [fill, other, lambda i: fill(i), functools.partial(other)]
        print([hdphrs.get(hdphrs.spawn(call, i)) for i, call in enumerate(calls)], CACHE, OPENED, Store.kept)
        CACHE = {}
        print(hdphrs.get(hdphrs.spawn(fill, 9)))
        print(hdphrs.get(hdphrs.spawn(fill, 10)), hdphrs.get(hdphrs.spawn(lambda i: other(i), 11)))
        """
    )
    completed = cluster.run("--cores", 1, program)
    expected = "[(1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 1, 4)] {} 0 []\n(1, 2, 5)\n(2, 2, 6) (3, 2, 7)\n"
    assert (completed.stdout, completed.returncode) == (expected, 0), completed.stderr


def test_each_task_sees_globals_as_they_were_when_it_was_spawned(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs
        LEVEL = -1
        TABLE = []
        def read(): return LEVEL, len(TABLE)
        HANDLERS = [read]
        def through(): return HANDLERS[0]()
        def wait():
            before = LEVEL
            children = [hdphrs.spawn(read) for _ in range(4)]
            return {before, LEVEL} | {level for child in children for level, _ in [hdphrs.get(child), through()]}
        futures = []
        for LEVEL in range(30):
            futures += [hdphrs.spawn(wait), hdphrs.spawn(lambda: {LEVEL, through()[0]})]
        print([hdphrs.get(future) for future in futures] == [{i // 2} for i in range(60)])
        TABLE.append(1)
        print(hdphrs.get(hdphrs.spawn(lambda: len(TABLE))))
        """
    )
    completed = cluster.run(program, python=True)
    assert (completed.stdout, completed.returncode) == ("True\n1\n", 0), completed.stderr


def test_what_does_not_pickle_comes_from_running_the_file_once(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import socket, sqlite3, hdphrs
        from hdphrs.errors import CannotTravelError
        from concurrent.futures import ThreadPoolExecutor
        class Service:
            def __init__(self): self.opened = sqlite3.connect(":memory:", check_same_thread=False)
            def ask(self): return self.opened.execute("select 1").fetchone()
        SERVICE = Service()
        POOL = ThreadPoolExecutor(1)
        SOCKET = socket.socket()
        FILE = open(__file__)
        COUNTER = (i for i in range(9))
        if __name__ != "__main__": print("run as", __name__, flush=True)
        def use():
            return (isinstance(SERVICE, Service), SERVICE.ask(), POOL.submit(len, "ab").result(), SOCKET.fileno() > 2,
                    FILE.readable(), next(COUNTER))
        def kind(service): return type(service) is Service
        def only_here(): return LATER.ask()
        if __name__ == "__main__":
            LATER = Service()
            print(hdphrs.get(hdphrs.spawn(lambda: Service is not None)))
            print(hdphrs.get(hdphrs.spawn(use)), hdphrs.get(hdphrs.spawn(use))[5])
            print(hdphrs.get(hdphrs.spawn(lambda: Service)) is Service)
            try: hdphrs.get(hdphrs.spawn(only_here))
            except CannotTravelError as error: print(error)
            POOL.shutdown()
        """
    )
    completed = cluster.run("--cores", 1, program)
    lines = completed.stdout.splitlines()
    assert lines[:4] == ["True", "run as __mp_main__", "(True, (1,), 2, True, True, 0) 1", "True"], completed
    assert f"{program} was run once more in this process, under the name __mp_main__, for its global LATER" in lines[4]
    assert (len(lines), completed.returncode) == (5, 0), completed


def test_a_file_that_cannot_be_run_again_is_named(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import sqlite3, hdphrs
        from hdphrs.errors import CannotTravelError
        DATABASE = sqlite3.connect(":memory:")
        def ask(): return DATABASE
        if __name__ == "__main__":
            try: hdphrs.get(hdphrs.spawn(ask))
            except CannotTravelError as error: print(error)
        else: raise ValueError("not twice")
        """
    )
    completed = cluster.run(program, python=True)
    assert f"{program} was run once more in this process" in completed.stdout, completed
    assert "has raised ValueError: not twice" in completed.stdout


def test_what_does_not_travel_is_named_with_who_uses_it_and_the_remedy(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import sqlite3, hdphrs
        from hdphrs.errors import CannotTravelError
        DATABASE = sqlite3.connect(":memory:")
        class Store:
            def ask(self):
                return DATABASE.execute("select 1")
        def through(): return Store().ask()
        for call, *args in [(through,), (lambda: Store(),), (len, [Store()])]:
            try: hdphrs.get(hdphrs.spawn(call, *args))
            except CannotTravelError as error: print(error)
        """
    )
    completed = cluster.run(program, python=True)
    lines = completed.stdout.splitlines()
    assert len(lines) == 3, completed
    for line in lines:
        assert "the global DATABASE (a sqlite3.Connection), which Store.ask uses" in line
        assert f"({program}, line 7)" in line
        assert 'if __name__ == "__main__":' in line


@pytest.mark.parametrize("options", [[], ["--local-nodes", "2"]])
def test_tracebacks_warnings_and_inspect_show_file_line_and_source(options: list[str], cluster: Cluster) -> None:
    program = cluster.write(
        """
        import inspect, linecache, sys, traceback, warnings, hdphrs
        class Thing:
            def fail(self):
                raise ValueError("here")  # the line
        def fail(): Thing().fail()
        def trace():
            try: fail()
            except ValueError: return traceback.format_exc()
        def warn():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                helper()
            return caught[0].filename, caught[0].lineno
        def helper(): warnings.warn("w", stacklevel=2)
        def source(): return inspect.getsource(fail), inspect.getsource(Thing), inspect.getsourcefile(trace)
        try: hdphrs.get(hdphrs.spawn(fail))
        except ValueError as error: print(error.__cause__)
        print(hdphrs.get(hdphrs.spawn(trace)))
        file, line = hdphrs.get(hdphrs.spawn(warn))
        print(file == __file__, linecache.getline(file, line).strip())
        print(hdphrs.get(hdphrs.spawn(source)) == source())
        """
    )
    completed = cluster.run(*options, program)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.count(f'File "{program}", line 5, in fail\n    raise ValueError("here")  # the line\n') == 2
    assert completed.stdout.endswith("True helper()\nTrue\n")
    assert "dynamic-code" not in completed.stdout


def test_a_notebooks_cells_are_shown_in_tracebacks(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import linecache, traceback, hdphrs
        cell = "def fail():\\n    raise ValueError('here')  # the line\\n"
        linecache.cache["<cell 1>"] = (len(cell), None, cell.splitlines(True), "<cell 1>")
        exec(compile(cell, "<cell 1>", "exec"))
        try: hdphrs.get(hdphrs.spawn(fail))
        except ValueError as error: print(error.__cause__)
        """
    )
    completed = cluster.run(program, python=True)
    assert "File \"<cell 1>\", line 2, in fail\n    raise ValueError('here')  # the line\n" in completed.stdout, (
        completed
    )


def test_the_program_is_never_changed_by_what_comes_back(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs
        NAMES = {}
        class Model:
            level = 1
        def change():
            global NAMES, ADDED
            NAMES, ADDED = {"task": 1}, 1
            Model.level = 2
            return Model(), change, lambda: (NAMES, Model.level)
        model, function, closure = hdphrs.get(hdphrs.spawn(change))
        print(type(model) is Model, function is change, closure(), NAMES, Model.level, "ADDED" in globals())
        with hdphrs.sequential():
            print(type(hdphrs.get(hdphrs.spawn(lambda: Model()))) is Model)
        """
    )
    completed = cluster.run(program, python=True)
    assert completed.stdout == "True True ({}, 1) {} 1 False\nTrue\n", completed
