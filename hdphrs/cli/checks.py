"""Is the input usable?  Asked before anything starts, answered with one clear line."""

from __future__ import annotations

import os

from hdphrs.config import LEDGER_BYTES_MAX
from hdphrs.errors import UsageError
from hdphrs.wire.private import check_private, make_private_folder


def check_report(path: str) -> str:
    """Check that the report can be written when the run ends, before the run starts; returns its absolute path.

    Raises:
        UsageError: it is a directory or another user's, or its directory is missing or not writable.
    """
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        raise UsageError(f"cannot write the report {path}: it is a directory")
    if not os.path.isdir(folder):
        raise UsageError(f"cannot write the report {path}: there is no directory {folder}")
    try:
        check_private(path)
    except OSError as error:
        raise UsageError(f"cannot write the report {path}: {error.strerror}") from error
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise UsageError(f"cannot write the report {path}: permission denied")
    return path


def check_trace(folder: str) -> str:
    """Make the folder for a new trace, before the run starts; returns its absolute path.

    Raises:
        UsageError: it cannot be made or written, or it holds the trace of another run.
    """
    from hdphrs.wire.trace import SUFFIX

    folder = os.path.abspath(folder)
    try:
        make_private_folder(folder)
        names = os.listdir(folder)
    except OSError as error:
        raise UsageError(f"cannot record in {folder}: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"cannot record in {folder}: permission denied")
    if any(name.endswith(SUFFIX) for name in names):
        raise UsageError(f"cannot record in {folder}: it holds the trace of another run")
    return folder


def check_ledger(location: str) -> str:
    """Make sure that there is, or can be, a ledger, before the run starts; returns its absolute path, or the URL.

    Raises:
        UsageError: it cannot be made or used, or may have been written by somebody else.
    """
    from hdphrs.console import say
    from hdphrs.errors import LedgerError
    from hdphrs.ledger import is_here, is_url, open_store
    from hdphrs.wire.settings import ledger_location

    place = ledger_location(location)
    assert place is not None
    if is_url(place):
        from importlib.util import find_spec

        if find_spec("fsspec") is None:
            raise UsageError(f"--ledger {location} needs fsspec: pip install 'hdphrs[url]'")
        if not is_here(place):
            return place
    try:
        open_store(place, LEDGER_BYTES_MAX, say).close()
    except LedgerError as error:
        raise UsageError(f"--ledger {location}: {error}") from error
    return place


def check_ledger_key(path: str) -> bytes:
    """The key of the ledger.

    Raises:
        UsageError: it cannot be read, others can read or change it, or it is too short.
    """
    from hdphrs.errors import LedgerError
    from hdphrs.wire.settings import read_ledger_key

    try:
        return read_ledger_key(path)
    except LedgerError as error:
        raise UsageError(f"--ledger-key {path}: {error}") from error


def check_exclusive(given: dict[str, bool], *groups: tuple[str, ...]) -> None:
    """Check that of each group at most one option was given.

    Raises:
        UsageError: two of them were; names both.
    """
    for group in groups:
        asked = [option for option in group if given[option]]
        if len(asked) > 1:
            raise UsageError(f"{asked[0]} and {asked[1]} exclude each other")
