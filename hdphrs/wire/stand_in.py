"""One module in the place of the program's `__main__`, in each process that runs its tasks (decision 47).

What lives here: what a *definition* is, and how definitions that arrive become globals that all functions of the
program share.  What makes definitions is in `definitions.py`.

Theory of operation
-------------------

Whatever refers to the main module travels as a *set* of definitions, one for each global that it needs, and as the name
of one of them.  A definition has a *version*, a digest of what it is pickled to in the program, equal everywhere.  A
global that is here in the same version is left alone: a cache that tasks have filled stays filled, and what an
initializer has bound stays bound.

A program may rebind a global while tasks are on their way that know the old one.  So the globals of one process are
kept in *generations*: a definition set goes to the newest generation with which it agrees.  If there is none, a new one
begins, with all that does not conflict, nor needs what does.  Functions of one generation share its globals; classes
are the same objects in all.

The program itself never loads what it has defined: a definition set that comes back is only asked which object it
means.
"""

from __future__ import annotations

import dis
import io
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import blake2b
from importlib.machinery import ModuleSpec
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple
from weakref import ref

import msgpack
from cloudpickle import cloudpickle as internals

from hdphrs.errors import CannotTravelError
from hdphrs.wire import main_file
from hdphrs.wire.main_file import RUN_AS, About, Source
from hdphrs.wire.pickler import MAIN, Cached, make_function
from hdphrs.wire.unpickler import GUARDED, Unpickler, adopt_class, tracked_class

VALUE: Final = 0
"""A global that has been pickled."""
RUN: Final = 1
"""One that comes from running the program's file."""
LOCAL: Final = 2
"""One that a task has bound in the process of the sender; it is bound where the name is unbound."""
TEXT: Final = 3
"""The lines of what a notebook has run: no global, the name is that of a file."""

GENERATIONS_MAX: Final = 8
"""The older ones live on in their functions, but nothing new is added to them."""
GENERATIONS_BYTES_MAX: Final = 256 << 20
"""Of the pickles that the older ones keep."""
OPENED_BYTES_MAX: Final = 4096
"""Of a definition set that is known by its bytes, and not by their digest."""
OPENED_MAX: Final = 256
"""Definition sets that are known by their bytes."""
ORIGINALS_MAX: Final = 4096
"""Definitions that a program recognizes when they come back."""


class Definition(NamedTuple):
    """One global of a module that travels by value."""

    key: str
    """The module and the name."""
    version: bytes
    kind: int
    data: bytes
    links: list[str]
    """The keys of the definitions that are needed to load this one."""
    names: list[str]
    """The keys of those that its functions refer to when they run."""


def key_of(label: str, name: str) -> str:
    """The key of a global."""
    return f"{label}:{name}"


def digest_of(data: bytes) -> bytes:
    """The version of something that pickles to these bytes."""
    return blake2b(data, digest_size=12).digest()


def pack(told: About, definitions: Iterable[Definition]) -> bytes:
    """A definition set."""
    packed: bytes = msgpack.packb([list(told), list(definitions)])
    return packed


