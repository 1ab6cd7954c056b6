# Everything starts here; each target does its own set-up. What the steps are: setup/steps.py.
PYTHON ?= python3
STEPS := $(PYTHON) setup/steps.py

.DEFAULT_GOAL := help
.PHONY: help setup demo test check fix bench size clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing: Redis, Chromium, the Rust toolchain, npm and Python packages
	@$(STEPS) setup

demo: ## payments on a real chain: of one process, or of one in each language on the same accounts (STORE=redis)
	@$(STEPS) demo

test: ## everything that has to be right, the slow parts included; ends with "N passed, 0 failed"
	@$(STEPS) test

check: ## formatting and lints; writes nothing
	@$(STEPS) check

fix: ## put formatting and lints right where a tool can
	@$(STEPS) fix

bench: ## leasehold beside its peers
	@$(STEPS) bench

size: ## the wasm package against its budget
	@$(STEPS) size

clean: ## remove all that was built or installed here
	@$(STEPS) clean
