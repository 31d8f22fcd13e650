"""Every message survives the wire; nothing else passes for one."""

from __future__ import annotations

import contextlib
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.errors import ProtocolError
from hdphrs.protocol import messages as m
from hdphrs.protocol.tasks import Cause, Crash, FishId, Member, NodeId, Origin, Outcome, Spark, Task, TaskRef, Verdict
from hdphrs.wire import codec, items, local
from hdphrs.wire.framing import FrameDecoder, encode_frame

naturals = st.integers(0, (1 << 64) - 1)
nodes = naturals.map(NodeId)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
data = st.binary(max_size=24)
refs = st.builds(TaskRef, nodes, naturals.map(Origin), naturals)
durations = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)
pins = st.lists(nodes, max_size=3).map(tuple)
tasks = st.builds(Task, texts, data, data, data, st.booleans(), data, naturals, durations, pins)
crashes = st.lists(st.builds(Crash, texts, naturals, texts, texts, texts, st.sampled_from(Cause)), max_size=3).map(
    tuple
)
sparks = st.builds(Spark, refs, naturals, tasks, crashes, st.booleans())
outcomes = st.builds(Outcome, st.sampled_from(Verdict), data, crashes)
members = st.builds(Member, nodes, texts, naturals, st.tuples(texts, st.integers(0, 65535)), naturals)

for kind, strategy in [
    (TaskRef, refs),
    (Spark, sparks),
    (Outcome, outcomes),
    (Member, members),
    (int, naturals),
]:
    st.register_type_strategy(kind, strategy)
st.register_type_strategy(str, texts)
st.register_type_strategy(Task, tasks)
st.register_type_strategy(m.Fish, st.builds(m.Fish, naturals.map(FishId), nodes, naturals, durations))
st.register_type_strategy(m.NoWork, st.builds(m.NoWork, naturals.map(FishId), durations))


def through_a_frame(packed: object) -> object:
    (received,) = FrameDecoder().feed(encode_frame(packed))
    return received


def test_rows_equal_the_union_of_messages() -> None:
    assert set(codec.ROWS.values()) == set(get_args(m.Message))
    assert len(codec.ROWS) == len(get_args(m.Message))


@pytest.mark.parametrize("message_type", get_args(m.Message), ids=lambda t: t.__name__)
def test_every_message_survives_the_wire(message_type: type[m.Message]) -> None:
    @given(st.from_type(message_type))
    def check(message: m.Message) -> None:
        received = codec.unpack_message(through_a_frame(codec.pack_message(message)))
        assert received == message
        assert type(received) is type(message)
        assert hash(received) == hash(message)

    check()


@pytest.mark.parametrize(
    ("values", "pack", "unpack"),
    [
        (refs, items.pack_ref, items.unpack_ref),
        (tasks, items.pack_task, items.unpack_task),
        (crashes.filter(bool).map(lambda c: c[0]), items.pack_crash, items.unpack_crash),
        (sparks, items.pack_spark, items.unpack_spark),
        (outcomes, items.pack_outcome, items.unpack_outcome),
        (members, items.pack_member, items.unpack_member),
        (tasks, items.pack_task, local.task_of),
        (sparks, items.pack_spark, local.spark_of),
        (outcomes, items.pack_outcome, local.outcome_of),
    ],
    ids=["ref", "task", "crash", "spark", "outcome", "member", "local task", "local spark", "local outcome"],
)
def test_every_value_survives_the_wire(values: st.SearchStrategy[Any], pack: Any, unpack: Any) -> None:
    @given(values)
    def check(value: Any) -> None:
        received = unpack(through_a_frame(pack(value)))
        assert received == value
        assert type(received) is type(value)

    check()


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 20) | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=30,
)


@given(anything | st.builds(lambda kind, rest: [kind, *rest], st.integers(1, 17), st.lists(anything, max_size=5)))
def test_random_objects_raise_nothing_but_protocol_errors(obj: object) -> None:
    with contextlib.suppress(ProtocolError):
        codec.unpack_message(obj)


@given(st.from_type(m.Message), st.data())  # type: ignore[arg-type]  # a union is no type to mypy
def test_message_with_one_value_replaced_raises_nothing_but_protocol_errors(
    message: m.Message, draw: st.DataObject
) -> None:
    packed = codec.pack_message(message)
    place: Any = packed
    while True:
        index = draw.draw(st.integers(0, len(place) - 1))
        if not isinstance(place[index], list) or not place[index] or draw.draw(st.booleans()):
            break
        place = place[index]
    place[index] = draw.draw(anything)
    with contextlib.suppress(ProtocolError):
        codec.unpack_message(packed)


def unpacked_field_by_field(packed: Any) -> m.Message:
    row: Any = codec.ROWS[packed[0]]
    hints = get_type_hints(row)
    unpack = [codec.BY_ANNOTATION[hints[field.name]][1] for field in fields(row)]
    made: m.Message = row(*[each(value) for each, value in zip(unpack, packed[1:], strict=True)])
    return made


@given(st.from_type(m.Message), st.data())  # type: ignore[arg-type]  # a union is no type to mypy
def test_function_that_is_made_for_a_message_accepts_and_says_what_its_fields_do(
    message: m.Message, draw: st.DataObject
) -> None:
    packed = codec.pack_message(message)
    if len(packed) > 1:
        packed[draw.draw(st.integers(1, len(packed) - 1))] = draw.draw(anything)
    results = []
    for unpack in (codec.unpack_message, unpacked_field_by_field):
        try:
            results.append(repr(unpack(packed)))
        except ProtocolError as error:
            results.append(str(error))
    assert results[0] == results[1]


def test_accusations_name_a_node_and_nothing_else_accuses_anybody() -> None:
    assert codec.accused(codec.pack_message(m.Suspect(NodeId(3)))) == 3
    assert codec.accused(codec.pack_message(m.DeadNode(NodeId(4), 1))) == 4
    for packed in ([], [14], [14, "x"], [14, True], [14.0, 3], [[], 3], [{}, 3], codec.pack_message(m.Term())):
        assert codec.accused(packed) is None


@pytest.mark.parametrize(
    ("packed", "complaint"),
    [
        ([], "not a message"),
        (None, "not a message: None"),
        ([99], "not a kind of message: 99"),
        ([True, 1], "not a kind of message: True"),
        ([1, 2, 3], "Fish with 2 fields instead of 4"),
        ([1, 2, 3, -1, 0.1], "not a number: -1"),
        ([1, 2, 3, "x", 0.1], "not a number: a str"),
        ([13, 1, [3, "h", 1, ["h", 65536], 1]], "not a port: 65536"),
        ([10, [0, 0, 0], 0, [17, b"", [], 0.0, 0.0]], "not a verdict: 17"),
    ],
)
def test_malformed_message_is_refused_in_one_clear_line(packed: object, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        codec.unpack_message(packed)


@pytest.mark.parametrize("cause", [len(Cause), -1, "0", None, True])
def test_a_crash_of_no_known_cause_is_refused(cause: object) -> None:
    *rest, _ = items.pack_crash(Crash("host", 1, "was killed"))
    with pytest.raises(ProtocolError, match="not a cause of a crash"):
        items.unpack_crash([*rest, cause])
