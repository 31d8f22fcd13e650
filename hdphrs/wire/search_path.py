"""Where a process looks for the modules that others have."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def extend_path(path: Iterable[str]) -> None:
    """Find modules where another process finds them too."""
    sys.path.extend(entry for entry in path if entry not in sys.path)
