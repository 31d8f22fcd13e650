"""Modules as part of what a function means: installed ones by their version, the program's own by their source.

What lives here: which of the two a module is, and the source of one of the program's own together with those that it
imports, directly or not.  Own is what is neither of the standard library nor in a directory of installed packages.

A module whose source was written after this process had started may not be what the process has imported: nothing is
known of it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Final

_INSTALLED_DIRECTORIES: Final = ("site-packages", "dist-packages")
_STANDARD: Final = sys.stdlib_module_names | set(sys.builtin_module_names)
OURS: Final = "hdphrs"


class UnknownMeaningError(Exception):
    """What this is depends on cannot be told; it is not for the ledger."""


def installed_as(name: str) -> str | None:
    """The package and version that a module is installed with; None if it is one of the program's own.

    Raises:
        UnknownMeaningError: there is no such module.
    """
    top = name.partition(".")[0]
    if top in _STANDARD:
        return "python"
    if top == OURS:
        return f"{OURS} {getattr(sys.modules[OURS], '__version__', '')}"
    origin = _origin(_spec(name))
    if origin is None or not any(part in _INSTALLED_DIRECTORIES for part in Path(origin).parts):
        return None
    version = _version(top)
    return None if version is None else f"{top} {version}"


def source_of(name: str) -> bytes:
    """Digest of the source of one of the program's own modules and of its own modules that it imports.

    Raises:
        UnknownMeaningError: there is no such module, or it has changed since this process started.
    """
    known: dict[str, bytes] = {}
    waiting = [name]
    while waiting:
        here = waiting.pop()
        if here in known:
            continue
        source = _read(here)
        known[here] = source
        waiting += [own for own in _imported(here, source) if own not in known]
    total = blake2b(digest_size=20)
    for module in sorted(known):
        total.update(b"%d %s" % (len(module), module.encode()))
        total.update(blake2b(known[module]).digest())
    return total.digest()


def _read(name: str) -> bytes:
    """The bytes of a module: its source, or itself if it is an extension; empty for a namespace."""
    spec = _spec(name)
    origin = _origin(spec)
    if origin is None:
        return b""
    try:
        written_s = os.stat(origin).st_mtime
    except OSError:
        return _read_archive(spec)
    if written_s > _started_s():
        raise UnknownMeaningError(f"{origin} has been changed since this process started")
    return Path(origin).read_bytes()


def _read_archive(spec: ModuleSpec) -> bytes:
    """A module in the archive of the program's directory, which does not change."""
    source = getattr(spec.loader, "get_source", lambda name: None)(spec.name)
    if source is None:
        raise UnknownMeaningError(f"module {spec.name} has no source")
    return str(source).encode()


def _imported(name: str, source: bytes) -> Iterator[str]:
    """Names of the program's own modules that a module imports, anywhere in its text."""
    import ast  # here, as below, since it would delay the first task of every run

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return  # an extension
    package = name if _spec(name).submodule_search_locations is not None else name.rpartition(".")[0]
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(dict.fromkeys(prefix for alias in node.names for prefix in _prefixes(alias.name)))
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            found.update(dict.fromkeys(_prefixes(base)))
            found.update(dict.fromkeys(f"{base}.{alias.name}" for alias in node.names if alias.name != "*"))
    for candidate in found:
        try:
            if installed_as(candidate) is None:
                yield candidate
        except UnknownMeaningError:
            continue  # a name in a module, or an import that is not meant to succeed here


def _prefixes(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1) if all(parts)]


def _spec(name: str) -> ModuleSpec:
    """Where a module comes from; nothing is imported."""
    module = sys.modules.get(name)
    spec: ModuleSpec | None = getattr(module, "__spec__", None)
    if spec is None and module is None:
        parent = name.rpartition(".")[0]
        places = _spec(parent).submodule_search_locations if parent else None
        if parent and places is None:
            raise UnknownMeaningError(f"there is no module {name}")
        spec = PathFinder.find_spec(name, None if places is None else list(places))
    if spec is None:
        raise UnknownMeaningError(f"nothing is known of module {name}")
    return spec


def _origin(spec: ModuleSpec) -> str | None:
    return spec.origin if spec.has_location or spec.submodule_search_locations is None else None


@cache
def _version(top: str) -> str | None:
    import importlib.metadata

    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        distributions = _distributions().get(top, [])
        return " ".join(f"{name} {importlib.metadata.version(name)}" for name in sorted(set(distributions))) or None


@cache
def _distributions() -> dict[str, list[str]]:
    import importlib.metadata

    return {top: list(names) for top, names in importlib.metadata.packages_distributions().items()}


@cache
def _started_s() -> float:
    """When this process started, as the kernel tells; else when this was first asked."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
        return int(booted.split()[1]) + ticks / os.sysconf("SC_CLK_TCK") + 1.0  # btime is cut to whole seconds
    except (OSError, ValueError, StopIteration, IndexError):
        return time.time()
