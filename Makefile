# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test check types style unit bench spin mutants explore sim fuzz cover compiled killed pythons wheels foreign prove docs clean bench-peers

setup: .venv/ready

.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "hdphrs needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv || { apt-get update && apt-get install -y python3-venv && $(PYTHON) -m venv .venv; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs]'
	@if test -d .git; then git config core.hooksPath .githooks; fi
	touch $@

demo: setup
	$(BIN)/python examples/demo.py

check: setup
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target types style

types: setup
	$(BIN)/mypy

style: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	@# What others see of the types, as a checker of theirs does; it must all be written down.
	@said=$$(PYTHONPATH=. PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --verifytypes hdphrs --ignoreexternal) || { echo "$$said"; exit 1; }

unit: setup
	$(BIN)/pytest -m 'not slow'

test: check
	$(BIN)/pytest --numprocesses 2

# The proof, in parts; docs/verification.md says what each covers.

spin: setup
	@command -v spin >/dev/null && command -v gcc >/dev/null || { apt-get update && apt-get install -y --no-install-recommends spin gcc libc6-dev; }
	$(BIN)/python -m spin

explore: setup
	$(BIN)/hdphrs explore

sim: setup
	$(BIN)/hdphrs sim --seeds 0..1999 --jobs 2

mutants: setup
	$(BIN)/python -m tests.mutants

fuzz: setup
	$(BIN)/python -m tests.fuzz

# Every branch of the core, by tests that state its rules.
cover: setup
	$(BIN)/coverage run -m pytest tests/protocol tests/paper
	$(BIN)/coverage report

# The form that `pip install .` makes, under the tests that can hold there.
compiled: setup
	@command -v gcc >/dev/null || { apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev; }
	@headers=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))'); test -e $$headers/Python.h || \
	    { apt-get update && apt-get install -y --no-install-recommends lib$$(basename $$headers)-dev; }
	$(BIN)/python -m tests.compiled

# The tests on other Pythons: those of this machine, and those of Debian's newer suites, in a folder that only root can enter.
pythons: setup
	$(BIN)/python -m tests.pythons

# The source distribution and both wheels, each installed where there is no compiler.
wheels: setup
	$(BIN)/python -m tests.wheels

# Twenty runs of a minute whose schedulers are all killed once a second; the tests have a share of it.
killed: setup
	$(BIN)/python -m tests.e2e.all_killed --seeds 0..19 --seconds 60

# Other people's tests, unmodified, each suite in an environment of its own below build/foreign; CI runs a share of them.
foreign: setup
	$(BIN)/python -m tests.foreign

prove: spin explore sim mutants fuzz cover compiled

# The site, into build/site; the tests build it too, and look at it.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: setup
	$(BIN)/python -m benchmarks

# What hdphrs is compared with, each system in an environment of its own.
bench-peers: setup
	$(BIN)/python -m benchmarks peers --install

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
