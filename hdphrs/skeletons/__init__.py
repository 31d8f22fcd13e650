"""Patterns over `spawn` and `get` (paper section 3.2): with these a program needs neither.

    par_*    lazy: tasks wait to be stolen
    push_*   eager: tasks are placed on all nodes in turn, the caller's included
    fork_*   local: tasks are placed on the caller's node, whose cores share them
    *_ft     supervised even in a run with `--unreliable`

The names follow PEP 8; the spellings of the paper and of HdpH are the same objects.  `docs/skeletons.md` has the table.

They are loaded when the first of them is wanted: most processes of a run want none (decision 28).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hdphrs.skeletons.every import *  # noqa: F403

    __all__: list[str]
else:  # hidden from type checkers, for which any name would be right

    def __getattr__(name: str) -> Any:
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module("hdphrs.skeletons.every"), name, None)
        if value is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
