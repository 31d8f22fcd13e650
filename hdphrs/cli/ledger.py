"""`hdphrs ledger`: looking at a ledger, and keeping it in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hdphrs.cli.values import size
from hdphrs.config import LEDGER_BYTES_MAX
from hdphrs.console import say
from hdphrs.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from hdphrs.ledger import Store

LISTED_MAX = 50


@click.group(no_args_is_help=False, short_help="Look at a ledger, and keep it in order.")
def ledger() -> None:
    """What hdphrs run --ledger has kept in a directory or below a URL."""


@ledger.command(name="ls", short_help="List entries, the newest first.")
@click.option("-n", "count", type=click.IntRange(1), default=LISTED_MAX, metavar="N", help="At most N of them.")
@click.argument("location", metavar="DIR|URL")
def list_entries(count: int, location: str) -> None:
    """List entries: what each has cost, how large its value is, where it was spawned, and which function it was.

    The parts of tasks have no name.
    """
    store = _open(location)
    try:
        keys = [label.key for label in store.labels()]
        found = {entry.key: entry for entry in store.read(keys[:count], use=False)}
    except LedgerError as error:
        raise UsageError(str(error)) from error
    for key in keys[:count]:
        if key in found:
            entry = found[key]
            place = entry.path.hex()[:24]
            click.echo(
                f"{key[1:7].hex()}  {entry.cost_s:9.3f} s  {_size(len(entry.data)):>9}  {place:24}  {entry.name}"
            )
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
@click.option("--remove", is_flag=True, help="Remove those that are damaged.")
@click.argument("location", metavar="DIR|URL")
def verify(remove: bool, location: str) -> int:
    """Open every entry, and tell how many are damaged; the exit status is 1 if some are and stay."""
    try:
        verdict = _open(location).verify(remove=remove)
    except LedgerError as error:
        raise UsageError(str(error)) from error
    click.echo(f"sound: {verdict.sound}")
    click.echo(f"damaged: {verdict.damaged}{', removed' if remove and verdict.damaged else ''}")
    return 1 if verdict.damaged and not remove else 0


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


def _open(location: str) -> Store:
    from hdphrs.ledger import open_store

    try:
        return open_store(location, LEDGER_BYTES_MAX, say, create=False)
    except LedgerError as error:
        raise UsageError(str(error)) from error


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
