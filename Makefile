# Each target sets up what it needs in .venv; a fresh machine needs Python 3.11+, make and a package index.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two workers: the suite is dominated by short numeric work on small arrays.
WORKERS ?= 2

.PHONY: help setup demo test lint types tests test-slow bench clean

help:
	@echo "make demo       run the main job on data the project makes itself"
	@echo "make test       lint, types and the whole test suite"
	@echo "make test-slow  the long statistical tests as well"
	@echo "make bench      speed, aggregation and coverage tables"
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

tests: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

test: lint types tests

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m slow

bench: $(STAMP)
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.aggregation
	$(BIN)/python -m benchmarks.coverage
	$(BIN)/python -m benchmarks.ranking_speed
	$(BIN)/python -m benchmarks.compare
	$(BIN)/python -m benchmarks.rates
	$(BIN)/python -m benchmarks.unbiased

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
