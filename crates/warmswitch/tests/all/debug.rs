// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `warmswitch debug` with gdb in batch mode. They need the built kernel and gdb-multiarch.

use std::process::{Command, Stdio};

use crate::plain_kernel;

const PROGRAM: &str = env!("CARGO_BIN_EXE_warmswitch");

/// Runs gdb with these commands on a board before the board's first instruction. Returns gdb's output.
fn gdb(commands: &[&str]) -> String {
    let connect = format!("target remote | {PROGRAM} debug --stdio");
    let mut gdb = Command::new("gdb-multiarch");
    gdb.args([
        "-batch",
        "-nx",
        "-ex",
        "set confirm off",
        "-ex",
        "set pagination off",
        "-ex",
    ]);
    gdb.arg(connect);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    let output = gdb
        .args(["-ex", "kill"])
        .arg(plain_kernel("vmlinux"))
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("gdb-multiarch: {e}; this test needs it installed"));
    let text = [output.stdout, output.stderr].map(|b| String::from_utf8_lossy(&b).into_owned());
    text.concat()
}

#[track_caller]
fn in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part);
        rest = &rest[at.unwrap_or_else(|| panic!("no {part:?} where expected in:\n{text}"))..];
    }
}

#[test]
#[ignore = "needs the kernel"]
fn gdb_stops_at_a_kernel_function_and_shows_registers_and_memory() {
    let text = gdb(&[
        "break start_kernel",
        "continue",
        "info registers pc cpsr",
        "x/s linux_banner",
        "monitor cp15",
        "stepi",
        "info registers pc",
    ]);
    in_order(
        &text,
        &[
            "Breakpoint 1, start_kernel",
            "<start_kernel>",
            "cpsr",
            "d3",
            "Linux version 6.12",
            "<start_kernel+4>",
        ],
    );
    // The output of `monitor` is at another position, so it is checked separately.
    in_order(&text, &["mode Supervisor", "pid 0"]);
}

#[test]
#[ignore = "needs the kernel"]
fn a_watchpoint_stops_behind_the_store_that_hits_it() {
    let text = gdb(&[
        "break start_kernel",
        "continue",
        "watch *(unsigned int *)&machine_desc",
        "continue",
        "backtrace 2",
    ]);
    in_order(
        &text,
        &[
            "Hardware watchpoint 2",
            "Old value = 0",
            "New value = ",
            "setup_arch",
        ],
    );
}

#[test]
#[ignore = "needs the kernel"]
fn what_gdb_writes_is_what_the_core_reads() {
    let text = gdb(&[
        "tbreak kernel_init",
        "continue",
        "set var *(unsigned int *)&panic_timeout = 77",
        "print *(int *)&panic_timeout",
        "set $r0 = 5",
        "print $r0",
        "print (char *)&boot_command_line",
    ]);
    in_order(
        &text,
        &["kernel_init", "$1 = 77", "$2 = 5", "console=ttyAMA0"],
    );
}
