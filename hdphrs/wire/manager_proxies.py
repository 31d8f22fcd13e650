"""Proxies of `multiprocessing.Manager`: a queue, a dictionary or a lock in the manager's process.

What lives here: how a proxy is pickled for another process of ours.  It talks to its manager with the manager's key,
which multiprocessing's own children inherit.  Our processes are no children of the program, so the key travels with
the proxy, as it does when multiprocessing starts a process.

A proxy that comes out of another one, an item of `manager.list([manager.list()])`, uses the key of its process, and so
does a `multiprocessing.Pool` whose workers get a proxy.  So a scheduler takes over the key of the first process that
sends it a proxy of a manager with that key, which is the program's as a rule; the program keeps its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

_MODULE = "multiprocessing.managers"

_takes_key = False


def take_first_key() -> None:
    """This process is a scheduler: its key is that of the first process whose proxies it gets."""
    global _takes_key
    _takes_key = True


def is_proxy(kind: type) -> bool:
    """Whether instances of the type are proxies; loads nothing."""
    managers: Any = sys.modules.get(_MODULE)
    return managers is not None and issubclass(kind, managers.BaseProxy)


def reduce_proxy(proxy: Any) -> Any:
    """What pickles the proxy together with its key, in the form of `object.__reduce__`."""
    reduced = proxy.__reduce__()
    if reduced[0] is not sys.modules[_MODULE].RebuildProxy:
        return reduced  # a proxy of the user's own has another way
    make, token, serializer, options = reduced[1]
    key = bytes(proxy._authkey)
    return _rebuild, (make, token, serializer, options, key, key == _process().authkey)


def _rebuild(make: Any, token: Any, serializer: str, options: Mapping[str, Any], key: bytes, is_senders: bool) -> Any:
    """The proxy, in the process that unpickles it.

    Args:
        key: with which it talks to its manager.
        is_senders: whether that is the key of the process that has pickled it, too.
    """
    global _takes_key
    from multiprocessing import managers

    rebuild: Any = vars(managers)["RebuildProxy"]

    if is_senders and _takes_key:
        _process().authkey = key
        _takes_key = False
    return rebuild(make, token, serializer, {**options, "authkey": key})


def _process() -> Any:
    from multiprocessing import current_process

    return current_process()
