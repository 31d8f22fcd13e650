"""Random numbers by seed and path, in sequential mode; on clusters they are the same (see `tests/e2e`)."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hdphrs
from hdphrs.api import seeds
from hdphrs.api.future import state
from hdphrs.api.port import Unattached
from hdphrs.config import SEED_MAX, SEED_VARIABLE
from hdphrs.errors import UsageError
from hdphrs.program.attach import attach


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "port", Unattached(attach))  # another test of this process may have started a cluster
    monkeypatch.setattr(seeds, "_seed", None)
    monkeypatch.delenv(SEED_VARIABLE, raising=False)


def draw(_: object = None) -> float:
    return hdphrs.rng(numpy=False).random()


def draws_around(child_draws: int) -> list[float]:
    generator = hdphrs.rng(numpy=False)
    drawn = [generator.random()]
    child = hdphrs.spawn(lambda: [draw() for _ in range(child_draws)])
    return [*drawn, generator.random(), draw(), *hdphrs.get(child)[:1]]


def test_same_seed_gives_the_same_numbers_and_another_seed_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(seed: int) -> list[float]:
        monkeypatch.setattr(seeds, "_seed", seed)
        with hdphrs.sequential():
            return [draw(), *hdphrs.par_map(draw, range(5)), float(hdphrs.seed(64)), draw()]

    assert program(1) == program(1)
    assert not {*program(1)} & {*program(2)}


@settings(deadline=None, derandomize=True)
@given(one=st.integers(1, 5), other=st.integers(1, 5))
def test_what_a_child_draws_changes_nothing_for_its_parent(one: int, other: int) -> None:
    with hdphrs.sequential():
        few = hdphrs.run(draws_around, one)
    with hdphrs.sequential():
        many = hdphrs.run(draws_around, other)
    assert few == many


def test_every_call_in_every_task_draws_other_numbers() -> None:
    with hdphrs.sequential():
        drawn = [draw(), draw(), *hdphrs.par_map(draw, range(50)), *hdphrs.par_map(draw, range(50))]
        drawn += itertools.chain(*(hdphrs.run(draws_around, 1) for _ in range(3)))
        drawn += [hdphrs.seed() / 2**32 for _ in range(10)]
    assert len({*drawn}) == len(drawn)


def test_task_run_by_run_is_the_same_as_one_that_is_spawned() -> None:
    with hdphrs.sequential():
        run = hdphrs.run(draw)
    with hdphrs.sequential():
        spawned = hdphrs.get(hdphrs.spawn(draw))
    assert run == spawned


def test_skeleton_that_makes_as_many_tasks_as_it_likes_counts_as_one() -> None:
    def after(items: int) -> float:
        with hdphrs.sequential():
            hdphrs.par_map_chunked(None, abs, range(items))
            return draw()

    assert after(3) == after(1000)


def test_what_stands_aside_has_paths_of_its_own_even_nested() -> None:
    with hdphrs.sequential():
        port = state.port
        paths = [port.topic()]
        with port.aside():
            paths += [port.topic(), port.topic()]
            with port.aside():
                paths.append(port.topic())
            paths.append(port.topic())
        paths.append(port.topic())
    with hdphrs.sequential():
        plain = [state.port.topic() for _ in range(3)]
    assert len({*paths}) == len(paths)
    assert (paths[0], paths[-1]) == (plain[0], plain[2])


@settings(deadline=None, derandomize=True)
@given(bits=st.integers(1, seeds.BITS_MAX))
def test_seed_has_so_many_bits(bits: int) -> None:
    assert 0 <= hdphrs.seed(bits) < 2**bits


@pytest.mark.parametrize("bits", [0, -1, 513, 1.0, True, None, "8"])
def test_seed_of_anything_but_a_number_of_bits_is_refused(bits: object) -> None:
    with pytest.raises(UsageError, match="bits must be"):
        hdphrs.seed(bits)  # type: ignore[arg-type]


def test_program_that_draws_without_a_node_starts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    before = state.port
    assert isinstance(hdphrs.rng(numpy=False), Random)
    hdphrs.seed()
    assert state.port is before


def test_seed_of_the_run_is_what_was_set_or_given_or_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = hdphrs.run_seed()
    assert drawn == hdphrs.run_seed()
    monkeypatch.setattr(seeds, "_seed", None)
    monkeypatch.setenv(SEED_VARIABLE, "17")
    assert hdphrs.run_seed() == 17
    monkeypatch.setattr(seeds, "_seed", None)
    hdphrs.set_seed(18)
    assert hdphrs.run_seed() == 18


def test_seed_is_not_changed_once_it_may_have_been_used() -> None:
    hdphrs.set_seed(1)
    draw()
    hdphrs.set_seed(1)
    with pytest.raises(UsageError, match="is 1 already"):
        hdphrs.set_seed(2)


@pytest.mark.parametrize("seed", [-1, SEED_MAX + 1, 1.0, True, None, "1"])
def test_what_is_no_seed_is_refused(seed: object) -> None:
    with pytest.raises(UsageError, match="expected an int from 0"):
        hdphrs.set_seed(seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", str(SEED_MAX + 1), "9" * 5000])
def test_variable_that_holds_no_seed_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SEED_VARIABLE, text)
    with pytest.raises(UsageError, match=SEED_VARIABLE):
        hdphrs.rng()


def test_host_without_numpy_says_so_if_the_programs_host_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "numpy.random", None)  # an import of it fails
    key = seeds.run_key()
    monkeypatch.setattr(state.port, "key", lambda: bytes((1,)) + key[1:], raising=False)
    with pytest.raises(UsageError, match=r"NumPy is not installed on .*where the program runs it is"):
        hdphrs.rng()
    with pytest.raises(UsageError, match=r"rng\(numpy=True\) needs it"):
        hdphrs.rng(numpy=True)
    assert isinstance(hdphrs.rng(numpy=False), Random)


def test_host_with_numpy_does_as_the_programs_host_that_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    key = seeds.run_key()
    monkeypatch.setattr(state.port, "key", lambda: bytes((0,)) + key[1:], raising=False)
    assert isinstance(hdphrs.rng(), Random)


def test_generator_of_numpy_where_there_is_numpy() -> None:
    random = pytest.importorskip("numpy.random")
    with hdphrs.sequential():
        first = hdphrs.rng()
    with hdphrs.sequential():
        again = hdphrs.rng()
        other = hdphrs.rng()
    assert isinstance(first, random.Generator)
    assert first.random() == again.random() != other.random()


def test_nodes_of_executors_draw_other_numbers_than_the_cluster() -> None:
    keys = {seeds.run_key(node) for node in range(4)}
    assert {len(key) for key in keys} == {seeds.KEY_BYTES}
    assert len(keys) == 4
