"""Globals of the program as definitions, for processes that run its tasks (decision 47).

What lives here: their versions, and definition sets of all that something needs.  What a global is pickled to is in
`definition_pickler.py`, what becomes of it where it arrives in `stand_in.py`.

In the program a definition is made of what a global is bound to.  In a process that runs tasks it is what has arrived:
what tasks have made of their process's globals stays there, and a function is the same bytes on every host.
"""

from __future__ import annotations

import dis
import io
import pickle
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any, Final, NamedTuple
from weakref import ref

from cloudpickle import cloudpickle as internals

from hdphrs.errors import CannotTravelError
from hdphrs.wire import main_file
from hdphrs.wire.capture import Watch, _captured, is_constant
from hdphrs.wire.definition_pickler import (
    DefinitionPickler,
    User,
    found_in,
    home_of,
    module_globals,
    place_of,
    spaces_of,
    uses_of,
)
from hdphrs.wire.main_file import About
from hdphrs.wire.pickler import (
    MAIN,
    PICKLE_PROTOCOL,
    PLAIN,
    Cached,
    by_reference,
)
from hdphrs.wire.reloads import reloads
from hdphrs.wire.signals import came_between
from hdphrs.wire.stand_in import (
    LOCAL,
    RUN,
    TEXT,
    VALUE,
    Definition,
    Generation,
    digest_of,
    globals_of_main,
    key_of,
    of_main,
    pack,
    receiver,
)
from hdphrs.wire.well_known import NAMED

SETS_MAX: Final = 1024
"""Definition sets that are remembered."""
SET_BYTES_MAX: Final = 256 << 10
"""Larger ones are made each time."""

_NEVER_ALIASED: Final = PLAIN | {tuple, frozenset, range, ModuleType, FunctionType, BuiltinFunctionType, Cached, type}
_OF_NOTEBOOKS: Final = frozenset({"In", "Out", "_ih", "_oh", "_dh", "_i", "_ii", "_iii", "_", "__", "___"})
_FIXED_KINDS: Final = (MemberDescriptorType, GetSetDescriptorType, object, struct.Struct, re.Pattern)
_FIXED_ATTRIBUTES: Final = frozenset(
    {
        "__annotations__",
        "__dict__",
        "__weakref__",
        "__doc__",
        "__match_args__",
        "__slots__",
        "__slotnames__",
        "_abc_impl",
    }
)


class _Globals:
    """Pickles as the globals of the program where it is loaded, with all that is in a definition set."""

    def __init__(self, definition_set: bytes, label: str) -> None:
        self._made = definition_set, label

    def __reduce__(self) -> tuple[Any, ...]:
        return globals_of_main, self._made


class _Stub:
    """A watch on a function that nobody else keeps."""

    def __init__(self, watch: Watch, function: Any) -> None:
        self._watch = watch
        self._function = function

    def holds(self) -> bool:
        """Whether all is the same."""
        return self._watch.holds()


class _Known(NamedTuple):
    """A definition set that has been made, and what tells whether it is still the same."""

    owner: Callable[[], Any]
    watch: Watch | _Stub
    definition_set: bytes
    epoch: int
    """See `Reloads`."""
    changing: tuple[Definition, ...]
    """Those of its definitions whose parts may change without being noticed by the watch."""


class _Pack:
    """One definition set on its way."""

    def __init__(self, generation: Generation | None) -> None:
        self.generation = generation
        self.users: dict[str, User] = {}
        """By key: a function that refers to a global."""
        self._aliases: dict[str, dict[int, str]] = {}

    def space(self, label: str) -> dict[str, Any]:
        """The globals of a module."""
        return vars(sys.modules[label] if self.generation is None else self.generation.modules[label])

    def aliases(self, label: str) -> dict[int, str]:
        """The keys of the values that this process has bound, by their identity; they may be parts of each other."""
        if self.generation is not None:
            return {}
        if label not in self._aliases:
            self._aliases[label] = _aliases_of(label, self.space(label))
        return self._aliases[label]


