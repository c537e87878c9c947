#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Tries what the variant `product` has beside `plain`, as far as a shell can: one line for each feature. The other
# features have programs here.

debug=/sys/kernel/debug
tracing=/sys/kernel/tracing
mkdir -p /tmp/lower /tmp/over /tmp/work /tmp/merged /tmp/group /tmp/jffs2
mount -t debugfs debugfs $debug
mount -t tracefs tracefs $tracing

echo "fair server: runtime $(cat $debug/sched/fair_server/cpu0/runtime) ns"

echo do_sys_openat2 >$tracing/set_ftrace_filter
echo function >$tracing/current_tracer
cat /proc/uptime >/dev/null
echo nop >$tracing/current_tracer
echo function >$tracing/current_tracer
cat /proc/uptime >/dev/null
echo "ftrace: $(grep -c do_sys_openat2 $tracing/trace) calls of do_sys_openat2"
echo nop >$tracing/current_tracer

echo 'p:opened do_sys_openat2' >$tracing/kprobe_events
echo 1 >$tracing/events/kprobes/opened/enable
cat /proc/uptime >/dev/null
echo 0 >$tracing/events/kprobes/opened/enable
echo "kprobes: $(grep -c opened: $tracing/trace) hits"

echo 1 >/proc/sys/net/core/bpf_jit_enable
echo "bpf jit: $(cat /proc/sys/net/core/bpf_jit_enable)"

echo 1 >/proc/sys/vm/compact_memory && echo "compaction: asked for"
[ -e /proc/modules ] && echo "modules: $(grep -c . /proc/modules) loaded"

echo "flash: $(tail -n 1 /proc/mtd)"
if mount -t jffs2 mtd0 /tmp/jffs2; then
	seq 1 1000 >/tmp/jffs2/file
	umount /tmp/jffs2
	mount -t jffs2 mtd0 /tmp/jffs2
	echo "jffs2: $(tail -n 1 /tmp/jffs2/file) lines after mounting again"
	rm /tmp/jffs2/file
	umount /tmp/jffs2
fi

echo old >/tmp/lower/file
mount -t overlay overlay -o lowerdir=/tmp/lower,upperdir=/tmp/over,workdir=/tmp/work /tmp/merged
echo new >/tmp/merged/file
echo "overlay: $(cat /tmp/lower/file), above it $(cat /tmp/over/file)"

mount -t cgroup2 cgroup2 /tmp/group
mkdir /tmp/group/one
echo $$ >/tmp/group/one/cgroup.procs
echo "cgroups: $(cat /tmp/group/cgroup.controllers), in $(cat /proc/self/cgroup)"
echo "namespaces: $(ls /proc/self/ns | tr '\n' ' ')"
echo "seccomp: $(grep '^Seccomp:' /proc/self/status | tr -d '\t')"
echo "file systems: $(grep -v nodev /proc/filesystems | tr -d '\t' | tr '\n' ' ')"
echo "sound: $(head -n 1 /proc/asound/cards)"
