# demo · test · test-fast · check · docs · package · bench: what README and CI call.  Everything happens in .venv, made here
# if need be.  The demo installs what it needs; the first of the others installs the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.installed-demo
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# On Linux the package index's torch brings gigabytes of GPU packages; PyTorch's own index has a build without them.
# TORCH_INDEX= (empty) takes torch from where everything else comes from.
ifeq ($(shell uname -s),Linux)
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
endif
export OMP_WAIT_POLICY ?= passive
# Packages are compiled when they are first used (--no-compile), so that must be kept, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE
# Tests on real data read this; without it they are skipped and say so.
ifneq ($(wildcard ../shared/data),)
export DPAA_REAL_DATA ?= $(abspath ../shared/data)
endif

# Two processes; the tests of a file stay together, so that what they share is made once.
TWO := -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-fast check docs package bench install clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
ifneq ($(TORCH_INDEX),)
	$(PIP) --no-deps --retries 0 --index-url $(TORCH_INDEX) torch 2>/dev/null \
	|| echo "$(TORCH_INDEX) cannot be reached: torch comes from the usual index"
endif

$(DEMO): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[report]'
	touch $(DEMO)

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[dev,docs,report,references,tune,serve,index,pandas,sql]'
	touch $(DEMO) $(STAMP)

install: $(STAMP)

demo: $(DEMO)
	$(BIN)/dpaa demo --out dpaa-demo --overwrite

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test test-fast: export OMP_NUM_THREADS := 1  # two test processes share two cores; teams of threads wait for each other

test: check
	$(BIN)/pytest $(TWO) --cov --cov-report=term:skip-covered

test-fast: check
	$(BIN)/pytest $(TWO) -m "not slow"

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

package: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*

bench: $(STAMP)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) dist build site dpaa-demo
