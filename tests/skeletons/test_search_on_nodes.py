"""What tasks find spreads between processes and nodes, and survives those who found it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import Cluster
from tests.e2e.harness import cluster as open_cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A run of real processes, none of which may be left at the end."""
    with open_cluster(tmp_path) as run:
        yield run


ENDLESS = """
    import hdphrs

    def children(node):
        name, number = node
        if name == "root":
            return [("endless", 0), ("answer", 0)]
        if name == "answer":
            return [(name, number + 1)] if number < 5000 else []
        return [(name, number + 1)]

    def found(node):
        return node == ("answer", 5000)

    def objective(node):
        return 1 if found(node) else None

    def bound(node):
        return 1

    print(hdphrs.run(hdphrs.par_decide, children, found, ("root", 0), depth=1))
    print(hdphrs.run(hdphrs.push_decide, children, found, ("root", 0), depth=1))
    print(hdphrs.run(hdphrs.par_maximise, children, objective, bound, ("root", 0), depth=1))
    print(hdphrs.par_decide(children, found, ("root", 0), depth=1))
"""


@pytest.mark.slow
@pytest.mark.parametrize("cluster_of", [["--local-nodes", 2, "--cores", 1], ["--cores", 2]])
def test_a_search_without_an_end_ends_when_another_process_has_found_what_it_looks_for(
    cluster: Cluster, cluster_of: list[object]
) -> None:
    completed = cluster.run(*cluster_of, cluster.write(ENDLESS))
    answer = "('answer', 5000)"
    assert completed.stdout.splitlines() == [answer, answer, f"(1, {answer})", answer], completed.stderr


FATAL = """
    import os, sys
    from pathlib import Path
    from time import perf_counter
    import hdphrs

    mark = Path(sys.argv[1])

    def children(node):
        if len(node) == 6:
            return []
        until = perf_counter() + 1e-3
        while perf_counter() < until:
            pass
        return [node + letter for letter in "ab"]

    def objective(node):
        if node == "bbbaab":  # is met after the best, which has been told by then
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os._exit(1)
        return 2 if node == "bbbaaa" else 1 if len(node) == 6 else None

    def bound(node):
        return 2.5 if "bbbaab".startswith(node) else 2 if "bbbaaa".startswith(node) else 1

    print(hdphrs.run(hdphrs.par_maximise, children, objective, bound, "", depth=3))
    assert mark.exists()
"""


@pytest.mark.slow
def test_the_best_is_not_lost_with_the_process_that_has_told_all_others_of_it(cluster: Cluster, tmp_path: Path) -> None:
    completed = cluster.run("--cores", 2, cluster.write(FATAL), tmp_path / "mark")
    assert completed.stdout == "(2, 'bbbaaa')\n", completed.stderr
