// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the kernels with FCSE on a board and on QEMU. QEMU models FCSE but no caches. The tests build missing
//! kernels.
//!
//! QEMU's TLB removes entries by virtual address instead of modified virtual address. Therefore, QEMU runs the kernel
//! `fcse-checks`, which makes QEMU empty the TLB at each entry to the kernel.

use std::process::{Command, Output, Stdio};

use crate::commands::{number_after, proof, proof_with, proofs_mutant};

const ON_THE_BOARD: &[&str] = &["--kernel", "fcse-guaranteed"];
const ON_QEMU: &[&str] = &["--kernel", "fcse-checks", "--qemu"];

/// Runs `command`, a line for the guest's shell.
fn guest(options: &[&str], command: &str) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .arg("guest")
        .args(options)
        .args(["--", command])
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    assert_ne!(output.status.code(), Some(2), "{}", output_text(&output));
    output
}

pub fn output_text(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Tests that guaranteed mode skips. They need more processes than there are PIDs, or processes that are larger than a
/// slot.
const BEYOND_THE_LIMITS: &[&str] = &[
    "four_hundred",
    "slots_of_others",
    "fork_large",
    "exec_small",
    "large_threads",
    "fork_races_move",
    "grow_and_shrink",
    "crowd_under_pressure",
    "left_slot",
    "moved_with_threads",
    "code_across_32mb",
    "flush_range_across",
    "grows_to_slot",
];

/// Returns whether a test may be skipped because it missed its race condition. Two tests may be skipped anywhere. The
/// other tests may be skipped only on QEMU, which has other timing.
fn may_be_missed(test: &str, options: &[&str]) -> bool {
    let rare = ["direct_races_reader", "fork_races_leaver"].contains(&test);
    let race = test.contains("_races_")
        || [
            "truncated_by_other",
            "uffd_moves",
            "vforked_leaver",
            "ends_in_flush",
        ]
        .contains(&test);
    rare || (race && options == ON_QEMU)
}

/// Asserts that the tests of `mm_suite` passed. Exactly the tests in `beyond` must be skipped. Tests that missed their
/// race conditions may be skipped, too.
fn passed(output: &Output, options: &[&str], beyond: &[&str]) {
    let text = output_text(output);
    assert!(output.status.success(), "{options:?}:\n{text}");
    assert!(text.contains("\nok 1 - "), "{options:?}:\n{text}");
    let skipped: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("# SKIP"))
        .filter_map(|line| line.split_whitespace().nth(3))
        .filter(|test| !may_be_missed(test, options) || beyond.contains(test))
        .collect();
    assert_eq!(skipped, beyond, "{options:?}:\n{text}");
}

#[test]
#[ignore = "needs the kernel"]
fn the_suite_passes_on_the_board() {
    // `churn` has its own test below.
    let output = guest(ON_THE_BOARD, "mm_suite --quick --skip churn");
    passed(&output, ON_THE_BOARD, BEYOND_THE_LIMITS);
}

#[test]
#[ignore = "needs the kernel"]
fn what_is_beyond_the_limits_passes_in_best_effort_mode() {
    let best_effort = ["--kernel", "fcse-best-effort"];
    let tests = BEYOND_THE_LIMITS.iter().chain(&["apart_from_dead"]);
    let only: String = tests.map(|test| format!(" --only {test}")).collect();
    // `crowd_under_pressure` takes as long as all other tests together.
    let command = format!("mm_suite --rounds 1{only} --skip crowd_under_pressure");
    let output = guest(&best_effort, &command);
    passed(&output, &best_effort, &[]);
}

#[test]
#[ignore = "needs the kernel and QEMU"]
fn the_suite_passes_on_qemu_where_the_kernel_checks_itself() {
    // `pile_of_dead` takes a third of the time, because it tries 600 forks that the kernel refuses. It passes on the
    // board.
    let command = "sh -c 'mm_suite --rounds 1 --skip pile_of_dead; s=$?; dmesg; exit $s'";
    let output = guest(ON_QEMU, command);
    passed(&output, ON_QEMU, BEYOND_THE_LIMITS);
    let text = output_text(&output);
    for part in [
        "# fcse_pid: pass:",
        "fail:0 skip:0 total:",
        "FCSE: guaranteed",
    ] {
        assert!(text.contains(part), "no {part:?}:\n{text}");
    }
    for complaint in [
        "WARNING:",
        "BUG:",
        "INFO: possible",
        "Oops",
        "not ok 1 fcse",
    ] {
        assert!(!text.contains(complaint), "{complaint}:\n{text}");
    }
}

