"""What every Python of a suite's environment does first, the ones that tests start included: plug hdphrs in.

What lives here: nothing of it loads hdphrs before the suite loads what hdphrs takes the place of.  `HDPHRS_FOREIGN`
names the suite.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

SUITE = "HDPHRS_FOREIGN"


class _After(MetaPathFinder):
    """Calls a function when a module has been loaded for the first time."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module = partial(  # type: ignore[method-assign]
                    self._load, spec.loader.exec_module
                )
                return spec
        return None

    def _load(self, load: Callable[[ModuleType], None], module: ModuleType) -> None:
        load(module)
        self._then(module)


def _joblib(joblib: ModuleType) -> None:
    """Ours is the default backend."""
    from hdphrs.joblib import _HdphrsBackend

    joblib.register_parallel_backend("hdphrs", _HdphrsBackend, make_default=True)


def _futures(futures: ModuleType) -> None:
    """Ours is the executor of processes; loaded when it is wanted, since it needs this package itself."""
    theirs = vars(futures)["__getattr__"]

    def __getattr__(name: str) -> object:  # noqa: N807 - the package has one for this name, too
        if name == "ProcessPoolExecutor":
            from .standard import ProcessPoolExecutor

            return ProcessPoolExecutor
        return theirs(name)

    vars(futures)["__getattr__"] = __getattr__


def _tests(tests: ModuleType) -> None:
    """Scripts of CPython's tests import the module with the tests, which may be elsewhere."""
    tests.__path__.append(os.environ["HDPHRS_FOREIGN_TESTS"])


def _loky(loky: ModuleType) -> None:
    from . import as_loky

    as_loky.plug_in(loky)


_PLUGS: dict[str, dict[str, Callable[[ModuleType], None]]] = {
    "joblib": {"joblib": _joblib},
    "sklearn": {"joblib": _joblib},
    "cpython": {"concurrent.futures": _futures, "test": _tests},
    "loky": {"loky": _loky},
}


def _plug_in(suite: str) -> None:
    for name, then in _PLUGS.get(suite, {}).items():
        if name in sys.modules:
            then(sys.modules[name])
        else:
            sys.meta_path.insert(0, _After(name, then))


_plug_in(os.environ.get(SUITE, ""))
