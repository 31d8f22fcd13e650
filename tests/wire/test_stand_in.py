"""Definitions of a main module, from a program to a process that runs tasks; both are in this one."""

from __future__ import annotations

import pickle
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hdphrs.errors import CannotTravelError
from hdphrs.wire import definitions as making
from hdphrs.wire import stand_in
from hdphrs.wire.main_file import About, has_guard, run, source_of
from hdphrs.wire.pickling import dumps, loads


class Two:
    """A program and a process that runs its tasks, of which one is awake at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.main: Any = ModuleType("__main__")
        self.theirs: dict[str, Any] = {}
        self._modules = sys.modules
        self._receiver = stand_in.receiver
        self._empty = dict(vars(stand_in.Receiver()))
        self._state = dict(self._empty)
        self._patch.setitem(sys.modules, "__main__", self.main)
        self._patch.setitem(sys.modules, "__mp_main__", self.main)
        self._trackers()

    def _trackers(self) -> None:
        """Each process knows the classes that it has made; here those of one would be found by the other."""
        from cloudpickle import cloudpickle as internals

        self._by_id: Any = internals._DYNAMIC_CLASS_TRACKER_BY_ID
        self._their_ids: Any = type(self._by_id)()
        self._internals: Any = internals

    def define(self, source: str) -> None:
        """Run a source in the program's main module."""
        exec(source, vars(self.main))

    def there(self, action: Callable[[], Any]) -> Any:
        """Do something in the process that runs tasks."""
        receiver = self._receiver
        own = dict(vars(receiver))
        vars(receiver).update(self._state, runs_tasks=True)
        mains = sys.modules["__main__"], sys.modules["__mp_main__"]
        sys.modules.update(self.theirs)
        self._internals._DYNAMIC_CLASS_TRACKER_BY_ID = self._their_ids
        try:
            return action()
        finally:
            self._state = dict(vars(receiver))
            self.theirs = {name: sys.modules[name] for name in ("__main__", "__mp_main__")}
            vars(receiver).update(own)
            sys.modules["__main__"], sys.modules["__mp_main__"] = mains
            self._internals._DYNAMIC_CLASS_TRACKER_BY_ID = self._by_id

    def send(self, value: object) -> Any:
        """What a value of the program is there."""
        data = dumps(value)
        return self.there(lambda: loads(data))

    def back(self, value: object) -> Any:
        """What a value from there is in the program."""
        return loads(self.there(lambda: dumps(value)))


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Two:
    """Two processes."""
    monkeypatch.setattr(making.definitions, "_known", {})
    monkeypatch.setattr(making.definitions, "_bound", {})
    monkeypatch.setattr(making.definitions, "_guards", {})
    return Two(monkeypatch)


def test_functions_of_a_main_module_share_its_globals(two: Two) -> None:
    two.define("CACHE = {}\ndef put(i): CACHE[i] = 1\ndef count(): return len(CACHE)")
    put, count = two.send(two.main.put), two.send(two.main.count)
    assert put is not two.main.put
    put(1)
    assert (count(), two.send(two.main.count)(), two.main.count()) == (1, 1, 0)


def test_what_a_task_has_bound_stays_bound(two: Two) -> None:
    two.define("STATE = None\ndef prepare():\n global STATE\n STATE = 1\ndef read(): return STATE")
    two.send(two.main.prepare)()
    assert two.send(two.main.read)() == 1
    assert two.main.STATE is None


def test_a_rebound_global_arrives_anew_and_the_older_function_keeps_its_own(two: Two) -> None:
    two.define("LEVEL = 1\nCACHE = []\ndef read(): return LEVEL, CACHE")
    old = two.send(two.main.read)
    old()[1].append(1)
    two.main.LEVEL = 2
    new = two.send(two.main.read)
    assert (old(), new()) == ((1, [1]), (2, [1]))
    assert old()[1] is new()[1]
    two.main.LEVEL = 1
    assert two.send(two.main.read) is old


def test_a_global_bound_to_an_equal_object_arrives_anew(two: Two) -> None:
    two.define("CACHE = []\ndef put(): CACHE.append(1); return len(CACHE)")
    put = two.send(two.main.put)
    assert (put(), two.send(two.main.put)()) == (1, 2)
    two.main.CACHE = []
    assert two.send(two.main.put)() == 1


def test_a_change_inside_of_a_global_arrives_with_the_next_function(two: Two) -> None:
    two.define("CONFIG = {}\ndef first(): return CONFIG\ndef second(): return CONFIG")
    assert two.send(two.main.first)() == {}
    two.main.CONFIG["x"] = 1
    assert two.send(two.main.second)() == {"x": 1}


