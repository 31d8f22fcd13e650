"""What a call means: a digest of all that its value may depend on, equal in every process and every run (decision 9).

What lives here: functions by their bytecode and by what they refer to; values by their contents; and nothing of where
in a file they stand.  What does not: modules, which are in `modules.py`.

What cannot be told is not guessed: there is no digest then, and the ledger never knows the call.
"""

from __future__ import annotations

import builtins
import copyreg
import dis
import functools
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final

from hdphrs.protocol.tasks import KEY_BYTES
from hdphrs.wire.capture import _cells, _codes, _global_names
from hdphrs.wire.modules import OURS, UnknownMeaningError, installed_as, source_of
from hdphrs.wire.pickling import PICKLE_PROTOCOL, PLAIN, Cached, by_reference
from hdphrs.wire.signals import came_between
from hdphrs.wire.well_known import is_variable, reduce_known

FORM: Final = 2
"""Raised with every change of what is digested."""

DIGEST_METHOD: Final = "__hdphrs_digest__"
"""A method by which an object says, in bytes, what it stands for."""

MARKS: Final = frozenset({"__hdphrs_memo__", "__hdphrs_options__"})
"""Attributes of functions that tell us something and do not change what they do."""

DRAWS_MARK: Final = "__hdphrs_draws__"
"""An attribute of functions that draw random numbers by seed and path."""

_DRAWS: Final = b" draws"
_BASE: Final = f"hdphrs {FORM} python {sys.version_info.major}.{sys.version_info.minor} {sys.implementation.name}"
_NUMBERS: Final = frozenset({int, float, bool, type(None)})
_BULK: Final = 256
_DESCRIPTORS: Final = (MethodDescriptorType, WrapperDescriptorType, GetSetDescriptorType, MemberDescriptorType)
_CODES_MAX: Final = 4096

_OF_NO_MATTER: Final = frozenset(
    {
        "__annotate__",
        "__annotate_func__",
        "__annotations__",
        "__annotations_cache__",
        "__dict__",
        "__doc__",
        "__firstlineno__",
        "__module__",
        "__slotnames__",
        "__static_attributes__",
        "__weakref__",
        "_abc_impl",
        *MARKS,
    }
)
"""Attributes of classes and functions that do not change what they do, or are there only at times."""

_SIGNS: Final = (b"\x8f", b"\x91", b"\x93")
"""Opcodes of a pickle that holds a set, whose order is nobody's, or names a function or a class."""

_codes_known: dict[int, tuple[CodeType, bytes]] = {}


def meaning_of(function: Callable[..., Any]) -> bytes:
    """Digest of a callable; empty if it cannot be told."""
    return _told(function)


def key_of(
    meaning: bytes, args: tuple[Any, ...], kwargs: Mapping[str, Any], pickled: bytes, chance: bytes = b""
) -> bytes:
    """Digest of the call of a function with this meaning; empty if it cannot be told.

    Args:
        pickled: the arguments as they travel; if there is nothing in them but data, their bytes say it all.
        chance: on what random numbers depend that the call may draw.
    """
    said = pickled
    if not PLAIN.issuperset(map(type, args)) or kwargs:
        if any(sign in pickled for sign in _SIGNS):
            said = _told((args, dict(kwargs)))
        if not said:
            return b""
    if len(meaning) > KEY_BYTES or (said is not pickled and len(said) > KEY_BYTES):
        said += chance
    return blake2b(meaning + said, digest_size=KEY_BYTES).digest()


def _told(value: object) -> bytes:
    """The digest, and behind it whether random numbers are drawn."""
    meaning = _Meaning()
    try:
        return meaning.of(value) + (_DRAWS if meaning.draws else b"")
    except BaseException as error:  # whatever the user's code raises when it is asked, there is no telling then
        if came_between(error):
            raise
        return b""


