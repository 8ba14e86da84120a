# `make help` lists the targets. Everything runs in .venv: requirements.lock is what running needs, and
# requirements-test.lock what testing, linting and measuring need on top of it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
# The newest Python that fits and can make an environment; `make PYTHON=/path/to/python3` names another.
FITS := import sys, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(firstword $(foreach name,python3.13 python3.12 python3.11 python3,$(shell $(name) -c '$(FITS)' 2> /dev/null && echo $(name))))
# pip keeps what it fetches and builds below HOME, and fails if it cannot write there.
PIP = python -m pip --disable-pip-version-check --quiet $(shell mkdir -p ~/.cache/pip 2> /dev/null && test -w ~/.cache/pip || echo --no-cache-dir)
INSTALLED := .venv/.installed
TESTING := .venv/.testing
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help env testing repro headline scale evidence paper scoreboard verify pull test portable fresh lint format bench audit lock clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20

env: $(INSTALLED)  ## make .venv with the locked dependencies

$(INSTALLED): requirements.lock pyproject.toml
	@"$(PYTHON)" -c '$(FITS)' 2> /dev/null || { \
	  echo "brittle needs Python 3.11, 3.12 or 3.13 with venv (Debian: python3-venv); name one with: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 2; }
	@echo "installing into .venv with $$("$(PYTHON)" --version) ($$(command -v "$(PYTHON)"))"
	"$(PYTHON)" -m venv --clear .venv
	$(PIP) install --requirement requirements.lock
	$(PIP) install --no-deps --editable .
	@# matplotlib looks for fonts once, not in the middle of a run.
	@python -c 'import brittle, matplotlib.font_manager'
	@touch $@

testing: $(TESTING)  ## add what testing, linting and measuring need (requirements-test.lock)

$(TESTING): $(INSTALLED) requirements-test.lock
	$(PIP) install --requirement requirements-test.lock
	@touch $@

repro: env  ## run whatever is out of date, on every core (or WORKERS), and say what to look at
	@code=0; python -m brittle.scale $(if $(WORKERS),--workers $(WORKERS)) $(ARGS) || code=$$?; \
	if [ $$code -gt 1 ]; then echo "the run has not ended; make repro resumes it" >&2; exit $$code; fi; \
	if [ $$code = 1 ]; then dvc repro --quiet --single-item claims report; python -m brittle.tools.missing; fi
	@# (A stage that cannot run, say because no source has the pictures, stops what depends on it; claims are judged all the same.)
	@python -m brittle.claims --count
	@echo
	@echo "Open  plots/report.html    every claim, every figure, the leaderboard of remedies: one page, no network needed"
	@echo "Or    source .venv/bin/activate && python -m brittle.claims     every claim with its verdict; with M6, that one in full"
	@echo "Then  source .venv/bin/activate && dvc exp run -S d=500 && dvc metrics diff"

headline: env  ## run the headline experiment alone: plots/margin_flipped.png, within a minute
	@python -m brittle.scale margin_figures

scale: testing  ## what repro does, on a cluster: ARGS="--scheduler ADDRESS" or ARGS="--jobqueue slurm --workers 64"
	@python -m brittle.scale $(if $(WORKERS),--workers $(WORKERS)) $(ARGS)

evidence: env  ## make what is missing of the long runs behind the claims, for HOURS (and of one CHAPTER alone): evidence/
	@python -m brittle.evidence $(if $(HOURS),--hours $(HOURS)) $(if $(CHAPTER),--chapter $(CHAPTER)) $(ARGS)

paper: env  ## the same at the paper's scale (presets/paper.yaml), as the experiment `paper`; the workspace stays as it is
	changes=$$(python -m brittle.params presets/paper.yaml); \
	BRITTLE_CHECKPOINTS="$(CURDIR)/.checkpoints" dvc exp run --temp --name paper --force $$changes
	@echo "Compare:  dvc exp show     Bring it here:  dvc exp apply paper"

scoreboard: env  ## write the counts into README.md and the claims into docs/claims.md
	python -m brittle.claims --write

verify: env  ## hash data, models and the DVC cache again, and name what is not as dvc.lock says
	@python -m brittle.tools.verify

pull: env  ## fetch data and models from the storage, check every list and hash, and only then use them (ARGS=--run-cache)
	@python -m brittle.tools.pull $(ARGS)

test: testing  ## all tests; each has a time limit (pyproject.toml), and so has the run
	$(if $(shell command -v timeout),timeout --kill-after=60 5000) pytest

portable: testing  ## compute a little here and on three emulated processors (qemu-user), and compare to the last bit
	python tests/portable.py --emulate

fresh: testing  ## both commands on a bare Debian 13 and a bare Debian 12, each made in a folder (needs root and debootstrap)
	tests/fresh.sh

lint: testing  ## ruff: lint and format
	ruff check .
	ruff format --check .

format: testing  ## let ruff rewrite the sources
	ruff check --fix .
	ruff format .

bench: testing  ## how fast: every benchmark against its named baseline, in one table with the bars
	python benchmarks/run.py

audit:  ## ask PyPI for known vulnerabilities of the locked dependencies (needs the web; a package it cannot ask about fails)
	folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; "$(PYTHON)" -m venv "$$folder"; "$$folder/bin/pip" install --quiet pip-audit; \
	"$$folder/bin/pip-audit" --strict --no-deps --disable-pip --requirement requirements.lock --requirement requirements-test.lock

lock: ## resolve the dependencies anew into requirements.lock and requirements-test.lock (versions, not hashes: CPU and CUDA builds of torch both fit)
	rm -rf .venv.lock && "$(PYTHON)" -m venv .venv.lock
	frozen() { .venv.lock/bin/pip freeze --exclude-editable | sed -E 's/\+(cpu|cu[0-9]+)$$//' | grep -viE '^(nvidia-|cuda-|triton==)'; }; \
	.venv.lock/bin/pip install --quiet --editable .; \
	{ echo "# What running needs. Made by 'make lock' from pyproject.toml."; frozen; } > requirements.lock; \
	.venv.lock/bin/pip install --quiet --editable '.[dev]'; \
	{ echo "# What testing needs on top of requirements.lock. Made by 'make lock' from pyproject.toml."; \
	  frozen | grep -vxFf requirements.lock; } > requirements-test.lock
	rm -rf .venv.lock

clean:  ## remove the environment, checkpoints and what a kill left half-written (never data, models or the DVC cache)
	rm -rf .venv .venv.lock .venv.s3* .checkpoints
	find data models metrics plots -name '.*.tmp' -delete
