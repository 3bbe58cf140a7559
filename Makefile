# Each target sets up what it needs in one shared .venv; a machine with Python 3.11+ is enough.
PYTHON ?= python3
BIN := .venv/bin
RUN := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 SCIPY_ARRAY_API=1

.PHONY: demo test lint format bench clean

demo: .venv/.demo
	$(BIN)/python examples/demo.py

# A test that hangs ends its process, shows where every thread stood, and is tried once more; no failure is.
test: .venv/.test
	$(RUN) $(BIN)/python -m pytest -n 2 --dist worksteal --reruns 1 --only-rerun 'no failure, a dead process alone'

lint: .venv/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.demo
	$(RUN) $(BIN)/python benchmarks/fit_bound.py
	$(RUN) $(BIN)/python benchmarks/fit_memory.py

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "edrvfl needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/.%: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
