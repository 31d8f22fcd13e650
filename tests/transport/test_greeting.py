"""Greetings survive the wire; nothing else passes for one."""

from __future__ import annotations

import contextlib
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.errors import ProtocolError
from hdphrs.protocol.tasks import NodeId
from hdphrs.transport.greeting import (
    Admitted,
    Answer,
    Greeting,
    IsFenced,
    Join,
    NotMe,
    Progress,
    Resume,
    Resumed,
    Wait,
    pack_greeting,
    unpack_answer,
    unpack_greeting,
)

GREETINGS: list[Greeting] = [Join("h", 2, 77, 4000), Resume(NodeId(3), NodeId(1), 1, Progress(9, 1, 5))]
ANSWERS: list[Answer] = [Admitted(NodeId(3)), Resumed(Progress(9, 0, 0)), Wait(), IsFenced(), NotMe()]


def test_examples_cover_all_types() -> None:
    assert {type(greeting) for greeting in GREETINGS} == set(get_args(Greeting))
    assert {type(answer) for answer in ANSWERS} == set(get_args(Answer))


@pytest.mark.parametrize("greeting", GREETINGS, ids=lambda g: type(g).__name__)
def test_greeting_survives(greeting: Greeting) -> None:
    assert unpack_greeting(pack_greeting(greeting)) == greeting
    with pytest.raises(ProtocolError):
        unpack_answer(pack_greeting(greeting))


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda a: type(a).__name__)
def test_answer_survives(answer: Answer) -> None:
    assert unpack_answer(pack_greeting(answer)) == answer
    with pytest.raises(ProtocolError):
        unpack_greeting(pack_greeting(answer))


values = st.none() | st.integers(-1, 70000) | st.text(max_size=2) | st.binary(max_size=2)
words = st.sampled_from(["join", "resume", "admitted", "resumed", "wait", "fenced", "not me", "x"])


@given(st.builds(lambda word, rest: [word, *rest], words, st.lists(values, max_size=4)) | values)
def test_random_objects_raise_nothing_but_protocol_errors(packed: object) -> None:
    with contextlib.suppress(ProtocolError):
        unpack_greeting(packed)
    with contextlib.suppress(ProtocolError):
        unpack_answer(packed)
