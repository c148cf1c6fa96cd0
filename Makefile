# Every target sets up what it needs by itself: a fresh clone needs only Python, Node.js with npm, git and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CACHE := .cache

# Each stamp carries the hash of the lock that it was made from: another lock means another stamp, so a changed lock installs again.
lock_hash = $(shell cat $(1) | git hash-object --stdin)
VENV_STAMP := $(VENV)/.installed-$(call lock_hash,requirements-dev.lock)

.PHONY: setup
setup: prerequisites $(VENV_STAMP)

.PHONY: prerequisites
prerequisites:
	@PYTHON="$(PYTHON)" sh .ci/prerequisites

$(VENV_STAMP): | prerequisites
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install -qq --disable-pip-version-check --only-binary :all: --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.PHONY: lock
lock: setup
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --extra dev --constraint requirements.lock pyproject.toml -o requirements-dev.lock
