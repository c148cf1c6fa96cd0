# Every target sets up what it needs by itself: a fresh clone needs only Python, Node.js with npm, git and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CACHE := .cache

# The stamp carries its lock's hash: a changed lock means another stamp, so the next make installs again.
VENV_STAMP := $(VENV)/.installed-$(shell git hash-object requirements-dev.lock 2>/dev/null)
WITH_OPENCODE = OFFLOAD_OPENCODE="$$(sh tests/opencode/install)" && export OFFLOAD_OPENCODE &&
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header

.PHONY: help
help: ## show the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' Makefile | expand -t 20

.PHONY: prerequisites
prerequisites:
	@PYTHON="$(PYTHON)" sh .ci/prerequisites

$(VENV_STAMP): | prerequisites
	"$(PYTHON)" -m venv $(VENV)
	$(PIP) --only-binary :all: --require-hashes -r requirements-dev.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

.PHONY: setup
setup: prerequisites $(VENV_STAMP) ## make .venv with the locked packages, and install the pinned OpenCode into .cache
	@sh tests/opencode/install >/dev/null

.PHONY: demo
demo: setup ## five delegated tasks on a sample project, by a real OpenCode; DEMO_ARGS="--path DIR --model PROVIDER/MODEL"
	@$(WITH_OPENCODE) $(BIN)/offload demo --yes $(DEMO_ARGS)

.PHONY: test
test: setup ## everything, in lanes with a budget each; LANES="unit e2e" for some of them
	@sh tests/clients/install
	@$(WITH_OPENCODE) $(BIN)/python tests/lanes.py $(LANES)

.PHONY: check
check: prerequisites $(VENV_STAMP) ## format, lint, types, room contracts, generated files, locks
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir $(CACHE)/import_linter --no-logo
	$(BIN)/python tests/contracts/locks.py
	$(BIN)/python -m offload.wire.generate --check

.PHONY: format
format: prerequisites $(VENV_STAMP) ## format and mend what can be mended by itself
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: bench
bench: setup ## the figures, one table and JSON; BENCH_ARGS for its options
	@$(WITH_OPENCODE) $(BIN)/python -m tests.bench $(BENCH_ARGS)

.PHONY: generate
generate: prerequisites $(VENV_STAMP) ## write the files that come from the operations table
	$(BIN)/python -m offload.wire.generate
	$(BIN)/python -m offload.cli.page >docs/COMMANDS.md

.PHONY: lock
lock: prerequisites $(VENV_STAMP) ## resolve the requirements again
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) --extra dev --constraint requirements.lock pyproject.toml -o requirements-dev.lock

.PHONY: clean
clean: ## remove everything that make made
	rm -rf $(VENV) $(CACHE) dist build .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
