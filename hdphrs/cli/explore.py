"""`hdphrs explore`: search scopes for violations, or replay a scenario."""

from __future__ import annotations

import click

EXIT_CLEAN = 0
EXIT_FOUND = 1


@click.command()
@click.option("--scope", "names", multiple=True, metavar="NAME", help="Search this scope; can be given repeatedly.")
@click.option("--list", "listed", is_flag=True, help="List the scopes.")
@click.option("--replay", "scenario", metavar="FILE", help="Replay a scenario instead, move by move.")
def explore(names: tuple[str, ...], listed: bool, scenario: str | None) -> int:
    """Visit every state that the protocol can reach within small scopes, and check the invariants in each.

    Without options, all scopes.  The exit status is 0 if nothing is wrong, 1 if a violation was found or a search has
    not met what it is for, and 2 for errors of usage.
    """
    from hdphrs.form import use_sources

    use_sources()
    from hdphrs.cli.checks import check_exclusive
    from hdphrs.explore.report import replay_file, search_all, tell_scopes

    given = {"--scope": bool(names), "--list": listed, "--replay": scenario is not None}
    check_exclusive(given, tuple(given))
    if listed:
        tell_scopes(click.echo)
        return EXIT_CLEAN
    is_clean = search_all(names, click.echo) if scenario is None else replay_file(scenario, click.echo)
    return EXIT_CLEAN if is_clean else EXIT_FOUND
