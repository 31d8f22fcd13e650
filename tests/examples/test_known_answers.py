"""The examples give the answers that are known, with each skeleton and with none."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests.examples.conftest import EXAMPLES

Script = Callable[..., list[str]]

every_skeleton = pytest.mark.parametrize("skeleton", ["seq", "par", "push"])


def result(lines: list[str]) -> int:
    """What the last line says."""
    label, value = lines[-1].split()
    assert label == "result:"
    return int(value)


def direct_liouville(number: int) -> int:
    """-1 to the number of prime factors, by trial division."""
    sign, divisor = 1, 2
    while divisor * divisor <= number:
        if number % divisor:
            divisor += 1
        else:
            number //= divisor
            sign = -sign
    return -sign if number > 1 else sign


def iterations(width: int, height: int) -> int:
    """How many iterations the pixels of the whole set take, in real arithmetic."""
    total, scale = 0, 3.2 / width
    for row, column in product(range(height), range(width)):
        a, b = -0.65 + (column + 0.5 - width / 2) * scale, (height / 2 - row - 0.5) * scale
        x = y = 0.0
        for _ in range(256):
            x, y = x * x - y * y + a, 2 * x * y + b
            total += 1
            if x * x + y * y > 32 * 32:
                break
    return total


@every_skeleton
@pytest.mark.parametrize(("size", "answer"), [("1", 1), ("10", 32), ("100", 3044), ("1000", 304192)])
def test_sum_euler(script: Script, skeleton: str, size: str, answer: int) -> None:
    """OEIS A002088."""
    assert result(script("sum_euler.py", size, "--skeleton", skeleton, "--chunk", "30")) == answer


def test_sum_euler_of_ten_thousand_is_that_of_the_paper(script: Script) -> None:
    assert result(script("sum_euler.py", "10000", "--skeleton", "seq")) == 30397486


@every_skeleton
@pytest.mark.parametrize(
    ("size", "answer"),
    [
        ("1", 1),
        ("2", 0),
        ("10", 0),
        ("100", -2),
        ("1000", -14),
        ("10000", -94),
        ("100000", -288),
        ("1000000", -530),
    ],
)
def test_liouville(script: Script, skeleton: str, size: str, answer: int) -> None:
    """OEIS A002819."""
    assert result(script("liouville.py", size, "--skeleton", skeleton, "--chunk", "65536")) == answer


@pytest.mark.parametrize("chunk", ["1", "7", "64", "1000"])
def test_liouville_does_not_depend_on_where_chunks_begin(script: Script, chunk: str) -> None:
    expected = sum(map(direct_liouville, range(1, 1500 + 1)))
    assert result(script("liouville.py", "1500", "--chunk", chunk)) == expected


def test_liouville_to_fifty_million_is_that_of_the_paper(script: Script) -> None:
    """Appendix B."""
    assert result(script("liouville.py", "50000000", "--skeleton", "seq")) == -7608


@every_skeleton
@pytest.mark.parametrize("threshold", ["0", "1", "3", "20"])
@pytest.mark.parametrize(("size", "answer"), [("1", 1), ("2", 0), ("3", 0), ("4", 2), ("8", 92), ("9", 352)])
def test_queens(script: Script, skeleton: str, threshold: str, size: str, answer: int) -> None:
    """OEIS A000170."""
    assert result(script("queens.py", size, "--skeleton", skeleton, "--threshold", threshold)) == answer


def test_queens_on_larger_boards(script: Script) -> None:
    assert result(script("queens.py", "10", "--threshold", "2")) == 724
    assert result(script("queens.py", "12", "--skeleton", "seq")) == 14200


@every_skeleton
@pytest.mark.parametrize(("size", "answer"), [("0", 0), ("1", 1), ("15", 610)])
def test_fib(script: Script, skeleton: str, size: str, answer: int) -> None:
    assert result(script("fib.py", size, "--skeleton", skeleton)) == answer


@pytest.mark.parametrize("skeleton", ["seq", "par"])
@pytest.mark.parametrize("grain", ["1", "50", "5000"])
def test_uts_counts_a_small_tree_of_each_kind_however_it_is_divided(script: Script, skeleton: str, grain: str) -> None:
    """The sizes are those of `benchmarks/kernels/uts.py`, which gives the published ones for the published trees."""
    assert result(script("uts.py", "small", "--skeleton", skeleton, "--grain", grain)) == 16000
    assert result(script("uts.py", "small-deep", "--skeleton", skeleton, "--grain", grain)) == 889


@every_skeleton
@pytest.mark.parametrize("threshold", ["1", "5", "100"])
def test_mandelbrot_counts_the_same_iterations_however_it_is_divided(
    script: Script, skeleton: str, threshold: str
) -> None:
    assert result(script("mandelbrot.py", "48", "--skeleton", skeleton, "--threshold", threshold)) == iterations(48, 36)


def test_mandelbrot_paints_the_same_picture_however_it_is_divided(script: Script, tmp_path: Path) -> None:
    pictures = set()
    for skeleton in ("seq", "par", "push"):
        lines = script("mandelbrot.py", "40", "--skeleton", skeleton, "--output", f"{skeleton}.png")
        assert lines[0] == f"{skeleton}.png: 40 x 30 pixels"
        pictures.add((tmp_path / f"{skeleton}.png").read_bytes())
    (picture,) = pictures
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")


@every_skeleton
@pytest.mark.parametrize("density", ["0", "0.5", "0.9", "1"])
def test_clique(script: Script, skeleton: str, density: str) -> None:
    graph = runpy.run_path(str(EXAMPLES / "clique.py"))["random_graph"](13, float(density), 5)
    cliques = [
        members
        for members in range(1, 1 << 13)
        if all(members & ~graph[vertex] == 1 << vertex for vertex in range(13) if members >> vertex & 1)
    ]
    lines = script("clique.py", "13", "--density", density, "--seed", "5", "--skeleton", skeleton)
    assert result(lines) == max(map(int.bit_count, cliques))
    if skeleton != "seq":
        assert sum(1 << int(vertex) for vertex in lines[0].split()[1:]) in cliques


def test_hello_nodes_greets_from_each_node(script: Script) -> None:
    *greetings, last = script("hello_nodes.py")
    assert [greeting.split(":")[0] for greeting in greetings] == ["hello from node 0"]
    assert last == "result: 1"


@pytest.mark.parametrize(
    "command",
    [
        "sum_euler.py 0",
        "sum_euler.py 9 --chunk 0",
        "liouville.py 0",
        "liouville.py 99999999999",
        "queens.py 0",
        "queens.py eight",
        "queens.py 8 --threshold -1",
        "queens.py 8 --skeleton none",
        "fib.py -- -1",
        "fib.py 9 --threshold 1",
        "mandelbrot.py 0",
        "uts.py T9",
        "uts.py T1 --grain 0",
        "clique.py 0",
        "clique.py 9 --density 2",
    ],
)
def test_bad_arguments_are_refused_in_one_line(
    script: Script, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    with pytest.raises(SystemExit) as refusal:
        script(*command.split())
    assert refusal.value.code == 2
    assert ": error: " in capsys.readouterr().err.splitlines()[-1]