def test_values_that_are_parts_of_each_other_stay_so(two: Two) -> None:
    two.define(
        "ITEMS = []\nREGISTRY = {'items': ITEMS}\nALIAS = ITEMS\nA, B = [], []\nA.append(B); B.append(A)\n"
        "def same(): return REGISTRY['items'] is ITEMS is ALIAS\ndef items(): return ITEMS\n"
        "def registry(): return REGISTRY\ndef round(): return A[0][0][0] is not None, B"
    )
    assert two.send(two.main.same)()
    assert two.send(two.main.registry)()["items"] is two.send(two.main.items)()
    assert two.send(two.main.round)()[0]


def test_what_comes_back_is_what_the_program_has(two: Two) -> None:
    two.define("class Model: pass\nNOTHING = object()\ndef f(x=NOTHING): return x is NOTHING\n")
    model, nothing, function = two.send([two.main.Model(), two.main.NOTHING, two.main.f])
    assert type(model) is not two.main.Model
    assert function(nothing)
    assert function()
    came = two.back([model, nothing, function])
    assert (type(came[0]), came[1], came[2]) == (two.main.Model, two.main.NOTHING, two.main.f)


def test_what_is_pickled_there_again_is_the_same_bytes(two: Two) -> None:
    two.define(
        "import math\nfrom dataclasses import dataclass\nTABLE = {1: [2]}\n"
        "@dataclass\nclass Model:\n  a: int = 1\n  def area(self): return math.pi * helper(self.a) * len(TABLE)\n"
        "def helper(x): return x + len(TABLE)\ndef work(m=None): return Model(helper(1)).area()\n"
    )
    work = two.send(two.main.work)
    assert work() == two.main.work()
    two.there(lambda: work.__globals__.update(TABLE={}))
    assert two.there(lambda: dumps(work)) == dumps(two.main.work)
    assert two.there(lambda: dumps(work.__globals__["Model"])) == dumps(two.main.Model)


def test_a_class_that_the_program_has_changed_is_changed_there(two: Two) -> None:
    two.define("class Model:\n  rate = 1\n  def get(self): return self.rate")
    model = two.send(two.main.Model())
    two.main.Model.rate = 2
    again = two.send(two.main.Model())
    assert type(model) is type(again)
    assert (model.get(), again.get()) == (2, 2)


def test_an_instance_of_a_class_that_was_defined_anew_keeps_its_class(two: Two) -> None:
    two.define("class Model: pass\nold = Model()\nclass Model: pass\nnew = Model()")
    old, new = two.send([two.main.old, two.main.new])
    assert type(old) is not type(new)
    came = two.back([old, new])
    assert (type(came[0]), type(came[1])) == (type(two.main.old), type(two.main.new))


def test_a_new_type_of_the_main_module_travels(two: Two) -> None:
    two.define("import typing\nUser = typing.NewType('User', int)\ndef f(x: User): return User(x)")
    assert two.send(two.main.f)(3) == 3


NAMED = {
    "NewType": "from typing import NewType\nX = NewType('X', int)",
    "ParamSpec": "from typing import ParamSpec\nX = ParamSpec('X', bound=int, covariant=True)",
    "TypeVarTuple": "from typing import TypeVarTuple\nX = TypeVarTuple('X')",
    "TypeAliasType": "type X[T] = list[T]",
    "sentinel": "X = sentinel('X', repr='<nothing>')",
    "sentinel of another name": "X = sentinel('Y')",
}
"""How the main module makes what pickles as a name."""
SINCE = {"TypeAliasType": (3, 12), "sentinel": (3, 15), "sentinel of another name": (3, 15)}
OF_PYTHON = [what for what in NAMED if sys.version_info >= SINCE.get(what, (3, 11))]


@pytest.mark.parametrize("what", OF_PYTHON)
def test_what_pickles_as_a_name_is_one_in_each_process(two: Two, what: str) -> None:
    two.define(f"{NAMED[what]}\ndef is_it(value, default=X): return value is X is default")
    assert two.send(two.main.is_it)(two.send(two.main.X))
    assert two.back(two.there(lambda: two.theirs["__main__"].X)) is two.main.X
    theirs = two.send(two.main.X)
    assert (repr(theirs), theirs.__module__) == (repr(two.main.X), "__main__")


