# Everything from a machine that has only Python (3.11 or newer), pip and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# the versions that amble was tested with
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo test test-version coverage lint docs links constraints bench bench-peers figures paper clean

demo: $(VENV)/.demo
	@$(BIN)/python examples/demo.py

# three processes for two cores, as live tests wait a good deal; the tests of a file stay together, with what they share
SPREAD := -n 3 --dist loadfile --no-loadscope-reorder

test: $(VENV)/.dev
	$(BIN)/pytest $(SPREAD) $(ARGS)

# what depends on the version of Python: imports, types, processes, threads, signals, files, SQLite, both engines; arithmetic does not
VERSION := imports face files config cli engines estimator_checks protocol wire journal transport_contract nodes surveyed_runs up
test-version: $(VENV)/.dev
	$(BIN)/pytest $(SPREAD) -m "not long" $(VERSION:%=tests/test_%.py) $(ARGS)

# the tests, and then the lines of src that none of them ran, in the processes that they start too. Python 3.12 and newer
# report lines to coverage at far less cost than a trace function
coverage: CORE = $(shell $(BIN)/python -c "import sys; print('sysmon' if sys.version_info >= (3, 12) else 'ctrace')")
coverage: $(VENV)/.dev
	rm -rf .coverage && mkdir .coverage
	COVERAGE_CORE=$(CORE) $(BIN)/python -m coverage run -m pytest $(SPREAD) $(ARGS)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

lint: $(VENV)/.dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

# the site, demo/docs/index.html, without the internet: misspelt words and warnings, such as a link that leads nowhere, are
# errors. ARGS="-D plot_gallery=0" leaves out the pictures of the gallery
docs: $(VENV)/.dev
	$(BIN)/python -m codespell_lib
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs demo/docs $(ARGS)
	@echo "open demo/docs/index.html"

# whether the links to other sites still lead somewhere; without the internet it says which were not tried
links: $(VENV)/.dev
	$(BIN)/python docs/links.py

# newer versions of everything, for every version of Python; run the tests afterwards
constraints: $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --all-extras --no-annotate --quiet \
	  --custom-compile-command "make constraints" --output-file constraints.txt pyproject.toml

# ratios of the simulator, the estimators and the live parts to bare references, in ten minutes on two quiet cores: they go to
# docs/benchmarks.json and docs/benchmarks.md. ARGS="speed journal" runs these alone, ARGS=--release keeps the figures of a release
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/all.py $(ARGS)

# the same rounds in decent-bench, GossiPy and DISROPT, which are installed into .venv-peers
bench-peers: $(VENV)/.dev
	$(BIN)/python benchmarks/all.py peers

# the paper's figures 3 to 6 and its claims (docs/reproduce.md says how long it takes); the page is demo/paper/report.html.
# The tables of README.md and docs/reproduce.md are rewritten from docs/paper.json
paper: $(VENV)/.demo
	$(BIN)/amble reproduce --out demo/paper
	cp demo/paper/figure-4-cadata.png docs/paper.png
	cp demo/paper/paper.json docs/paper.json
	$(BIN)/python docs/tables.py

# the pictures of README.md and of the pages, the animation too; the last one needs chromium
figures: $(VENV)/.demo
	$(BIN)/amble compare -m all --tune --hops 4000 --again --out demo/methods && cp demo/methods/compare.png docs/methods.png
	$(BIN)/amble compare examples/token-rules.toml --again --out demo/rules && cp demo/rules/compare.png docs/token-rules.png
	$(BIN)/amble sweep -m API-BCD:token_rule=tracked --grid tau=0.001,0.01,0.1,1,10 --grid tokens=1,2,5 --seeds 4 --hops 1000 --rank hops_within_0.01 --out demo/sweep && cp demo/sweep/sweep.png docs/sweep.png
	$(BIN)/python docs/drawings.py
	$(BIN)/python docs/screenshot.py

# all that amble compare and amble up need
$(VENV)/.demo: pyproject.toml constraints.txt
	@echo "making the virtual environment $(VENV) and installing; this takes a minute or two"
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) '.[sim,live,page]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	@echo "making the virtual environment $(VENV) and installing; this takes a minute or two"
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) '.[dev]'
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) .venv-peers demo docs/made .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