class StandIn(ModuleType):
    """The main module of a process that runs tasks; what it does not know it takes from running the program's file."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            found = receiver.from_file(name)
            if found is not None:
                return found[0]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class Generation:
    """Globals that agree with each other."""

    def __init__(self, told: About, before: Generation | None) -> None:
        self.told = told
        self.modules: dict[str, ModuleType] = {}
        self.definitions: dict[str, Definition] = {}
        """What has been loaded."""
        self.objects: dict[str, Any] = {}
        """What it was loaded as, whatever the name is bound to now."""
        self._waiting: dict[str, Definition] = {}
        if before is not None:
            for label, module in before.modules.items():
                vars(self.module(label)).update(
                    {name: value for name, value in vars(module).items() if not name.startswith("__")}
                )

    def module(self, label: str) -> ModuleType:
        """The module that stands in for one of the program's."""
        module = self.modules.get(label)
        if module is None:
            self.modules[label] = module = StandIn(label) if label == MAIN else ModuleType(label)
            module.__dict__["__builtins__"] = __builtins__
            if label == MAIN:
                if self.told.file is not None:
                    module.__file__ = self.told.file
                    module.__loader__ = source = Source(self.told)  # type: ignore[assignment]
                    if self.told.module is not None:  # as which the processes of multiprocessing run it
                        module.__spec__ = ModuleSpec(self.told.module, source, origin=self.told.file)  # type: ignore[arg-type]
                module.__package__ = self.told.package
        return module

    def size(self) -> int:
        """Of the pickles that it keeps, in bytes."""
        return sum(len(one.data) for one in self.definitions.values())

    def agrees(self, definitions: Iterable[Definition]) -> bool:
        """Whether none of them is here in another version."""
        for definition in definitions:
            known = self.definitions.get(definition.key)
            if known is None or known.version == definition.version:
                continue
            if LOCAL not in (known.kind, definition.kind):
                return False
        return True

    def inherit(self, before: Generation, new: Iterable[Definition]) -> None:
        """Take over from an older generation all that neither conflicts, nor needs what does when it is loaded or run.

        A function that binds globals binds those of its own generation, so it is made anew, too, and all that needs it.
        """
        definitions = before.definitions
        affected = {
            one.key for one in new if one.key in definitions and definitions[one.key].version != one.version
        } | {key for key in definitions if _binds_globals(before.objects.get(key))}
        users: dict[str, list[str]] = {}
        for one in definitions.values():
            for key in {*one.links, *one.names}:
                users.setdefault(key, []).append(one.key)
        waiting = list(affected)
        while waiting:
            for key in users.get(waiting.pop(), ()):
                if key not in affected:
                    affected.add(key)
                    waiting.append(key)
        for key, one in definitions.items():
            if key not in affected and one.kind != LOCAL:
                self.definitions[key] = one
                if key in before.objects:
                    self.objects[key] = before.objects[key]

    def add(self, definitions: list[Definition]) -> None:
        """Load those that are not here."""
        for definition in definitions:
            if definition.key not in self.definitions:
                self._waiting.setdefault(definition.key, definition)
        for definition in definitions:  # first, for the classes of the file then are the ones that others know, too
            if definition.kind == RUN:
                self._load(definition.key)
        for definition in definitions:
            self._load(definition.key)

    def linked(self, key: str) -> Any:
        """What a definition was loaded as."""
        if key not in self.objects:
            self._load(key)
        return self.objects[key]

    def _load(self, key: str) -> None:
        definition = self._waiting.get(key)
        if definition is None:
            return
        label, _, name = key.partition(":")
        if definition.kind == TEXT:
            _show(name, definition.data)
        elif definition.kind == RUN:
            self._bind(key, receiver.global_of_file(self.told, name))
        elif definition.kind == LOCAL and name in vars(self.module(label)):
            self.objects[key] = vars(self.module(label))[name]
        else:
            try:
                value = _DefinitionUnpickler(self, definition).load()
            except BaseException:
                self.objects.pop(key, None)
                raise
            if self._waiting.get(key) is definition and key not in self.objects:
                self._bind(key, value)
        self._waiting.pop(key, None)
        self.definitions[key] = definition

    def _bind(self, key: str, value: Any) -> None:
        label, _, name = key.partition(":")
        vars(self.module(label))[name] = value
        self.objects[key] = value

    def make(self, key: str, make: Callable[..., Any], *args: Any) -> Any:
        """Make a function or a class that its own parts may refer to before it is complete."""
        made = make(*args)
        self._bind(key, made)
        return made