@pytest.mark.parametrize("what", OF_PYTHON)
def test_one_that_comes_after_its_like_of_a_library_too(two: Two, what: str) -> None:
    library = ModuleType("library")
    sys.modules["library"] = library
    try:
        exec(NAMED[what], vars(library))
        two.define(f"{NAMED[what]}\ndef f(): return X")
        if library.X.__name__ == "X":
            assert two.send([library.X, two.main.X])[0] is library.X
        assert two.send([len, two.main.X])[1] is two.send(two.main.f)()
    finally:
        del sys.modules["library"]


def test_what_they_were_made_of_comes_along(two: Two) -> None:
    two.define(NAMED["ParamSpec"])
    theirs = two.send(two.main.X)
    assert (theirs.__bound__, theirs.__covariant__, theirs.__contravariant__) == (int, True, False)


@pytest.mark.skipif(sys.version_info < (3, 15), reason="sentinels are new in Python 3.15")
def test_a_sentinel_in_a_class_is_one_in_each_process(two: Two) -> None:
    two.define("class C:\n    No = sentinel('C.No')\n    def is_it(self, value): return value is self.No")
    assert two.send(two.main.C())
    assert two.send(two.main.C()).is_it(two.send(two.main.C.No))
    assert two.back(two.send(two.main.C.No)) is two.main.C.No


@pytest.mark.skipif(sys.version_info < (3, 15), reason="sentinels are new in Python 3.15")
def test_a_sentinel_that_nobody_would_find_is_no_argument(two: Two) -> None:
    two.define("def make(): return sentinel('inside')")
    with pytest.raises(pickle.PicklingError):
        two.send(two.main.make())


def test_names_are_found_by_plain_pickle_there(two: Two) -> None:
    two.define("class Model: pass\ndef f(): return Model")
    function = two.send(two.main.f)
    model = function()()
    assert type(two.there(lambda: pickle.loads(pickle.dumps(model)))) is type(model)


def test_a_process_does_not_ask_again_for_a_definition_set_that_it_knows(two: Two) -> None:
    two.define("def f(): return 1")
    assert two.send(two.main.f) is two.send(two.main.f)


GUARDED = """
import threading, types
class Service:
    def __init__(self): self.thread = threading.Thread()
    def name(self): return self.thread.name
SERVICE = Service()
def ask(): return type(SERVICE) is Service, SERVICE.name()
def kind(service): return type(service)
if __name__ == "__main__": pass
"""


def test_what_does_not_pickle_comes_from_the_file(two: Two, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(GUARDED)
    two.main.__file__ = str(file)
    exec(compile(GUARDED, str(file), "exec"), vars(two.main))
    first = two.send(two.main.Service)
    is_same, name = two.send(two.main.ask)()
    assert is_same
    assert name.startswith("Thread-")
    assert two.send(two.main.Service) is first
    assert two.there(lambda: sys.modules["__main__"].__getattr__("kind").__name__) == "kind"
    with pytest.raises(AttributeError):
        two.there(lambda: sys.modules["__main__"].unknown)


def test_an_error_names_the_global_and_its_user(two: Two) -> None:
    two.define("import threading\nTHREAD = threading.Thread()\n\ndef use():\n    return THREAD")
    with pytest.raises(CannotTravelError, match=r"the global THREAD \(a threading.Thread\), which use uses .*line 5"):
        dumps(two.main.use)
    assert isinstance(two.main.THREAD, threading.Thread)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if __name__ == '__main__': pass", True),
        ("if '__main__' == __name__ and True: pass", True),
        ("def f():\n  if __name__ == '__main__': pass", False),
        ("x = 1", False),
        ("if __name__ == 'other': pass", False),
        ("if :", False),
    ],
)
def test_a_guard_is_told_by_the_text(text: str, expected: bool, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(text)
    assert has_guard(About(str(file))) == expected


@pytest.mark.parametrize(("module", "name"), [(None, "program.py"), ("package.tool", "package/tool.py")])
def test_the_text_is_found_in_the_archive_of_the_programs_directory(
    module: str | None, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr(name, GUARDED)
    told = About(f"/another/host/{name}", module and "package", module)
    assert source_of(told) is None
    monkeypatch.syspath_prepend(str(tmp_path / "archive"))
    assert source_of(told) == GUARDED
    assert has_guard(told)
    made = run(told)
    assert made.ask()[0]
    assert (made.__name__, made.__package__) == ("__mp_main__", module and "package")


def test_no_file_has_no_guard() -> None:
    assert not has_guard(About())
    assert not has_guard(About("/no/such/file.py"))
