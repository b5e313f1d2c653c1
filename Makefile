# Every target makes .venv by itself and may be run twice.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
STAMP := $(VENV)/.installed
DEMO_HOME := .demo

.PHONY: demo test test-models test-all fuzz lint bench clean
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

demo: export RAGVAULT_HOME = $(DEMO_HOME)
demo: $(STAMP)
	$(BIN)/ragvault index sample_vault
	$(BIN)/ragvault status --vault sample_vault
	$(BIN)/ragvault search "why does the oven need steam?" --vault sample_vault -n 2
	$(BIN)/ragvault search "rye tag:recipe" --vault sample_vault --format paths -n 3
	$(BIN)/ragvault watch --stop

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal

# With the real weights, fetched once; without a way to get them the tests say so and are skipped.
test-models: $(STAMP)
	$(BIN)/python -m pytest -m model

test-all: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "" --hypothesis-profile=thorough

# 20,000 inputs for each target: minutes. `make test-all` has 100 for each.
fuzz: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow tests/fuzz --hypothesis-profile=fuzz --timeout=3600

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(DEMO_HOME)
