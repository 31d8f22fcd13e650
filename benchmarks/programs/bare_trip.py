"""Prints how long a round trip takes through a row of processes of plain Python, which do nothing else: JSON.

python benchmarks/programs/bare_trip.py PROCESSES COUNT

Three stand for program, node and scheduler, four for scheduler, node, other node and its scheduler.  The first pickles
a call, the last makes it and pickles its value, those between unpack a frame and pack it again.  Nobody supervises or
schedules: so this is what the machine and Python take, whatever a runtime does.  All of them sleep until something
comes, or all but the first look out for it (decision 34).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import select
import socket
import sys
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import TypeAlias

import msgpack

from hdphrs.lookout import Lookout

WARM_UPS = 20
FRAME_BYTES = 1 << 16

Work: TypeAlias = Callable[[Sequence[socket.socket], bool], None]
"""With these ends; whether it looks out."""


def noop() -> None:
    """The smallest task."""


def waiting(ends: Sequence[socket.socket], looks_out: bool) -> Callable[[], Sequence[tuple[int, int]]]:
    """What waits until one of these has something, and says which."""
    poll = select.epoll()
    for end in ends:
        poll.register(end, select.EPOLLIN)
    return Lookout(poll.poll).wait if looks_out else poll.poll


def pass_on(ends: Sequence[socket.socket], looks_out: bool) -> None:
    """From either of the two to the other, until one is closed."""
    near, far = ends
    others = {near.fileno(): far, far.fileno(): near}
    wait = waiting(ends, looks_out)
    while True:
        for descriptor, _ in wait():
            frame = os.read(descriptor, FRAME_BYTES)
            if not frame:
                return
            others[descriptor].sendall(msgpack.packb(msgpack.unpackb(frame)))


def answer(ends: Sequence[socket.socket], looks_out: bool) -> None:
    """Make the calls that come to the only one, until it is closed."""
    (near,) = ends
    wait = waiting(ends, looks_out)
    while wait() and (frame := near.recv(FRAME_BYTES)):
        number, call = msgpack.unpackb(frame)
        function, arguments = pickle.loads(call)
        near.sendall(msgpack.packb([number, pickle.dumps(function(*arguments))]))


def connected(tcp: bool) -> tuple[socket.socket, socket.socket]:
    """Two ends."""
    if not tcp:
        return socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    for end in (near, far):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return near, far


def play(work: Work, mine: Sequence[socket.socket], all_ends: Sequence[socket.socket], looks_out: bool) -> None:
    """The part of a forked process, which has got all ends."""
    for end in all_ends:
        if end not in mine:
            end.close()
    work(mine, looks_out)


def trips_us(processes: int, count: int, looks_out: bool) -> list[float]:
    """So many round trips, one after the other."""
    links = [connected(tcp=processes > 3 and number == 1) for number in range(processes - 1)]
    ends = [end for link in links for end in link]
    fork, children = multiprocessing.get_context("fork"), []
    for number in range(1, processes):
        mine = [links[number - 1][1], *(link[0] for link in links[number : number + 1])]
        work = pass_on if len(mine) > 1 else answer
        children.append(fork.Process(target=play, args=(work, mine, ends, looks_out), daemon=True))
        children[-1].start()
    first, *others = ends
    for end in others:
        end.close()
    trips = []
    with first:
        wait = waiting((first,), looks_out=False)
        for number in range(WARM_UPS + count):
            began_s = perf_counter()
            first.sendall(msgpack.packb([number, pickle.dumps((noop, ()))]))
            wait()
            _, value = msgpack.unpackb(first.recv(FRAME_BYTES))
            pickle.loads(value)
            trips.append((perf_counter() - began_s) * 1e6)
    for child in children:
        child.join()
    return trips[WARM_UPS:]


if __name__ == "__main__":
    row, trips = map(int, sys.argv[1:])
    found = {f"{how}_us": median(trips_us(row, trips, how == "looking")) for how in ("sleeping", "looking")}
    print(json.dumps(found))
