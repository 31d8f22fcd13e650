"""When tasks of a scheduler must be isolated from each other: as soon as one could set something that others see.

What lives here: what tells so, before anything has been set (decision 49).  Until then spawn and get pay nothing but a
look at a flag.

- Whatever sets a context variable needs `contextvars`, or is a compiled module of somebody else's.  `sys.meta_path` has
  a finder that finds nothing, and the loader of compiled modules says what it loads.
- Event loops need modules with known names.
- Standard streams are attributes of `sys`, whose class says when they are set.
- `warnings.catch_warnings` tells the interpreter about its list of filters.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

from hdphrs.api import future as fast
from hdphrs.api.threads import free_in_forks
from hdphrs.form import OUR_FILES

if TYPE_CHECKING:
    from contextvars import Context

    from hdphrs.api.isolation import Isolation
    from hdphrs.contexts.aspects import Aspect

VARIABLES: Final = frozenset({"contextvars", "_contextvars", "decimal", "_decimal", "_pydecimal"})
"""Modules with which context variables can be set."""

ALONE: Final = "_contextvars"
"""Newer versions load this for `threading` and `warnings`: by itself it says nothing, as long as nobody has loaded
`contextvars`, which is the way to it."""

HEARD: Final = "_hdphrs_is_heard"
"""An attribute of `asyncio.events`, whose loops we hear of."""

LOOPS: Final = frozenset({"trio", "sniffio", "anyio", "curio"})
"""Modules that say which event loop a thread runs."""

STANDARD: Final = os.path.dirname(os.__file__) + os.sep
SITES: Final = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


class Notice:
    """That of one scheduler."""

    def __init__(self) -> None:
        self.of_items: list[Aspect] = []
        """What is set aside between the items of a task only; to be known before any task runs."""
        self._aspects: dict[str, Aspect] = {}
        """By kind, those that are looked at."""
        self._base: dict[str, Aspect] = {}
        """And others, as they are for tasks that begin."""
        self._lock = threading.RLock()
        """Tasks may run in several threads."""

    def install(self) -> None:
        """From now on, in this process, in which no task has run."""
        from hdphrs.contexts.aspects import filters, streams

        free_in_forks(self._lock)
        self._base = {"streams": streams(), "filters": filters()}
        _Sys.on_stream = self.streams
        sys.__class__ = _Sys
        filters_at_first = warnings.filters
        self._wrap("_filters_mutated", filters_at_first)
        self._wrap("_filters_mutated_lock_held", filters_at_first)
        sys.meta_path.insert(0, _Finder(self))
        create = ExtensionFileLoader.create_module

        def create_module(loader: ExtensionFileLoader, spec: ModuleSpec) -> ModuleType:
            if not _is_harmless(loader.path):
                self.variables()
                if spec.name.startswith("numpy."):
                    self.numpy()
            return create(loader, spec)

        ExtensionFileLoader.create_module = create_module  # type: ignore[method-assign, assignment]
        for name in (VARIABLES - {ALONE} | LOOPS | {"asyncio"}) & sys.modules.keys():
            self.loads(name)
        if getattr(sys.flags, "context_aware_warnings", False):  # then `catch_warnings` sets a variable
            self.variables()

    def loads(self, name: str) -> None:
        """This module is about to be loaded."""
        if name.startswith("asyncio"):
            self.variables()
            self._hear_of_loops()
        elif name in LOOPS:
            self.loops()
        elif name in VARIABLES:
            self.variables()

    def variables(self) -> None:
        """Context variables may be set from now on."""
        if not fast.isolates:
            fast.isolation = cast("Isolation", _Soon(self._begin))
            fast.isolates = True

    def _begin(self) -> Isolation:
        """The first task is isolated.  What does that loads `contextvars` itself: not while this is being loaded."""
        from hdphrs.api.isolation import Isolation

        with self._lock:
            if isinstance(fast.isolation, _Soon):
                fast.isolation = Isolation(*self._aspects.values(), of_items=self.of_items)
            return fast.isolation

    def loops(self) -> None:
        """Event loops may run from now on."""
        from hdphrs.contexts.aspects import Loop, ThreadLocals

        self._add("loops", Loop)
        self._add("thread-locals", ThreadLocals)

    def _hear_of_loops(self) -> None:
        """Have asyncio say when a loop runs or is set for the thread: most who load it do neither."""
        events = sys.modules.get("asyncio.events")
        if "loops" in self._aspects or not hasattr(events, "_set_running_loop") or hasattr(events, HEARD):
            return
        setattr(events, HEARD, True)
        for name in ("_set_running_loop", "set_event_loop"):
            setattr(events, name, self._telling(getattr(events, name)))

    def _telling(self, setter: Callable[[Any], object]) -> Callable[[Any], object]:
        @functools.wraps(setter)
        def tell(loop: Any) -> object:
            if loop is not None and "loops" not in self._aspects:
                self.loops()
            return setter(loop)

        return tell

    def streams(self) -> None:
        """A standard stream is about to be replaced."""
        self._add("streams", lambda: self._base["streams"])

    def filters(self) -> None:
        """A task has filters of warnings of its own."""
        self._add("filters", lambda: self._base["filters"])

    def threads(self) -> None:
        """Tasks may run in several threads at once, so what one of them sets is not to be seen by others even before
        it has been noticed."""
        for kind, aspect in self._base.items():
            self._add(kind, lambda aspect=aspect: aspect)  # type: ignore[misc]

    def numpy(self) -> None:
        """A part of NumPy is loaded; NumPy 1 keeps something for the thread."""
        umath = sys.modules.get("numpy.core._multiarray_umath")
        if hasattr(umath, "geterrobj"):
            from hdphrs.contexts.aspects import NumpyOne

            self._add("numpy", lambda: NumpyOne(umath))

    def rebase(self) -> None:
        """Streams or filters have been changed for all tasks that begin, by us."""
        for aspect in self._base.values():
            aspect.rebase()

    def received(self, context: bytes) -> Context:
        """The context of a task that has come with one."""
        self.variables()
        from hdphrs.contexts.travel import unpack

        return unpack(context)

    def _add(self, kind: str, make: Callable[[], Aspect]) -> None:
        with self._lock:
            if kind not in self._aspects:
                self._aspects[kind] = aspect = make()
                self.variables()
                if not isinstance(fast.isolation, _Soon):
                    fast.isolation.add(aspect)

    def _wrap(self, name: str, at_first: Sequence[Any]) -> None:
        """Have a function of `warnings` that is called when the filters have changed tell us, if others are there: what
        is added to those that were there at first is for the whole process."""
        mutated = getattr(warnings, name, None)
        if mutated is None:
            return

        def tell() -> None:
            if warnings.filters is not at_first:
                self.filters()
            mutated()

        setattr(warnings, name, tell)


class _Soon:
    """In the place of what isolates tasks, until it is wanted."""

    def __init__(self, begin: Callable[[], Isolation]) -> None:
        self._begin = begin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._begin(), name)


class _Finder:
    """Finds no module, but hears of each that is looked for."""

    def __init__(self, notice: Notice) -> None:
        self._loads = notice.loads

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        self._loads(name)


class _Sys(ModuleType):
    """The class of `sys`, which hears that a stream is replaced, and is a module's in all other respects."""

    on_stream: Callable[[], None] = staticmethod(lambda: None)

    def __new__(cls, *args: Any) -> Any:
        return ModuleType(*args)  # for those who write `type(sys)(name)`

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("stdout", "stderr", "stdin"):
            _Sys.on_stream()
        super().__setattr__(name, value)

    def __reduce__(self) -> Any:
        return __import__, ("sys",)


def _is_harmless(path: str) -> bool:
    """Whether a compiled module is Python's own, or ours: of those we know which ones set context variables."""
    return path.startswith(OUR_FILES) or (path.startswith(STANDARD) and not any(site in path for site in SITES))


notice: Final = Notice()
