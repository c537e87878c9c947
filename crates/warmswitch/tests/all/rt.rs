// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of real-time kernels. While the kernel works for one thread, another thread preempts it. `make test` does not
//! build these kernels. `cargo xtask ci --all` runs the tests.

use crate::commands::{number_after, proof, proof_for_armv4t, proofs_mutant, warmswitch};
use crate::fcse::output_text;

/// Modes of `preempted`. Each has the mutant of `rt` that leaves out the patch for the mode.
const MODES: [(&str, &str); 4] = [
    ("copy", "rt-copy-once"),
    ("enter", "rt-enter-unflushed"),
    ("alias", "rt-shared-cached"),
    ("move", "rt-move-once"),
];

/// Runs a thousand rounds. Asserts that the preemption occurred in at least a hundred rounds. Returns the output and
/// the number of wrong rounds.
fn preempted(kernel: &str, mode: &str, options: &[&str]) -> (String, u32) {
    let program = proof("preempted");
    let command = format!("preempted {mode} 1000");
    let begin = ["guest", "--kernel", kernel, "--add", &program];
    let output = warmswitch(&[&begin, options, &["--", &command]].concat());
    let text = output_text(&output);
    assert!(number_after(&text, "1000 rounds, ") >= 100, "{text}");
    let wrong = number_after(&text, "wrong in ");
    assert_eq!(output.status.success(), wrong == 0, "{text}");
    (text, wrong)
}

#[test]
#[ignore = "needs kernels"]
fn who_preempts_a_change_of_page_tables_finds_nothing_old_and_leaves_nothing() {
    for kernel in ["rt", "rt-fcse-guaranteed", "rt-fcse-best-effort"] {
        for (mode, _) in MODES {
            let (text, wrong) = preempted(kernel, mode, &[]);
            assert_eq!(wrong, 0, "{kernel}: {text}");
        }
    }
}

#[test]
#[ignore = "needs kernels"]
fn without_each_patch_who_preempts_finds_something_old_or_leaves_it() {
    for (mode, mutant) in MODES {
        let (text, wrong) = preempted("rt", mode, &["--mutant", &proofs_mutant(mutant)]);
        assert!(wrong > 0, "{mutant}: {text}");
    }
}

/// A new thread begins in the middle of an mremap(). The board has an ARM920T, whose TLB keeps entries longest.
#[test]
#[ignore = "needs kernels"]
fn a_thread_that_begins_while_pages_are_moved_finds_no_old_words() {
    let program = proof_for_armv4t("moved_first");
    let rounds = |kernel: &str, options: &[&str]| {
        let begin = ["guest", "--board", "at91rm9200", "--kernel", kernel];
        let command = ["--add", &program, "--", "moved_first 300"];
        let text = output_text(&warmswitch(&[&begin, options, &command].concat()));
        assert!(number_after(&text, "300 rounds, ") >= 100, "{text}");
        number_after(&text, "old words in ") + number_after(&text, "lost stores in ")
    };
    for kernel in ["rt-multi", "rt-fcse-multi", "rt-fcse-multi-best-effort"] {
        assert_eq!(rounds(kernel, &[]), 0, "{kernel}");
    }
    let mutant = proofs_mutant("rt-move-once");
    assert!(rounds("rt-multi", &["--mutant", &mutant]) > 0);
}

/// ksmd merges one of the pages of a process that has only one thread. ksmd is a kernel thread that uses the address
/// space of this process.
#[test]
#[ignore = "needs kernels"]
fn what_a_process_stores_in_the_middle_of_a_merge_of_its_page_stays() {
    let program = proof("ksm_store");
    let mutant = proofs_mutant("rt-copy-once");
    let stores = |kernel: &str, options: &[&str]| {
        let begin = ["guest", "--kernel", kernel, "--add", &program];
        let output = warmswitch(&[&begin, options, &["--", "ksm_store 1000 410 435"]].concat());
        let text = output_text(&output);
        let lost = number_after(&text, "1000 rounds, the store is lost in ");
        assert_eq!(output.status.success(), lost == 0, "{text}");
        lost
    };
    for kernel in ["rt", "rt-fcse-guaranteed", "rt-fcse-best-effort"] {
        assert_eq!(stores(kernel, &[]), 0, "{kernel}");
    }
    assert!(stores("rt", &["--mutant", &mutant]) > 0);
}
