"""The link between a node process and its schedulers, and between the root node and the program.

What lives here: the kinds of message and their shapes, and the blocking end that a scheduler or a program holds.  A
frame is a list of messages; a message is a list that begins with its kind.  Both ends are of one installation, and the
socket is inherited or a pair, so the shapes are not checked further.
"""

from __future__ import annotations

import socket
import threading
from typing import Any, Final

from hdphrs.config import FRAME_BYTES_MAX
from hdphrs.wire.framing import FrameDecoder, encode_frame

# To the node.
READY: Final = 1  # [READY]: this process can take work; from the root node to the program: the run may begin
CODE: Final = 2  # [CODE, digest, data]
EXPORT: Final = 3  # [EXPORT, [[slot, task], ...]]
PLACE: Final = 4  # [PLACE, slot, node, task]
HUNGRY: Final = 5  # [HUNGRY, room, ran]: how many of its own sparks it has run since the last time
RESULTS: Final = 6  # [RESULTS, [[ref, replica, outcome], ...]]
RETURN: Final = 7  # [RETURN, [[ref, replica], ...]]
BYE: Final = 8  # [BYE]: the program has ended

# From the node.
START: Final = 9  # [START, [[serial, spark], ...]]
DELIVER: Final = 10  # [DELIVER, slot, outcome]
NODES: Final = 11  # [NODES, [own id, other ids ...]]
QUIT: Final = 12  # [QUIT]
FAILED: Final = 13  # [FAILED, sentence]: the run cannot begin, or is over

RECEIVE_BYTES = 1 << 18


class Link:
    """The blocking end of a local link; any thread may send, one at a time receives."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._decoder = FrameDecoder(FRAME_BYTES_MAX)
        self._sending = threading.Lock()

    def send(self, *messages: list[Any]) -> None:
        """Send one frame; blocks while the node is busy.

        Raises:
            ConnectionError: the node is gone.
        """
        frame = encode_frame(messages)
        with self._sending:
            self._socket.sendall(frame)

    def receive(self, *, block: bool) -> list[list[Any]] | None:
        """The messages that have arrived, at least one if `block`; None when the node is gone."""
        while True:
            try:
                data = self._socket.recv(RECEIVE_BYTES, 0 if block else socket.MSG_DONTWAIT)
            except BlockingIOError:
                return []
            except ConnectionError:
                return None
            if not data:
                return None
            messages = [message for frame in self._decoder.feed(data) for message in frame]
            if messages or not block:
                return messages

    def close(self) -> None:
        """Close the descriptor; the node takes it for the end of this process."""
        self._socket.close()
