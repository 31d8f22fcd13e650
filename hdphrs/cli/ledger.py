"""`hdphrs ledger`: looking at a ledger, and keeping it in order."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Final

import click

from hdphrs.cli.values import size
from hdphrs.config import LEDGER_BYTES_MAX
from hdphrs.console import plain, say
from hdphrs.errors import LedgerError, UsageError
from hdphrs.wire.settings import LEDGER_KEY_VARIABLE

if TYPE_CHECKING:
    from hdphrs.ledger import Store

LISTED_MAX = 50

KEY_BYTES: Final = 32

_signed = click.option(
    "--ledger-key",
    "key",
    envvar=LEDGER_KEY_VARIABLE,
    metavar="FILE",
    help=f"Use only entries that are signed with the key in FILE; also {LEDGER_KEY_VARIABLE}.",
)


@click.group(no_args_is_help=False, short_help="Look at a ledger, and keep it in order.")
def ledger() -> None:
    """What hdphrs run --ledger has kept in a directory or below a URL."""


@ledger.command(name="ls", short_help="List entries, the newest first.")
@click.option("-n", "count", type=click.IntRange(1), default=LISTED_MAX, metavar="N", help="At most N of them.")
@_signed
@click.argument("location", metavar="DIR|URL")
def list_entries(count: int, key: str | None, location: str) -> None:
    """List entries: what each has cost, how large its value is, where it was spawned, and which function it was.

    The parts of tasks have no name.
    """
    store = _open(location, key)
    try:
        keys = [label.key for label in store.labels()]
        found = {entry.key: entry for entry in store.read(keys[:count], use=False)}
    except LedgerError as error:
        raise UsageError(str(error)) from error
    for memo in keys[:count]:
        if memo in found:
            entry = found[memo]
            size_, place, name = _size(len(entry.data)), entry.path.hex()[:24], plain(entry.name)
            click.echo(f"{memo[1:7].hex()}  {entry.cost_s:9.3f} s  {size_:>9}  {place:24}  {name}")
    if store.unsigned:
        click.echo(f"unsigned, and not listed: {store.unsigned}")
    if len(keys) > count:
        click.echo(f"... and {len(keys) - count} more")


@ledger.command(short_help="Tell how much there is.")
@click.argument("location", metavar="DIR|URL")
def stat(location: str) -> None:
    """Tell how many entries there are, their size, and what it would take to compute them again."""
    try:
        figures = _open(location).figures()
    except LedgerError as error:
        raise UsageError(str(error)) from error
    click.echo(f"entries: {figures.entries}")
    click.echo(f"size: {_size(figures.bytes)}")
    if figures.cost_s is not None:
        click.echo(f"cost: {figures.cost_s:.1f} s")


@ledger.command(short_help="Open every entry.")
@click.option("--remove", is_flag=True, help="Remove those that are damaged, or not signed with the key.")
@_signed
@click.argument("location", metavar="DIR|URL")
def verify(remove: bool, key: str | None, location: str) -> int:
    """Open every entry, and tell how many are damaged, or not signed with the key, if there is one.

    The exit status is 1 if there are some, and they stay.
    """
    try:
        verdict = _open(location, key).verify(remove=remove)
    except LedgerError as error:
        raise UsageError(str(error)) from error
    click.echo(f"sound: {verdict.sound}")
    click.echo(f"damaged: {verdict.damaged}{', removed' if remove and verdict.damaged else ''}")
    if key:
        click.echo(f"unsigned: {verdict.unsigned}{', removed' if remove and verdict.unsigned else ''}")
    return 1 if (verdict.damaged or verdict.unsigned) and not remove else 0


@ledger.command(short_help="Make room.")
@click.option("--max", "bytes_max", type=size, default="1G", metavar="2G", help="What may be left; 1G by default.")
@click.argument("location", metavar="DIR|URL")
def gc(bytes_max: int, location: str) -> None:
    """Drop entries until no more is left than may be: what was not used for long goes first, and what was cheap."""
    try:
        dropped = _open(location).shrink(bytes_max)
    except LedgerError as error:
        raise UsageError(str(error)) from error
    click.echo(f"dropped: {dropped}")


@ledger.command(name="key", short_help="Make a key that signs entries.")
@click.argument("path", metavar="FILE")
def make_key(path: str) -> None:
    """Make a key, for --ledger-key of hdphrs run, in a new file that only you can read.

    Who has the key can put entries into your ledger that you will use; who has not, cannot.
    """
    from hdphrs.owned import Distrust, Folder

    path = os.path.abspath(path)
    try:
        Folder.open(os.path.dirname(path), create=False, sticky=True).make(
            os.path.basename(path), os.urandom(KEY_BYTES)
        )
    except OSError as error:
        raise UsageError(f"cannot make the key {path}: {error.strerror}") from error
    except Distrust as error:
        raise UsageError(f"cannot make the key {path}: {error}") from error
    click.echo(f"hdphrs run --ledger-key {shlex.quote(path)} --ledger DIR|URL prog.py")


def _open(location: str, key: str | None = None) -> Store:
    from hdphrs.ledger import open_store
    from hdphrs.wire.settings import read_ledger_key

    said: list[str] = []

    def complain(sentence: str) -> None:
        if not said:
            say(sentence)
        said.append(sentence)

    try:
        return open_store(location, LEDGER_BYTES_MAX, complain, key=read_ledger_key(key) if key else None, create=False)
    except LedgerError as error:
        raise UsageError(str(error)) from error


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
