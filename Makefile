# SPDX-License-Identifier: MIT OR Apache-2.0
# Short names for commands of `cargo xtask` and `warmswitch`.

WARMSWITCH = cargo run --quiet --release --package warmswitch --
CORES_TOO = $(if $(CORES),$(if $(filter all,$(CORES)),--cores,$(error CORES=$(CORES): only CORES=all is known)))

.PHONY: help compare full check test setup bench tidy

help:
	@echo 'make compare   measure, print the tables and write out/report/index.html'
	@echo '               (CORES=all also measures a switch on every core; otherwise, recorded figures are shown)'
	@echo 'make full      do the same, with two of the experiments in their full form'
	@echo 'make check     run after each change: checks format, lints, unit tests and house rules'
	@echo 'make test      run every test (installs QEMU and gdb if they are missing)'
	@echo 'make tidy      check only the house rules'
	@echo 'make bench     compare the speed of the simulator with that of QEMU'
	@echo 'make setup     install the missing Debian packages'

setup:
	@scripts/setup

compare: setup
	@$(WARMSWITCH) compare --quick --explain $(CORES_TOO)

full: setup
	@$(WARMSWITCH) compare --explain

check:
	@cargo xtask check

test:
	@scripts/setup test
	@cargo xtask ci

tidy:
	@cargo test --quiet --package xtask

bench:
	@scripts/setup test
	@cargo xtask bench
