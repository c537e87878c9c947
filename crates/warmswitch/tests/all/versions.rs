// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of versions of Linux other than 6.12. `cargo xtask ci --all` runs these tests. `make test` does not build the
//! kernels.

use crate::commands::{number_after, proof, warmswitch};
use crate::fcse::output_text;

/// Versions, each with the tests of `mm_suite` that fail because of bugs in the version's own source.
const VERSIONS: [(&str, &[&str]); 2] = [("7.3", &["mem_own_text"]), ("6.1", &[])];

#[test]
#[ignore = "needs kernels"]
fn the_suite_passes_with_fcse_in_both_modes_and_the_checker_has_nothing_to_say() {
    for (version, not_there) in VERSIONS {
        for mode in ["guaranteed", "best-effort"] {
            let kernel = format!("{version}/fcse-{mode}");
            let suite = "mm_suite --quick --skip churn";
            let text = output_text(&warmswitch(&[
                "coherence",
                "--kernel",
                &kernel,
                "--",
                suite,
            ]));
            assert!(text.contains("\n0 reports;"), "{kernel}: {text}");
            let failed = text.lines().filter_map(|line| {
                let rest = line.strip_prefix("not ok ")?.split_once(" - ")?.1;
                (!rest.contains("# TODO")).then_some(rest)
            });
            let unexpected: Vec<&str> = failed.filter(|test| !not_there.contains(test)).collect();
            assert!(unexpected.is_empty(), "{kernel}: {unexpected:?}");
        }
    }
}

/// Returns the number of wrong rounds of `preempted`.
fn preempted(kernel: &str, what: &str) -> u32 {
    let program = proof("preempted");
    let command = format!("preempted {what} 100");
    let options = ["guest", "--kernel", kernel, "--add", &program];
    let text = output_text(&warmswitch(&[&options[..], &["--", &command]].concat()));
    number_after(&text, "wrong in ")
}

/// Linux 7.3 offers PREEMPT_RT on cores with virtually addressed caches, without the fixes of the series `rt`.
#[test]
#[ignore = "needs kernels"]
fn known_to_fail_preempt_rt_of_7_3_on_these_caches() {
    for what in ["enter", "alias", "move"] {
        let wrong = preempted("7.3/rt", what);
        assert!(
            wrong > 0,
            "{what}: fixed? then mark it in LINUX-FINDINGS.md"
        );
    }
}

#[test]
#[ignore = "needs kernels"]
fn preempt_rt_of_7_3_with_its_fixes_corrupts_nothing() {
    for what in ["copy", "enter", "alias", "move"] {
        assert_eq!(preempted("7.3/rt-fixes", what), 0, "{what}");
    }
}

#[test]
#[ignore = "needs kernels"]
fn what_is_mended_in_plain_7_3_is_right() {
    for command in ["trunc_tail 50", "ksm_store 600 225 325"] {
        let program = proof(command.split(' ').next().expect("a name"));
        for (kernel, right) in [("7.3/plain-fixes", true), ("7.3/plain", false)] {
            let options = [
                "guest", "--kernel", kernel, "--add", &program, "--", command,
            ];
            let output = warmswitch(&options);
            assert_eq!(
                output.status.success(),
                right,
                "{kernel}: {}",
                output_text(&output)
            );
        }
    }
}
