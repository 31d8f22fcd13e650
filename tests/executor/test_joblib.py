"""The joblib backend: by its own promises, and with scikit-learn.  `tests/foreign` runs joblib's own tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import pytest

import hdphrs
from hdphrs.joblib import _InsideBackend, _set_aside
from tests.executor import batches

pytestmark = [pytest.mark.usefixtures("shared_node"), pytest.mark.slow]


@pytest.fixture(autouse=True)
def backend() -> Iterator[None]:
    with joblib.parallel_config(backend="hdphrs"):
        yield


@pytest.mark.parametrize("jobs", [1, 2, -1, -2, 50])
def test_parallel_gives_results_in_order(jobs: int) -> None:
    assert joblib.Parallel(n_jobs=jobs)(joblib.delayed(pow)(n, 2) for n in range(30)) == [n * n for n in range(30)]


def test_results_come_as_they_are_there() -> None:
    parallel = joblib.Parallel(n_jobs=2, return_as="generator_unordered")
    assert sorted(parallel(joblib.delayed(pow)(n, 2) for n in range(30))) == [n * n for n in range(30)]


def test_all_jobs_are_all_cores() -> None:
    assert [joblib.effective_n_jobs(jobs) for jobs in (-1, -2, -99, 3, None)] == [5, 4, 1, 3, 1]
    with pytest.raises(ValueError, match="no meaning"):
        joblib.effective_n_jobs(0)


def test_nested_calls_are_children_and_need_no_further_process() -> None:
    nested = joblib.Parallel(n_jobs=-1)(joblib.delayed(batches.nested)(3, 3) for _ in range(3))
    assert [leaves for leaves, _, _ in nested] == [27] * 3
    assert {kind for _, kinds, _ in nested for kind in kinds} == {_InsideBackend.__name__}
    pids = {pid for _, _, pids in nested for pid in pids}
    assert len(pids) <= 5
    assert os.getpid() not in pids


def test_an_error_ends_the_call_and_the_backend_goes_on() -> None:
    with joblib.Parallel(n_jobs=2) as parallel:
        with pytest.raises(ZeroDivisionError):
            parallel(joblib.delayed(divmod)(1, n) for n in range(20))
        assert parallel(joblib.delayed(pow)(n, 2) for n in range(5)) == [0, 1, 4, 9, 16]


def test_an_error_in_a_nested_call_reaches_the_program() -> None:
    with pytest.raises(ZeroDivisionError):
        joblib.Parallel(n_jobs=2)(joblib.delayed(batches.nested_divisions)(n) for n in (3, 0))


def test_an_initializer_is_the_executors(tmp_path: Path) -> None:
    options: dict[str, Any] = {"initializer": batches.set_state, "initargs": ("initialised",)}
    with joblib.parallel_config(backend="hdphrs", **options):
        states = joblib.Parallel(n_jobs=2)(joblib.delayed(batches.state_here)() for _ in range(6))
    assert states == ["initialised"] * 6


def test_libraries_start_no_more_threads_than_there_are_cores() -> None:
    (found,) = set(joblib.Parallel(n_jobs=2)(joblib.delayed(os.getenv)("OMP_NUM_THREADS") for _ in range(4)))
    assert found == os.environ.get("OMP_NUM_THREADS", "1")


def test_a_task_and_sequential_mode_have_the_backend_too() -> None:
    assert hdphrs.run(batches.from_a_task) == [n * n for n in range(10)]
    with hdphrs.sequential():
        assert batches.from_a_task() == [n * n for n in range(10)]


def test_a_task_that_waits_keeps_its_configuration_to_itself() -> None:
    with joblib.parallel_config(n_jobs=7):
        with _set_aside():
            assert joblib.parallel.get_active_backend()[1] != 7
            joblib.parallel_config(n_jobs=8)  # by a task that is set aside in its turn, so that it does not end here
        assert joblib.parallel.get_active_backend()[1] == 7


def test_scikit_learn_searches_a_grid_of_forests() -> None:
    from sklearn import datasets, ensemble, model_selection  # seconds, which only this test is to cost

    data = datasets.make_classification(120, random_state=0)
    scores = []
    for jobs in (2, 1):
        forest = ensemble.RandomForestClassifier(n_estimators=8, random_state=0, n_jobs=jobs)
        search = model_selection.GridSearchCV(forest, {"max_depth": [2, 4]}, n_jobs=jobs, cv=2).fit(*data)
        scores.append(search.cv_results_["mean_test_score"].tolist())
    assert scores[0] == scores[1]
