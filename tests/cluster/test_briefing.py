"""What each node is told."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from hdphrs.cluster.addresses import ANYWHERE, LOOPBACK
from hdphrs.cluster.briefing import RootDescriptors, brief_nodes
from hdphrs.cluster.options import RunOptions
from hdphrs.cluster.plan import NodePlan
from hdphrs.config import JOIN_DEADLINE_S
from hdphrs.program.entry import entry_of
from hdphrs.wire.settings import encode_settings, read_settings
from hdphrs.wire.sockets import address_of, listen_abstract
from tests.cluster.support import write_program

LOCAL = NodePlan("localhost", 2)


@pytest.fixture
def options(tmp_path: Path) -> RunOptions:
    return RunOptions(
        program=entry_of(str(write_program(tmp_path, "pass")), module=False),
        args=(),
        nodes=(LOCAL, LOCAL),
        ssh=("ssh",),
        reliable=False,
        speculate=False,
        attempts_max=7,
        memory_bytes_max=None,
        detect_after_s=2.5,
        grace_s=25.0,
        restarts_max=0,
        seed=11,
        report="/some/report",
        trace="/some/folder",
        verbose=True,
        say=lambda line: pytest.fail(line),
    )


@pytest.fixture
def root() -> Iterator[RootDescriptors]:
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    listener = socket.create_server(("127.0.0.1", 0))
    with ours, closing(RootDescriptors(program=theirs, status=writing, listener=listener, leashes=())) as descriptors:
        yield descriptors
    os.close(reading)


def test_nodes_of_one_host_talk_over_loopback_with_a_secret(options: RunOptions, root: RootDescriptors) -> None:
    first, second = brief_nodes(options, root)
    assert root.listener is not None
    port = root.listener.getsockname()[1]
    assert (first.root, first.expected, first.report, first.root_addresses) == (True, 1, "/some/report", ())
    assert [first.program_fd, first.status_fd, first.listen_fd] == root.numbers
    assert (second.root, second.expected, second.report) == (False, 0, None)
    assert second.root_addresses == ((LOOPBACK, port),)
    assert {second.program_fd, second.status_fd, second.listen_fd} == {None}
    for node in (first, second):
        assert (node.credentials, node.program_archive, node.bind) == (None, None, LOOPBACK)
        assert (node.reliable, node.attempts_max, node.detect_after_s, node.verbose) == (False, 7, 2.5, True)
        assert node.trace == "/some/folder"
    assert first.secret == second.secret
    assert len(first.secret) == 32
    assert (first.seed, second.seed) == (11, 12)
    assert second.join_deadline_s == JOIN_DEADLINE_S < first.join_deadline_s


def test_nodes_of_one_host_are_told_the_name_under_which_the_root_listens(
    options: RunOptions, root: RootDescriptors
) -> None:
    with listen_abstract("@hdphrs-test", 1) as listener:
        named = RootDescriptors(program=root.program, status=root.status, listener=listener, leashes=())
        first, second = brief_nodes(options, named)
        assert second.root_addresses == (address_of(listener),)
        assert [node.bind for node in (first, second)] == ["@hdphrs-test"] * 2
        assert first.credentials is None


def test_the_key_of_the_ledger_is_the_root_s_alone_and_no_scheduler_has_it(
    options: RunOptions, root: RootDescriptors
) -> None:
    first, second = brief_nodes(replace(options, ledger="/some/ledger", ledger_key=bytes(16)), root)
    assert (first.ledger_location, first.ledger_key) == ("/some/ledger", bytes(16))
    assert (second.ledger, second.ledger_location, second.ledger_key) == (True, None, None)
    assert read_settings(io.BytesIO(encode_settings(first))).ledger_key == bytes(16)
    first.forget_secrets()
    assert first.ledger_key is None


def test_two_runs_have_different_secrets(options: RunOptions, root: RootDescriptors) -> None:
    assert brief_nodes(options, root)[0].secret != brief_nodes(options, root)[0].secret


def test_one_host_beyond_loopback_means_tls_for_all(options: RunOptions, root: RootDescriptors) -> None:
    nodes = (LOCAL, NodePlan("127.0.0.1", 0), LOCAL, NodePlan("127.0.0.1", 0))
    told = brief_nodes(replace(options, nodes=nodes), root)
    credentials = [node.credentials for node in told if node.credentials is not None]
    assert len({one.key for one in credentials}) == 4
    assert len({one.authority for one in credentials}) == 1
    assert [node.bind for node in told] == [ANYWHERE] * 4
    assert [node.program_archive is not None for node in told] == [False, True, False, True]
    assert told[2].root_addresses[0][0] == told[1].root_addresses[0][0]


def test_root_is_told_of_the_nodes_that_it_forks(options: RunOptions, root: RootDescriptors) -> None:
    forking = RootDescriptors(program=root.program, status=root.status, listener=root.listener, leashes=(77, 78))
    first, second = brief_nodes(options, forking)
    assert (first.forks, second.forks) == ((77, 78), ())
    assert forking.numbers == [*root.numbers, 77, 78]


def test_a_single_node_listens_nowhere(options: RunOptions, root: RootDescriptors) -> None:
    alone = RootDescriptors(program=root.program, status=root.status, listener=None, leashes=())
    (node,) = brief_nodes(replace(options, nodes=(LOCAL,)), alone)
    assert (node.listen_fd, node.expected, node.root_addresses) == (None, 0, ())
