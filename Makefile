# Everything a person runs here. `make help` lists the targets.

PYTHON ?= python3

# A wheel that is already on this machine is not downloaded again; pip speaks only when something is wrong.
PIP_INSTALL = -m pip install -qq --disable-pip-version-check

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test properties browser lint types bench clean

# The tensors are small here: on a busy machine, more threads only wait for one another.
demo test properties browser: export OMP_NUM_THREADS = 1

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' Makefile

demo: .venv/installed  ## run demo.ipynb and print what its reports say
	@.venv/bin/python docs/run_demo.py

# Side by side, since most tests use one processor; what Colab's came to is printed behind the others.
test: .venv/installed .venv-colab/installed  ## run the tests with today's IPython, and beside it with Colab's
	failed=0; said=$$(mktemp); \
	.venv-colab/bin/python -m pytest -q -p no:cacheprovider >$$said 2>&1 & colab=$$!; \
	.venv/bin/python -m pytest -q || failed=1; \
	wait $$colab || failed=1; cat $$said; rm $$said; exit $$failed

# Each processor starts from a seed of its own, so that no two look at the same namespaces.
properties: .venv/installed  ## look at 10,000 made-up namespaces and prove that nothing changed
	seq 2 | TORCHMAGIC_EXAMPLES=5000 xargs -P 2 -I SEED env TORCHMAGIC_SEED=SEED \
	  .venv/bin/python -m pytest -q -p no:cacheprovider tests/test_look_properties.py

browser: .venv/installed  ## run the tests that drive JupyterLab in chromium
	.venv/bin/python -m pytest -q tests/browser

lint: .venv/installed  ## check style and formatting
	.venv/bin/ruff check
	.venv/bin/ruff format --check

types: .venv/installed  ## check types
	.venv/bin/mypy

# Each script says which of its promises hold; all of them run, whatever the first has to say.
bench: .venv/installed  ## measure what a report costs, and fail when a promise does not hold
	failed=0; for script in $(filter-out benchmarks/side_by_side.py,$(wildcard benchmarks/*.py)); do \
	  echo "$$script"; .venv/bin/python "$$script" || failed=1; done; exit $$failed

clean:  ## remove the environments and everything that tests and tools left
	rm -rf .venv .venv-colab build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find torchmagic tests docs benchmarks -name __pycache__ -prune -exec rm -rf {} +

# The stamps: an environment is made again only when what it is made from has changed.
.venv/installed: pyproject.toml constraints.txt
	@echo "making .venv (two or three minutes)"
	@$(PYTHON) -m venv .venv
	@.venv/bin/python $(PIP_INSTALL) -c constraints.txt -e '.[dev]'
	@touch $@

.venv-colab/installed: pyproject.toml constraints-colab.txt
	@echo "making .venv-colab (a minute or two)"
	@$(PYTHON) -m venv .venv-colab
	@.venv-colab/bin/python $(PIP_INSTALL) -c constraints-colab.txt -e '.[test]'
	@touch $@
