"""Modules that tasks need: whoever has imported some tells the others of its node (decision 38).

What lives here: noticing what this process imports to load a task, and importing what others have needed, while it has
nothing to do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from time import perf_counter
from types import ModuleType
from typing import Any

from hdphrs.wire import local
from hdphrs.wire.search_path import extend_path
from hdphrs.wire.signals import came_between

SHORT_S = 0.1
"""What takes longer to import is nobody's business but theirs who need it: it may take as much memory, and a task that
arrives meanwhile would wait for it."""

REST_S = 50e-3
"""For how long nothing must have come before a scheduler begins to import: where tasks follow each other, it would keep
the next one waiting."""


class Imports:
    """Those of one scheduler, in its main thread."""

    def __init__(self, tell: Callable[[list[Any]], None]) -> None:
        """`tell` sends a message to the node."""
        self._tell = tell
        self._known = 0
        self._since_s = 0.0
        self._rest_s = REST_S
        self._ahead: dict[str, None] = {}
        """Modules that others have needed, in the order in which they had them: each after those that it imports."""

    def begin(self) -> None:
        """A task is to be loaded."""
        self._known, self._since_s = len(sys.modules), perf_counter()

    def end(self) -> None:
        """It has been; the others are told of the modules that it took."""
        if len(sys.modules) > self._known and perf_counter() - self._since_s <= SHORT_S:
            names = [name for name, module in list(sys.modules.items())[self._known :] if _is_found(module)]
            if names:
                self._tell([local.IMPORTED, [entry for entry in sys.path if type(entry) is str], names])

    def hear(self, path: Iterable[str], names: Iterable[str]) -> None:
        """Another scheduler of the node, with this `sys.path`, has imported these to load a task."""
        extend_path(path)
        self._ahead.update(dict.fromkeys(names))

    @property
    def patience_s(self) -> float | None:
        """How long to wait for something to come before it goes on; None for ever."""
        return self._rest_s if self._ahead else None

    def rest(self) -> None:
        """Something has come, or a timer is due: not before nothing has for a while does it go on."""
        self._rest_s = REST_S

    def __bool__(self) -> bool:
        """Whether there is something to import."""
        return bool(self._ahead)

    def go_on(self) -> None:
        """Import one module, and nothing else: what it imports itself came before it."""
        name = next(iter(self._ahead))
        del self._ahead[name]
        self._rest_s = 0.0
        if name not in sys.modules:
            try:
                __import__(name)
            except BaseException as error:  # whatever it raises here, the task that needs it will raise too, and tell
                if came_between(error):
                    raise
                return


def _is_found(module: object) -> bool:
    """Whether others find it by its name.  (What only looks like a module may do anything when it is asked.)"""
    return type(module) is ModuleType and vars(module).get("__spec__") is not None
