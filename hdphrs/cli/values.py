"""Values of options that click has no type for, each as the function that parses it."""

from __future__ import annotations

import math
import shlex

import click

from hdphrs.errors import UsageError

SILENCE_S_MIN = 0.1

MEMORY_BYTES_MIN = 64 << 20
"""A scheduler itself needs half of it."""

UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}
"""The suffixes of sizes, as powers of 2."""


def command_words(command: str, option: str) -> tuple[str, ...]:
    """The words of a command, split like a shell does.

    Raises:
        UsageError: it is none.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"{option} {command!r}: {error}") from error
    if not words:
        raise UsageError(f"{option} expects a command")
    return words


def silence(text: str) -> float:
    """How long a node may be silent, in seconds.

    Raises:
        click.BadParameter: it is no number, not finite, or too small.
    """
    return _seconds(text, SILENCE_S_MIN)


def hourly(text: str) -> int:
    """How often within an hour: `5/h`, or `5`, which is the same.

    Raises:
        click.BadParameter: it is neither.
    """
    number = text.removesuffix("/h")
    if not (number.isascii() and number.isdigit() and len(number) <= 4):
        raise click.BadParameter(f"expected restarts an hour like 5/h, not {text!r}")
    return int(number)


def span(text: str) -> float:
    """A time in seconds.

    Raises:
        click.BadParameter: it is no number, not finite, or negative.
    """
    return _seconds(text, 0.0)


def times(text: str) -> tuple[float, ...]:
    """Times in seconds, separated by commas: `3,5.5`.

    Raises:
        click.BadParameter: one of them is no time.
    """
    return tuple(_seconds(part.strip(), 0.0) for part in text.split(","))


def size(text: str) -> int:
    """A size in bytes, with or without a suffix: `2G`.

    Raises:
        click.BadParameter: it is no size.
    """
    size_bytes = _size(text)
    if size_bytes is None:
        raise click.BadParameter(f"expected a size like 2G, not {text!r}")
    return size_bytes


def memory(text: str) -> int:
    """A size in bytes that is enough for a process.

    Raises:
        click.BadParameter: it is no size, or too small.
    """
    size_bytes = _size(text)
    if size_bytes is None or size_bytes < MEMORY_BYTES_MIN:
        raise click.BadParameter(f"expected a size like 2G, at least {MEMORY_BYTES_MIN >> 20}M, not {text!r}")
    return size_bytes


def _size(text: str) -> int | None:
    number, shift = (text[:-1], UNITS[text[-1:].upper()]) if text[-1:].upper() in UNITS else (text, 0)
    return int(number) << shift if number.isascii() and number.isdigit() else None


def _seconds(text: str, at_least_s: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not at_least_s <= value < math.inf:
        raise click.BadParameter(f"expected seconds, at least {at_least_s:g}, not {text!r}")
    return value
