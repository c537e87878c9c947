// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that Linux and Debian's programs run on the simulated boards. The tests build the kernel if it is missing.
//! `make test` runs these tests.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Boots `board` and types `input`. Returns the console output and the exit code.
fn boot(board: &str, input: &str, more: &[&str]) -> (String, Option<i32>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["boot", "--board", board])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(input.as_bytes())
        .expect("it reads its input");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        output.status.code(),
    )
}

/// Asserts that the console output contains all of `parts`.
fn says(console: &str, parts: &[&str]) {
    for part in parts {
        assert!(console.contains(part), "no {part:?} in:\n{console}");
    }
}

#[test]
#[ignore = "needs the kernel"]
fn every_board_boots_linux_to_a_shell_on_an_arm926() {
    for board in ["sam9263", "s3c24a0", "omap1610", "sam9x60"] {
        let (console, code) = boot(board, "cat /proc/cpuinfo; uname -r\n", &[]);
        says(&console, &["ARM926EJ-S", "0x926", "6.12."]);
        assert_eq!(code, Some(0), "{board}");
    }
}

#[test]
#[ignore = "needs the kernel"]
fn debians_dynamically_linked_programs_run_to_the_end() {
    let programs = "cyclictest -l 200 -i 1000 -p 50 -q; echo cyclictest=$?\n\
        hackbench -g 2 -l 20; echo hackbench=$?\n\
        stress-ng --vm 2 --fork 2 --mmap 2 --timeout 5; echo stress-ng=$?\n";
    let (console, code) = boot("sam9263", programs, &[]);
    says(
        &console,
        &[
            "Avg:",
            "Time: ",
            "cyclictest=0",
            "hackbench=0",
            "stress-ng=0",
        ],
    );
    assert_eq!(code, Some(0));
}

#[test]
#[ignore = "needs the kernel"]
fn two_runs_give_the_same_console_cycles_and_memory() {
    let command = "hackbench -g 1 -l 5\n";
    let first = boot("sam9263", command, &["--limit", "6", "--json"]);
    let second = boot("sam9263", command, &["--limit", "6", "--json"]);
    says(&first.0, &["\"memory_blake3\"", "\"cycle\"", "Time: "]);
    assert_eq!(first, second);
}

#[test]
#[ignore = "needs the kernel"]
fn a_limit_of_board_time_ends_a_guest_that_never_would() {
    let (console, code) = boot("sam9263", "while :; do :; done\n", &["--limit", "6"]);
    says(&console, &["@@ready"]);
    assert_eq!(code, Some(1));
}
