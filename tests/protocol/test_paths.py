"""Paths name tasks, and tell ancestors."""

from __future__ import annotations

from functools import reduce

from hypothesis import given, settings
from hypothesis import strategies as st

from hdphrs.protocol.paths import (
    FOLD,
    PATH_BYTES_MAX,
    PROGRAM_PATH,
    SHOWN_MAX,
    call_of,
    child_path,
    first_index,
    index_of,
    show_path,
)

indices = st.integers(0, 1 << 40) | st.integers(0, 300)
chains = st.lists(indices, max_size=8)


def path_of(chain: list[int]) -> bytes:
    return reduce(child_path, chain, PROGRAM_PATH)


@given(one=chains, other=chains)
def test_path_begins_with_that_of_an_ancestor_and_of_nobody_else(one: list[int], other: list[int]) -> None:
    is_ancestor = one == other[: len(one)]
    assert path_of(other).startswith(path_of(one)) == is_ancestor


@given(index=indices)
def test_path_of_a_task_of_the_program_tells_which_it_is(index: int) -> None:
    assert index_of(child_path(PROGRAM_PATH, index)) == index


@given(part=st.lists(indices, min_size=20, max_size=25), other=chains)
def test_long_path_is_folded_and_is_nobody_elses(part: list[int], other: list[int]) -> None:
    one = 10 * part
    path = path_of([1 << 20, *one])
    assert len(path) <= PATH_BYTES_MAX
    assert path != path_of([1 << 20, *one[:-1], one[-1] + 1])
    if path.startswith(FOLD):
        assert not path.startswith(path_of(other)) or not other
        assert not path_of(other).startswith(path)


def test_path_below_a_fold_begins_with_it() -> None:
    folded = path_of([0] * (PATH_BYTES_MAX + 1))
    assert folded.startswith(FOLD)
    assert path_of([0] * (PATH_BYTES_MAX + 2)).startswith(folded)


@given(chain=st.lists(indices, max_size=SHOWN_MAX))
def test_path_for_people_has_all_indices(chain: list[int]) -> None:
    assert show_path(path_of(chain)) == ".".join(map(str, chain))


def test_long_path_for_people_has_the_first_and_the_last_indices_and_a_folded_one_a_digest() -> None:
    assert show_path(path_of([*range(20)])) == "0.1.\N{HORIZONTAL ELLIPSIS}.14.15.16.17.18.19"
    folded = show_path(path_of([1 << 20] * 200))
    assert (folded[0], len(folded)) == ("#", 9)


@settings(deadline=None, derandomize=True)
@given(chain=chains)
def test_first_index_is_the_programs_task(chain: list[int]) -> None:
    assert first_index(path_of(chain)) == path_of(chain[:1])


def test_of_a_folded_path_nothing_is_known_but_all_of_it() -> None:
    folded = path_of([1 << 20] * 200)
    assert first_index(folded) == folded


def test_what_is_no_whole_index_is_a_call_of_its_own() -> None:
    assert (call_of(b""), call_of(b"\x81")) == (b"", b"\x81")
