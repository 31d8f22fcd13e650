"""Steps: what one host does with one event, by the core itself, once for each pair of them.

What lives here: asking the core, with every answer that its chooser could give, and what a search wants to know of a
host.
"""

from __future__ import annotations

from typing import NamedTuple

from hdphrs.explore.freeze import MESSAGES
from hdphrs.explore.host import Host
from hdphrs.explore.moves import Act, act, acts_of, deaths_of, receive
from hdphrs.explore.numbers import ABSENT, GONE, Numbers, Table
from hdphrs.explore.scope import Scope
from hdphrs.protocol import effects as fx
from hdphrs.protocol import messages as msg
from hdphrs.protocol.tasks import PROGRAM, NodeId, Verdict

NAMED: dict[type[msg.Message], str] = {msg.Obsolete: "obsolete", msg.Denied: "denied", msg.Cancel: "cancel"}
"""Messages that count as something that a search has met."""


class Outcome:
    """What one host does with one event; the same for all states in which it happens."""

    __slots__ = ("broken", "choices", "fences", "host", "labels", "met", "sends")

    def __init__(self, choices: tuple[int, ...]) -> None:
        self.choices: tuple[int, ...] = choices
        self.host: int = GONE
        self.sends: tuple[tuple[int, int], ...] = ()
        """(to, number of the message)."""
        self.fences: tuple[int, ...] = ()
        self.labels: tuple[str, ...] = ()
        self.broken: Exception | None = None
        self.met: int = 0
        """In how many transitions."""


class Chance:
    """A chooser that follows a script, and then takes the first; it knows what else there was."""

    def __init__(self, script: tuple[int, ...]) -> None:
        self._script = script
        self._taken: list[tuple[int, int]] = []

    def __call__(self, options: int) -> int:
        at = len(self._taken)
        choice = self._script[at] if at < len(self._script) else 0
        self._taken.append((choice, options))
        return choice

    @property
    def taken(self) -> tuple[int, ...]:
        """What was chosen."""
        return tuple(choice for choice, _ in self._taken)

    def following(self) -> tuple[int, ...] | None:
        """The next script, in order; None after the last."""
        taken = list(self._taken)
        while taken:
            choice, options = taken.pop()
            if choice + 1 < options:
                return (*(before for before, _ in taken), choice + 1)
        return None


class About(NamedTuple):
    """What a search wants to know of a host again and again."""

    acts: tuple[Act, ...]
    crashes: tuple[Act, ...]
    others: frozenset[NodeId]
    dead: frozenset[NodeId]
    fishing: bool
    leaving: bool
    idle: bool
    empty: tuple[int, ...]
    """Futures of the program that wait."""


NOBODY = About((), (), frozenset(), frozenset(), fishing=False, leaving=False, idle=True, empty=())


class Steps:
    """All steps of a scope, as far as they have been asked for."""

    def __init__(self, scope: Scope, numbers: Numbers) -> None:
        self._scope = scope
        self._numbers = numbers
        self.outcomes: list[Outcome] = []
        self.of: Table = Table(self._step)
        """By (host, sender, message), or by (host, word, what it is about): the outcomes, one for each choice."""
        self.about: Table = Table(self._tell)
        """By host."""

    def _step(self, key: tuple[int, str | int, int]) -> tuple[Outcome, ...]:
        number, word, about = key
        outcomes: list[Outcome] = []
        script: tuple[int, ...] | None = ()
        while script is not None:
            chance = Chance(script)
            host = self._numbers.host(number, chance)
            effects: list[fx.Effect] = []
            broken: Exception | None = None
            try:
                if isinstance(word, str):
                    effects = act(host, Act(word, about), self._scope)
                else:
                    effects = receive(host, NodeId(word), self._numbers.message(about), self._scope)
            except Exception as error:  # whatever it is: the core must not raise
                broken = error
            outcome = Outcome(chance.taken)
            outcome.broken = broken
            if broken is None:
                self._note(outcome, host, effects)
            outcomes.append(outcome)
            script = chance.following()
        self.outcomes += outcomes
        return tuple(outcomes)

    def _note(self, outcome: Outcome, host: Host, effects: list[fx.Effect]) -> None:
        outcome.host = self._numbers.of_host(host)
        sends = [effect for effect in effects if isinstance(effect, fx.Send)]
        frozen = MESSAGES.freeze([send.message for send in sends])
        outcome.sends = tuple(
            [(send.to, self._numbers.of_message(one)) for send, one in zip(sends, frozen, strict=True)]
        )
        outcome.fences = tuple(effect.node for effect in effects if isinstance(effect, fx.Fence))
        counted = [name for name, count in host.core.counters.items() if count]
        sent = [NAMED[type(send.message)] for send in sends if type(send.message) in NAMED]
        passed = [send for send in sends if isinstance(send.message, msg.Cancel) and send.message.node != send.to]
        verdicts = {effect.outcome.verdict: None for effect in effects if isinstance(effect, fx.Deliver)}
        strange = any(not host.core.members.is_live(send.to) for send in sends)
        outcome.labels = (
            *counted,
            *sent,
            *(
                f"{effect.parting.name.lower()}"
                for effect in effects
                if isinstance(effect, fx.Fence) and effect.parting
            ),
            *(["joins"] if any(isinstance(effect, fx.Admit) for effect in effects) else []),
            *(["strangers"] if strange else []),
            *(["cancel by way of the root"] if passed else []),
            *(verdict.name.lower() for verdict in verdicts if verdict is not Verdict.VALUE),
        )

    def _tell(self, number: int) -> About:
        if number == ABSENT:
            return NOBODY
        host = self._numbers.host(number)
        core = host.core
        known = [NodeId(node) for node in range(self._scope.nodes_max)]
        return About(
            acts=tuple(acts_of(host, self._scope)),
            crashes=deaths_of(host, self._scope),
            others=frozenset(core.members.others()),
            dead=frozenset(node for node in known if core.members.is_dead(node)),
            fishing=core.thief.out > 0,
            leaving=core.leaving.under_way,
            idle=host.is_idle,
            empty=tuple(slot for origin, slot in host.awaited if origin == PROGRAM),
        )