#[test]
#[ignore = "needs the kernel"]
fn a_thousand_processes_come_and_go() {
    let command = "mm_suite --only churn --rounds 10";
    passed(&guest(ON_THE_BOARD, command), ON_THE_BOARD, &[]);
}

#[test]
#[ignore = "needs the kernel"]
fn turned_off_there_is_no_limit() {
    let off = [ON_THE_BOARD, &["--append", "fcse=off"]].concat();
    let command = "sh -c 'mm_suite --only fork_cow --only too_many; s=$?; dmesg; exit $s'";
    let output = guest(&off, command);
    let text = output_text(&output);
    assert!(output.status.success(), "{text}");
    for part in ["ok 1 - fork_cow", "ok 2 - too_many # SKIP", "FCSE: off"] {
        assert!(text.contains(part), "no {part:?}:\n{text}");
    }
}

#[test]
#[ignore = "needs the kernel and QEMU"]
fn the_board_is_reset_and_another_kernel_started() {
    let checks = ["--kernel", "fcse-checks"];
    for (options, command, part) in [
        (ON_THE_BOARD, "reboot -f", "reset"),
        (ON_QEMU, "reboot -f", "reset"),
        (&checks, "kexec_hello", "hello from behind kexec"),
        (ON_QEMU, "kexec_hello", "hello from behind kexec"),
    ] {
        let output = guest(options, command);
        let text = output_text(&output);
        assert_eq!(output.status.code(), Some(1), "{options:?}: {text}");
        assert!(text.contains(part), "{options:?}: {command}: {text}");
    }
}

#[test]
#[ignore = "needs the kernel and QEMU"]
fn what_outlives_a_process_in_the_caches_shows_on_the_board_alone() {
    let list = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../linux/6.12/mutants-fcse.toml"
    );
    let mutant = format!("{list}:fcse-mm-unflushed");
    let command = "mm_suite --only successors --rounds 3";
    for (options, fails) in [(ON_THE_BOARD, true), (ON_QEMU, false)] {
        let output = guest(&[options, &["--mutant", &mutant]].concat(), command);
        let text = output_text(&output);
        assert_eq!(!output.status.success(), fails, "{options:?}: {text}");
    }
}

/// Runs programs of `linux/6.12/proofs` for bugs that no test of `mm_suite` covers. The kernel removes the TLB entry
/// together with the page-table entry, so no round fails. With the mutant, every round fails.
#[test]
#[ignore = "needs the kernel"]
fn nobody_stores_to_a_shared_page_when_its_entry_is_gone() {
    let mutant = proofs_mutant("fcse-late-store-unflushed");
    let broken = |kernel| ["--kernel", kernel, "--mutant", &mutant];
    for (kernel, command, fails) in [
        ("fcse-guaranteed", "old_entry 5 5", "old words in 5,"),
        ("fcse-guaranteed", "late_lost 5 r", "old words in 5,"),
        ("fcse-guaranteed", "late_lost 5 w", "lost stores in 5"),
        ("fcse-best-effort", "late_lost 5 w 5", "lost stores in 5"),
    ] {
        let program = proof(command.split(' ').next().expect("a name"));
        let add = ["--limit", "100", "--add", &program];
        let text = output_text(&guest(&[&["--kernel", kernel][..], &add].concat(), command));
        assert!(text.contains(" 0 met"), "{kernel}, {command}: {text}");
        let text = output_text(&guest(&[&broken(kernel)[..], &add].concat(), command));
        assert!(text.contains(" 5 met"), "{kernel}, {command}: {text}");
        assert!(text.contains(fails), "{kernel}, {command}: {text}");
    }
}

/// Runs a proof on the kernels of both modes, and with each of the mutants. Returns the outputs. Each output has a
/// flag, which is true if the proof must find no error.
fn entered(command: &str, mutants: &[&str]) -> Vec<(bool, String)> {
    let program = proof(command.split(' ').next().expect("a name"));
    let mutants = mutants.iter().map(|name| proofs_mutant(name));
    let broken: Vec<String> = mutants.collect();
    let of_mutant = |mutant| [ON_THE_BOARD, &["--mutant", mutant]].concat();
    let whole = [ON_THE_BOARD.to_vec(), vec!["--kernel", "fcse-best-effort"]];
    let whole = whole.map(|options| (true, options)).into_iter();
    let add = [
        "--set",
        "caches.dcache_bytes=128K",
        "--limit",
        "60",
        "--add",
        &program,
    ];
    whole
        .chain(broken.iter().map(|mutant| (false, of_mutant(mutant))))
        .map(|(holds, options)| {
            (
                holds,
                output_text(&guest(&[&options[..], &add].concat(), command)),
            )
        })
        .collect()
}

