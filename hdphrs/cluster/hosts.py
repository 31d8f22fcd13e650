"""The hosts file: who takes part in a run.

One host a line, `host [slots=N] [python=PATH]`; `#` starts a comment, blank lines are skipped.  A line `localhost` is
a node on this machine, and there may be several; any other name is reached with one ssh, so `127.0.0.1` is this
machine too, by way of its ssh server.  A path with blanks cannot be written.
"""

from __future__ import annotations

import re
from pathlib import Path

from hdphrs.errors import UsageError
from hdphrs.records import dataclass

LOCALHOST = "localhost"

HOSTS_MAX = 4096
HOSTS_BYTES_MAX = 1 << 20
SLOTS_MAX = 1024

# No leading dash: ssh would take the host for an option.
_HOST = re.compile(r"[A-Za-z0-9_\[:][A-Za-z0-9_.:%@\[\]-]*")
_DIGITS = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Host:
    """One line of the file; None means that the line leaves it open."""

    name: str
    slots: int | None = None
    """Schedulers to run there."""
    python: str | None = None
    """The interpreter to start there, an absolute path or a name to be found on that host's PATH."""


def read_hosts(path: str) -> list[Host]:
    """Read a hosts file.

    Raises:
        UsageError: it is missing, unreadable, not UTF-8, too large, empty, or a line is malformed.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(HOSTS_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"cannot read the hosts file {path}: {error.strerror}") from error
    if len(content) > HOSTS_BYTES_MAX:
        raise UsageError(f"{path} is no hosts file: it is larger than {HOSTS_BYTES_MAX >> 20} MiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}, line {line}: expected text in UTF-8") from error
    return parse_hosts(text, path)


def parse_hosts(text: str, file: str) -> list[Host]:
    """Parse the text of a hosts file; `file` is its name for the messages.

    Raises:
        UsageError: a malformed line (the file, its number, what was expected), or no host at all.
    """
    hosts = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            hosts.append(_parse_line(words))
        except ValueError as error:
            raise UsageError(f"{file}, line {number}: {error}") from error
        if len(hosts) > HOSTS_MAX:
            raise UsageError(f"{file}, line {number}: expected at most {HOSTS_MAX} hosts")
    if not hosts:
        raise UsageError(f"{file} names no host; expected lines of the form: host [slots=N] [python=PATH]")
    return hosts


def _parse_line(words: list[str]) -> Host:
    """Parse the words of one line; a ValueError says what was expected of it."""
    name, *options = words
    if not _HOST.fullmatch(name):
        raise ValueError(f"expected the name or address of a host, not {name!r}")
    values: dict[str, str] = {}
    for option in options:
        key, _, value = option.partition("=")
        if key not in ("slots", "python") or not value:
            raise ValueError(f"expected slots=N or python=PATH after the host, not {option!r}")
        if key in values:
            raise ValueError(f"expected {key}= once, not twice")
        values[key] = value
    slots = None
    if "slots" in values:
        if not _DIGITS.fullmatch(values["slots"]) or not 1 <= int(values["slots"]) <= SLOTS_MAX:
            raise ValueError(f"expected slots=N with a whole number from 1 to {SLOTS_MAX}, not slots={values['slots']}")
        slots = int(values["slots"])
    return Host(name, slots, values.get("python"))
