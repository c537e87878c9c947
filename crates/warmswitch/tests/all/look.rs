// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `warmswitch look`. tests/tutorials.rs tests the lesson in docs/use/LESSON.md.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(dir: &Path, program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir);
    let output = command.stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}"))
}

fn warmswitch(dir: &Path, arguments: &[&str]) -> Output {
    run(dir, env!("CARGO_BIN_EXE_warmswitch"), arguments)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn wrong_usage_names_the_option_and_what_was_meant() {
    for (arguments, part) in [
        (&["--at", "f"][..], "<CMD>"),
        (&["--", "true"], "--at"),
        (&["--at", "0x8000@", "--", "true"], "not PC@CYCLE"),
        (
            &["--at", "8000 b", "--", "true"],
            "not PC, PC@CYCLE, @FILE or SYMBOL",
        ),
        (&["--at", "lr", "--", "true"], "--at: a register"),
        (&["--at", "f", "--nth", "0", "--", "true"], "--nth 0"),
        (
            &["--at", "0x8000@7", "--nth", "2", "--", "true"],
            "--nth 2: --at says",
        ),
        (
            &["--at", "f", "--until", "0x8000@7", "--", "true"],
            "--until: a cycle",
        ),
        (
            &["--at", "f", "--address", "r16", "--", "true"],
            "not a virtual address",
        ),
        (&["--at", "f", "--limit", "0", "--", "true"], "--limit 0"),
        (
            &["--at", "f", "--board", "sam9236", "--", "true"],
            "did you mean \"sam9263\"?",
        ),
        (
            &["--at", "f", "--mutant", "alias-no-flash", "--", "true"],
            "did you mean \"alias-no-flush\"?",
        ),
    ] {
        let output = warmswitch(Path::new("."), &[&["look"], arguments].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

#[test]
fn help_has_an_example_and_the_documents_name() {
    let help = text(&warmswitch(Path::new("."), &["look", "--help"]).stdout);
    for part in ["warmswitch look --add", "docs/use/LESSON.md"] {
        assert!(help.contains(part), "{help}");
    }
}

#[test]
#[ignore = "needs the kernel"]
fn a_place_that_is_not_reached_and_memory_that_is_not_there_are_named() {
    for (arguments, part) in [
        (
            &["--at", "start_kernal"][..],
            "--at start_kernal: no such function; did you mean \"start_kernel\"?",
        ),
        (
            &["--at", "start_kernel"],
            "was executed 0 times instead of 1: the command ended",
        ),
        (
            &["--at", "sys_read", "--address", "0x00000010"],
            "--address: nothing is mapped at 0x00000010",
        ),
    ] {
        let all = [&["look"], arguments, &["--", "true"]].concat();
        let output = warmswitch(Path::new("."), &all);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

#[test]
#[ignore = "needs the kernel"]
fn looking_changes_nothing() {
    let look = || {
        let arguments = ["look", "--at", "sys_read", "--address", "sp", "--", "true"];
        let output = warmswitch(Path::new("."), &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(look(), look(), "the same bytes twice");
}
