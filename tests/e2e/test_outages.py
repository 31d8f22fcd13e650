"""Nodes that are cut off from the root for longer than silence counts as death, and come back; as real processes.

Between the root and one other node stands a process that passes on what they say.  While it is stopped nothing passes,
either way, and no connection ends: as when the network is gone.  The node is of another host, behind an ssh that goes
nowhere: between hosts there is TLS, which may be passed on, where the nodes of one host refuse to be relayed.
"""

from __future__ import annotations

import os
import signal
import sys
from subprocess import Popen

import pytest

from tests.cluster.support import write_executable
from tests.e2e.harness import GONE_S, SOON_S, Cluster, eventually, written
from tests.processes import gone, send

pytestmark = pytest.mark.slow

ELSEWHERE = "127.0.0.2"
NODE_THERE = f"[{ELSEWHERE}] hdphrs: this node ({ELSEWHERE})"
"""How its lines begin."""

LOST = "has lost the root node; it tries to join again, as a new node, for at most"

NODE = """
    import os, socket, sys, threading
    from dataclasses import replace
    from hdphrs.wire.files import allow_many
    allow_many()
    from hdphrs.console import say
    from hdphrs.errors import HdphrsError
    from hdphrs.node.life import live
    from hdphrs.wire.settings import read_settings

    def pump(source, sink):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def stand_between(listener, root):
        while True:
            near, _ = listener.accept()
            try:
                far = socket.create_connection(root)
            except OSError:
                near.close()
                continue
            for pair in ((near, far), (far, near)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    settings = read_settings(open(0, "rb", buffering=0, closefd=False))
    listener = socket.create_server(("127.0.0.1", 0))
    ours, theirs = os.pipe()
    if (child := os.fork()) == 0:
        os.close(theirs)
        threading.Thread(target=stand_between, args=(listener, settings.root_addresses[0]), daemon=True).start()
        os.read(ours, 1)
        os._exit(0)
    os.close(ours)
    with open(FILE, "a") as file:
        print(child, file=file)
    where = (("127.0.0.1", listener.getsockname()[1]),)
    listener.close()
    try:
        status = live(replace(settings, root_addresses=where), forks=False)
    except HdphrsError as error:
        say(str(error))
        status = 1
    os._exit(status)
"""

PROGRAM = """
    import sys, time
    import hdphrs

    def square(n):
        time.sleep(0.01)
        return n * n

    if __name__ == "__main__":
        nodes = int(sys.argv[1])
        for _ in range(int(sys.argv[2])):
            for node in hdphrs.all_nodes():  # the root knows them before they know it
                hdphrs.get(hdphrs.spawn_at(node, square, 1))
            print("begun", flush=True)
            last = max(hdphrs.all_nodes())
            futures = [hdphrs.spawn(square, n) for n in range(300)]
            assert sum(map(hdphrs.get, futures)) == sum(n * n for n in range(300))
            while len(hdphrs.all_nodes()) < nodes or max(hdphrs.all_nodes()) == last:
                time.sleep(0.02)
            back = [node for node in hdphrs.all_nodes() if node > last]
            print([hdphrs.get(hdphrs.spawn_at(node, square, 3)) for node in back], flush=True)
"""


