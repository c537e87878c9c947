// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real-time kernels: threads of different priorities, one in the middle of what the kernel does for the other. Not in
//! `make test`, which builds none of them: `cargo xtask ci --all` runs these.

use crate::commands::{number_behind, proof, proofs_mutant, warmswitch};
use crate::fcse::said;

/// What the kernel does, and which mutant of `rt` leaves out what it does for it.
const MODES: [(&str, &str); 4] = [
    ("copy", "rt-copy-once"),
    ("enter", "rt-enter-unflushed"),
    ("alias", "rt-shared-cached"),
    ("move", "rt-move-once"),
];

/// What came of a thousand rounds, of which a hundred or more met the kernel.
fn preempted(kernel: &str, mode: &str, options: &[&str]) -> (String, u32) {
    let program = proof("preempted");
    let command = format!("preempted {mode} 1000");
    let begin = ["guest", "--kernel", kernel, "--add", &program];
    let output = warmswitch(&[&begin, options, &["--", &command]].concat());
    let text = said(&output);
    assert!(number_behind(&text, "1000 rounds, ") >= 100, "{text}");
    let wrong = number_behind(&text, "wrong in ");
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
