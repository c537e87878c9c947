// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux on the papers' own cores, by the one kernel that has code for all of them, with FCSE. Each has programs for its
//! architecture.

use std::process::{Command, Output, Stdio};

use crate::commands::{compiled, scratch};
use crate::explain::charged_as_counted;

const KERNEL: [&str; 2] = ["--kernel", "fcse-multi"];
const BOARDS: [&str; 2] = ["at91rm9200", "ixp425"];

fn warmswitch(verb: &str, options: &[&str], command: &str) -> (String, Output) {
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .arg(verb)
        .args(KERNEL)
        .args(options)
        .args(["--", command])
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    let text = [&output.stdout[..], &output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output)
}

#[test]
#[ignore = "needs the kernel"]
fn linux_with_fcse_keeps_what_processes_have_written_and_the_checker_has_nothing_to_say() {
    let tests = "mm_suite --only fork_cow --only successors --only shared_memory --only jit_fork";
    for board in BOARDS {
        let command = format!("dmesg | grep FCSE; {tests}");
        let (text, output) = warmswitch("coherence", &["--board", board], &command);
        assert!(output.status.success(), "{board}: {text}");
        assert!(text.contains("FCSE: guaranteed"), "{board}: {text}");
        let passed = text
            .lines()
            .filter(|line| line.starts_with("ok ") && !line.contains('#'));
        assert_eq!(passed.count(), 4, "{board}: {text}");
        assert!(text.contains("\n0 reports;"), "{board}: {text}");
    }
}

#[test]
#[ignore = "needs the kernel"]
fn on_each_core_every_cycle_is_charged_and_nothing_changes() {
    for board in BOARDS {
        charged_as_counted(board, KERNEL[1], "lat_ctx -P -s 0 -n 50 2");
    }
}

/// What a program of `linux/6.12/proofs` says behind `text`, and whether it was content.
fn number_behind(output: (String, Output), text: &str) -> (u32, bool) {
    let (said, output) = output;
    let behind = said
        .split(text)
        .nth(1)
        .unwrap_or_else(|| panic!("no {text:?}: {said}"));
    let digits = behind.split(|c: char| !c.is_ascii_digit()).next();
    (
        digits.unwrap().parse().expect("a number"),
        output.status.success(),
    )
}

/// An XScale cleans a line by one instruction and invalidates it by the next.
#[test]
#[ignore = "needs the kernel"]
fn what_is_written_to_a_line_in_the_middle_of_its_flush_is_not_lost() {
    let source = include_str!("../../../../linux/6.12/proofs/line_between.c");
    let dir = scratch("line_between");
    let program = compiled(&dir, "line_between", source, &["-pthread"]);
    let program = program.to_str().expect("a plain name");
    let proofs = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../linux/6.12/proofs/mutants.toml:range-line-preempted"
    );
    for (mutant, command) in [
        ("fcse-line-preempted", "line_between 600"),
        (proofs, "line_between 600 gives"),
    ] {
        let options = ["--board", "ixp425", "--add", program];
        let whole = || warmswitch("guest", &options, command);
        assert!(number_behind(whole(), "600 rounds, ").0 > 500);
        assert_eq!(number_behind(whole(), "is lost in "), (0, true));
        let broken = [&options[..], &["--mutant", mutant]].concat();
        let broken = warmswitch("guest", &broken, command);
        let (lost, content) = number_behind(broken, "is lost in ");
        assert!(lost > 0 && !content, "{mutant}");
    }
}

/// Three threads in flushes of the whole cache, each begun in the middle of another.
#[test]
#[ignore = "needs the kernel"]
fn flushes_of_the_whole_cache_in_the_middle_of_each_other_leave_nothing_old() {
    let source = include_str!("../../../../linux/6.12/proofs/window_left.c");
    let program = compiled(
        &scratch("window_left"),
        "window_left",
        source,
        &["-pthread"],
    );
    let options = [
        "--board",
        "ixp425",
        "--add",
        program.to_str().expect("a plain name"),
    ];
    let (text, output) = warmswitch("guest", &options, "window_left 1500");
    let met = number_behind((text.clone(), output), "1500 rounds, ");
    assert!(met.0 > 30 && met.1, "{text}");
    assert!(text.contains("old words in 0 "), "{text}");
}
