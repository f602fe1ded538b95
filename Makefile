# make demo | test | lint | format | bench | wheel | clean. Needs make and python3 only;
# the peers LIBSVM and LIBLINEAR also need a C++ compiler, and are left out without one.

PYTHON ?= python3
BENCH_ARGS ?=
MAXMARGIN_TEST_SCALE ?= 1
export MAXMARGIN_TEST_SCALE

BIN := .venv/bin
PARALLEL := -n auto --dist worksteal
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
PEER_MISSING := official could not be built: its agreement tests will be skipped
BENCH_MISSING := a library to compare with could not be installed: its rows will be missing

.PHONY: demo test test-all test-data test-nojit test-bounds lint format bench wheel clean

demo: .venv/base
	$(BIN)/python examples/demo.py

test: lint test-all test-nojit test-bounds

# One process a core; what one of them compiles, the others load.
test-all: .venv/tools
	$(BIN)/python -m pytest $(PARALLEL)

# The tests that load a data set; MAXMARGIN_DATA names the folder of real ones.
test-data: .venv/tools
	$(BIN)/python -m pytest $(PARALLEL) -m data

test-nojit: .venv/tools
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest $(PARALLEL) -m nojit

test-bounds: .venv/tools
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.numba-boundscheck \
	$(BIN)/python -m pytest $(PARALLEL) -m boundscheck

lint: .venv/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/tools
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/bench
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

# A wheel with machine code for this Python and Numba: several minutes on all cores.
# `pip wheel --no-deps .` builds one without, for any processor and Python.
wheel: .venv/base
	rm -rf build/machine_code
	$(BIN)/python tools/machine_code.py build/machine_code
	MAXMARGIN_MACHINE_CODE=$(CURDIR)/build/machine_code \
	$(PIP) wheel --no-deps --wheel-dir dist .
	@ls -l dist/*.whl

clean:
	rm -rf .venv .numba-boundscheck build dist .*_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# Each stamp below is made again when pyproject.toml changes.

.venv/base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) install --upgrade pip
	$(PIP) install -e .
	@touch $@

.venv/tools: .venv/base
	$(PIP) install -e . --group test --group lint
	@for peer in libsvm liblinear; do \
	    $(PIP) install --group $$peer >.venv/$$peer.log 2>&1 \
	    || echo "$$peer-$(PEER_MISSING)"; \
	done
	@touch $@

.venv/bench: .venv/tools
	@$(PIP) install --group bench >.venv/bench.log 2>&1 || echo "$(BENCH_MISSING)"
	@touch $@
