"""Numbers for values: equal values have one number, so states are tuples of numbers.

What lives here: the table of all values that a search has met, and `Table`, which is asked once for each key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hdphrs.config import CoreConfig
from hdphrs.explore.freeze import MESSAGES, freeze_host, thaw_host
from hdphrs.explore.host import Host
from hdphrs.protocol import messages as msg
from hdphrs.protocol.node import Node

GONE = 0
"""The number of a host that takes no events any more."""
NOTHING = 1
"""The number of an empty queue."""
ABSENT = 2
"""The number of a newcomer that has no WELCOME yet."""


class Table(dict[Any, Any]):
    """A table that asks for what it does not have yet."""

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, key: Any) -> Any:
        value = self[key] = self._ask(key)
        return value


class Numbers:
    """Hosts, queues and whatever else a state consists of, by number; messages have numbers of their own."""

    def __init__(self, config: CoreConfig) -> None:
        self.values: list[Any] = [None, (), None]
        self.kinds: list[str] = ["gone", "queue", "absent"]
        """"host", "queue", or what the caller says."""
        self.messages: list[Any] = []
        """Frozen; a queue is a tuple of their numbers."""
        self._config = config
        self._numbers: dict[tuple[str, Any], int] = {
            ("gone", None): GONE,
            ("queue", ()): NOTHING,
            ("absent", None): ABSENT,
        }
        self._message_numbers: dict[Any, int] = {}

    def of(self, kind: str, value: Any) -> int:
        """The number of a value."""
        number = self._numbers.get((kind, value))
        if number is None:
            number = self._numbers[kind, value] = len(self.values)
            self.values.append(value)
            self.kinds.append(kind)
        return number

    def of_message(self, frozen: Any) -> int:
        """The number of a frozen message."""
        number = self._message_numbers.get(frozen)
        if number is None:
            number = self._message_numbers[frozen] = len(self.messages)
            self.messages.append(frozen)
        return number

    def of_host(self, host: Host) -> int:
        """The number of a host."""
        if not host.runs:
            return GONE
        return ABSENT if host.core.me is None else self.of("host", freeze_host(host))

    def of_queue(self, messages: list[msg.Message]) -> int:
        """The number of a queue."""
        return self.of("queue", tuple([self.of_message(frozen) for frozen in MESSAGES.freeze(messages)]))

    def host(self, number: int, choose: Callable[[int], int] = lambda _: 0) -> Host:
        """The host behind a number, alive."""
        if number == ABSENT:
            return Host(Node.newcomer(self._config, choose))
        return thaw_host(self.values[number], self._config, choose)

    def message(self, number: int) -> msg.Message:
        """The message behind a number."""
        (message,) = MESSAGES.thaw((self.messages[number],))
        assert isinstance(message, msg.Message)
        return message

    def queue(self, number: int) -> list[Any]:
        """The frozen messages of a queue."""
        return [self.messages[message] for message in self.values[number]]
