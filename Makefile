# On a machine with only Python 3.11 (pip, venv) and make: `make run` and `make test` do everything.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test check format prove screenshots bench help
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# A stamp a group, made again only when what it was made from has changed: a second `make run` installs nothing.
$(VENV)/.run: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "durtui needs Python 3.11 or later; this is " + sys.version.split()[0] + " (say which: make PYTHON=python3.12 run)")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . >&2
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.run
	@echo "setting up the tools of development ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' >&2
	@touch $@

run: $(VENV)/.run ## set up and open the app (without a terminal: print the table)
	@$(BIN)/durtui

test: $(VENV)/.dev ## set up and run the tests
	@$(BIN)/pytest -n 2

check: $(VENV)/.dev ## format, lint, types, layering and tests, as CI runs them
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy core tui tests
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2

format: $(VENV)/.dev ## put the code into the house's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

prove: $(VENV)/.dev ## the slow proofs
	$(BIN)/pytest -n 2 -m slow

screenshots: $(VENV)/.dev ## take the pictures of the app's states anew
	@$(BIN)/python tests/tui/pictures.py screenshots

bench: $(VENV)/.dev ## measure what docs/performance.md states
	$(BIN)/python tests/bench/lab.py
	$(BIN)/python tests/bench/keys.py
	$(BIN)/python tests/bench/app.py
