# SPDX-License-Identifier: MIT OR Apache-2.0
# Thin names over `cargo xtask` and `warmswitch`.

.PHONY: help compare quick check test setup bench tidy

help:
	@echo 'make compare   measure, print the table, write out/report/index.html'
	@echo 'make quick     the same on a subset of the points'
	@echo 'make check     after each change: format, lints, unit tests of the lab, house rules'
	@echo 'make test      every test (installs QEMU and gdb when they are missing)'
	@echo 'make tidy      the house rules alone'
	@echo 'make bench     speed of the simulator, beside QEMU'
	@echo 'make setup     install the Debian packages that are missing'

setup:
	@scripts/setup

compare: setup
	@cargo xtask compare

quick: setup
	@cargo xtask compare --quick

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
