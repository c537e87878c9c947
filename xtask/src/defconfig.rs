// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask defconfig-demo [DIR]`: checks that unmodified kernels run on the boards.
//!
//! Builds Linux's own configurations from Debian's source package without patches: `versatile_defconfig` with plain
//! `make`, for the boards with the Versatile's peripherals, and the named kernels `at91-dt` and `multi-v5` for the whole
//! chips ([`DEMOS`]). Prints the hash of each zImage: the boards of one kernel boot the same file. Boots each kernel with
//! Linux's own device tree, and types commands. Fails if a kernel does not answer. Also fails if ten seconds by the
//! guest's clock are not ten seconds of board time. Prints which nodes of the device tree have a driver bound to them,
//! and which of the enabled nodes have none. Deletes DIR first. Needs 4 GB.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::bisect::{made_anew, program, unpack};
use crate::must;

/// Commands that print the guest's clock before and after ten seconds of sleep.
const TYPED: &str = "uname -r; cat /proc/uptime; sleep 10; cat /proc/uptime\n";
/// Script that prints `node PATH COMPATIBLE...` for each enabled node of the device tree, and `bound PATH DRIVER` for
/// each device of a node with its driver.
const NODES: &str = "cd /sys/firmware/devicetree/base; \
    find . -name compatible | while read f; do \
        n=${f%/compatible} p=$n s=enabled; \
        while [ $p != . ]; do \
            [ -e $p/status ] && grep -q disabled $p/status && s=disabled; \
            p=${p%/*}; \
        done; \
        [ $s = enabled ] && echo \"node ${n#.} $(tr '\\0' ' ' <$f)\"; \
    done; \
    for d in /sys/bus/*/devices/*; do \
        [ -e $d/of_node ] && [ -e $d/driver ] || continue; \
        n=$(cd -P $d/of_node && pwd -P) r=$(cd -P $d/driver && pwd -P); \
        echo \"bound ${n#/sys/firmware/devicetree/base} ${r##*/}\"; \
    done";
/// Time between the two printed clocks, in seconds.
const SECONDS: f64 = 10.0;
/// Allowed error of that time, in seconds. It is 1 % of [`SECONDS`].
const ERROR: f64 = 0.1;

/// Where a kernel comes from.
enum Kernel {
    /// `make` of one of Linux's own configurations.
    Made(&'static str),
    /// A named kernel of `linux/6.12/kernel.toml`, which has one of Linux's own configurations and no patches.
    Named(&'static str),
}

/// A kernel, with the device tree, the board and the console.
struct Demo {
    kernel: Kernel,
    dtb: &'static str,
    board: &'static str,
    /// Words of the command line that name the console.
    console: &'static str,
}

const fn at91_dt(dtb: &'static str, board: &'static str) -> Demo {
    Demo {
        kernel: Kernel::Named("6.12/at91-dt"),
        dtb,
        board,
        console: "console=ttyS0,115200",
    }
}

const fn multi_v5(dtb: &'static str, board: &'static str) -> Demo {
    Demo {
        kernel: Kernel::Named("6.12/multi-v5"),
        dtb,
        board,
        // The configuration names the serial lines so. A root file system in a tmpfs could have half of the memory.
        console: "console=ttyAT0,115200 rootfstype=ramfs",
    }
}

const DEMOS: [Demo; 7] = [
    Demo {
        kernel: Kernel::Made("versatile_defconfig"),
        dtb: "arm/versatile-pb.dtb",
        board: "sam9263",
        console: "console=ttyAMA0,115200",
    },
    at91_dt("microchip/at91sam9263ek.dtb", "sam9263-ek"),
    at91_dt("microchip/at91sam9g20ek.dtb", "sam9g20-ek"),
    at91_dt("microchip/at91rm9200ek.dtb", "at91rm9200-ek"),
    at91_dt("microchip/at91-sam9x60ek.dtb", "sam9x60-ek"),
    multi_v5("microchip/at91sam9263ek.dtb", "sam9263-ek"),
    multi_v5("microchip/at91sam9g20ek.dtb", "sam9g20-ek"),
];

/// A built kernel and its device tree.
struct Built {
    zimage: PathBuf,
    dtb: PathBuf,
}

/// Builds and boots the kernels, types the commands and compares the clocks.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let dir = made_anew("defconfig-demo", arguments)?;
    let program = program(&dir)?;
    // Building a kernel puts the source package into the cache.
    must(Command::new(&program).args(["kernel", "build", "6.12/plain"]))?;
    let source = unpack(&dir)?;
    for demo in &DEMOS {
        let built = match demo.kernel {
            Kernel::Made(defconfig) => made(defconfig, &source, &dir)?,
            Kernel::Named(name) => named(name, &program)?,
        };
        let built = Built {
            dtb: built.dtb.join(demo.dtb),
            ..built
        };
        must(Command::new("sha256sum").arg(&built.zimage))?;
        show(demo, &program, &built)?;
        println!("{}", drivers(demo, &program, &built)?);
    }
    Ok(ExitCode::SUCCESS)
}

impl Demo {
    fn title(&self) -> String {
        let (Kernel::Made(name) | Kernel::Named(name)) = self.kernel;
        format!("{name} on {}", self.board)
    }
}

/// Boots the kernel, types the commands and compares the clocks.
fn show(demo: &Demo, program: &Path, built: &Built) -> Result<()> {
    let mut child = Command::new(program)
        .args(["boot", "--json", "--board", demo.board, "--kernel"])
        .arg(&built.zimage)
        .arg("--dtb")
        .arg(&built.dtb)
        .args(["--", demo.console])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = child
        .stdin
        .take()
        .context("cannot open standard input of warmswitch boot")?;
    stdin.write_all(TYPED.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    if !output.status.success() {
        bail!("warmswitch boot failed: {}", output.status);
    }
    let took = seconds_between(&text)?;
    let end = text.lines().rev().find(|line| line.starts_with('{'));
    let end: serde_json::Value =
        serde_json::from_str(end.context("warmswitch boot printed no JSON")?)?;
    let board_s = end["seconds"]
        .as_f64()
        .context("the JSON has no \"seconds\"")?;
    println!(
        "\n{}: sleep 10: {took} s by the guest's clock; whole run: {board_s:.2} s of board time",
        demo.title()
    );
    if !(SECONDS..SECONDS + ERROR).contains(&took) || board_s < SECONDS {
        bail!("the guest's clock differs from board time");
    }
    Ok(())
}

/// Boots the kernel and returns its drivers as text.
fn drivers(demo: &Demo, program: &Path, built: &Built) -> Result<String> {
    let output = Command::new(program)
        .args(["guest", "--board", demo.board, "--kernel"])
        .arg(&built.zimage)
        .arg("--dtb")
        .arg(&built.dtb)
        .args(["--append", demo.console, "--", NODES])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("warmswitch guest failed: {}\n{errors}", output.status);
    }
    let bound = bound_drivers(&text);
    if bound.is_empty() {
        bail!("no device has a driver:\n{text}{errors}");
    }
    Ok(format!("{}:\n{}", demo.title(), listed(&text, &bound)))
}

/// Returns the nodes of lines `bound PATH DRIVER`, with their drivers.
fn bound_drivers(text: &str) -> BTreeMap<&str, &str> {
    // A serial line has devices of its own after the device of its unit. The first driver is the unit's.
    let lines = text
        .lines()
        .rev()
        .filter_map(|line| line.trim().strip_prefix("bound "));
    lines.filter_map(|line| line.split_once(' ')).collect()
}

/// Lists the nodes of lines `node PATH COMPATIBLE...`: those with a driver, then those without one.
fn listed(text: &str, bound: &BTreeMap<&str, &str>) -> String {
    let lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("node "));
    let mut nodes: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(' ')).collect();
    nodes.retain(|(path, _)| !path.is_empty());
    nodes.sort_unstable();
    let (with, without): (Vec<_>, Vec<_>) = nodes
        .into_iter()
        .partition(|(path, _)| bound.contains_key(path));
    let with = with
        .iter()
        .map(|(path, _)| format!("  {path}: {}\n", bound[path]));
    let (with, count) = (with.collect::<String>(), without.len());
    let without = without
        .iter()
        .map(|(path, compatible)| format!("  {path} ({})\n", compatible.trim()));
    format!(
        "enabled nodes with a driver:\n{with}{count} enabled nodes without a driver of the device model (Linux takes \
         clocks, timers and interrupt controllers before it, and some nodes only group others):\n{}",
        without.collect::<String>()
    )
}

