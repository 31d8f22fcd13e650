"""Values of options that click has no type for, each as the function that parses it."""

from __future__ import annotations

import math

import click

SILENCE_S_MIN = 0.1


def silence(text: str) -> float:
    """How long a node may be silent, in seconds.

    Raises:
        click.BadParameter: it is no number, not finite, or too small.
    """
    return _seconds(text, SILENCE_S_MIN)


def times(text: str) -> tuple[float, ...]:
    """Times in seconds, separated by commas: `3,5.5`.

    Raises:
        click.BadParameter: one of them is no time.
    """
    return tuple(_seconds(part.strip(), 0.0) for part in text.split(","))


def _seconds(text: str, at_least_s: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not at_least_s <= value < math.inf:
        raise click.BadParameter(f"expected seconds, at least {at_least_s:g}, not {text!r}")
    return value
