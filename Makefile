# SPDX-License-Identifier: MIT OR Apache-2.0
# Short names for commands of `cargo xtask` and `warmswitch`.

WARMSWITCH = cargo run --quiet --release --package warmswitch --
CORES_TOO = $(if $(CORES),$(if $(filter all,$(CORES)),--cores,$(error CORES=$(CORES): only CORES=all is known)))

.PHONY: help compare full check test setup bench tidy

help:
	@echo 'make compare   measure, print the tables, write out/report/index.html'
	@echo '               (with CORES=all a switch on every core, too, instead of the recorded figures)'
	@echo 'make full      the same, and two of its experiments in full'
	@echo 'make check     after each change: format, lints, unit tests, house rules'
	@echo 'make test      every test (installs QEMU and gdb when they are missing)'
	@echo 'make tidy      the house rules alone'
	@echo 'make bench     speed of the simulator, beside QEMU'
	@echo 'make setup     install the Debian packages that are missing'

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
