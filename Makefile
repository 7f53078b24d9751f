# demo · test · test-fast · check · bench: what README and CI call.  Everything happens in .venv, made here if need be.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export OMP_WAIT_POLICY ?= passive
# Tests on real data read this; without it they are skipped and say so.
ifneq ($(wildcard ../shared/data),)
export DPAA_REAL_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-fast check bench install clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,report,references,tune,serve,index,onnx,pandas]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hnswlib \
	  || echo 'hnswlib could not be built (it needs a C++ compiler): its tests will be skipped'
	touch $(STAMP)

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/dpaa demo --out dpaa-demo --overwrite

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: check
	$(BIN)/pytest -n 2 --cov --cov-report=term:skip-covered

test-fast: check
	$(BIN)/pytest -n 2 -m "not slow"

bench: $(STAMP)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) dist build dpaa-demo
