"""What the site has that nobody writes by hand: the list of decisions, and the page of the command line.

What lives here: hooks that mkdocs calls while it builds.
"""

from __future__ import annotations

from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from hdphrs.cli.group import hdphrs

DECISIONS = "Decisions"
COMMANDS = "reference/command-line.md"
WIDTH = 96


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the section of the navigation that has all decisions."""
    docs = Path(config.docs_dir)
    for section in config.nav or []:
        if DECISIONS in section:
            section[DECISIONS] = sorted(str(page.relative_to(docs)) for page in docs.glob("decisions/*.md"))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of the command line."""
    files.append(File.generated(config, COMMANDS, content="\n".join(["# Command line", *_helps(hdphrs, "hdphrs")])))
    return files


def _helps(command: click.Command, path: str) -> list[str]:
    """What `--help` says of a command, and of those below it."""
    with click.Context(command, info_name=path, terminal_width=WIDTH, max_content_width=WIDTH) as context:
        parts = [f"## {path}\n\n```\n{command.get_help(context)}\n```\n"]
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                parts += _helps(below, f"{path} {name}")
    return parts
