"""CPython's own tests of executors, where this machine has those of the running Python.

What lives here: where they are looked for, and what of their surroundings differs for us.  Nothing of them is copied.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from math import inf
from pathlib import Path
from typing import Any

import hdphrs

VERSION = "{}.{}".format(*sys.version_info)

DEBIAN = Path(f"/usr/lib/python{VERSION}/test")
"""Where the package libpython3.X-testsuite puts them, for Pythons that come without."""

MISSING = f"Python {VERSION} has no test.test_concurrent_futures here; Debian: apt install libpython{VERSION}-testsuite"

SECOND_S = 0.4
"""How long their seconds take."""

LOOK_S = 0.01
"""How often somebody looks whether an event is set."""

_PACKAGE = "test.test_concurrent_futures"
_PARTS = (
    ".util",
    ".executor",
    ".test_wait",
    ".test_as_completed",
    ".test_shutdown",
    ".test_init",
    ".test_process_pool",
)
"""The modules of newer versions; before Python 3.12 it is one."""

_SINGLE = "test_concurrent_futures"


def _parts() -> list[str]:
    """Their modules, by the names under which they can be imported once `path` is on `sys.path`; empty without them."""
    if importlib.util.find_spec("test") and importlib.util.find_spec(_PACKAGE):
        parts = [_PACKAGE + part for part in _PARTS]
        return parts if importlib.util.find_spec(parts[0]) else [_PACKAGE]
    return [_SINGLE] if (DEBIAN / f"{_SINGLE}.py").exists() else []


def path() -> list[str]:
    """What `sys.path` needs, here and in schedulers."""
    return [str(DEBIAN)] if _parts() == [_SINGLE] else []


def load() -> dict[str, Any]:
    """All names of their modules; empty if they are not here."""
    names: dict[str, Any] = {}
    sys.path += path()
    for part in _parts():
        module = importlib.import_module(part)
        names.update(vars(module))
        module.__dict__.update(futures=_Futures(), assert_python_ok=run_script)
    del sys.path[len(sys.path) - len(path()) :]
    return names


class BriefExecutor(hdphrs.Executor):
    """Ours, with what they sleep and wait made shorter, all in proportion."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        if fn is time.sleep or getattr(fn, "__name__", "") == "sleep_and_raise":
            args = (args[0] * SECOND_S,)
        return super().submit(fn, *args, **kwargs)

    def map(
        self, fn: Callable[..., Any], *iterables: Iterable[Any], timeout: float | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        return super().map(fn, *iterables, timeout=timeout and timeout * SECOND_S, **kwargs)


class _Futures:
    """Stands for `concurrent.futures` in their modules."""

    def __getattr__(self, name: str) -> Any:
        return getattr(futures, name)

    def wait(self, fs: Iterable[Any], timeout: float | None = None, **kwargs: Any) -> Any:
        return futures.wait(fs, timeout and timeout * SECOND_S, **kwargs)

    def as_completed(self, fs: Iterable[Any], timeout: float | None = None) -> Any:
        return futures.as_completed(fs, timeout and timeout * SECOND_S)


class FileEvent:
    """What their tests wait for and set, of newer versions: an event that other processes see."""

    def __init__(self) -> None:
        self._path = os.path.join(tempfile.mkdtemp(prefix="hdphrs-event-"), "set")

    def set(self) -> None:
        """Wake all who wait; that is the end of a test."""
        open(self._path, "w").close()

    def remove(self) -> None:
        """Nobody waits any more."""
        shutil.rmtree(os.path.dirname(self._path), ignore_errors=True)

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is set, or its test is over."""
        end_s = inf if timeout is None else time.monotonic() + timeout * SECOND_S
        while not os.path.exists(self._path) and os.path.exists(os.path.dirname(self._path)):
            if time.monotonic() > end_s:
                return False
            time.sleep(LOOK_S)
        return True


def run_script(option: str, script: str) -> tuple[int, bytes, bytes]:
    """Run one of their scripts with our executor in the place of the standard one, as `assert_python_ok` would."""
    for name in ("BriefExecutor", "ThreadPoolExecutor"):
        script = script.replace(f"from concurrent.futures import {name}", f"from hdphrs import Executor as {name}")
    if path():
        script = script.replace(f"from {_PACKAGE} import", f"from {_SINGLE} import")
    completed = subprocess.run(
        [sys.executable, option, script],
        capture_output=True,
        check=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return completed.returncode, completed.stdout, completed.stderr
