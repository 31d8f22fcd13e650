"""The fast Fourier transform over the integers modulo a prime, where it is exact: a task for each half."""

from __future__ import annotations

from random import Random

import hdphrs

SIZES = {"small": 256, "large": 16_384}

PRIME = 998_244_353
ROOT = 3
"""Its powers are all numbers but 0."""

CUT_OFF = 64


def numbers(size: int) -> list[int]:
    """The same for everybody."""
    chance = Random(size)
    return [chance.randrange(PRIME) for _ in range(size)]


def transform(values: list[int], root: int) -> list[int]:
    """The values at the powers of a root of unity, of the polynomial with these coefficients."""
    size = len(values)
    if size == 1:
        return values
    square = root * root % PRIME
    if size <= CUT_OFF:
        even, odd = transform(values[::2], square), transform(values[1::2], square)
    else:
        future = hdphrs.spawn(transform, values[::2], square)
        odd = transform(values[1::2], square)
        even = hdphrs.get(future)
    twiddled, power = [], 1
    for value in odd:
        twiddled.append(value * power % PRIME)
        power = power * root % PRIME
    sums = [(a + b) % PRIME for a, b in zip(even, twiddled, strict=True)]
    return sums + [(a - b) % PRIME for a, b in zip(even, twiddled, strict=True)]


def main(size: int) -> tuple[list[int], list[int]]:
    """The transform, and what the inverse makes of it."""
    root = pow(ROOT, (PRIME - 1) // size, PRIME)
    there = transform(numbers(size), root)
    back = transform(there, pow(root, -1, PRIME))
    scale = pow(size, -1, PRIME)
    return there, [value * scale % PRIME for value in back]


def check(size: int, found: tuple[list[int], list[int]]) -> bool:
    """Whether there and back is where it began, and some of the values are those of the definition."""
    there, back = found
    values = numbers(size)
    root = pow(ROOT, (PRIME - 1) // size, PRIME)

    def at(k: int) -> int:
        return sum(value * pow(root, i * k, PRIME) for i, value in enumerate(values)) % PRIME

    return back == values and all(there[k] == at(k) for k in (0, 1, size // 2, size - 1))