def node_behind_a_relay(cluster: Cluster) -> tuple[object, ...]:
    """The options for a root and one such node; relays write their process ids into the file `relays`."""
    script = cluster.write(NODE.replace("FILE", repr(str(cluster.folder / "relays"))), "node.py")
    python = write_executable(cluster.folder / "python", f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
    hosts = cluster.folder / "hosts"
    hosts.write_text(f"localhost slots=1\n{ELSEWHERE} slots=1 python={python}\n")
    ssh = write_executable(cluster.folder / "to", '#!/bin/sh\nshift\nexec sh -c "$*"\n')
    return "--nodes", hosts, "--ssh", ssh


def said(process: Popen[str], what: str) -> str:
    """Read complaints up to the line with these words, which is the result."""
    assert process.stderr is not None
    for line in process.stderr:
        if what in line:
            return line
    raise AssertionError(f"it has ended and never said: {what}")


def begin(cluster: Cluster, *options: object, nodes: int, rounds: int = 1) -> Popen[str]:
    """Start the program, which asks after each outage who is there."""
    process = cluster.start(*options, "--detect-after", 1, cluster.write(PROGRAM), nodes, rounds)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def test_node_that_is_cut_off_both_ways_joins_again_and_works_as_often_as_that_happens(cluster: Cluster) -> None:
    process = begin(cluster, *node_behind_a_relay(cluster), nodes=2, rounds=2)
    assert process.stdout is not None
    (relay,) = map(int, written(cluster.folder / "relays"))
    for back in (2, 3):
        os.kill(relay, signal.SIGSTOP)
        try:
            assert said(process, LOST) == f"{NODE_THERE} {LOST} 600 s\n"
        finally:
            os.kill(relay, signal.SIGCONT)
        said(process, f"{NODE_THERE} has joined again, as node {back}")
        assert process.stdout.readline() == "[9]\n"
        assert process.stdout.readline() == ("begun\n" if back == 2 else "")
    assert cluster.finish().returncode == 0


def test_root_that_is_stopped_for_too_long_gets_its_nodes_back(cluster: Cluster) -> None:
    cluster.recorded = True
    process = begin(cluster, "--local-nodes", 3, nodes=3)
    root = cluster.nodes()[0]
    os.kill(root, signal.SIGSTOP)
    try:
        for _ in range(2):
            said(process, LOST)
    finally:
        os.kill(root, signal.SIGCONT)
    completed = cluster.finish()
    assert (completed.returncode, completed.stdout) == (0, "[9, 9]\n"), completed.stderr
    assert completed.stderr.count("has joined again, as node ") == 2


def test_node_that_may_not_come_back_ends_when_it_has_lost_the_root(cluster: Cluster) -> None:
    process = begin(cluster, *node_behind_a_relay(cluster), "--rejoin-for", 0, nodes=2)
    node = cluster.nodes()[1]
    (relay,) = map(int, written(cluster.folder / "relays"))
    os.kill(relay, signal.SIGSTOP)
    try:
        assert said(process, "it has lost") == f"{NODE_THERE} ends: it has lost the root node\n"
        eventually(lambda: gone(node), GONE_S, "the end of the node")
    finally:
        send(relay, signal.SIGCONT)
    process.terminate()
    cluster.finish()


def test_node_gives_up_when_its_time_is_over_and_says_why(cluster: Cluster) -> None:
    process = begin(cluster, *node_behind_a_relay(cluster), "--rejoin-for", 2, nodes=2)
    node = cluster.nodes()[1]
    (relay,) = map(int, written(cluster.folder / "relays"))
    os.kill(relay, signal.SIGSTOP)
    try:
        assert f"{LOST} 2 s\n" in said(process, LOST)
        assert said(process, "could not").startswith(f"[{ELSEWHERE}] hdphrs: this node could not join the root within ")
        eventually(lambda: gone(node), GONE_S, "the end of the node")
    finally:
        send(relay, signal.SIGCONT)
    process.terminate()
    cluster.finish()


@pytest.mark.parametrize("order", [signal.SIGTERM, signal.SIGUSR1])
def test_cut_off_node_that_is_told_to_go_goes_at_once(cluster: Cluster, order: signal.Signals) -> None:
    process = begin(cluster, *node_behind_a_relay(cluster), nodes=2)
    node = cluster.nodes()[1]
    (relay,) = map(int, written(cluster.folder / "relays"))
    os.kill(relay, signal.SIGSTOP)
    try:
        said(process, LOST)
        os.kill(node, order)
        assert said(process, "told to") == f"{NODE_THERE} ends: it was told to, by {order.name}\n"
        eventually(lambda: gone(node), GONE_S, "the end of the node")
    finally:
        send(relay, signal.SIGCONT)
    process.terminate()
    cluster.finish()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_cut_off_node_ends_with_the_run_without_a_word(cluster: Cluster, end: signal.Signals) -> None:
    """The launcher lets go of its leash, whether the run ends or the launcher dies."""
    process = begin(cluster, *node_behind_a_relay(cluster), nodes=2)
    (relay,) = map(int, written(cluster.folder / "relays"))
    os.kill(relay, signal.SIGSTOP)
    said(process, LOST)
    process.send_signal(end)
    process.wait(SOON_S)
    send(relay, signal.SIGCONT)  # it has the launcher's standard error, too
    completed = cluster.finish(SOON_S)
    assert "this node" not in completed.stderr
    eventually(lambda: not cluster.processes(), GONE_S, "the end of all processes")
