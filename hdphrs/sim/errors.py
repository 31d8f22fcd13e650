"""How a simulated run can fail, beside `Violation` of an invariant and exceptions out of the core."""

from __future__ import annotations


class Wrong(AssertionError):  # noqa: N818 - the word that the exit status has for it
    """A future is filled with what no right run could give, or a core breaks its contract with its driver."""


class Stuck(AssertionError):  # noqa: N818 - a verdict on the run, not on a call
    """Faults have long stopped, and the program does not end, or leaves something behind."""
