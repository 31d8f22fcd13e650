"""Mandelbrot: the picture, by divide and conquer over its rows (paper section 7).

Shows `par_divide_and_conquer` where the costs are very uneven: a pixel of the set takes `--depth` iterations,
most others a few.  Rows are halved down to `--threshold`; the solution of a band of rows is its pixels and
the number of iterations they took.  The sum of all iterations is the result, the same however the work was
divided.

    hdphrs run --local-nodes 2 examples/mandelbrot.py 800         # and look at mandelbrot.png
"""

from __future__ import annotations

import argparse
import struct
import zlib
from functools import partial
from itertools import pairwise
from math import log, log2, sqrt
from pathlib import Path
from typing import TypeAlias

import hdphrs

SKELETONS = {"par": hdphrs.par_divide_and_conquer, "push": hdphrs.push_divide_and_conquer}

Band: TypeAlias = tuple[int, int]
"""Rows, from the first to the one before the last."""
Painting: TypeAlias = tuple[bytes, int]
"""Red, green and blue of each pixel, row by row; and how many iterations they took."""

VIEWS = {
    "whole": (complex(-0.65, 0.0), 3.2),
    "seahorses": (complex(-0.7453, 0.1127), 0.0065),
}
"""Centre and width of what is shown."""

ESCAPE_RADIUS = 32.0
"""Larger than the 2 that would do: so the colours run smoothly."""

COLOURS = [
    (0.0, (0, 7, 100)),
    (0.16, (32, 107, 203)),
    (0.42, (237, 255, 255)),
    (0.6425, (255, 170, 0)),
    (0.8575, (40, 2, 20)),
    (1.0, (0, 7, 100)),
]
"""Stops of a palette that closes on itself."""

SHADES = 1024


def palette() -> list[bytes]:
    """`SHADES` colours, from stop to stop."""
    shades = []
    for (start, colour), (end, next_colour) in pairwise(COLOURS):
        for shade in range(round(start * SHADES), round(end * SHADES)):
            share = (shade / SHADES - start) / (end - start)
            shades.append(bytes(round(a + share * (b - a)) for a, b in zip(colour, next_colour, strict=True)))
    return shades


PALETTE = palette()
BLACK = bytes(3)


def colour_of(iterations: int, distance: float) -> bytes:
    """A shade for a point that was `distance` away when it escaped; continuous in both."""
    smooth = iterations + 1 - log2(log(distance) / log(ESCAPE_RADIUS))
    return PALETTE[int(sqrt(max(0.0, smooth)) * SHADES / 6) % SHADES]


def paint(view: str, width: int, height: int, depth: int, band: Band) -> Painting:
    """Iterate z = z*z + c for each pixel of a band, until z escapes or `depth` is reached."""
    centre, span = VIEWS[view]
    scale = span / width
    pixels = bytearray()
    total = 0
    for row in range(*band):
        imaginary = centre.imag + (height / 2 - row - 0.5) * scale
        for column in range(width):
            c = complex(centre.real + (column + 0.5 - width / 2) * scale, imaginary)
            z = 0j
            for iteration in range(depth):
                z = z * z + c
                if abs(z) > ESCAPE_RADIUS:
                    total += iteration + 1
                    pixels += colour_of(iteration, abs(z))
                    break
            else:
                total += depth
                pixels += BLACK
    return bytes(pixels), total


def is_narrow(threshold: int, band: Band) -> bool:
    return band[1] - band[0] <= threshold


def halves(band: Band) -> list[Band]:
    first, end = band
    middle = (first + end) // 2
    return [(first, middle), (middle, end)]


def join(band: Band, paintings: list[Painting]) -> Painting:
    return b"".join(pixels for pixels, _ in paintings), sum(iterations for _, iterations in paintings)


def write_png(path: Path, width: int, height: int, pixels: bytes) -> None:
    """Write 8-bit RGB pixels as a PNG file."""

    def block(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (pixels[start : start + 3 * width] for start in range(0, len(pixels), 3 * width))
    unfiltered = b"".join(b"\0" + row for row in rows)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + block(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + block(b"IDAT", zlib.compress(unfiltered, 9))
        + block(b"IEND", b"")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("size", nargs="?", type=int, default=800, help="width in pixels (default %(default)s)")
    parser.add_argument("--skeleton", choices=["par", "push", "seq"], default="par")
    parser.add_argument("--threshold", type=int, default=4, help="rows per task (default %(default)s)")
    parser.add_argument("--depth", type=int, default=256, help="most iterations a pixel (default %(default)s)")
    parser.add_argument("--view", choices=VIEWS, default="whole", help="what to show (default %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("mandelbrot.png"), help="default %(default)s")
    options = parser.parse_args()
    if min(options.size, options.threshold, options.depth) < 1:
        parser.error("size, threshold and depth must be at least 1")

    width, height = options.size, max(1, options.size * 3 // 4)
    paint_band = partial(paint, options.view, width, height, options.depth)
    if options.skeleton == "seq":
        bands = [(row, row + 1) for row in range(height)]
        pixels, iterations = join((0, height), [paint_band(band) for band in bands])
    else:
        pixels, iterations = hdphrs.run(
            SKELETONS[options.skeleton],
            partial(is_narrow, options.threshold),
            halves,
            join,
            paint_band,
            (0, height),
        )
    write_png(options.output, width, height, pixels)
    print(f"{options.output}: {width} x {height} pixels")
    print(f"result: {iterations}")


if __name__ == "__main__":
    main()
