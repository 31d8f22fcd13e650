"""How an interpreter is started that is to be as this one is.

What lives here: the options and variables that count only when an interpreter starts, so that no surroundings
(`surroundings.py`) can bring them later.  What does not: `-W`, whose filters are surroundings, and what says where
modules are (`-E`, `-I`, `-P`, `-s`, `-S`): processes of ours find theirs in their own way; and `-b`, which nodes would
not survive.
"""

from __future__ import annotations

import os
import sys
from typing import Final

AT_START: Final = (
    "PYTHONHASHSEED",
    "PYTHONUTF8",
    "PYTHONIOENCODING",
    "PYTHONOPTIMIZE",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONDEVMODE",
    "PYTHONMALLOC",
    "PYTHONINTMAXSTRDIGITS",
)
"""Variables that an interpreter looks at when it starts, and that mean the same on every host."""

X_OPTIONS: Final = ("dev", "utf8", "int_max_str_digits", "no_debug_ranges", "warn_default_encoding", "lazy_imports")
"""Of `-X`, those on which what tasks do may depend."""


def interpreter_options() -> list[str]:
    """The options of this interpreter that others are started with, too."""
    flags = sys.flags
    letters = "B" * bool(flags.dont_write_bytecode) + "O" * flags.optimize
    options = [f"-{letters}"] if letters else []
    for name in X_OPTIONS:
        value = sys._xoptions.get(name)
        if value is not None:
            options += ["-X", name if value is True else f"{name}={value}"]
    return options


def start_variables() -> dict[str, str]:
    """The variables at which an interpreter on another host has to look when it starts."""
    return {name: os.environ[name] for name in AT_START if name in os.environ}
