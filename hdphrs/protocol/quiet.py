"""How long nobody has had sparks, as far as this node knows.

What lives here: one moment, and what others say of it.  It travels with FISH and NOWORK, so that a cluster in which
nobody has anything becomes quiet, and one in which somebody has does not: the longer it is quiet, the longer fish are
kept instead of being refused (decision 25).
"""

from __future__ import annotations

from hdphrs.config import CoreConfig


class Quiet:
    """What one node knows."""

    def __init__(self, config: CoreConfig) -> None:
        self._config = config
        self._since_s = 0.0

    def lasts_s(self, now: float) -> float:
        """For how long, `park_max_s` at most: more is not told apart."""
        return min(max(0.0, now - self._since_s), self._config.park_max_s)

    def is_deep(self, now: float) -> bool:
        """Whether it could not be quieter."""
        return self.lasts_s(now) >= self._config.park_max_s

    def end(self, now: float, ago_s: float = 0.0) -> None:
        """Somebody had sparks so long ago; `park_max_s` means at least so long, which is no news."""
        if ago_s < self._config.park_max_s:
            self._since_s = max(self._since_s, now - ago_s)

    def patience_s(self, now: float) -> float:
        """How long a fish is kept."""
        return max(self._config.park_s, self.lasts_s(now))