def _binds_globals(value: Any) -> bool:
    """Whether a function, or one of a class, has a `global` statement for a name that it binds."""
    if isinstance(value, type):
        return any(map(_binds_globals, vars(value).values()))
    while type(value) in (Cached, staticmethod, classmethod, property):
        value = value.fget if type(value) is property else value.__wrapped__
    codes = [value.__code__] if type(value) is FunctionType else []
    while codes:
        code = codes.pop()
        if any(instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") for instruction in dis.get_instructions(code)):
            return True
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return False


class _DefinitionUnpickler(Unpickler):
    def __init__(self, generation: Generation, definition: Definition) -> None:
        super().__init__(io.BytesIO(definition.data))
        self._generation = generation
        self._key = definition.key

    def persistent_load(self, pid: Any) -> Any:
        kind, what, *path = pid
        if kind == "globals":
            return vars(self._generation.module(what))
        if kind == "make":
            return partial(self._generation.make, self._key, _MAKERS[what])
        value = self._generation.linked(what)
        for part in path:
            value = getattr(value, part)
        return value


def _make_class(*args: Any) -> type:
    """The class that another process knows by a tracker: this one may have it from running the program's file."""
    _, name, _, _, tracker, _ = args
    own = receiver.class_of_file(name)
    if tracked_class(tracker) is None and own is not None:
        return adopt_class(own, tracker)
    cls: type = GUARDED["_make_skeleton_class"](*args)
    return cls


def _make_enum(*args: Any) -> type:
    own = receiver.class_of_file(args[1])
    if tracked_class(args[-2]) is None and own is not None:
        return internals._lookup_class_or_track(args[-2], own)  # type: ignore[no-any-return]
    cls: type = GUARDED["_make_skeleton_enum"](*args)
    return cls


_MAKERS: Final[dict[str, Callable[..., Any]]] = {
    "function": make_function,
    "_make_skeleton_class": _make_class,
    "_make_skeleton_enum": _make_enum,
}


def _show(file: str, text: bytes) -> None:
    import linecache  # seldom needed

    lines = text.decode().splitlines(keepends=True)
    linecache.cache.setdefault(file, (len(text), None, lines, file))


class Receiver:
    """What has arrived in this process."""

    def __init__(self) -> None:
        self.runs_tasks: bool = False
        """Whether this process has no main module of its own."""
        self.generations: list[Generation] = []
        """The newest comes last."""
        self._opened: OrderedDict[bytes, Generation] = OrderedDict()
        self._lock = threading.RLock()  # what is loaded may load something
        self._file: ModuleType | None = None
        self._originals: OrderedDict[tuple[str, bytes], Any] = OrderedDict()

    def begin(self) -> None:
        """This process runs tasks: nobody finds its own main module."""
        self.runs_tasks = True
        sys.modules[MAIN] = ModuleType(MAIN)

    def holds(self, space: dict[str, Any]) -> bool:
        """Whether these globals have arrived here."""
        return self.runs_tasks and any(
            vars(module) is space for generation in self.generations for module in list(generation.modules.values())
        )

    def open(self, definition_set: bytes) -> Generation:
        """The generation that has all of a definition set."""
        with self._lock:
            key = definition_set if len(definition_set) <= OPENED_BYTES_MAX else digest_of(definition_set)
            found = self._opened.get(key)
            if found is not None:
                self._opened.move_to_end(key)
                return found
            told, packed = msgpack.unpackb(definition_set)
            definitions = [Definition(*one) for one in packed]
            generation = next((one for one in reversed(self.generations) if one.agrees(definitions)), None)
            if generation is None:
                generation = self._begin(About(*told), definitions)
            generation.add(definitions)
            self._opened[key] = generation
            if len(self._opened) > OPENED_MAX:
                self._opened.popitem(last=False)
            return generation

    def _begin(self, told: About, definitions: list[Definition]) -> Generation:
        before = self.generations[-1] if self.generations else None
        generation = Generation(told, before)
        if before is not None:
            generation.inherit(before, definitions)
        self.generations.append(generation)
        del self.generations[:-GENERATIONS_MAX]
        while len(self.generations) > 2 and sum(one.size() for one in self.generations[:-1]) > GENERATIONS_BYTES_MAX:
            gone = self.generations.pop(0)
            for key in [key for key, one in self._opened.items() if one is gone]:
                del self._opened[key]
        if self.runs_tasks:
            sys.modules[MAIN] = sys.modules[RUN_AS] = generation.module(MAIN)
        return generation

    # ---- the program's file ----------------------------------------------------------------------------------

    def global_of_file(self, told: About, name: str) -> Any:
        """A global of the program's file, which is run if that has not been done.

        Raises:
            CannotTravelError: it cannot be run, or binds no such name.
        """
        if not self.runs_tasks:
            return getattr(sys.modules[MAIN], name)
        space = vars(self._run(told))
        if name not in space:
            raise CannotTravelError(
                f"{told.file} was run once more in this process, under the name {RUN_AS}, for its global {name}, which "
                "does not pickle; it binds no such name outside of its guard"
            )
        return space[name]

    def from_file(self, name: str) -> tuple[Any] | None:
        """The same, if there is such a file with a guard, and it binds that name."""
        told = self.generations[-1].told if self.generations else About()
        if not self.runs_tasks or (self._file is None and not main_file.has_guard(told)):
            return None
        with self._lock:
            space = vars(self._run(told))
            return (space[name],) if name in space else None

    def class_of_file(self, name: str) -> type | None:
        """A class that running the file has made."""
        found = None if self._file is None else vars(self._file).get(name)
        is_own = isinstance(found, type) and found.__module__ == MAIN and found.__qualname__ == name
        return found if is_own else None

    def _run(self, told: About) -> ModuleType:
        if self._file is None:
            self._file = module = main_file.run(told)
            for name, value in list(vars(module).items()):
                if isinstance(value, type | FunctionType | Cached) and value.__module__ == RUN_AS:
                    value.__module__ = MAIN
                    self._merge(name, value)
        return self._file

    def _merge(self, name: str, made: Any) -> None:
        """A class of the file that is here already is the one that others know: what the file has made of the new one
        becomes its instances."""
        key = key_of(MAIN, name)
        known = next((one.objects[key] for one in reversed(self.generations) if key in one.objects), None)
        if isinstance(made, type) and isinstance(known, type) and known is not made:
            import gc

            for value in gc.get_objects():
                if type(value) is made:
                    value.__class__ = known
            vars(self._file)[name] = known

    # ---- the program -----------------------------------------------------------------------------------------

    def remember(self, key: str, version: bytes, value: object) -> None:
        """This process has defined a value, and will be asked for it by this version of its key."""
        try:
            held: Any = ref(value)
        except TypeError:
            held = partial(_same, value)
        originals = self._originals
        originals[key, version] = held
        originals.move_to_end((key, version))
        if len(originals) > ORIGINALS_MAX:
            originals.popitem(last=False)

    def original(self, definition: Definition) -> Any:
        """What this process has defined, by what comes back; None if it is nothing of its own."""
        label, _, name = definition.key.partition(":")
        if definition.kind == RUN:
            return getattr(sys.modules.get(label), name, None)
        held = self._originals.get((definition.key, definition.version))
        return None if held is None else held()

    def name_in_file(self, named: object) -> str | None:
        """The name under which running the program's file has made this."""
        name = getattr(named, "__qualname__", None)
        return name if self._file is not None and name and vars(self._file).get(name) is named else None

    def own_globals(self, label: str, definition_set: bytes) -> dict[str, Any] | None:
        """The globals of a module of this process, if it binds all that a definition set names."""
        if self.runs_tasks or label not in sys.modules:
            return None
        space = vars(sys.modules[label])
        _, packed = msgpack.unpackb(definition_set)
        for key, _, kind, *_ in packed:
            home, _, name = key.partition(":")
            if kind != TEXT and home == label and name not in space:
                return None
        return space


def _same(value: Any) -> Any:
    return value


receiver: Final = Receiver()


def of_main(definition_set: bytes, key: str, *path: str) -> Any:
    """What the program defines under this key, or a part of it."""
    found = None
    if not receiver.runs_tasks:
        _, packed = msgpack.unpackb(definition_set)
        found = next((receiver.original(Definition(*one)) for one in packed if one[0] == key), None)
    if found is None:
        found = receiver.open(definition_set).linked(key)
    for part in path:
        found = getattr(found, part)
    return found


def globals_of_main(definition_set: bytes, label: str) -> dict[str, Any]:
    """The globals that a function of a module of the program's is to have."""
    own = receiver.own_globals(label, definition_set)
    return vars(receiver.open(definition_set).module(label)) if own is None else own
