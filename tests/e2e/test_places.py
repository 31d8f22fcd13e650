"""Tasks placed by the name of a host, or by what is true of a node, on real nodes."""

from __future__ import annotations

import ast
import os
import re
import sys

import pytest

from tests.e2e.harness import MARK, Cluster

PROGRAM = """
import collections
import hdphrs

def where():
    return hdphrs.my_node()

def fails(place):
    try:
        hdphrs.get(hdphrs.spawn_at(place, where))
    except hdphrs.errors.UsageError as error:
        return str(error)

@hdphrs.task(pin="127.0.0.2")
def there():
    return hdphrs.my_node()

@hdphrs.task(pin=lambda info: info.slots == 2)
def on_two_slots():
    return hdphrs.my_node()

@hdphrs.task(pin="nowhere")
def lost():
    pass

def look():
    infos = sorted(hdphrs.node_infos(), key=lambda info: info.node)
    print([(info.host, info.slots, info.is_root) for info in infos], flush=True)
    for host in {info.host for info in infos}:
        slots = {info.node: info.slots for info in infos if info.host == host}
        placed = [hdphrs.get(hdphrs.spawn_at(host, where)) for _ in range(2 * sum(slots.values()))]
        assert collections.Counter(placed) == {node: 2 * slots[node] for node in slots}, (host, placed)
    others = [hdphrs.get(hdphrs.spawn_at(lambda info: not info.is_root, where)) for _ in range(20)]
    assert 0 not in others and set(others) == {info.node for info in infos if not info.is_root}, others
    assert {hdphrs.get(hdphrs.spawn(there)) for _ in range(6)} <= {n.node for n in infos if n.host == "127.0.0.2"}
    print(hdphrs.get(hdphrs.spawn(on_two_slots)) in [info.node for info in infos if info.slots == 2])
    print(hdphrs.get(hdphrs.spawn_at(0, there)))  # where it is placed counts
    print(fails("nowhere"))
    print(fails(lambda info: info.slots > 9).partition("holds")[2])
    print(fails(lambda info: info.speed).partition("raised ")[2])
    try:
        hdphrs.get(hdphrs.spawn(lost))
    except hdphrs.errors.UsageError as error:
        print(error)

if __name__ == "__main__":
    look()
    hdphrs.get(hdphrs.spawn_at("127.0.0.3", look))
"""


@pytest.mark.slow
def test_program_and_tasks_place_by_host_and_by_predicate(cluster: Cluster) -> None:
    """The hosts are this one under other names, behind an ssh that goes nowhere."""
    ssh = cluster.folder / "to"
    ssh.write_text(f'#!/bin/sh\nshift\nexport {MARK}={cluster.mark} PYTHONPATH={":".join(sys.path)}\nexec sh -c "$*"\n')
    os.chmod(ssh, 0o700)
    hosts = cluster.folder / "hosts"
    lines = ["localhost slots=1", *(f"127.0.0.{host} slots=1 python={sys.executable}" for host in (2, 2, 3))]
    hosts.write_text("\n".join([*lines, "localhost slots=2"]))
    completed = cluster.run("--ssh", ssh, "--nodes", hosts, cluster.write(PROGRAM))
    assert completed.returncode == 0, completed.stderr
    output = completed.stdout.splitlines()
    half = len(output) // 2
    for told in (output[:half], output[half:]):  # by the program, by a task
        infos = [("127.0.0.2", 1, False)] * 2 + [
            ("127.0.0.3", 1, False),
            ("localhost", 1, True),
            ("localhost", 2, False),
        ]
        assert sorted(ast.literal_eval(told[0])) == infos
        assert told[1:3] == ["True", "0"]
        for call, sentence in (("spawn_at", told[3]), ("pin", told[6])):
            start, _, known = sentence.partition(" now; the hosts are: ")
            assert start == f"{call}: there is no host 'nowhere' in this run"
            assert sorted(known.split(", ")) == ["127.0.0.2", "127.0.0.3", "localhost"]
        assert told[4].startswith(" for no node; the nodes are: ")
        assert re.fullmatch(r"AttributeError for node \d \(\S+\): 'NodeInfo' object has no attribute 'speed'", told[5])
