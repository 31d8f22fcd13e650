"""`hdphrs replay`: its argument, and what it says."""

from __future__ import annotations

import click

from hdphrs.console import plain
from hdphrs.errors import ProtocolError, UsageError


@click.command(short_help="Check a recorded run against the protocol's core.")
@click.argument("folder", metavar="DIR")
def replay(folder: str) -> int:
    """Feed what hdphrs run --trace-protocol DIR has recorded to the protocol's core again.

    Checks that it wants the same done, event by event; that what nodes received is what others sent; and that the
    invariants hold across all nodes.  Put the files of all hosts into one DIR.  The exit status is 0 if all is well, 1
    if something is wrong or a node's file is missing, 2 if there is no such run.
    """
    from hdphrs.observe.replay import replay as replay_run

    try:
        verdict = replay_run(folder)
    except ProtocolError as error:
        raise UsageError(plain(str(error))) from error
    for line in (*verdict.tally.table(), *verdict.sentences()):
        click.echo(plain(line))
    return 0 if verdict.conforming else 1
