"""The program's surroundings go ahead of every task, in the newest version that its sender knows."""

from __future__ import annotations

import random

from hdphrs.protocol.code import CodeStore
from hdphrs.protocol.paths import PROGRAM_PATH
from hdphrs.protocol.surroundings import is_surroundings, surroundings_digest
from hdphrs.protocol.tasks import PROGRAM, ROOT, NodeId, Spark, Task, TaskRef

ONE, TWO, TEN = (surroundings_digest(version) for version in (1, 2, 300))


def spark(code: bytes = b"code of f") -> Spark:
    return Spark(TaskRef(ROOT, PROGRAM, 0), 0, Task("f", PROGRAM_PATH, code, b"", True))


def test_digests_of_surroundings_compare_as_their_versions() -> None:
    assert ONE < TWO < TEN
    assert all(map(is_surroundings, (ONE, TWO, TEN)))
    assert not is_surroundings(bytes(16))


A, B, SCHEDULER = ("scheduler", 1), ("scheduler", 2), ("scheduler", 0)


def test_surroundings_come_before_the_code_and_once() -> None:
    store = CodeStore()
    store.learn(b"code of f", b"f")
    store.learn(ONE, b"one")
    assert store.missing(A, [spark(), spark()]) == [(ONE, b"one"), (b"code of f", b"f")]
    assert store.missing(A, [spark()]) == []
    assert store.missing(B, [spark(b"")]) == [(ONE, b"one")]


def test_newer_ones_are_given_to_all_again_and_older_ones_to_nobody() -> None:
    store = CodeStore()
    store.learn(ONE, b"one")
    store.missing(A, [spark(b"")])
    assert store.has(A, b"")
    store.learn(TEN, b"ten")
    assert not store.has(A, b"")
    store.learn(TWO, b"two")
    assert store.missing(A, [spark(b"")]) == [(TEN, b"ten")]
    assert store.has(A, b"")
    assert not store.has(B, b"")


def test_a_receiver_that_has_gone_gets_them_again() -> None:
    store = CodeStore()
    store.learn(ONE, b"one")
    store.missing(A, [spark(b"")])
    store.forget(A)
    assert store.missing(A, [spark(b"")]) == [(ONE, b"one")]


def test_without_surroundings_nothing_is_given() -> None:
    assert CodeStore().missing(A, [spark(b"")]) == []
    assert CodeStore().has(A, b"")


def test_no_task_meets_older_ones_than_when_it_was_spawned_whichever_way_it_takes() -> None:
    """Nodes that hand tasks to each other over ordered links, which are as slow as chance will have it."""
    chance = random.Random(48)
    for _ in range(50):
        stores = [CodeStore() for _ in range(4)]
        links: dict[tuple[int, int], list[tuple[bytes, bytes] | int]] = {}
        tasks: list[list[int]] = [[] for _ in stores]
        newest = 0
        for _ in range(200):
            match chance.randrange(4):
                case 0:
                    newest += 1
                    stores[0].learn(surroundings_digest(newest), b"%d" % newest)
                case 1 if newest:
                    tasks[0].append(newest)
                case 2:
                    giver = chance.randrange(4)
                    if tasks[giver]:
                        taker = chance.randrange(4)
                        link = links.setdefault((giver, taker), [])
                        link += stores[giver].missing(("node", taker), [spark(b"")])
                        link.append(tasks[giver].pop(0))
                case _:
                    waiting = [ends for ends, link in links.items() if link]
                    if waiting:
                        ends = chance.choice(waiting)
                        thing = links[ends].pop(0)
                        if isinstance(thing, int):
                            tasks[ends[1]].append(thing)
                        else:
                            stores[ends[1]].receive(NodeId(ends[0]), *thing)
            for store, here in zip(stores, tasks, strict=True):
                given = store.missing(SCHEDULER, [spark(b"")]) if here else []
                store.forget(SCHEDULER)
                assert all(given[0][0] >= surroundings_digest(version) for version in here)
