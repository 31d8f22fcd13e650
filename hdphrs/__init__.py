"""Reliable work-stealing fork/join: every core of every machine, whichever of them dies.

    import hdphrs

    def fib(n):
        if n < 2:
            return n
        left = hdphrs.spawn(fib, n - 1)
        return fib(n - 2) + hdphrs.get(left)

    print(hdphrs.run(fib, 25))

The names of the HdpH-RS paper (spawnAt, allNodes, parMapSliced, ...) are the same objects as the PEP 8 names.

What the names stand for is loaded when the first of them is wanted: the launcher and the nodes of a run want none
(decision 28).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hdphrs.executor.executor import Executor as Executor
    from hdphrs.public import *  # noqa: F403
    from hdphrs.skeletons.every import *  # noqa: F403

    __all__: list[str]
else:  # hidden from type checkers, for which any name would be right

    def __getattr__(name: str) -> Any:
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        public, every = import_module("hdphrs.public"), import_module("hdphrs.skeletons")
        if name == "__all__":
            value = [*public.__all__, *every.__all__]
        else:
            value = getattr(public if name in public.__all__ else every, name, None)
        if value is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
