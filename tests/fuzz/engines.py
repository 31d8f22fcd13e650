"""What makes the inputs: our own mutations, Hypothesis, and atheris, which looks at the coverage.

What lives here: one function an engine; each feeds a target so many inputs, the same ones each time, and tallies the
outcomes.  The first finding ends it.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final, NoReturn

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.seeds import seed_number
from tests.fuzz.target import INPUT_BYTES_MAX, Finding, Target, examine

INPUT_S_MAX: Final = 20
"""An input that takes longer is a finding."""

ATHERIS_BYTES_MAX: Final = 4096


@dataclass(slots=True)
class Tally:
    """What has become of the inputs."""

    inputs: int = 0
    outcomes: Counter[tuple[bool, str]] = field(default_factory=Counter)

    def take(self, target: Target, data: bytes, *, measured: bool) -> None:
        """Examine one input.

        Raises:
            Finding: see `examine`.
        """
        self.inputs += 1
        outcome = examine(target, data[:INPUT_BYTES_MAX], measured=measured)
        self.outcomes[outcome.accepted, outcome.what] += 1

    @property
    def accepted(self) -> int:
        """How many inputs were valid."""
        return sum(count for (accepted, _), count in self.outcomes.items() if accepted)


def mutations(target: Target, count: int, tally: Tally, *, measured: bool = True) -> None:
    """Structured mutations of valid input; what each allocates is measured."""
    rng = seed_number(f"{'measured' if measured else 'unmeasured'} mutations of {target.name}")
    with _alarm() as rearm:
        for data in target.seeds():
            tally.take(target, data, measured=False)
        for number in range(count - tally.inputs):
            rearm()
            tally.take(target, target.draw(rng), measured=measured and number % target.measured_every == 0)


def hypothesis(target: Target, count: int, tally: Tally) -> None:
    """Any bytes, edited valid input, and mutations; what it finds is made small."""
    edits = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 3), st.binary(max_size=4)), max_size=4)
    drawn = st.integers(0, 1 << 64).map(lambda number: target.draw(Random(number)))
    inputs = st.binary(max_size=300) | st.builds(_edit, st.sampled_from(target.seeds()), edits) | drawn

    @settings(
        max_examples=count,
        database=None,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(inputs)
    def check(data: bytes) -> None:
        rearm()
        tally.take(target, data, measured=False)

    with _alarm() as rearm:
        check()


def _edit(data: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for place, kept, new in edits:
        data = data[:place] + new + data[place + len(new) * (kept & 1) + (kept & 2) :]
    return data


def atheris(target: Target, count: int, tally: Tally, end: Callable[[Finding | None], NoReturn]) -> NoReturn:
    """Guided by the coverage of the code, which the caller has imported under instrumentation.

    Args:
        end: called when it is over; libFuzzer would otherwise end the process itself.
    """
    import atheris as fuzzer

    def mutate(data: bytes, bytes_max: int, seed: int) -> bytes:
        rng = Random(seed)
        made: bytes = target.draw(rng) if rng.random() < 0.25 else fuzzer.Mutate(data, bytes_max)
        return made[:bytes_max]

    def one(data: bytes) -> None:
        try:
            tally.take(target, data, measured=False)
        except Finding as finding:
            end(finding)
        if tally.inputs >= count:
            end(None)

    with tempfile.TemporaryDirectory() as corpus:
        for number, data in enumerate(target.seeds()):
            Path(corpus, f"{number:04}").write_bytes(data)
        options = ["-seed=1", f"-max_len={ATHERIS_BYTES_MAX}", f"-timeout={INPUT_S_MAX}", "-rss_limit_mb=0"]
        fuzzer.Setup([sys.argv[0], *options, corpus], one, custom_mutator=mutate)
        fuzzer.Fuzz()
    raise AssertionError("libFuzzer has come back")


@contextmanager
def _alarm() -> Iterator[Callable[[], None]]:
    """Ends an input that takes too long; call what it gives before each."""

    def ring(signum: int, frame: Any) -> NoReturn:
        raise TimeoutError(f"more than {INPUT_S_MAX} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield lambda: _set_alarm(INPUT_S_MAX)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _set_alarm(seconds: int) -> None:
    signal.alarm(seconds)
