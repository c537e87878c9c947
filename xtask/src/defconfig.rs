// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask defconfig-demo [DIR]`: checks that unmodified kernels run on the boards.
//!
//! Builds Linux's own configurations with `make`, from Debian's complete source package: `versatile_defconfig` for the
//! boards with the Versatile's peripherals, and `at91_dt_defconfig` for the whole chips ([`DEMOS`]). Boots each kernel
//! with Linux's own device tree, and types commands. Fails if a kernel does not answer. Also fails if ten seconds by the
//! guest's clock are not ten seconds of board time. Deletes DIR first. Needs 4 GB.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::bisect::{cache, made_anew, program};
use crate::must;

/// Commands that print the guest's clock before and after ten seconds of sleep.
const TYPED: &str = "uname -r; cat /proc/uptime; sleep 10; cat /proc/uptime\n";
/// Time between the two printed clocks, in seconds.
const SECONDS: f64 = 10.0;
/// Allowed error of that time, in seconds. It is 1 % of [`SECONDS`].
const ERROR: f64 = 0.1;

/// A configuration of Linux, with the device tree, the board and the console.
struct Demo {
    defconfig: &'static str,
    dtb: &'static str,
    board: &'static str,
    tty: &'static str,
}

const DEMOS: [Demo; 4] = [
    Demo {
        defconfig: "versatile_defconfig",
        dtb: "arm/versatile-pb.dtb",
        board: "sam9263",
        tty: "ttyAMA0",
    },
    Demo {
        defconfig: "at91_dt_defconfig",
        dtb: "microchip/at91sam9263ek.dtb",
        board: "sam9263-ek",
        tty: "ttyS0",
    },
    Demo {
        defconfig: "at91_dt_defconfig",
        dtb: "microchip/at91rm9200ek.dtb",
        board: "at91rm9200-ek",
        tty: "ttyS0",
    },
    Demo {
        defconfig: "at91_dt_defconfig",
        dtb: "microchip/at91sam9g20ek.dtb",
        board: "sam9g20-ek",
        tty: "ttyS0",
    },
];

/// Builds and boots the kernels, types the commands and compares the clocks.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let dir = made_anew("defconfig-demo", arguments)?;
    let program = program(&dir)?;
    // Building a kernel puts the source package into the cache.
    must(Command::new(&program).args(["kernel", "build", "6.12/plain"]))?;
    unpack(&dir)?;
    for demo in &DEMOS {
        show(demo, &program, &built(demo, &dir)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Boots the kernel in `boot`, types the commands and compares the clocks.
fn show(demo: &Demo, program: &Path, boot: &Path) -> Result<()> {
    let mut child = Command::new(program)
        .args(["boot", "--json", "--board", demo.board, "--kernel"])
        .arg(boot.join("zImage"))
        .arg("--dtb")
        .arg(boot.join("dts").join(demo.dtb))
        .args(["--", &format!("console={},115200", demo.tty)])
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
        "\n{} on {}: sleep 10: {took} s by the guest's clock; whole run: {board_s:.2} s of board time",
        demo.defconfig, demo.board
    );
    if !(SECONDS..SECONDS + ERROR).contains(&took) || board_s < SECONDS {
        bail!("the guest's clock differs from board time");
    }
    Ok(())
}

/// Unpacks the source of Debian's package into `dir`.
fn unpack(dir: &Path) -> Result<()> {
    let packages = cache()?.join("packages/amd64");
    let entries = fs::read_dir(&packages).with_context(|| packages.display().to_string())?;
    let package = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().contains("linux-source-6.12"))
        .with_context(|| format!("no package linux-source-6.12 in {}", packages.display()))?;
    must(Command::new("dpkg-deb").arg("-x").arg(&package).arg(dir))?;
    let tar = dir.join("usr/src/linux-source-6.12.tar.xz");
    must(Command::new("tar").arg("xJf").arg(&tar).arg("-C").arg(dir))
}

/// Builds a kernel and returns its `arch/arm/boot`.
fn built(demo: &Demo, dir: &Path) -> Result<PathBuf> {
    let objects = dir.join(demo.defconfig);
    let log_path = dir.join(format!("{}.log", demo.defconfig));
    let log = File::create(&log_path)?;
    let make = |targets: &[&str]| {
        let mut make = Command::new("make");
        make.arg("-C").arg(dir.join("linux-source-6.12"));
        make.arg(format!("O={}", objects.display()));
        make.args(["ARCH=arm", "CROSS_COMPILE=arm-linux-gnueabi-"]);
        make.arg("CC=ccache arm-linux-gnueabi-gcc").args(targets);
        make.stdout(log.try_clone()?);
        must(&mut make).with_context(|| log_path.display().to_string())
    };
    make(&[demo.defconfig])?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    make(&[&format!("-j{jobs}"), "zImage", "dtbs"])?;
    Ok(objects.join("arch/arm/boot"))
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
