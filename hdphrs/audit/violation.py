"""What is raised when an invariant does not hold."""

from __future__ import annotations


class Violation(AssertionError):  # noqa: N818 - the field's word for it
    """The cluster is in a state in which it must never be."""

    def __init__(self, invariant: int, told: str) -> None:
        """
        Args:
            invariant: its number, as in the package's docstring.
            told: what was found, with the ref and the nodes.
        """
        super().__init__(f"invariant {invariant}: {told}")
        self.invariant = invariant
