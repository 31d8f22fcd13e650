"""Sum Euler: the sum of Euler's totients of 1..n, as a sliced map over chunks of numbers (paper section 7).

Shows `par_map_sliced` on irregular work: the totient of a large number costs more than that of a small one.
As in the paper's program, a totient is computed by its definition, counting the coprime numbers below; this
is what makes it work worth sharing (a sieve would be done in no time).

    hdphrs run --local-nodes 2 examples/sum_euler.py 10000
"""

from __future__ import annotations

import argparse
from itertools import repeat
from math import gcd

import hdphrs

SKELETONS = {"par": hdphrs.par_map_sliced, "push": hdphrs.push_map_sliced}


def totient(number: int) -> int:
    """How many of 1..number have no divisor but 1 in common with it."""
    return list(map(gcd, repeat(number), range(1, number + 1))).count(1)


def sum_totients(numbers: range) -> int:
    """The task."""
    return sum(map(totient, numbers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("size", nargs="?", type=int, default=10_000, help="n (default %(default)s)")
    parser.add_argument("--skeleton", choices=["par", "push", "seq"], default="par")
    parser.add_argument("--chunk", type=int, default=100, help="numbers per task (default %(default)s)")
    options = parser.parse_args()
    if options.size < 1 or options.chunk < 1:
        parser.error("size and chunk must be at least 1")

    numbers = range(1, options.size + 1)
    chunks = [numbers[first : first + options.chunk] for first in range(0, options.size, options.chunk)]
    if options.skeleton == "seq":
        sums = [sum_totients(chunk) for chunk in chunks]
    else:
        sums = hdphrs.run(SKELETONS[options.skeleton], len(chunks), sum_totients, chunks)
    print(f"result: {sum(sums)}")


if __name__ == "__main__":
    main()
