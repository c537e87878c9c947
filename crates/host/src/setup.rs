// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of a machine's set-up: settings that disturb a measurement, and how to change them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

/// Numbers of bits in `CapEff` (capabilities(7)).
pub const CAP_SYS_RAWIO: u32 = 17;
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;

/// A setting of the machine, and whether it suits measurements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the setting: "clock source".
    pub name: &'static str,
    /// Value as the kernel shows it. It is "hidden" when the kernel hides it.
    pub found: String,
    /// Whether the value suits measurements. `None` when the kernel hides it.
    pub good: Option<bool>,
    /// How to change a bad value, or how to see a hidden value that matters.
    pub help: Option<&'static str>,
}

/// All files that the checks read, relative to the root of the file system.
pub const FILES: [&str; 14] = [
    "proc/cpuinfo",
    LIMITS,
    STATUS,
    SWAPS,
    THROTTLING,
    FAIR_SERVER,
    MOUNTS,
    VERSION,
    CLOCK,
    GOVERNOR,
    ISOLATED,
    SMT,
    HYPERVISOR,
    VENDOR,
];
const LIMITS: &str = "proc/self/limits";
const STATUS: &str = "proc/self/status";
const SWAPS: &str = "proc/swaps";
const THROTTLING: &str = "proc/sys/kernel/sched_rt_runtime_us";
/// Runtime of the first processor's fair server, in nanoseconds. Each other processor has a file in a neighbouring
/// folder.
const FAIR_SERVER: &str = "sys/kernel/debug/sched/fair_server/cpu0/runtime";
const FAIR_SERVERS: &str = "sys/kernel/debug/sched/fair_server";
const MOUNTS: &str = "proc/mounts";
const VERSION: &str = "proc/version";
/// First version of Linux with fair servers.
const WITH_FAIR_SERVER: (u32, u32) = (6, 12);
const CLOCK: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
const GOVERNOR: &str = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
const ISOLATED: &str = "sys/devices/system/cpu/isolated";
const SMT: &str = "sys/devices/system/cpu/smt/active";
const HYPERVISOR: &str = "sys/hypervisor/type";
const VENDOR: &str = "sys/class/dmi/id/sys_vendor";

