// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of Linux with FCSE on the cores of the papers. One kernel contains code for all of these cores. Each core runs
//! programs for its own architecture.

use crate::commands::{number_after, proof, proofs_mutant, warmswitch};
use crate::explain::charged_as_counted;
use crate::fcse::output_text;

const KERNEL: &str = "fcse-multi";
const BOARDS: [&str; 2] = ["at91rm9200", "ixp425"];

/// Runs a command on a board. Returns the output. Also returns whether the exit code is 0.
fn on(board: &str, verb: &str, options: &[&str], command: &str) -> (String, bool) {
    let begin = [verb, "--kernel", KERNEL, "--board", board];
    let output = warmswitch(&[&begin, options, &["--", command]].concat());
    (output_text(&output), output.status.success())
}

#[test]
#[ignore = "needs the kernel"]
fn linux_with_fcse_keeps_what_processes_have_written_and_the_checker_has_nothing_to_say() {
    let tests = "mm_suite --only fork_cow --only successors --only shared_memory --only jit_fork";
    for board in BOARDS {
        let command = format!("dmesg | grep FCSE; {tests}");
        let (text, good) = on(board, "coherence", &[], &command);
        assert!(good, "{board}: {text}");
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
        charged_as_counted(board, KERNEL, "lat_ctx -P -s 0 -n 200 2");
    }
}

/// An XScale cleans a line with one instruction and invalidates the line with the next instruction.
#[test]
#[ignore = "needs the kernel"]
fn what_is_written_to_a_line_in_the_middle_of_its_flush_is_not_lost() {
    let program = proof("line_between");
    let of_range = proofs_mutant("range-line-preempted");
    for (mutant, command) in [
        ("fcse-line-preempted", "line_between 600"),
        (&of_range, "line_between 600 gives"),
    ] {
        let (text, good) = on("ixp425", "guest", &["--add", &program], command);
        assert!(number_after(&text, "600 rounds, ") > 500, "{text}");
        assert!(number_after(&text, "is lost in ") == 0 && good, "{text}");
        let broken = ["--add", &program, "--mutant", mutant];
        let (text, good) = on("ixp425", "guest", &broken, command);
        assert!(
            number_after(&text, "is lost in ") > 0 && !good,
            "{mutant}: {text}"
        );
    }
}

/// Three threads flush the entire cache. Each flush begins in the middle of another flush.
#[test]
#[ignore = "needs the kernel"]
fn flushes_of_the_whole_cache_in_the_middle_of_each_other_leave_nothing_old() {
    let add = ["--add", &proof("window_left")];
    let (text, good) = on("ixp425", "guest", &add, "window_left 1500");
    assert!(number_after(&text, "1500 rounds, ") > 30 && good, "{text}");
    assert!(number_after(&text, "old words in ") == 0, "{text}");
}
