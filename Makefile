# Everything from a machine that has only Python (3.11 or newer), pip and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench figures paper clean

demo: $(VENV)/.demo
	@$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	$(BIN)/pytest -n 2 $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/speed.py

# the paper's figures 3 to 6 and its claims (docs/reproduce.md says how long it takes); the page is demo/paper/report.html.
# The tables of README.md and docs/reproduce.md are rewritten from docs/paper.json
paper: $(VENV)/.demo
	$(BIN)/amble reproduce --out demo/paper
	cp demo/paper/figure-4-cadata.png docs/paper.png
	cp demo/paper/paper.json docs/paper.json
	$(BIN)/python docs/tables.py

# the pictures of docs/methods.md
figures: $(VENV)/.demo
	$(BIN)/amble compare -m all --tune --hops 4000 --again --out demo/methods && cp demo/methods/compare.png docs/methods.png
	$(BIN)/amble compare examples/token-rules.toml --again --out demo/rules && cp demo/rules/compare.png docs/token-rules.png

# all that amble compare and amble up need
$(VENV)/.demo: pyproject.toml
	@echo "making the virtual environment $(VENV) and installing; this takes a minute or two"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[sim,live]'
	@touch $@

$(VENV)/.dev: pyproject.toml
	@echo "making the virtual environment $(VENV) and installing; this takes a minute or two"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