/// Source of a system's settings.
pub enum System<'a> {
    /// Files below this folder: "/" for this machine, another folder in tests.
    Below(&'a Path),
    /// Content of `FILES`, as another machine reported it.
    Said(&'a BTreeMap<String, String>),
}

impl System<'_> {
    fn text(&self, path: &str) -> Option<String> {
        let text = match self {
            System::Below(root) => fs::read_to_string(root.join(path)).ok()?,
            System::Said(files) => files.get(path)?.clone(),
        };
        Some(text.trim().to_string())
    }

    /// Returns the value of a key in this process's status.
    pub fn status(&self, key: &str) -> Option<String> {
        let text = self.text(STATUS)?;
        let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(rest.strip_prefix(':')?.trim().to_string())
    }

    /// Returns whether a capability of this process is effective. Returns `None` when the kernel hides it.
    pub fn has_capability(&self, bit: u32) -> Option<bool> {
        let set = u64::from_str_radix(&self.status("CapEff")?, 16).ok()?;
        Some(set >> bit & 1 == 1)
    }

    /// Returns the processor's name in /proc/cpuinfo.
    pub fn processor(&self) -> Option<String> {
        let text = self.text("proc/cpuinfo")?;
        let keys = ["model name", "Processor", "cpu model", "cpu"];
        let line = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(name, _)| name.trim() == key)
        };
        let found = keys.iter().find_map(|key| line(key));
        found.map(|(_, name)| name.trim().to_string())
    }

    /// Makes all checks.
    pub fn checks(&self) -> Vec<Check> {
        vec![
            self.clock(),
            self.scaling(),
            self.throttling(),
            self.fair_server(),
            self.isolated(),
            self.threads(),
            self.swap(),
            self.priority(),
            self.locked_memory(),
            self.hypervisor(),
            self.preemption(),
        ]
    }

    fn clock(&self) -> Check {
        let fast = ["tsc", "kvm-clock", "arch_sys_counter"];
        let help = "reading this clock is a slow device access: see available_clocksource in the same folder, and \
                    dmesg for the reason";
        check("clock source", self.text(CLOCK), help, |found| {
            fast.contains(&found)
        })
    }

    fn scaling(&self) -> Check {
        let help = "echo performance >/sys/devices/system/cpu/cpuN/cpufreq/scaling_governor";
        check("frequency scaling", self.text(GOVERNOR), help, |found| {
            found == "performance"
        })
    }

    fn throttling(&self) -> Check {
        let help =
            "it stops real-time tasks that run long: echo -1 >/proc/sys/kernel/sched_rt_runtime_us";
        check("RT throttling", self.text(THROTTLING), help, |found| {
            found == "-1"
        })
    }

    /// Checks the time that Linux 6.12 and later reserve for other tasks. This reserve remains even if throttling is
    /// switched off (-1).
    fn fair_server(&self) -> Check {
        const NAME: &str = "fair server";
        let help = "it stops real-time tasks that never sleep, even with sched_rt_runtime_us = -1: \
                    for c in /sys/kernel/debug/sched/fair_server/cpu*; do echo 0 >$c/runtime; done";
        if let Some(ns) = self.fair_servers_ns().into_iter().max() {
            let found = match ns {
                0 => "off".to_string(),
                ns => format!("{} ms of each period", ns as f64 / 1e6),
            };
            return check(NAME, Some(found), help, |found| found == "off");
        }
        match self.linux() {
            None => check(NAME, None, help, |_| false),
            Some(linux) if linux < WITH_FAIR_SERVER => {
                let found = "none before Linux 6.12".to_string();
                check(NAME, Some(found), help, |_| true)
            }
            Some(_) => self.hidden_fair_server(NAME),
        }
    }

    /// Makes the check for a kernel that has a fair server but hides its setting.
    fn hidden_fair_server(&self, name: &'static str) -> Check {
        let is_debugfs = |line: &str| line.split_whitespace().nth(2) == Some("debugfs");
        let mounts = self.text(MOUNTS);
        let (why, help) = match mounts.is_some_and(|all| all.lines().any(is_debugfs)) {
            true => (
                "only root can read debugfs",
                "it stops real-time tasks that never sleep, 50 ms per second unless switched off; as root: \
                 grep . /sys/kernel/debug/sched/fair_server/cpu*/runtime",
            ),
            false => (
                "debugfs is not mounted",
                "it stops real-time tasks that never sleep, 50 ms per second unless switched off; as root: \
                 mount -t debugfs none /sys/kernel/debug",
            ),
        };
        Check {
            name,
            found: format!("hidden: {why}"),
            good: None,
            help: Some(help),
        }
    }

    /// Returns the runtime of each processor's fair server, in nanoseconds per period. For another machine, only the
    /// runtime of its first processor is known.
    fn fair_servers_ns(&self) -> Vec<u64> {
        let texts: Vec<String> = match self {
            System::Said(_) => self.text(FAIR_SERVER).into_iter().collect(),
            System::Below(root) => {
                let all = fs::read_dir(root.join(FAIR_SERVERS)).into_iter().flatten();
                let files = all.flatten().map(|entry| entry.path().join("runtime"));
                files
                    .filter_map(|file| fs::read_to_string(file).ok())
                    .collect()
            }
        };
        texts
            .iter()
            .filter_map(|text| text.trim().parse().ok())
            .collect()
    }

    /// Returns version and patch level of the kernel.
    fn linux(&self) -> Option<(u32, u32)> {
        let text = self.text(VERSION)?;
        let number = text.strip_prefix("Linux version ")?;
        let mut parts = number.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    fn isolated(&self) -> Check {
        let help = "other tasks may run on every processor: boot with isolcpus=N, then use --cpu N";
        let found = self.text(ISOLATED).map(|text| match text.is_empty() {
            true => "none".to_string(),
            false => text,
        });
        check("isolated processors", found, help, |found| found != "none")
    }

    fn threads(&self) -> Check {
        let help =
            "the other thread of a core slows it: echo off >/sys/devices/system/cpu/smt/control";
        check("SMT active", self.text(SMT), help, |found| found == "0")
    }

    fn swap(&self) -> Check {
        let devices = self.text(SWAPS).map(|text| {
            let count = text.lines().count().saturating_sub(1);
            count.to_string()
        });
        check("swap devices", devices, "swapoff -a", |found| found == "0")
    }

    fn priority(&self) -> Check {
        let help = "the kernel refuses SCHED_FIFO: run as root, with CAP_SYS_NICE, or with a limit (ulimit -r)";
        self.privilege(
            "may use SCHED_FIFO",
            CAP_SYS_NICE,
            "Max realtime priority",
            help,
        )
    }

    fn locked_memory(&self) -> Check {
        let help = "the kernel may page memory out: run as root, with CAP_IPC_LOCK, or with a limit (ulimit -l)";
        self.privilege("may lock memory", CAP_IPC_LOCK, "Max locked memory", help)
    }

    /// Checks a privilege, which comes from a capability or from a limit above 0.
    fn privilege(&self, name: &'static str, bit: u32, limit: &str, help: &'static str) -> Check {
        let limits = self.text(LIMITS).unwrap_or_default();
        let soft = limits.lines().find_map(|line| {
            let rest = line.strip_prefix(limit)?;
            rest.split_whitespace().next().map(str::to_string)
        });
        let by_limit = soft.is_some_and(|soft| soft != "0");
        let found = self.has_capability(bit).map(|has| match (has, by_limit) {
            (true, _) => "yes".to_string(),
            (false, true) => "up to a limit".to_string(),
            (false, false) => "no".to_string(),
        });
        check(name, found, help, |found| found != "no")
    }

    fn hypervisor(&self) -> Check {
        let cpuinfo = self.text("proc/cpuinfo").unwrap_or_default();
        let flag = |line: &str| {
            line.starts_with("flags") && line.split_whitespace().any(|word| word == "hypervisor")
        };
        let by_type = self.text(HYPERVISOR);
        let is_guest = cpuinfo.lines().any(flag);
        let named = by_type.or_else(|| self.text(VENDOR));
        let found = match (is_guest, named) {
            (true, Some(name)) => format!("yes, {name}"),
            (true, None) => "yes".to_string(),
            (false, _) => "none detected".to_string(),
        };
        let help = "a virtual machine waits for its host: compare distributions, not maxima; see docs/use/HOST.md";
        check("hypervisor", Some(found), help, |found| {
            found == "none detected"
        })
    }

    fn preemption(&self) -> Check {
        let words = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"];
        let found = self.text(VERSION).map(|version| {
            let found = words.into_iter().find(|word| version.contains(word));
            found.unwrap_or("not preemptible").to_string()
        });
        let help = "expect the latencies of a kernel without PREEMPT_RT";
        check("preemption", found, help, |found| found == "PREEMPT_RT")
    }
}

