"""Every example gives the known answer, however it is run."""

from __future__ import annotations

import itertools

import pytest

from tests.e2e.harness import EXAMPLES, Cluster, result_of

KNOWN = {
    "sum_euler.py": ("3000", "2736188"),
    "liouville.py": ("1000000", "-530"),
    "queens.py": ("9", "352"),
    "fib.py": ("16", "987"),
    "mandelbrot.py": ("60", "157414"),
}

ONE_AFTER_THE_OTHER = """
    import runpy
    import sys

    FOLDER, *COMMANDS = sys.argv[1:]
    for command in COMMANDS:
        sys.argv = command.split()
        runpy.run_path(f"{FOLDER}/{sys.argv[0]}", run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize("mode", ["reliable", "unreliable"])
def test_each_example_gives_the_known_answer_with_each_skeleton(cluster: Cluster, mode: str, nodes: int) -> None:
    """All in one run: starting the nodes takes longer than most of them."""
    known = {}
    for (example, (size, answer)), skeleton in itertools.product(KNOWN.items(), ["par", "push"]):
        more = f" --output {cluster.folder}/picture.png" if example == "mandelbrot.py" else ""
        known[f"{example} {size} --skeleton {skeleton}{more}"] = answer
    options = ["--unreliable"] if mode == "unreliable" else []
    program = cluster.write(ONE_AFTER_THE_OTHER)
    completed = cluster.run(*options, "--local-nodes", nodes, program, EXAMPLES, *known)
    assert completed.returncode == 0, completed.stderr
    lines = completed.stdout.splitlines()
    answers = [line.removeprefix("result: ") for line in lines if line.startswith("result: ")]
    assert dict(zip(known, answers, strict=True)) == known


@pytest.mark.slow
@pytest.mark.parametrize("example", KNOWN)
def test_an_example_is_a_program_of_its_own(cluster: Cluster, example: str) -> None:
    size, known = KNOWN[example]
    more = ["--output", cluster.folder / "picture.png"] if example == "mandelbrot.py" else []
    assert result_of(cluster.run("--local-nodes", 2, EXAMPLES / example, size, *more)) == known


def test_every_node_says_hello(cluster: Cluster) -> None:
    completed = cluster.run("--local-nodes", 3, EXAMPLES / "hello_nodes.py")
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines()[-1].startswith("result: ")
    for node in range(3):
        assert f"node {node}" in completed.stdout
