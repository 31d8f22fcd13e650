"""Summatory Liouville: L(n), the sum of the Liouville function over 1..n, as a sliced map (paper section 7).

The Liouville function of k is -1 if k has an odd number of prime factors (with multiplicity), else 1.  Shows
`par_map_sliced` on almost regular work: each task sieves one chunk of numbers.

    hdphrs run --local-nodes 2 examples/liouville.py 50000000     # -7608, as in the paper's appendix B

The sieve spends one byte a number, and has the interpreter's C code do the loops.  For each prime factor p, a
byte grows by an odd number close to 7 log2 p.  So its lowest bit tells whether the factors found so far are
odd in number, and its size tells whether they are all there: only primes up to the root of the largest number
are tried, so at most one factor is missing, and that one would be half of the logarithm or more.
"""

from __future__ import annotations

import argparse
from math import isqrt, log2

import hdphrs

SKELETONS = {"par": hdphrs.par_map_sliced, "push": hdphrs.push_map_sliced}

SIZE_MAX = 1 << 34
"""A byte holds the logarithm, with its rounding errors, of numbers up to this."""

BYTES = bytes(range(256)) * 2


def primes_up_to(limit: int) -> list[int]:
    """The primes up to `limit`, by Eratosthenes."""
    is_prime = bytearray([1]) * (limit + 1)
    for number in range(2, isqrt(limit) + 1):
        if is_prime[number]:
            is_prime[number * number :: number] = bytes(len(range(number * number, limit + 1, number)))
    return [number for number in range(2, limit + 1) if is_prime[number]]


def sum_octave(low: int, high: int, exponent: int) -> int:
    """The Liouville function summed over low..high-1, from the octave that begins at 2**exponent."""
    logs = bytearray(high - low)
    for prime in primes_up_to(isqrt(high - 1)):
        log = 2 * round(3.5 * log2(prime) - 0.5) + 1  # odd, and off by 0.33 log2 p at most
        add_log = BYTES[log : log + 256]
        power = prime
        while power < high:
            multiples = slice(-low % power, None, power)
            logs[multiples] = logs[multiples].translate(add_log)
            power *= prime
    # Complete: at least 6.67 exponent.  One factor missing: at most 3.67 (exponent + 1).  The number 1 has
    # none.
    complete = 5 * exponent + 2 if exponent else 0
    is_odd = bytes((log & 1) ^ (log < complete) for log in range(256))
    return len(logs) - 2 * logs.translate(is_odd).count(1)


def sum_liouville(numbers: range) -> int:
    """The task: the sum over `numbers`, octave by octave."""
    total = 0
    low, end = numbers.start, numbers.stop
    while low < end:
        exponent = low.bit_length() - 1
        high = min(end, 2 << exponent)
        total += sum_octave(low, high, exponent)
        low = high
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("size", nargs="?", type=int, default=200_000_000, help="n (default %(default)s)")
    parser.add_argument("--skeleton", choices=["par", "push", "seq"], default="par")
    parser.add_argument("--chunk", type=int, default=500_000, help="numbers per task (default %(default)s)")
    options = parser.parse_args()
    if not 1 <= options.size <= SIZE_MAX or options.chunk < 1:
        parser.error(f"size must be 1 to {SIZE_MAX}, and chunk at least 1")

    numbers = range(1, options.size + 1)
    chunks = [numbers[first : first + options.chunk] for first in range(0, options.size, options.chunk)]
    if options.skeleton == "seq":
        sums = [sum_liouville(chunk) for chunk in chunks]
    else:
        sums = hdphrs.run(SKELETONS[options.skeleton], len(chunks), sum_liouville, chunks)
    print(f"result: {sum(sums)}")


if __name__ == "__main__":
    main()
