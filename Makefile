# Everything from a machine that has only Python (3.11 or newer), pip and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench clean

demo: $(VENV)/.sim
	$(BIN)/amble compare --data diabetes --out demo
	@echo "The figure is demo/compare.png; the runs are beside it."

test: $(VENV)/.dev
	$(BIN)/pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/speed.py

$(VENV)/.sim: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[sim]'
	@touch $@

$(VENV)/.dev: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.sim

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
