"""Who has been silent for too long (hole R10: the original noticed deaths only when a send failed).

What lives here: a pure detector.  It watches *receiving*: any byte of a peer counts.  It also watches itself:
if its own timer comes late (this process was stopped, or starved), the silence was its own, and it accuses
nobody.
"""

from __future__ import annotations

from hdphrs.protocol.tasks import NodeId


class Detector:
    """Watches peers.  All times are seconds of one clock.

    Args:
        detect_after_s: silence that makes a peer suspect.
        late_s_max: the timer may be this late before the detector distrusts itself.
    """

    def __init__(self, detect_after_s: float, late_s_max: float) -> None:
        self._detect_after_s = detect_after_s
        self._late_s_max = late_s_max
        self._heard: dict[NodeId, float] = {}
        """The watched, and when each was last heard of."""

    def heard(self, node: NodeId, now: float) -> None:
        """Something of `node` has arrived; or, the first time: watch it from now on."""
        self._heard[node] = now

    def excuse(self, node: NodeId, now: float) -> None:
        """Nothing was to be heard of `node` until now: what has counted of its silence does not."""
        if node in self._heard:
            self._heard[node] = now

    def accuse(self, node: NodeId) -> bool:
        """There is other evidence against `node`.  Returns whether this is news; it is not watched until
        heard again."""
        return self._heard.pop(node, None) is not None

    def forget(self, node: NodeId) -> None:
        """Watch `node` no more."""
        self._heard.pop(node, None)

    def deadline(self) -> float:
        """When to call `check` at the latest."""
        return min(self._heard.values(), default=float("inf")) + self._detect_after_s

    def check(self, now: float, due: float) -> list[NodeId]:
        """Whom to suspect, each said once; it is not watched until it is heard again.

        Args:
            due: when this call was meant to happen.
        """
        if now - due > self._late_s_max:
            self._heard = dict.fromkeys(self._heard, now)
            return []
        silent = [node for node, at in self._heard.items() if now - at >= self._detect_after_s]
        for node in silent:
            del self._heard[node]
        return silent