class Definitions:
    """Makes the definitions of this process."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        """By the identity of an object that is linked to, or of the code of a function by value."""
        self._bound: dict[str, tuple[Callable[[], Any], bytes, int]] = {}
        """By key: what it was bound to, the digest of that, and how many others of the same digest before."""
        self._guards: dict[About, bool] = {}

    def link(self, named: Any) -> tuple[Any, ...] | None:
        """How a function, a class or a cache is reduced to its name."""
        place = place_of(named)
        if place is None:
            name = receiver.name_in_file(named) if receiver.runs_tasks else None
            if name is None:
                return None
            key = key_of(MAIN, name)
            return of_main, (pack(receiver.generations[-1].told, [_from_file(key)]), key)
        return of_main, (self._set_of(place.generation, named, named, {place.key: None}), place.key, *place.path)

    def link_sentinel(self, value: object) -> tuple[Any, ...] | None:
        """The same for a bare object, or another of which there is only one, that the main module names."""
        for generation, space in spaces_of(MAIN):
            for name, held in list(space.items()):  # another thread may bind something
                if held is value:
                    key = key_of(MAIN, name)
                    return of_main, (self._make(_Pack(generation), [key])[0], key)
            name, *path = str(getattr(value, "__name__", "")).split(".")  # of a sentinel in a class
            if path and found_in(space, name, path) is value:
                key = key_of(MAIN, name)
                return of_main, (self._make(_Pack(generation), [key])[0], key, *path)
        return None

    def globals_of(self, function: FunctionType) -> Any:
        """What pickles as the globals of a function by value."""
        home = home_of(function)
        if home is None:
            return module_globals(function)
        generation, label = home
        return _Globals(self._set_of(generation, function.__code__, function, uses_of(function, label)), label)

    def _set_of(
        self, generation: Generation | None, owner: Any, function: Any, roots: dict[str, User] | dict[str, None]
    ) -> bytes:
        known = self._known.get(id(owner))
        if known is not None and known.owner() is owner and self._holds(known, generation):
            return known.definition_set
        if type(owner) is CodeType:  # other functions of this code have other cells
            cells = tuple(internals._make_empty_cell() for _ in owner.co_freevars)
            function = FunctionType(owner, function.__globals__, None, None, cells)
        watch = Watch(function)
        pack = _Pack(generation)
        pack.users.update({key: user for key, user in roots.items() if user is not None})
        definition_set, changing = self._make(pack, roots)
        if len(definition_set) > SET_BYTES_MAX:
            return definition_set
        if len(self._known) >= SETS_MAX:
            self._known.clear()
        held = (lambda: owner) if type(owner) is CodeType else ref(owner)
        self._known[id(owner)] = _Known(
            held, _Stub(watch, function) if function is not owner else watch, definition_set, reloads.epoch, changing
        )
        return definition_set

    def _holds(self, known: _Known, generation: Generation | None) -> bool:
        if generation is not None:
            return not known.changing  # what has arrived stays as it is
        if known.epoch != reloads.epoch or not known.watch.holds():
            return False
        pack = _Pack(None)
        for definition in known.changing:
            now = self._define(pack, definition.key)
            if now is None or now.version != definition.version:
                return False
        return True

    def _make(self, pack_: _Pack, roots: Iterable[str]) -> tuple[bytes, tuple[Definition, ...]]:
        found: dict[str, Definition] = {}
        waiting = sorted(roots, reverse=True)
        while waiting:
            key = waiting.pop()
            if key in found:
                continue
            definition = self._define(pack_, key)
            if definition is not None:
                found[key] = definition
                waiting += sorted({*definition.links, *definition.names} - found.keys(), reverse=True)
        generation = pack_.generation
        told = main_file.about(sys.modules[MAIN]) if generation is None else generation.told
        changing = tuple(
            one for one in found.values() if (_may_change(one) if generation is None else one.kind == LOCAL)
        )
        return pack(told, found.values()), changing

    def _define(self, pack_: _Pack, key: str) -> Definition | None:
        generation = pack_.generation
        label, _, name = key.partition(":")
        if label == "text":
            return _text_of(key, name)
        if generation is not None:
            kept = generation.definitions.get(key)
            if kept is not None:
                return kept
        space = pack_.space(label)
        if name not in space:
            return None
        value = space[name]
        try:
            data, links, names = self._pickle(pack_, key, value)
        except BaseException as error:
            if came_between(error):
                raise
            if generation is not None:
                return None  # a task has bound it here, for this process
            return self._not_pickled(key, value, pack_.users.get(key), error)
        if generation is not None:
            return Definition(key, digest_of(data), LOCAL, data, links, names)
        version = self._version(key, value, data)
        if isinstance(value, type | FunctionType | Cached) or type(value) is object or type(value) in NAMED:
            receiver.remember(key, version, value)
        return Definition(key, version, VALUE, data, links, names)

    def _pickle(self, pack_: _Pack, key: str, value: Any) -> tuple[bytes, list[str], list[str]]:
        if type(value) in PLAIN:
            return pickle.dumps(value, PICKLE_PROTOCOL), [], []
        aliases = {} if isinstance(value, ModuleType) else pack_.aliases(key.partition(":")[0])
        pickler, data = _dump(pack_.generation, key, value, aliases)
        circle = _circle(pack_, key, pickler.links, aliases)
        if circle:
            rest = {number: alias for number, alias in aliases.items() if alias not in circle}
            pickler, data = _dump(pack_.generation, key, value, rest)
        for used, user in pickler.users.items():
            pack_.users.setdefault(used, user)
        return data, sorted(pickler.links), sorted(pickler.users.keys() - {key})

    def _version(self, key: str, value: Any, data: bytes) -> bytes:
        """A digest of the data, and of how often the name was bound to another object that is pickled to the same."""
        digest = digest_of(data + reloads.version_of(data))
        if type(value) in PLAIN or is_constant(value) or isinstance(value, type | FunctionType | Cached):
            return digest
        bound, before, count = self._bound.get(key, (None, b"", 0))
        if bound is not None and before == digest and bound() is not value:
            count += 1
        elif before != digest:
            count = 0
        self._bound[key] = _hold(value), digest, count
        return digest_of(digest + count.to_bytes(4, "big")) if count else digest

    def _not_pickled(self, key: str, value: Any, user: User | None, error: BaseException) -> Definition | None:
        told = main_file.about(sys.modules[MAIN])
        if key.startswith(f"{MAIN}:") and self._has_guard(told):
            return _from_file(key)
        if user is not None and user.may_lack:
            return None
        if isinstance(error, CannotTravelError) and user is None:
            raise error
        name = key.partition(":")[2]
        uses = (
            "" if user is None else f", which {user.name} uses ({user.code.co_filename}, line {_line(user.code, name)})"
        )
        kind = type(value)
        kind_name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        what = (
            f"the global {name}{uses}"
            if isinstance(value, type | FunctionType)
            else f"the global {name} (a {kind_name}){uses},"
        )
        remedy = "make it in the function that uses it (functools.cache keeps one in each process)"
        if told.file is not None:
            remedy += (
                ', or start the program under `if __name__ == "__main__":`, then each process that needs it runs the '
                "file once for one of its own"
            )
        raise CannotTravelError(f"{what} does not pickle: {type(error).__name__}: {error}; {remedy}") from error

    def _has_guard(self, told: About) -> bool:
        if told not in self._guards:
            self._guards[told] = main_file.has_guard(told)
        return self._guards[told]


def _from_file(key: str) -> Definition:
    return Definition(key, digest_of(f"run {key}".encode()), RUN, b"", [], [])


def _text_of(key: str, file: str) -> Definition | None:
    import linecache  # it has been imported where this is called

    entry: Any = linecache.cache.get(file)
    if entry is None or len(entry) != 4:
        return None
    text = "".join(entry[2]).encode("utf-8", "replace")
    return Definition(key, digest_of(text), TEXT, text, [], [])


def _dump(
    generation: Generation | None, key: str, value: Any, aliases: dict[int, str]
) -> tuple[DefinitionPickler, bytes]:
    with io.BytesIO() as file:
        pickler = DefinitionPickler(file, generation, key, value, aliases)
        pickler.dump(value)
        return pickler, file.getvalue()


def _circle(pack_: _Pack, key: str, links: Iterable[str], aliases: dict[int, str]) -> set[str]:
    """Those of the values in this one that have it in them, too: each has a copy of its own."""
    values = set(aliases.values())
    inside: dict[str, set[str]] = {}

    def links_of(name: str) -> set[str]:
        if name not in inside:
            label, _, bound = name.partition(":")
            try:
                inside[name] = values.intersection(
                    _dump(pack_.generation, name, pack_.space(label)[bound], aliases)[0].links
                )
            except Exception:  # it will be told when that one is pickled for itself
                inside[name] = set()
        return inside[name]

    def leads_back(name: str) -> bool:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            here = waiting.pop()
            if here == key:
                return True
            if here not in seen:
                seen.add(here)
                waiting += links_of(here)
        return False

    return {name for name in values.intersection(links) if leads_back(name)}


def _may_change(definition: Definition) -> bool:
    label, _, name = definition.key.partition(":")
    return definition.kind == VALUE and not is_fixed(vars(sys.modules[label]).get(name))


def _aliases_of(label: str, space: dict[str, Any]) -> dict[int, str]:
    aliases: dict[int, str] = {}
    for name, held in list(space.items()):
        kind = type(held)
        if kind in _NEVER_ALIASED or issubclass(kind, type) or name.startswith("__") or _is_of_notebook(name):
            continue
        aliases.setdefault(id(held), key_of(label, name))
    return aliases


def _is_of_notebook(name: str) -> bool:
    return name in _OF_NOTEBOOKS or (name[0] == "_" and name.lstrip("_i").isdigit())


def is_fixed(value: Any, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a `Watch` notices all that may become of something."""
    kind = type(value)
    if id(value) in seen:
        return True
    inside = seen | {id(value)}
    parts: Iterable[Any]
    if kind is FunctionType or issubclass(kind, type):
        if by_reference(value):
            return True
        if kind is FunctionType and module_globals(value) is not None:
            return True  # the wrapper of an installed module
        parts = _captured(value) if kind is FunctionType else _attributes(value)
    elif kind is Cached:
        parts = (value.__wrapped__,)
    elif kind in (staticmethod, classmethod):
        parts = (value.__func__,)
    elif kind is property:
        parts = (value.fget, value.fset, value.fdel)
    else:
        return kind in _FIXED_KINDS or kind in NAMED or is_constant(value)
    return all(is_fixed(part, inside) for part in parts)


def _attributes(cls: type) -> Iterator[Any]:
    for name, held in vars(cls).items():
        if name not in _FIXED_ATTRIBUTES and not name.startswith("__dataclass"):
            yield held


def _hold(value: Any) -> Callable[[], Any]:
    try:
        return ref(value)
    except TypeError:
        return lambda: value


def _line(code: CodeType, name: str) -> int:
    for constant in (code, *(part for part in code.co_consts if isinstance(part, CodeType))):
        for instruction in dis.get_instructions(constant):
            if instruction.argval == name and instruction.positions and instruction.positions.lineno:
                return instruction.positions.lineno
    return code.co_firstlineno


definitions: Final = Definitions()
