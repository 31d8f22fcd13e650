"""Maximum clique: the largest set of vertices that are all neighbours of each other, by branch and bound.

Shows `par_maximise`: a node of the search is a clique with its candidates, the common neighbours of its members.  To
colour the candidates, such that no neighbours have the same colour, tells how many of them a clique can have at most.
Whoever finds a larger clique lets all others know, and what cannot be larger is left out, wherever that is.

    hdphrs run --local-nodes 2 examples/clique.py 160             # a random graph of so many vertices
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

import hdphrs

SKELETONS = {"par": hdphrs.par_maximise, "push": hdphrs.push_maximise}

Graph: TypeAlias = tuple[int, ...]
"""Of each vertex the neighbours, as bits."""
Clique: TypeAlias = tuple[int, int, int]
"""The members and the candidates, as bits, and how many members it can come to have at most."""


def random_graph(vertices: int, density: float, seed: int) -> Graph:
    """Each edge is there with the probability `density`; the vertices with most neighbours come first."""
    chance = random.Random(seed)
    edges = [(i, j) for i in range(vertices) for j in range(i) if chance.random() < density]
    degree = [sum(vertex in edge for edge in edges) for vertex in range(vertices)]
    place = {vertex: i for i, vertex in enumerate(sorted(range(vertices), key=lambda vertex: -degree[vertex]))}
    graph = [0] * vertices
    for i, j in edges:
        graph[place[i]] |= 1 << place[j]
        graph[place[j]] |= 1 << place[i]
    return tuple(graph)


def larger(graph: Graph, clique: Clique) -> Iterator[Clique]:
    """The cliques with one member more, those that can become largest first; together they leave nothing out."""
    members, candidates, _ = clique
    size = members.bit_count()
    coloured = []
    colours, left = 0, candidates
    while left:
        colours += 1
        same = left
        while same:
            vertex = (same & -same).bit_length() - 1
            same &= ~(graph[vertex] | 1 << vertex)
            left &= ~(1 << vertex)
            coloured.append((vertex, colours))
    for vertex, colour in reversed(coloured):
        yield members | 1 << vertex, candidates & graph[vertex], size + colour
        candidates &= ~(1 << vertex)


def size_of(clique: Clique) -> int:
    return clique[0].bit_count()


def size_at_most(clique: Clique) -> int:
    return clique[2]


def search_alone(graph: Graph, clique: Clique, best: int) -> int:
    """The same by plain recursion."""
    best = max(best, size_of(clique))
    for child in larger(graph, clique):
        if size_at_most(child) <= best:
            break
        best = search_alone(graph, child, best)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vertices", nargs="?", type=int, default=140, help="default %(default)s")
    parser.add_argument("--density", type=float, default=0.7, help="share of the edges that are there (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the graph (default %(default)s)")
    parser.add_argument("--skeleton", choices=["par", "push", "seq"], default="par")
    options = parser.parse_args()
    if options.vertices < 1 or not 0 <= options.density <= 1:
        parser.error("there must be at least 1 vertex, and the density must be between 0 and 1")

    graph = random_graph(options.vertices, options.density, options.seed)
    start = (0, (1 << options.vertices) - 1, options.vertices)
    if options.skeleton == "seq":
        size = search_alone(graph, start, 0)
    else:
        skeleton = SKELETONS[options.skeleton]
        found = hdphrs.run(skeleton, partial(larger, graph), size_of, size_at_most, start, descending=True)
        assert found is not None, "one vertex is a clique"
        size, (members, _, _) = int(found[0]), found[1]
        print("members:", *(vertex for vertex in range(options.vertices) if members >> vertex & 1))
    print(f"result: {size}")


if __name__ == "__main__":
    main()