class _Meaning:
    """One digest on its way."""

    def __init__(self) -> None:
        self._hash = blake2b(_BASE.encode(), digest_size=KEY_BYTES)
        self._seen: dict[int, int] = {}
        self.draws = False
        """Whether something has been met that draws random numbers."""
        self._alive: list[object] = []
        """Objects whose ids are in `_seen` must not go."""

    def of(self, value: object) -> bytes:
        """The digest of a value."""
        self._value(value)
        return self._hash.digest()

    def _say(self, kind: str, data: bytes | str = b"") -> None:
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogatepass")
        self._hash.update(b"%s %d " % (kind.encode(), len(data)))
        self._hash.update(data)

    def _value(self, value: Any) -> None:
        kind = type(value)
        if kind in PLAIN:
            self._plain(value)
        elif kind is tuple:
            self._many("tuple", value)
        elif kind is set or kind is frozenset:
            self._say(kind.__name__, b"".join(sorted(map(self._apart, value))))
        elif kind is CodeType:
            self._say("code", _code(value))
        elif id(value) in self._seen:
            self._say("again", str(self._seen[id(value)]))
        else:
            self._seen[id(value)] = len(self._seen)
            self._alive.append(value)
            self._object(value)

    def _apart(self, value: object) -> bytes:
        """The digest of something whose place is nobody's."""
        meaning = _Meaning()
        digest = meaning.of(value)
        self.draws = self.draws or meaning.draws
        return digest

    def _plain(self, value: object) -> None:
        kind = type(value)
        if kind is bytes:
            self._say("bytes", value)  # type: ignore[arg-type]
        elif kind is str:
            self._say("str", value)  # type: ignore[arg-type]
        elif kind is int:
            self._say("int", hex(value))  # type: ignore[arg-type]
        else:
            self._say(kind.__name__, repr(value))

    def _many(self, kind: str, values: Any) -> None:
        if len(values) > _BULK and _NUMBERS.issuperset(map(type, values)):
            self._say(f"{kind} of numbers", pickle.dumps(values, PICKLE_PROTOCOL))
            return
        self._say(kind, str(len(values)))
        for value in values:
            self._value(value)

    def _pairs(self, kind: str, pairs: Iterable[tuple[object, object]]) -> None:
        for key, value in pairs:
            self._say(kind)
            self._value(key)
            self._value(value)
        self._say(f"end of {kind}")

    def _object(self, value: Any) -> None:
        kind = type(value)
        known = None if is_variable(kind) else reduce_known(value, is_global=False)
        if known is not None:
            self._many("known", known[:3])
        elif kind is list:
            self._many("list", value)
        elif kind is dict or kind is MappingProxyType:
            self._pairs("dict", value.items())
        elif kind is FunctionType:
            self._function(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, ModuleType):
            self._module(value, ())
        elif kind is BuiltinFunctionType:
            self._builtin(value)
        elif kind is MethodType:
            self._many("method", (value.__func__, value.__self__))
        elif kind is functools.partial:
            self._many("partial", (value.func, value.args, value.keywords))
        elif kind is Cached:
            self._many("cache", (value.__wrapped__, value.cache_parameters()))
        elif kind in (staticmethod, classmethod):
            self._many(kind.__name__, (value.__func__,))
        elif kind is property:
            self._many("property", (value.fget, value.fset, value.fdel))
        elif isinstance(value, _DESCRIPTORS):
            self._say(
                "descriptor", f"{value.__objclass__.__module__} {value.__objclass__.__qualname__} {value.__name__}"
            )
        elif value is Ellipsis or value is NotImplemented:
            self._say("constant", repr(value))
        else:
            self._instance(value)

    def _instance(self, value: Any) -> None:
        kind = type(value)
        digest = getattr(kind, DIGEST_METHOD, None)
        if digest is not None:
            self._value(kind)
            self._say("digest", digest(value))
            return
        reducer = copyreg.dispatch_table.get(kind)
        reduced = value.__reduce_ex__(4) if reducer is None else reducer(value)
        if isinstance(reduced, str):
            self._value(kind)
            self._named(kind.__module__, reduced)
            return
        make, args, state, items, pairs, setter = (*reduced, None, None, None, None)[:6]
        self._value(kind)
        self._many("made", (make, args, state, setter))
        if items is not None:
            self._many("items", list(items))
        if pairs is not None:
            self._pairs("pairs", pairs)

    # ---- functions, classes, modules -------------------------------------------------------------------------

    def _named(self, module: str, name: str) -> bool:
        """Something that a module names; False if it is not installed, so that more must be told."""
        installed = None if module == "__main__" else installed_as(module)
        self._say("named", f"{module} {name} {installed or ''}")
        if installed is None and module != "__main__" and module in sys.modules:
            self._say("source", source_of(module))
        return installed is not None

    def _function(self, function: FunctionType) -> None:
        if DRAWS_MARK in vars(function):
            self.draws = True
            self._say("draws", function.__qualname__)
            return
        home = str(function.__globals__.get("__name__", function.__module__))
        if self._named(home, function.__qualname__) and by_reference(function):
            return
        self._say("code", _code(function.__code__))
        self._many("cells", list(_cells(function)))
        self._value(function.__defaults__)
        self._pairs("keywords", _matter(function.__kwdefaults__ or {}))
        self._pairs("attributes", _matter(vars(function)))
        if home != "__main__" and installed_as(home) is not None:
            return  # a closure of an installed package: what it refers to is told by the version
        names = {name for code in _codes(function.__code__) for name in code.co_names}
        for name in sorted(_global_names(function.__code__)):
            self._say("global", name)
            value = function.__globals__.get(name, self)
            if value is self:
                self._say("builtin" if hasattr(builtins, name) else "missing")
            elif isinstance(value, ModuleType):
                self._module(value, names)
            else:
                self._value(value)
        for name in sorted(_imported_names(function.__code__)):
            self._draws_from(sys.modules.get(name), names)
            if home == "__main__":  # of a module, its source tells
                self._named(name, "")

    def _class(self, cls: type) -> None:
        module, name = cls.__module__, cls.__qualname__
        if self._named(module, name) and by_reference(cls):
            return
        self._many("bases", cls.__bases__)
        self._value(type(cls))
        self._pairs("attributes", _matter(vars(cls)))

    def _module(self, module: ModuleType, names: Iterable[str]) -> None:
        """A module, and those of its attributes that are used."""
        name = module.__name__
        if name == "__main__":
            raise UnknownMeaningError("it refers to the main module as a whole")
        self._draws_from(module, names)
        if self._named(name, ""):
            return
        for attribute in sorted(set(names) & vars(module).keys()):
            self._say("attribute", attribute)
            value = vars(module)[attribute]
            if isinstance(value, ModuleType) and id(value) not in self._seen:
                self._seen[id(value)] = len(self._seen)
                self._module(value, names)
            else:
                self._value(value)

    def _draws_from(self, module: ModuleType | None, names: Iterable[str]) -> None:
        """Whether one of these attributes of a module, if it is one of its, draws random numbers."""
        if module is None or self.draws:
            return
        ours = module.__name__ == OURS  # loads its names when they are asked for
        known = (getattr(module, name, None) if ours else vars(module).get(name) for name in names)
        self.draws = any(DRAWS_MARK in getattr(value, "__dict__", ()) for value in known)

    def _builtin(self, function: Any) -> None:
        owner = function.__self__
        if owner is None or isinstance(owner, ModuleType):
            self._named(str(function.__module__ or "builtins"), function.__qualname__)
        else:
            self._many("builtin method", (function.__name__, owner))


def _matter(attributes: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Attributes that may change what is done, by name; slots are told by `__slots__`."""
    kept = (
        (name, value)
        for name, value in attributes.items()
        if name not in _OF_NO_MATTER and type(value) is not MemberDescriptorType
    )
    return sorted(kept, key=lambda item: item[0])


def _imported_names(code: CodeType) -> set[str]:
    return {
        instruction.argval
        for part in _codes(code)
        for instruction in dis.get_instructions(part)
        if instruction.opname == "IMPORT_NAME"
    }


def _code(code: CodeType) -> bytes:
    """Digest of what code does; neither its place in a file nor its line numbers matter."""
    known = _codes_known.get(id(code))
    if known is not None:
        return known[1]
    told = _Meaning()
    told._say("bytecode", code.co_code)
    told._say("table", code.co_exceptiontable)
    numbers = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    digest = told.of((numbers, names, code.co_consts))
    if len(_codes_known) >= _CODES_MAX:
        _codes_known.clear()
    _codes_known[id(code)] = (code, digest)
    return digest
