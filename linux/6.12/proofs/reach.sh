#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs reach.c with zram as swap and without, and what else docs/log/REACHED.md asks for.
echo 67108864 > /sys/block/zram0/disksize
reach pin
reach unshared rings crowded device refused
mkswap /dev/zram0 >/dev/null
swapon /dev/zram0
reach freed gathered filled moved spliced merged allotted filters
swapoff /dev/zram0
reach ended
ifconfig lo up
ping -c 1 127.0.0.1 > /dev/null
ifconfig eth0 up
busybox udhcpc -i eth0 -n -q -t 1 -T 1 2>/dev/null
for n in 1 2 3 4; do echo $n > /proc/self/clear_refs; done
