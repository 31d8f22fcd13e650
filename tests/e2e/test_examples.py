"""Every example gives the known answer, however it is run."""

from __future__ import annotations

import itertools

import pytest

from tests.e2e.harness import EXAMPLES, Cluster, result_of

KNOWN = {
    "sum_euler.py": (["3000"], "2736188"),
    "liouville.py": (["1000000"], "-530"),
    "queens.py": (["9"], "352"),
    "fib.py": (["16"], "987"),
    "mandelbrot.py": (["60"], None),
}


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize(("example", "skeleton"), list(itertools.product(KNOWN, ["par", "push"])))
@pytest.mark.parametrize("mode", ["reliable", "unreliable"])
def test_an_example_gives_the_known_answer(
    cluster: Cluster, example: str, skeleton: str, mode: str, nodes: int
) -> None:
    size, known = KNOWN[example]
    path = EXAMPLES / example
    options = ["--unreliable"] if mode == "unreliable" else []
    more = ["--output", str(cluster.folder / "picture.png")] if example == "mandelbrot.py" else []
    answer = result_of(cluster.run(*options, "--local-nodes", nodes, path, *size, "--skeleton", skeleton, *more))
    if known is None:
        known = result_of(cluster.run("--sequential", path, *size, "--skeleton", "seq", *more))
    assert answer == known


def test_every_node_says_hello(cluster: Cluster) -> None:
    completed = cluster.run("--local-nodes", 3, EXAMPLES / "hello_nodes.py")
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines()[-1].startswith("result: ")
    for node in range(3):
        assert f"node {node}" in completed.stdout
