"""What the payload of a bundle holds, and its outcome."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hdphrs.protocol.paths import PATH_BYTES_MAX, PROGRAM_PATH, child_path, first_index, index_of
from hdphrs.wire.bundle import (
    COLD,
    JUMP_MAX,
    LAST,
    Answer,
    Calls,
    Expectation,
    bundle_path,
    is_bundle,
    pack_answer,
    pack_calls,
    payload_of,
    unpack_answer,
    unpack_calls,
)
from hdphrs.wire.values import arguments_of, dump_arguments

small = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.builds(range, st.integers())
arguments = st.tuples(small) | st.tuples(small, small) | st.binary()


@given(st.binary(), st.lists(st.integers(0, 10**6), min_size=1, unique=True), st.binary(), st.binary(), st.data())
def test_calls_come_out_as_they_went_in(
    parent: bytes, indices: list[int], function: bytes, chance: bytes, data: st.DataObject
) -> None:
    indices.sort()
    given_arguments = data.draw(st.lists(arguments, min_size=len(indices), max_size=len(indices)))
    calls = unpack_calls(pack_calls(Calls(parent, indices, function, chance, given_arguments)))
    assert (calls.parent, list(calls.indices)) == (parent, indices)
    assert (calls.function, calls.chance, list(calls.arguments)) == (function, chance, given_arguments)


@given(st.lists(small), st.dictionaries(st.integers(0, 100), st.none() | st.just([0, b"", [], 0.0])))
def test_answers_come_out_as_they_went_in(values: list[object], others: dict[int, list[object] | None]) -> None:
    assert unpack_answer(pack_answer(Answer(values, others))) == Answer(values, others)
    assert unpack_answer(pack_answer(None)) is None


@given(st.tuples(small, small))
def test_a_call_has_the_payload_that_it_would_have_alone(call: tuple[object, ...]) -> None:
    for function in (b"", b"function"):
        alone = dump_arguments("f", call, {}, b"chance", function)
        assert payload_of(function, call, b"chance") == alone
        assert payload_of(function, arguments_of(b"" if function else b"code", alone), b"chance") == alone


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_no_task_has_the_path_of_a_bundle_nor_lies_below_one(number: int, index: int) -> None:
    parent = child_path(PROGRAM_PATH, index)
    for bundle in (bundle_path(PROGRAM_PATH, number), bundle_path(parent, number)):
        for path in (parent, child_path(parent, number)):
            assert is_bundle(bundle)
            assert not is_bundle(path)
            assert not path.startswith(bundle)
            assert first_index(bundle) != bundle


def test_a_folded_path_is_not_a_bundle() -> None:
    path = PROGRAM_PATH
    for _ in range(PATH_BYTES_MAX + 1):
        path = child_path(path, 1)
    assert not is_bundle(path)


@given(st.integers(0, 10**12))
def test_the_index_of_a_call_of_the_program_is_read_from_its_path(index: int) -> None:
    assert index_of(child_path(PROGRAM_PATH, index)) == index


def test_of_the_first_calls_the_quickest_counts_and_then_the_mean() -> None:
    expected = Expectation()
    for cost_s in (3e-3, 1e-3, 2e-3, 4e-3):
        expected.learn(cost_s, 10)
    assert expected.calls == COLD
    assert expected.cost_s == 1e-3
    expected.learn(2e-3, 10)
    assert expected.cost_s == 1e-3 + LAST * 1e-3
    expected.learn(1.0, 10)
    assert expected.cost_s == (1e-3 + LAST * 1e-3) * (1 + LAST * (JUMP_MAX - 1))
