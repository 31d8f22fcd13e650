"""What both threads of a scheduler read, and which of them gets what."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from hdphrs.scheduler.links import Links
from hdphrs.scheduler.mail import Mail
from hdphrs.wire import local
from hdphrs.wire.page import LINE_BYTES, Line

START = [local.START, [[1, "spark"], [2, "spark"]]]
NOTHING = [local.START, []]
STOP = [local.STOP, []]


@pytest.fixture
def node_and_mail() -> Iterator[tuple[local.Link, Mail]]:
    ours, theirs = map(local.Link, socket.socketpair())
    line = Line(memoryview(bytearray(LINE_BYTES)))
    yield ours, Mail(theirs, line, Links(line))
    ours.close()
    theirs.close()


def test_main_thread_gets_what_the_helper_thread_has_read(node_and_mail: tuple[local.Link, Mail]) -> None:
    node, mail = node_and_mail
    assert (mail.glance(), mail.has_come) == ([], False)
    node.send(START, STOP)
    assert mail.glance() == [START, STOP]
    assert mail.has_come
    assert mail.fetch(block=True) == [START, STOP]
    assert (mail.has_come, mail.fetch(block=False)) == (False, [])


@pytest.mark.parametrize(("come", "holds"), [([START], True), ([STOP, START], True), ([NOTHING, STOP], False)])
def test_helper_thread_knows_whether_it_has_read_of_tasks(
    node_and_mail: tuple[local.Link, Mail], come: list[list[Any]], holds: bool
) -> None:
    node, mail = node_and_mail
    node.send(*come)
    assert not mail.holds_tasks, "they are not read yet"
    mail.glance()
    assert mail.holds_tasks is holds
    mail.fetch(block=False)
    assert not mail.holds_tasks


def test_what_is_taken_back_the_main_thread_does_not_find(node_and_mail: tuple[local.Link, Mail]) -> None:
    node, mail = node_and_mail
    node.send(START, STOP, [local.START, [[3, "spark"]]])
    mail.glance()
    assert [serial for serial, _ in mail.take_back(urgent=True)] == [1, 2, 3]
    assert not mail.holds_tasks
    assert mail.take_back(urgent=True) == []
    assert mail.fetch(block=False) == [NOTHING, STOP, NOTHING]


def test_what_is_to_run_next_goes_back_only_to_somebody_hungry(node_and_mail: tuple[local.Link, Mail]) -> None:
    node, mail = node_and_mail
    node.send(START, [local.START, [[3, "spark"]], True])
    mail.glance()
    assert [serial for serial, _ in mail.take_back(urgent=False)] == [1, 2]
    assert [serial for serial, _ in mail.take_back(urgent=True)] == [3]


def test_helper_thread_keeps_away_while_the_main_one_reads(node_and_mail: tuple[local.Link, Mail]) -> None:
    node, mail = node_and_mail
    node.send(START)
    with mail._reading:
        assert (mail.glance(), mail.take_back(urgent=True)) == ([], [])
    assert mail.fetch(block=True) == [START]
