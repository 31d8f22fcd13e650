"""Documents with tables of ours, each between two marks, so that a new table takes the place of the old one."""

from __future__ import annotations

import sys
from pathlib import Path


def marks(name: str) -> tuple[str, str]:
    """The lines between which a document has the table of this name."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def room(document: Path, name: str) -> tuple[str, str]:
    """What stands before and after the table, with the marks; to be asked before an hour's measuring, too.

    Raises:
        SystemExit: the document cannot be read, or has no room for it.
    """
    begin, end = marks(name)
    try:
        before, begun, rest = document.read_text().partition(begin)
    except OSError as error:
        sys.exit(f"{document}: {error.strerror}")
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        sys.exit(f"{document} has no lines {begin} and {end} to write the table between")
    return before + begun, ended + after


def put(document: Path, name: str, table: str) -> None:
    """Put the table where the document has room for it.

    Raises:
        SystemExit: as `room`.
    """
    before, after = room(document, name)
    document.write_text(f"{before}\n\n{table}\n{after}")
