# One command sets everything up: `make train` for players, `make test` for developers.
# Without make (Windows): CONTRIBUTING.md gives the plain commands.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_DOCS := $(VENV)/.installed-docs

.DEFAULT_GOAL := help
.PHONY: help train test lint types kernels plain checked format tests cover bench soak strength docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

RUN := runs/quickstart

train: $(INSTALLED)  ## set up, train the quick-start recipe on the CPU, report its strength
	$(BIN)/keisei doctor
	@if [ -f $(RUN)/config.json ]; then $(BIN)/keisei train --resume $(RUN); \
	else $(BIN)/keisei train --config quickstart --name quickstart; fi
	@echo "before that: source $(BIN)/activate"

test: lint  ## lint, types, and the tests in three passes
	$(MAKE) --jobs 2 types plain checked  # a core each
	$(MAKE) tests

lint: $(INSTALLED_DEV)  ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED_DEV)  ## mypy, strict
	$(BIN)/mypy

format: $(INSTALLED_DEV)  ## let ruff fix and format what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The tests of the kernels run a second time as plain Python, and a third time compiled with bounds
# checks. Each test process has one torch thread: more would compete for the cores.
KERNELS := -m "kernels and not soak and not strength" tests/shogi tests/search tests/network/sparse
PYTEST = $(BIN)/pytest -n $(JOBS) --dist worksteal

tests cover: export OMP_NUM_THREADS := 1
# Where a test asks for more torch threads, they sleep while they wait for each other: with fewer free
# cores than threads, as beside other tests, spinning makes them a hundred times slower.
tests cover soak: export OMP_WAIT_POLICY := PASSIVE
# Hundreds of processes start: write bytecode, whatever the shell's environment says.
plain checked tests cover soak strength: export PYTHONDONTWRITEBYTECODE :=

# Compile once, before the parallel test processes would all do it at the same time.
kernels: plain checked  ## compile all kernels, without and with bounds checks

plain: $(INSTALLED_DEV)
	$(BIN)/keisei doctor

checked: $(INSTALLED_DEV)
	NUMBA_BOUNDSCHECK=1 $(BIN)/keisei doctor

tests: kernels  ## the tests in three passes
	$(PYTEST)
	NUMBA_DISABLE_JIT=1 $(PYTEST) $(KERNELS)
	NUMBA_BOUNDSCHECK=1 $(PYTEST) $(KERNELS)

# Separate from the tests because it takes nearly twice as long. Coverage cannot see inside compiled
# kernels, so their tests run as plain Python too.
cover: kernels  ## share of the lines that the tests reach, at least 90 %; draws the README's badge
	rm -f .coverage .coverage.*
	COVERAGE_FILE=.coverage.compiled $(PYTEST) --cov --cov-report= --cov-fail-under=0
	NUMBA_DISABLE_JIT=1 COVERAGE_FILE=.coverage.interpreted \
		$(PYTEST) $(KERNELS) --cov --cov-report= --cov-fail-under=0
	$(BIN)/coverage combine .coverage.compiled .coverage.interpreted
	$(BIN)/coverage report
	$(BIN)/coverage report --format=total | $(BIN)/python scripts/coverage_badge.py docs/images/coverage.svg

bench: $(INSTALLED_DEV)  ## speed of the game core and of training, side by side with others
	$(BIN)/keisei benchmark env
	$(BIN)/keisei benchmark train

# What the tests found goes into soak.jsonl, also of those before one that failed. First the four of
# twenty minutes, side by side; what is measured against the clock comes last, with nothing beside it
# but its own busy processes. In a process that had a Ray cluster before, another one loses workers.
SOAK := soak.jsonl
OF_TWENTY_MINUTES := tests/soak/test_servers.py tests/training/test_soak.py
ALONE := tests/web/play/test_many_pages.py tests/soak/test_sudden_death.py \
	tests/selfplay/workers/test_ray_pool.py
LATER := $(addprefix --ignore=,$(OF_TWENTY_MINUTES) $(ALONE))
# A test that hangs is ended, with the stacks of its threads, and the others go on.
UNATTENDED := -m soak -o faulthandler_timeout=7200 -o faulthandler_exit_on_timeout=true

soak: export KEISEI_SOAK_SUMMARY := $(abspath $(SOAK))
soak: export OMP_NUM_THREADS := 1
soak: kernels  ## long tests: other Shogi libraries, kills, damage, clusters, 20 minutes of use
	rm -f $(SOAK)
	@status=0; $(BIN)/pytest -n 4 --dist worksteal $(UNATTENDED) $(OF_TWENTY_MINUTES) || status=1; \
	$(PYTEST) $(UNATTENDED) $(LATER) tests || status=1; \
	$(BIN)/pytest $(UNATTENDED) $(ALONE) || status=1; \
	$(BIN)/python -m tests.soak.summary $(SOAK); exit $$status

strength: kernels  ## train the quick-start recipe and check the promised scores
	$(BIN)/pytest -m strength -s

docs: $(INSTALLED_DOCS)  ## build the manual into docs/_build
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build

clean:  ## remove everything that make created
	rm -rf $(VENV) docs/_build dist .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find keisei tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp per set of extras: installing happens again only when pyproject.toml changes. Players need
# no torch; pip leaves it alone where a developer's installation has brought it.
$(INSTALLED): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(INSTALLED_DEV): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[dev]"
	touch $@ $(INSTALLED)

$(INSTALLED_DOCS): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@ $(INSTALLED)
