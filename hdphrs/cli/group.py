"""One command with its subcommands, and the one place where errors become lines and exit statuses."""

from __future__ import annotations

import errno
import re
import signal
from importlib import import_module

import click

from hdphrs import __version__
from hdphrs.console import say, take_leave
from hdphrs.errors import HdphrsError, UsageError
from hdphrs.form import form

EXIT_FAILED = 1
EXIT_USAGE = 2

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Of a standard output that takes nothing more; of one that nobody reads (EPIPE) click says nothing, and the status is
`EXIT_FAILED` too."""

COMMANDS = ("drain", "explore", "ledger", "replay", "run", "sim")


class _Commands(click.Group):
    """Loads a command when it is wanted: what the others import would delay it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"hdphrs.cli.{cmd_name}"), cmd_name)
        return command


def _tell(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"hdphrs {__version__} ({form()})")
        context.exit()


@click.group(cls=_Commands, no_args_is_help=False)
@click.option("--version", is_flag=True, is_eager=True, callback=_tell, expose_value=False, help="Show it, and exit.")
def hdphrs() -> None:
    """Reliable work-stealing fork/join: every core of every machine, whichever of them dies."""


def run_command_line() -> int | str | None:
    """Run the command line of this process.

    Returns:
        its exit status, as `sys.exit` takes it; -N if it is to be that of a process which signal N has ended.
    """
    try:
        status: int | str | None = hdphrs.main(prog_name="hdphrs", standalone_mode=False)
    except click.Abort:
        status = -signal.SIGINT
    except click.ClickException as error:
        say(_with_advice(error))
        status = EXIT_USAGE
    except HdphrsError as error:
        say(str(error))
        status = EXIT_USAGE if isinstance(error, UsageError) else EXIT_FAILED
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            say(f"cannot write to the standard output: {error.strerror}")
        else:
            from hdphrs.wire.failing import tell_end

            tell_end("hdphrs", error)
        status = EXIT_FAILED
    take_leave()
    return status


def _with_advice(error: click.ClickException) -> str:
    """What click says of a mistake, and what a newcomer may have meant, in one line."""
    sentence = error.format_message()
    if not isinstance(error, click.UsageError) or error.ctx is None or not isinstance(error.ctx.command, click.Group):
        return sentence
    (word,) = re.findall(r"'(.*)'", sentence) or [""]
    if error.ctx.parent is None and word.endswith(".py"):
        return f"{sentence} To run it: {error.ctx.command_path} run {word}"
    return f"{sentence} See {error.ctx.command_path} --help"
