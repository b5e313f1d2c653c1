# Every target makes .venv by itself and may be run twice.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
STAMP := $(VENV)/.installed
DEMO_HOME := .demo

.PHONY: demo test test-all lint bench clean
.DEFAULT_GOAL := test

# uv where it is installed, otherwise venv and pip.
$(STAMP): pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
	    uv venv --quiet --allow-existing --python "$(PYTHON)" $(VENV) && \
	    uv pip install --quiet --python $(BIN)/python -e . --group dev; \
	else \
	    test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV); \
	    $(BIN)/python -m pip install --quiet --upgrade "pip>=25.1" && \
	    $(BIN)/python -m pip install --quiet -e . --group dev; \
	fi
	@touch $@

demo: $(STAMP)
	@RAGVAULT_HOME=$(DEMO_HOME) $(BIN)/ragvault index sample_vault
	@RAGVAULT_HOME=$(DEMO_HOME) $(BIN)/ragvault status --vault sample_vault

test: $(STAMP)
	$(BIN)/python -m pytest

test-all: $(STAMP)
	$(BIN)/python -m pytest -m ""

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(DEMO_HOME)
