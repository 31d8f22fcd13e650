"""The entry point: one command with its subcommands, and the one place where errors become lines and exit statuses."""

from __future__ import annotations

import re
import signal
import sys
from typing import NoReturn

import click

from hdphrs import HdphrsError, __version__
from hdphrs.cli.drain import drain
from hdphrs.cli.explore import explore
from hdphrs.cli.ledger import ledger
from hdphrs.cli.output import say
from hdphrs.cli.replay import replay
from hdphrs.cli.run import run
from hdphrs.cli.sim import sim
from hdphrs.errors import UsageError

EXIT_FAILED = 1
EXIT_USAGE = 2


@click.group(no_args_is_help=False)
@click.version_option(__version__, prog_name="hdphrs", message="%(prog)s %(version)s")
def hdphrs() -> None:
    """Reliable work-stealing fork/join: every core of every machine, whichever of them dies."""


hdphrs.add_command(drain)
hdphrs.add_command(explore)
hdphrs.add_command(run)
hdphrs.add_command(replay)
hdphrs.add_command(ledger)
hdphrs.add_command(sim)


def main() -> NoReturn:
    """Run the command line of this process, and end with its exit status."""
    try:
        status = hdphrs.main(prog_name="hdphrs", standalone_mode=False)
    except click.Abort:
        status = -signal.SIGINT
    except click.ClickException as error:
        say(_with_advice(error))
        status = EXIT_USAGE
    except HdphrsError as error:
        say(str(error))
        status = EXIT_USAGE if isinstance(error, UsageError) else EXIT_FAILED
    if isinstance(status, int) and status < 0:
        from hdphrs.cluster.signals import end_as_if_killed_by

        end_as_if_killed_by(-status)
    sys.exit(status)


def _with_advice(error: click.ClickException) -> str:
    """What click says of a mistake, and what a newcomer may have meant, in one line."""
    sentence = error.format_message()
    if not isinstance(error, click.UsageError) or error.ctx is None or not isinstance(error.ctx.command, click.Group):
        return sentence
    (word,) = re.findall(r"'(.*)'", sentence) or [""]
    if error.ctx.parent is None and word.endswith(".py"):
        return f"{sentence} To run it: {error.ctx.command_path} run {word}"
    return f"{sentence} See {error.ctx.command_path} --help"