#[test]
#[ignore = "needs the kernel"]
fn a_page_is_entered_afresh_where_another_process_has_taken_one_away() {
    let command = "own_discard 60 300000 60000 120000 30000";
    for (_, text) in entered(command, &[]) {
        assert!(text.contains("60 saw the entries gone"), "{text}");
        assert!(text.contains("old words in 0,"), "{text}");
    }
}

#[test]
#[ignore = "needs the kernel"]
fn what_another_process_stored_beside_a_cut_stays() {
    for command in ["cut_beside 20", "cut_beside 20 hole"] {
        for (holds, text) in entered(command, &["cut-unflushed"]) {
            let lost = number_after(&text, "process is lost in ");
            assert_eq!(lost == 0, holds, "{text}");
        }
    }
}

/// A process that maps a block device maps memory of the kernel. Therefore, switches from and to this process flush.
#[test]
#[ignore = "needs the kernel"]
fn a_header_that_another_process_stored_to_a_device_is_found_by_swapon() {
    for (_, text) in entered("swap_header 10", &[]) {
        assert!(text.contains("does not see the header in 0"), "{text}");
    }
}

#[test]
#[ignore = "needs the kernel"]
fn all_pages_that_a_thread_enters_while_another_one_takes_them_away_are_fresh() {
    let mutants = ["fcse-entered-kept", "fcse-entered-unflushed"];
    for (holds, text) in entered("own_entered a 60 30000 60000", &mutants) {
        assert!(number_after(&text, "partly), ") > 1000, "{text}");
        let right = text.contains("old words 0, lost 0,");
        assert_eq!(right, holds, "{text}");
    }
}

/// Compares times of the board, which do not vary. If each page were flushed, the two measured operations would take
/// 4675 and 2145 us.
#[test]
#[ignore = "needs the kernel"]
fn a_table_is_entered_and_shared_pages_grow_cold_without_a_flush_of_each() {
    for (name, arguments, what, most) in [
        ("entered_late", "r q 600", "max ", 2500),
        ("cold_shared", "x", "dirty shared pages ", 1500),
    ] {
        let program = proof(name);
        let options = [ON_THE_BOARD, &["--limit", "60", "--add", &program]].concat();
        let text = output_text(&guest(&options, &format!("{name} {arguments}")));
        let us = number_after(&text, what);
        assert!(text.contains(&format!("{what}{us} us")), "{text}");
        assert!((1..most).contains(&us), "{text}");
    }
}

/// Programs with a large uninitialized array. If array and stack do not fit below 32 MB, best-effort mode moves the
/// stack to the other end of the address space. Guaranteed mode ends the program with SIGSEGV before its first
/// instruction, and logs the reason.
#[test]
#[ignore = "needs kernels"]
fn a_large_array_and_the_stack_lie_apart_or_the_program_is_refused() {
    const SIZES: [(u32, bool); 3] = [(8 << 10, true), (32665, false), (40 << 10, false)];
    let mut programs = Vec::new();
    for (kilobytes, fits) in SIZES {
        for link in ["-static", "-no-pie", "-pie"] {
            let name = format!("array{link}-{kilobytes}");
            let size = format!("-DKB={kilobytes}");
            let pic = if link == "-pie" { "-fPIE" } else { "-fno-PIE" };
            let program = proof_with(&name, "large_array", &[link, pic, &size]);
            programs.push((name, program, fits));
        }
    }
    let added = programs.iter().flat_map(|(_, path, _)| ["--add", path]);
    let runs: Vec<String> = programs
        .iter()
        .map(|(name, ..)| format!("echo {name}; {name} word; echo ended with $?"))
        .collect();
    for kernel in ["plain", "fcse-guaranteed", "fcse-best-effort"] {
        let options: Vec<&str> = ["--kernel", kernel]
            .into_iter()
            .chain(added.clone())
            .collect();
        let text = output_text(&guest(&options, &runs.join("; ")));
        for (name, _, fits) in &programs {
            let rest = text.split_once(&format!("{name}\n")).expect("its name").1;
            let ended = number_after(rest, "ended with ");
            let wanted = if *fits || kernel != "fcse-guaranteed" {
                0
            } else {
                128 + 11
            };
            assert_eq!(ended, wanted, "{kernel}, {name}: {text}");
        }
    }
}
