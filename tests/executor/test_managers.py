"""Proxies of `multiprocessing.Manager` work in tasks, and in what those start, as in multiprocessing's own children."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from multiprocessing.managers import BaseManager, BaseProxy, SyncManager
from typing import Any

import pytest

import hdphrs
from hdphrs.wire.manager_proxies import is_proxy
from hdphrs.wire.pickling import dumps, loads

pytestmark = [pytest.mark.usefixtures("shared_node"), pytest.mark.slow]


class Counter:
    """An object that lives in its manager's process."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, amount: int) -> int:
        self._count += amount
        return self._count


class CounterProxy(BaseProxy):
    """A proxy class of the user's."""

    _exposed_ = ("add",)

    def add(self, amount: int) -> int:
        call: Any = self._callmethod
        total: int = call("add", (amount,))
        return total


class OwnManager(BaseManager):
    """With an automatic proxy, and one with a class."""


OwnManager.register("Automatic", Counter)
OwnManager.register("Counter", Counter, CounterProxy)


@pytest.fixture(scope="module")
def manager() -> Iterator[SyncManager]:
    with multiprocessing.get_context("spawn").Manager() as manager:
        yield manager


def put(queue: Any, table: Any, lock: Any, number: int) -> None:
    with lock:
        table["sum"] = table.get("sum", 0) + number
    queue.put(number)


def put_from_children(queue: Any, table: Any, lock: Any) -> None:
    for child in [hdphrs.spawn(put, queue, table, lock, number) for number in range(8)]:
        hdphrs.get(child)


def change(namespace: Any, items: Any, value: Any, event: Any, array: Any, barrier: Any) -> bool:
    namespace.x = 5
    items[0].append(1)
    value.value += 1
    array[1] = 9
    event.set()
    return bool(event.wait(1)) and barrier.parties == 2


def add(counter: Any, amount: int) -> int:
    total: int = counter.add(amount)
    return total


def put_from_a_pool(queue: Any) -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(queue.put, ("from a pool",))


def make_list(manager_list: Any) -> Any:
    manager_list.append("from a task")
    return manager_list


def test_a_queue_a_dictionary_and_a_lock_are_shared_with_tasks_and_their_children(manager: SyncManager) -> None:
    queue, table, lock = manager.Queue(), manager.dict(), manager.Lock()
    with hdphrs.Executor(max_workers=2) as executor:
        list(executor.map(put, [queue] * 4, [table] * 4, [lock] * 4, range(4)))
    hdphrs.get(hdphrs.spawn(put_from_children, queue, table, lock))
    assert sorted(queue.get() for _ in range(12)) == sorted([*range(4), *range(8)])
    assert table["sum"] == 6 + 28


def test_so_are_the_other_types_nested_ones_too(manager: SyncManager) -> None:
    namespace, items, value = manager.Namespace(), manager.list([manager.list()]), manager.Value("i", 1)
    event, array, barrier = manager.Event(), manager.Array("i", [1, 2, 3]), manager.Barrier(2)
    assert hdphrs.get(hdphrs.spawn(change, namespace, items, value, event, array, barrier))
    assert (namespace.x, list(items[0]), value.value, list(array[:]), event.is_set()) == (5, [1], 2, [1, 9, 3], True)


def test_a_proxy_is_a_result_too(manager: SyncManager) -> None:
    items = manager.list()
    back = hdphrs.get(hdphrs.spawn(make_list, items))
    assert list(back) == list(items) == ["from a task"]


def test_a_pool_that_a_task_starts_shares_it_too(manager: SyncManager) -> None:
    queue = manager.Queue()
    hdphrs.get(hdphrs.spawn(put_from_a_pool, queue))
    assert queue.get() == "from a pool"


def test_the_program_keeps_its_own_key(manager: SyncManager) -> None:
    items = manager.list()
    own = multiprocessing.current_process().authkey
    hdphrs.get(hdphrs.spawn(make_list, items))
    with multiprocessing.get_context("spawn").Manager() as other:
        others = other.list()  # kept until the task has it, as everywhere with managers
        hdphrs.get(hdphrs.spawn(make_list, others))
    assert multiprocessing.current_process().authkey == own


def test_managers_of_the_users_own_have_theirs() -> None:
    with OwnManager(ctx=multiprocessing.get_context("spawn")) as manager:
        own: Any = manager
        automatic, named = own.Automatic(), own.Counter()
        assert hdphrs.get(hdphrs.spawn(add, automatic, 3)) == 3
        assert hdphrs.get(hdphrs.spawn(add, named, 4)) == 4
        assert (automatic.add(1), named.add(1)) == (4, 5)


def test_a_proxy_that_pickles_in_a_way_of_its_own_keeps_it(manager: SyncManager) -> None:
    class Plain(BaseProxy):
        def __init__(self) -> None:
            pass

        def __reduce__(self) -> Any:
            return list, ((1, 2),)

    assert is_proxy(Plain)
    assert not is_proxy(dict)
    assert loads(dumps(Plain())) == [1, 2]
