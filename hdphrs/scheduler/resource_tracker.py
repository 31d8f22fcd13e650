"""multiprocessing's resource tracker, as tasks use it: one for each node, which outlives the schedulers.

What lives here: having multiprocessing in this process report to that one.  What does not: the tracker
(`hdphrs/node/tracker.py`).

By itself each scheduler that opens a block of shared memory would start a tracker of its own, which deletes the block
when the scheduler ends or dies, though the program or another task goes on with it.  So a block that a task merely
opens is not reported, since its maker's tracker has it; one that a task makes is reported to the tracker of the node.
That deletes what is left when the node and all of its schedulers have ended.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

MODULE: Final = "multiprocessing.resource_tracker"

BLOCK: Final = "shared_memory"
"""What multiprocessing calls a block; it reports blocks when they are opened, too."""


def share(descriptor: int) -> None:
    """Report to the tracker that reads from the other end of this pipe, once somebody imports multiprocessing's."""
    module = sys.modules.get(MODULE)
    if module is not None:
        _share(module, descriptor)
    else:
        sys.meta_path.insert(0, _Finder(descriptor))


class _Finder:
    """Waits for the module, and is gone when it has come."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        if name != MODULE:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _share(module, self._descriptor)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _share(module: Any, descriptor: int) -> None:
    module._resource_tracker._fd = descriptor
    module.register = _register(module.register)
    module.unregister = _unregister(module.unregister, module.register)


def _register(report: Callable[[str, str], None]) -> Callable[[str, str], None]:
    def register(name: str, rtype: str) -> None:
        """Register name of resource with resource tracker."""
        if rtype != BLOCK or sys._getframe(1).f_locals.get("create") is not False:
            report(name, rtype)

    return register


def _unregister(report: Callable[[str, str], None], register: Callable[[str, str], None]) -> Callable[[str, str], None]:
    def unregister(name: str, rtype: str) -> None:
        """Unregister name of resource with resource tracker."""
        if rtype == BLOCK:
            register(name, rtype)  # it may not be known there, and to forget what is not known is an error
        report(name, rtype)

    return unregister
