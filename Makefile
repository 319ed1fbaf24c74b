# Each target sets up what it needs in .venv; a fresh machine needs Python 3.11+, make and a package index.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two workers with one thread each: the suite is dominated by short numeric work on small arrays.
WORKERS ?= 2
MARKERS ?= not slow

.PHONY: help setup demo test lint types browser tests test-slow bench docs figures clean

help:
	@echo "make demo       run the main job on data the project makes itself"
	@echo "make test       lint, types and the whole test suite"
	@echo "make test-slow  the long statistical tests as well"
	@echo "make bench      speed, aggregation and coverage tables"
	@echo "make docs       the documentation site, in site/"
	@echo "make figures    measure all figures anew and write them into docs/figures.md (hours; resumable)"
	@echo "make clean      remove the environment and the caches"

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/trueup demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# The browser of the report's tests: installed where that asks nobody anything, else those tests are skipped.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  command -v apt-get >/dev/null || exit 0; \
	  if [ "$$(id -u)" = 0 ]; then as=""; elif sudo -n true 2>/dev/null; then as="sudo -n"; else exit 0; fi; \
	  export DEBIAN_FRONTEND=noninteractive; install="apt-get install -yqq --no-install-recommends chromium"; \
	  timeout 90 $$as sh -c "$$install || { apt-get update -qq && $$install; }" >/dev/null 2>&1; \
	} || true

tests: $(STAMP) browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "$(MARKERS)"

test: lint types tests

test-slow: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m slow

bench: $(STAMP)
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.aggregation
	$(BIN)/python -m benchmarks.coverage
	$(BIN)/python -m benchmarks.ranking_speed
	$(BIN)/python -m benchmarks.compare
	$(BIN)/python -m benchmarks.rates
	$(BIN)/python -m benchmarks.unbiased
	$(BIN)/python -m benchmarks.vetting
	$(BIN)/python -m benchmarks.command_line
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.cleaning
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.training

# The variable silences an advertisement; warnings of the build are errors.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

figures: $(STAMP)
	$(BIN)/python -m benchmarks.figures

clean:
	rm -rf site $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
