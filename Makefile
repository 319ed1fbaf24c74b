# Each target sets up what it needs; a fresh machine needs Python 3.11+, make and a package index.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What a user has who installs no extra; in versions that the tests know.
DEMO := .venv-demo
LOCK := requirements/development.txt
TORCH := requirements/torch.txt
# The programs in which evaluations run, of which each brings many packages.
RUNNERS := .venv-integrations
RUNNERS_LOCK := requirements/integrations.txt
# promptfoo is a program of node: the last version for node 20, and left out where there is none of 20.20 or later.
PROMPTFOO := promptfoo@0.120.27
NEW_ENOUGH := const [a, b] = process.versions.node.split('.'); process.exit(100 * a + Number(b) < 2020 ? 1 : 0)
NPM := $(shell node -e "$(NEW_ENOUGH)" 2>/dev/null && command -v npm)
comma := ,
# What is not imported need not be compiled.
INSTALL := -m pip install --disable-pip-version-check --no-compile
# One thread each: the suite is dominated by short numeric work on small arrays. One worker more than there are cores,
# since tests of programs and servers wait for a third of their time; few, since each takes up to a gigabyte.
WORKERS ?= $(shell $(PYTHON) -c "import os; print(min((os.cpu_count() or 1) + 1, 4))")
MARKERS ?= not (slow or workshop)
# What is compiled is kept, also where the variable says otherwise: the tests start hundreds of processes, and each would
# compile all that it imports, which takes longer than the rest of it.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test compiled-tests lint types kernels system tests test-slow test-workshop test-integrations bench docs figures lock clean

help:
	@echo "make demo       run the main job on data the project makes itself"
	@echo "make test       lint, types and the tests of the library"
	@echo "make test-slow  the long statistical tests as well"
	@echo "make test-workshop  the tests of wheels, documentation site, locked versions, release and figures"
	@echo "make test-integrations  the tests of Inspect, MLflow, MCP and promptfoo with these programs"
	@echo "make bench      speed and coverage tables"
	@echo "make docs       the documentation site, in site/"
	@echo "make figures    measure all figures anew and make docs/figures/ from them (hours; resumable)"
	@echo "make lock       renew the versions that the tests install"
	@echo "make clean      remove the environments and the caches"

demo: $(DEMO)/.installed
	$(DEMO)/bin/trueup demo

$(DEMO)/.installed: pyproject.toml $(LOCK)
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python $(INSTALL) --constraint $(LOCK) --editable .
	touch $@

setup: $(STAMP)

$(STAMP): pyproject.toml $(LOCK) $(TORCH)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) --quiet --requirement $(LOCK) --requirement $(TORCH)
	$(BIN)/python $(INSTALL) --quiet --no-build-isolation --no-deps --editable .
	touch $@

# One file for every platform and Python. Not torch, nor what only its builds for GPUs need: the machine decides on the
# build, the file of its own on the version.
lock:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python $(INSTALL) --quiet uv
	.venv-lock/bin/uv pip compile --quiet --universal --upgrade --python-version 3.11 --extra dev \
	  --no-header --no-annotate pyproject.toml $(TORCH) | grep -vE "^(torch|triton|nvidia-|cuda-)" > $(LOCK).new
	mv $(LOCK).new $(LOCK)
	.venv-lock/bin/uv pip compile --quiet --universal --upgrade --python-version 3.11 --group integrations \
	  --extra inspect-ai --extra mlflow --extra mcp --no-header --no-annotate pyproject.toml > $(RUNNERS_LOCK).new
	mv $(RUNNERS_LOCK).new $(RUNNERS_LOCK)
	rm -rf .venv-lock

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# What some tests need of the system, as package=program,program; later lines may be added.
system:
	@sh requirements/system.sh chromium=chromium,google-chrome,google-chrome-stable,chromium-browser \
	  "postgresql=initdb,/usr/lib/postgresql/*/bin/initdb"

tests: $(STAMP) system
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations 25 -m "$(MARKERS)"

# Types take a core for a minute, which is longer than the kernels take: the tests begin beside them. What is compiled
# before the tests need not be compiled by every worker.
test: lint
	$(MAKE) --jobs=2 types compiled-tests

compiled-tests: kernels
	$(MAKE) tests

kernels: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python tests/compile_kernels.py

test-slow: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m slow

test-workshop:
	$(MAKE) tests MARKERS="workshop and not slow"

$(RUNNERS)/.installed: pyproject.toml $(RUNNERS_LOCK)
	$(PYTHON) -m venv $(RUNNERS)
	$(RUNNERS)/bin/python $(INSTALL) --quiet --requirement $(RUNNERS_LOCK)
	$(RUNNERS)/bin/python $(INSTALL) --quiet --no-deps --editable .
	touch $@

$(RUNNERS)/.promptfoo: $(RUNNERS)/.installed Makefile
	$(if $(NPM),npm install --prefix $(RUNNERS) --omit=optional --no-audit --no-fund --no-package-lock \
	  --loglevel=error $(PROMPTFOO))
	touch $@

test-integrations: $(RUNNERS)/.installed $(RUNNERS)/.promptfoo
	TRUEUP_REQUIRE=integrations$(if $(NPM),$(comma)node) OMP_NUM_THREADS=1 $(RUNNERS)/bin/python -m pytest \
	  -m "integrations or node" --override-ini "filterwarnings=error::trueup.exceptions.TrueupWarning" tests/integrations

bench: $(STAMP)
	$(BIN)/python -m benchmarks.core
	$(BIN)/python -m benchmarks.coverage
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
	rm -rf site $(VENV) $(DEMO) $(RUNNERS) .mypy_cache .pytest_cache .ruff_cache .hypothesis
