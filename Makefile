# Each target sets up what it needs in one shared .venv; a machine with Python 3.11+ is enough.
PYTHON ?= python3
BIN := .venv/bin
RUN := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 SCIPY_ARRAY_API=1

.PHONY: demo test test-oldest lint format bench docs docs-quick linkcheck dist dist-quick clean

demo: .venv/.demo
	@echo 'Six models on five tables, one thread. It takes half a minute or more ...'
	$(BIN)/python examples/demo.py

# Three processes on two cores: many tests wait for processes of their own.
# A test that hangs ends its process, shows where every thread stood, and is tried once more; no failure is.
test: .venv/.test
	$(RUN) $(BIN)/python -m pytest -n 3 --dist worksteal --reruns 1 --only-rerun 'no failure, a dead process alone'

# The core of the tests on the lowest versions that pyproject.toml allows, in an environment of its own. What these
# need is newer, and may call them out of date: no error here.
test-oldest: .venv-oldest/.installed
	PYTHON=.venv-oldest/bin/python .ci/core -W default::DeprecationWarning

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

SPHINX = $(RUN) $(BIN)/python -m sphinx -q -W --keep-going -b html

# The site, in docs/_build/html. The examples run; those that did not change since the last time do not.
docs: .venv/.docs
	@echo 'Building the site, and running the examples that changed: some minutes the first time ...'
	$(RUN) $(BIN)/python docs/make_browser.py
	$(SPHINX) docs docs/_build/html
	$(BIN)/python docs/check_site.py

# The same without running the examples: their pages have the code, but no pictures.
docs-quick: .venv/.docs
	@echo 'Building the site without running its examples: half a minute ...'
	$(SPHINX) -D plot_gallery=0 docs docs/_build/quick
	$(BIN)/python docs/check_site.py docs/_build/quick

# Links between the pages of the site that was built, their anchors, and nothing from other hosts; no network.
linkcheck: .venv/.docs
	$(BIN)/python docs/check_site.py

build_dist = rm -rf dist build && $(BIN)/python -m build --outdir dist && $(BIN)/python -m twine check --strict dist/*

# Wheel and sdist, checked, and the wheel alone installed into an empty environment that runs the README's first block.
dist: .venv/.dist
	$(build_dist)
	$(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	build/empty/bin/python docs/run_first_block.py README.md

# The same, but what the wheel needs comes from .venv: half a minute less. What it does not need must not be asked for.
dist-quick: .venv/.dist .venv/.demo
	$(build_dist)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/wheel dist/*.whl
	PYTHONPATH=$(CURDIR)/build/wheel $(BIN)/python docs/run_first_block.py README.md pandas polars pyarrow matplotlib

# Dependency groups need pip 25.1 or newer; Python brings an older one.
.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "edrvfl needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'

.venv/.demo: pyproject.toml | .venv/bin/python
	@echo "Installing edrvfl with the extra 'demo' into .venv: half a minute or more ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	touch $@

.venv/.%: pyproject.toml | .venv/bin/python
	@echo "Installing edrvfl and the dependency group '$*' into .venv: half a minute or more ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group $* --editable .
	touch $@

# pip takes the newest versions; uv can take the lowest.
.venv-oldest/.installed: pyproject.toml
	rm -rf .venv-oldest
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-oldest/bin/uv pip install --python .venv-oldest --resolution lowest-direct --group core --editable '.[arrow,demo]'
	touch $@

clean:
	rm -rf .venv .venv-oldest build dist docs/_build docs/gallery docs/generated .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
