"""Which form of the package this is: compiled, or pure Python (decision 33); setup.py makes the one or the other."""

from __future__ import annotations

import os
import sys

WITNESS = "hdphrs.protocol.node"
"""All that is ever compiled is compiled where this module is."""

OUR_FILES = (os.path.dirname(os.path.abspath(__file__)) + os.sep, "hdphrs/")
"""How the names of our files begin in tracebacks: compiled code has those that it was compiled from."""


def form() -> str:
    """For people."""
    from importlib.machinery import EXTENSION_SUFFIXES
    from importlib.util import find_spec

    spec = find_spec(WITNESS)
    compiled = spec is not None and str(spec.origin).endswith(tuple(EXTENSION_SUFFIXES))
    return "compiled" if compiled else "pure Python"


def use_sources() -> None:
    """From now on this process imports our modules from their sources: those who ask a class for the types of its
    attributes hear nothing from a compiled one."""
    from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader

    def find_ours(folder: str) -> FileFinder:
        if not (folder + os.sep).startswith(OUR_FILES[0]):
            raise ImportError
        return FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))

    sys.path_hooks.insert(0, find_ours)
    sys.path_importer_cache.clear()
