// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots a kernel of an unmodified configuration on a whole chip. The test needs a built kernel: `WARMSWITCH_AT91` is the
//! `arch/arm/boot` of a build of `at91_dt_defconfig`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Typed at the prompt: ten seconds by the guest's clock, between two of its times.
const TYPED: &str =
    "uname -m; cat /proc/uptime; sleep 10; cat /proc/uptime; cat /proc/interrupts; reboot -f\n";

#[test]
#[ignore = "needs the kernel of at91_dt_defconfig in WARMSWITCH_AT91"]
fn an_unmodified_kernel_boots_on_the_at91sam9263_ek() {
    let boot = PathBuf::from(std::env::var_os("WARMSWITCH_AT91").expect("WARMSWITCH_AT91"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["boot", "--board", "sam9263-ek", "--limit", "60", "--kernel"])
        .arg(boot.join("zImage"))
        .arg("--dtb")
        .arg(boot.join("dts/microchip/at91sam9263ek.dtb"))
        .args(["--", "console=ttyS0,115200"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(TYPED.as_bytes())
        .expect("it reads its input");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let console = String::from_utf8_lossy(&output.stdout);
    for part in [
        "at91sam9263",
        "timer@fff7c000",
        "armv5tejl",
        "tc_clkevt",
        "ttyS0",
    ] {
        assert!(console.contains(part), "no {part:?} in:\n{console}");
    }
    let uptime = |line: &str| {
        let (up, idle) = line.trim().split_once(' ')?;
        idle.parse::<f64>().ok()?;
        up.parse::<f64>().ok()
    };
    let times: Vec<f64> = console.lines().filter_map(uptime).collect();
    assert_eq!(times.len(), 2, "{console}");
    let slept = times[1] - times[0];
    assert!((10.0..10.1).contains(&slept), "{slept} s");
}
