"""Hello: each node says where it is.

Shows `all_nodes` and `spawn_at`, straight from the program: a task is placed on every node and answers from
there.

    hdphrs run --local-nodes 3 examples/hello_nodes.py
"""

from __future__ import annotations

import argparse
import os
import socket

import hdphrs


def greet() -> str:
    """The task."""
    return f"hello from node {hdphrs.my_node()}: host {socket.gethostname()}, process {os.getpid()}"


def main() -> None:
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    greetings = [hdphrs.spawn_at(node, greet) for node in hdphrs.all_nodes()]
    for greeting in greetings:
        print(hdphrs.get(greeting))
    print(f"result: {len(greetings)}")


if __name__ == "__main__":
    main()