/// Builds one of Linux's own configurations. `dtb` of the result is the folder of the device trees.
fn made(defconfig: &str, source: &Path, dir: &Path) -> Result<Built> {
    let objects = dir.join(defconfig);
    let log_path = dir.join(format!("{defconfig}.log"));
    let log = File::create(&log_path)?;
    let make = |targets: &[&str]| {
        let mut make = Command::new("make");
        make.arg("-C").arg(source);
        make.arg(format!("O={}", objects.display()));
        make.args(["ARCH=arm", "CROSS_COMPILE=arm-linux-gnueabi-"]);
        make.arg("CC=ccache arm-linux-gnueabi-gcc").args(targets);
        make.stdout(log.try_clone()?);
        must(&mut make).with_context(|| log_path.display().to_string())
    };
    make(&[defconfig])?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    make(&[&format!("-j{jobs}"), "zImage", "dtbs"])?;
    let boot = objects.join("arch/arm/boot");
    Ok(Built {
        zimage: boot.join("zImage"),
        dtb: boot.join("dts"),
    })
}

/// Builds a named kernel, unless the cache has it. `dtb` of the result is the folder of the device trees.
fn named(name: &str, program: &Path) -> Result<Built> {
    let output = Command::new(program)
        .args(["kernel", "build", name, "--json"])
        .stderr(Stdio::inherit())
        .output()?;
    let built: serde_json::Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("kernel build {name} --json: {}", output.status))?;
    let path = |key: &str| {
        let text = built[key].as_str();
        text.map(PathBuf::from)
            .with_context(|| format!("kernel build --json printed no \"{key}\""))
    };
    Ok(Built {
        zimage: path("zimage")?,
        dtb: path("dtb")?,
    })
}

/// Returns the time between the two lines of `/proc/uptime`, in seconds.
fn seconds_between(console: &str) -> Result<f64> {
    let uptime = |line: &str| {
        let (up, idle) = line.trim().split_once(' ')?;
        idle.parse::<f64>().ok()?;
        up.parse::<f64>().ok()
    };
    let times: Vec<f64> = console.lines().filter_map(uptime).collect();
    match times.as_slice() {
        [before, behind] => Ok(behind - before),
        _ => bail!(
            "the console has {} lines of /proc/uptime, not 2",
            times.len()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_with_and_without_a_driver_are_told_apart() {
        let text = "node  atmel,board \r\nnode /a vendor,a \r\nnode /b vendor,b old,b \nbound /a one\r\nbound /c two\n";
        let bound = bound_drivers(text);
        assert_eq!(bound, BTreeMap::from([("/a", "one"), ("/c", "two")]));
        let list = listed(text, &bound);
        assert!(
            list.contains("  /a: one\n1 enabled nodes without"),
            "{list}"
        );
        assert!(list.ends_with("  /b (vendor,b old,b)\n"), "{list}");
    }
}
