"""`python -m hdphrs`: the same as the command `hdphrs`."""

from __future__ import annotations

from hdphrs.cli.main import main

if __name__ == "__main__":
    main()
