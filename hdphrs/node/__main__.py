"""The command line `python -m hdphrs.node KIND`, started by hdphrs itself: settings come on standard input."""

from __future__ import annotations

from hdphrs.wire.files import allow_many, occupy_standard


def main() -> None:
    """Run one node; never returns."""
    occupy_standard()
    allow_many()  # first, since others look at that when they are loaded
    from hdphrs.node.life import begin

    begin()


main()
