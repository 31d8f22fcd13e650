"""`hdphrs drain`: have a node leave its run before its host goes."""

from __future__ import annotations

import re

import click

from hdphrs.cli.values import command_words
from hdphrs.console import say
from hdphrs.errors import UsageError

LOCALHOST = "localhost"
TARGET = re.compile(r"(?P<host>[^\s:-][^\s:]*|\[[^\s\]]+\])(?::(?P<pid>[0-9]{1,9}))?")


@click.command(short_help="Have the nodes on a host leave their run.")
@click.option("--ssh", metavar="COMMAND", default="ssh", help="How to reach another host; ssh by default.")
@click.option(
    "--python",
    metavar="PATH",
    help="The interpreter with hdphrs on that host; by default that of the nodes which run there.",
)
@click.argument("targets", metavar="HOST[:PID]...", nargs=-1, required=True)
def drain(ssh: str, python: str | None, targets: tuple[str, ...]) -> int:
    """Have the nodes of your runs on HOST, or the one with process id PID, hand over what they have and leave.

    It returns when they are gone, which takes as long as what runs there does, but not longer than the `--grace` of
    the run.  `localhost` is this host; any other is reached with one ssh.  Root nodes cannot leave.
    """
    from hdphrs.cluster.drain import drain_here, drain_there

    words = command_words(ssh, "--ssh")
    status = 0
    for host, pid in [_parse(target) for target in targets]:
        if host == LOCALHOST:
            drain_here(pid, say)
        else:
            status = drain_there(host, pid, words, python) or status
    return status


def _parse(target: str) -> tuple[str, int | None]:
    match = TARGET.fullmatch(target)
    if match is None:
        raise UsageError(f"expected HOST or HOST:PID, not {target!r}")
    return match["host"].strip("[]"), None if match["pid"] is None else int(match["pid"])
