// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of kernels without address spaces. Programs for flat kernels must run. Other programs must be rejected. `cargo
//! xtask ci --all` runs these tests. `make test` does not.

use crate::commands::{PROOFS, compiled, number_after, scratch, warmswitch};
use crate::fcse::output_text;
use std::process::Command;

/// Runs a command on the kernel `flat`. Returns the output and the exit code.
fn on_flat(verb: &str, options: &[&str], command: &str) -> (String, Option<i32>) {
    let begin = [verb, "--kernel", "flat"];
    let output = warmswitch(&[&begin, options, &["--", command]].concat());
    (output_text(&output), output.status.code())
}

#[test]
#[ignore = "needs kernels"]
fn pipes_threads_and_programs_run_and_the_checker_has_nothing_to_say() {
    let command = "sh -c 'ipc lat -v -n 300 -r 1 && ipc bw -v -m 1 -r 1 && lat_ctx -T -s 4 -n 100 -r 1 8 && \
                   cat /bin/busybox | wc -c && grep Linux /proc/version'";
    for victims in ["random", "late"] {
        let (text, code) = on_flat("coherence", &["--victims", victims], command);
        assert_eq!(code, Some(0), "{text}");
        assert!(
            text.contains("lat_fifo") && text.contains("bw_pipe"),
            "{text}"
        );
        assert!(text.contains("Linux version"), "{text}");
        assert_eq!(number_after(&text, "\"tasks\":"), 8, "{text}");
        assert!(text.contains("\n0 reports;"), "{text}");
    }
}

#[test]
#[ignore = "needs kernels"]
fn who_forks_gets_einval() {
    for command in ["ipc lat -f -n 10", "lat_ctx -P -s 0 -n 10 2"] {
        let (text, code) = on_flat("guest", &[], command);
        assert!(text.contains("Invalid argument"), "{text}");
        assert_eq!(code, Some(1), "{text}");
    }
}

#[test]
#[ignore = "needs kernels"]
fn a_program_that_cannot_run_is_refused_and_which_can_is_said() {
    let dir = scratch("flat");
    let source = "#include <stdio.h>\nint main(void) { return puts(\"hi\") < 0; }\n";
    for (name, flags, why) in [
        ("dynamic", &[][..], "it is dynamic"),
        ("fixed", &["-static"][..], "it runs at one address only"),
    ] {
        let program = compiled(&dir, name, source, flags);
        let (text, code) = on_flat("guest", &["--add", program.to_str().unwrap()], name);
        assert!(
            text.contains(why) && text.contains("cc --for flat"),
            "{text}"
        );
        assert_eq!(code, Some(2), "{text}");
    }
}

#[test]
#[ignore = "needs kernels"]
fn a_bad_pointer_is_an_error_and_the_kernel_goes_on() {
    let dir = scratch("flat-pointers");
    let program = dir.join("flat_pointers");
    let built = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["cc", "--for", "flat", "-o"])
        .arg(&program)
        .arg(format!("{PROOFS}/flat_pointers.c"))
        .status();
    assert!(built.unwrap().success());
    let options = ["--limit", "60", "--add", program.to_str().unwrap()];
    let (text, code) = on_flat("guest", &options, "flat_pointers");
    assert!(text.contains("\n0 wrong"), "{text}");
    assert_eq!(code, Some(0), "{text}");
}