fn check(
    name: &'static str,
    found: Option<String>,
    help: &'static str,
    is_good: impl Fn(&str) -> bool,
) -> Check {
    let good = found.as_deref().map(is_good);
    Check {
        name,
        found: found.unwrap_or_else(|| "hidden".to_string()),
        good,
        help: (good == Some(false)).then_some(help),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let dir =
            std::env::temp_dir().join(format!("warmswitch-setup-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn what_disturbs_is_found_with_how_to_mend_it_and_what_is_hidden_is_no_fault() {
        let dir = system(
            "bad",
            &[
                (
                    "sys/devices/system/clocksource/clocksource0/current_clocksource",
                    "hpet\n",
                ),
                ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
                ("sys/devices/system/cpu/isolated", "\n"),
                ("proc/swaps", "Filename Type\n/dev/sda2 partition\n"),
                ("proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n"),
                (
                    "proc/self/limits",
                    "Max realtime priority     0      0\nMax locked memory  8192  8192 bytes\n",
                ),
                (
                    "proc/cpuinfo",
                    "model name\t: Some CPU\nflags\t\t: fpu hypervisor\n",
                ),
                ("proc/version", "Linux version 6.1 SMP PREEMPT_DYNAMIC\n"),
            ],
        );
        let checks = System::Below(&dir).checks();
        let of = |name: &str| {
            checks
                .iter()
                .find(|check| check.name == name)
                .unwrap()
                .clone()
        };
        for bad in [
            "clock source",
            "RT throttling",
            "isolated processors",
            "swap devices",
            "may use SCHED_FIFO",
            "hypervisor",
            "preemption",
        ] {
            let check = of(bad);
            assert!(
                check.good == Some(false) && check.help.is_some(),
                "{check:?}"
            );
        }
        assert_eq!(of("may lock memory").found, "up to a limit");
        let hidden = of("frequency scaling");
        assert_eq!((hidden.good, hidden.help), (None, None));
        assert_eq!(System::Below(&dir).processor().as_deref(), Some("Some CPU"));
        // Another machine with equal files gives equal checks.
        let said = FILES.iter().filter_map(|file| {
            let text = fs::read_to_string(dir.join(file)).ok()?;
            Some((file.to_string(), text))
        });
        assert_eq!(System::Said(&said.collect()).checks(), checks);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_capability_is_a_bit_of_the_effective_set() {
        let dir = system(
            "root",
            &[(
                "proc/self/status",
                "CapInh:\t0\nCapEff:\t0000000000820000\n",
            )],
        );
        let system = System::Below(&dir);
        assert_eq!(system.has_capability(CAP_SYS_RAWIO), Some(true));
        assert_eq!(system.has_capability(CAP_IPC_LOCK), Some(false));
        let checks = system.checks();
        let priority = checks
            .iter()
            .find(|check| check.name == "may use SCHED_FIFO");
        assert_eq!(priority.unwrap().found, "yes");
        fs::remove_dir_all(&dir).unwrap();
    }

    /// Returns the check of a machine with these files. If another machine reports the files, the check must be equal.
    fn fair_server(name: &str, files: &[(&str, &str)]) -> Check {
        let dir = system(name, files);
        let here = System::Below(&dir).fair_server();
        let said = files
            .iter()
            .map(|(path, text)| (path.to_string(), text.to_string()));
        assert_eq!(System::Said(&said.collect()).fair_server(), here, "{name}");
        fs::remove_dir_all(&dir).unwrap();
        here
    }

    #[test]
    fn case_17_a_fair_server_holds_real_time_tasks_though_throttling_is_off() {
        let throttling = ("proc/sys/kernel/sched_rt_runtime_us", "-1\n");
        let linux = ("proc/version", "Linux version 6.12.57 (x) PREEMPT_RT\n");
        let runtime = |ns| [linux, throttling, (FAIR_SERVER, ns)];
        let on = fair_server("on", &runtime("50000000\n"));
        assert_eq!((on.good, &*on.found), (Some(false), "50 ms of each period"));
        assert!(on.help.unwrap().contains("echo 0 >$c/runtime"), "{on:?}");
        let off = fair_server("off", &runtime("0\n"));
        assert_eq!((off.good, &*off.found, off.help), (Some(true), "off", None));
        // A fair server on only one processor also makes the check fail.
        let second = "sys/kernel/debug/sched/fair_server/cpu1/runtime";
        let dir = system(
            "two",
            &[linux, (FAIR_SERVER, "0\n"), (second, "50000000\n")],
        );
        assert_eq!(System::Below(&dir).fair_server().good, Some(false));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn case_17_a_fair_server_that_cannot_be_seen_is_said_with_the_reason() {
        let linux = |version| ("proc/version", version);
        let later = linux("Linux version 6.12.57 (x) PREEMPT_RT\n");
        let without = fair_server("unmounted", &[later, (MOUNTS, "sysfs /sys sysfs rw 0 0\n")]);
        assert_eq!(
            (without.good, &*without.found),
            (None, "hidden: debugfs is not mounted")
        );
        assert!(without.help.unwrap().contains("mount -t debugfs"));
        let mounted = (MOUNTS, "none /sys/kernel/debug debugfs rw 0 0\n");
        let user = fair_server("user", &[later, mounted]);
        assert_eq!(
            (user.good, &*user.found),
            (None, "hidden: only root can read debugfs")
        );
        let earlier = fair_server(
            "earlier",
            &[linux("Linux version 6.6.51-rt42 (x)\n"), mounted],
        );
        assert_eq!(
            (earlier.good, &*earlier.found),
            (Some(true), "none before Linux 6.12")
        );
        assert_eq!(fair_server("unknown", &[mounted]).help, None);
    }
}
