"""A plugin for the pytest that runs joblib's own tests: they are to try our backend wherever they try another by name.

What lives here: also the list of the tests that are left out, each with its reason; `docs/executor.md` has it in words.
"""

from __future__ import annotations

import pytest

import hdphrs.joblib  # noqa: F401 - it registers the backend

NAME = "hdphrs"

LEFT_OUT = {
    "test_nested_loop[loky-": "a worker of another backend has not imported hdphrs.joblib",
    "test_nested_loop[back_compat_backend-": "the same",
    "test_backend_nesting_level[parallel_config-hdphrs-loky]": "the same",
    "test_backend_nesting_level[parallel_backend-hdphrs-loky]": "the same",
    "test_nested_loop[multiprocessing-": "a fork of the program, with a node of its own",
    "test_parallel_with_interactively_defined_functions": "a script of theirs that does not import hdphrs.joblib",
    "test_parallel_with_unpicklable_functions_in_args": "the same",
    "test_dispatch_multiprocessing": "a manager of multiprocessing works only in processes of multiprocessing",
    "test_initializer": "the same",
    "test_auto_memmap": "large arrays are not put into files",
    "test_memmapping": "the same",
    "test_nested_backend_context_manager": "it wants nested calls in threads",
    "test_nested_parallelism_limit": "the same",
    "test_error_capture": "it looks at the private pools of two backends",
    "test_nested_loop[hdphrs-loky]": "it starts the processes of the other backend, which takes seconds",
    "test_nested_loop[hdphrs-multiprocessing]": "the same",
    "test_nested_loop[hdphrs-back_compat_backend]": "the same",
    "test_backend_nesting_level[parallel_config-hdphrs-multiprocessing]": "the same",
    "test_backend_nesting_level[parallel_backend-hdphrs-multiprocessing]": "the same",
    "test_backend_nesting_level[parallel_config-loky-hdphrs]": "the same",
    "test_backend_nesting_level[parallel_backend-loky-hdphrs]": "the same",
    "test_no_blas_crash_or_freeze_with_subprocesses": "the same",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Add our backend to every list of backends."""
    for mark in metafunc.definition.iter_markers("parametrize"):
        values = mark.args[1]
        if isinstance(values, list) and "loky" in values and NAME not in values:
            values.append(NAME)


pytest_generate_tests = pytest.hookimpl(tryfirst=True)(pytest_generate_tests)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of our backend that are not left out."""
    ours = [item for item in items if NAME in item.name.lower()]
    items[:] = [item for item in ours if not item.name.startswith(tuple(LEFT_OUT))]
