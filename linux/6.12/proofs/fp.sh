#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
for pages in 100 300; do for per in 250 400; do echo "pages $pages period $per"; fork_pinned 40 $pages 1 $per | tail -1; done; done
