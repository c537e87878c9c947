// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrong usage and wrong files: a clear message and exit code 2, never a panic.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn warmswitch(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

/// Asserts exit code 2 and that the message has all `parts`.
fn refused(arguments: &[&str], parts: &[&str]) {
    let output = warmswitch(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    for part in parts {
        assert!(
            message.contains(part),
            "{arguments:?}: no {part:?} in: {message}"
        );
    }
    assert!(!message.contains("panicked"), "{message}");
}

fn scratch(name: &str, content: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("warmswitch-{}-{name}", std::process::id()));
    std::fs::write(&path, content).expect("the temporary directory takes a file");
    path
}

#[test]
fn a_wrong_name_is_answered_with_the_nearest_one() {
    refused(
        &["run", "switch-cots"],
        &["switch-cots", "did you mean \"switch-cost\"?"],
    );
    refused(&["table", "swich-cost"], &["did you mean \"switch-cost\"?"]);
    refused(
        &["boot", "--board", "sam9623"],
        &["did you mean \"sam9263\"?"],
    );
    refused(
        &["run", "switch-cost", "--board", "s3c24ao"],
        &["did you mean \"s3c24a0\"?"],
    );
    refused(&["kernel", "build", "6.12/plian"], &["plian", "plain"]);
}

#[test]
fn wrong_usage_is_exit_code_2() {
    refused(&[], &["Usage"]);
    refused(&["dance"], &["dance"]);
    refused(&["run", "switch-cost", "--jobs", "0"], &["--jobs 0"]);
    refused(&["boot", "--limit=-3"], &["--limit"]);
    refused(&["boot", "--limit", "nan"], &["--limit"]);
}

#[test]
fn a_file_that_is_no_kernel_is_refused_by_name() {
    let text = scratch(
        "text",
        b"this is no kernel, it is a line of text that is long enough",
    );
    let empty = scratch("empty", b"");
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(256, 0);
    elf[18] = 62;
    let foreign = scratch("elf", &elf);
    let dtb = scratch("dtb", &smallest_tree());
    let initrd = scratch("initrd", SOME_ARCHIVE);
    for kernel in [&text, &empty, &foreign] {
        let kernel = kernel.to_str().expect("a plain path");
        let [dtb, initrd] = [&dtb, &initrd].map(|path| path.to_str().expect("a plain path"));
        let arguments = ["boot", "--kernel", kernel, "--dtb", dtb, "--initrd", initrd];
        refused(&arguments, &[kernel]);
    }
    refused(
        &[
            "boot",
            "--kernel",
            "/nowhere/zImage",
            "--dtb",
            "/nowhere/dtb",
        ],
        &["/nowhere"],
    );
    refused(&["boot", "--kernel", "./zImage"], &["--dtb"]);
}

#[test]
fn a_board_file_with_a_mistake_is_named_with_its_key() {
    let missing = scratch("missing.toml", b"name = \"x\"\n");
    let unknown = scratch("unknown.toml", b"nmae = \"x\"\n");
    let missing = missing.to_str().expect("a plain path");
    let unknown = unknown.to_str().expect("a plain path");
    refused(&["boot", "--board", missing], &[missing]);
    refused(&["boot", "--board", unknown], &[unknown, "nmae"]);
    refused(
        &["boot", "--board", "/nowhere/b.toml"],
        &["/nowhere/b.toml"],
    );
}

#[test]
fn what_there_is_can_be_listed_for_people_and_for_programs() {
    let output = warmswitch(&["list", "--json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let lists: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(output.status.success());
    for (list, name) in [
        ("boards", "sam9263"),
        ("kernels", "6.12/plain"),
        ("workloads", "lat_ctx"),
        ("experiments", "switch-cost"),
    ] {
        let entries = lists[list].as_array().expect("a list");
        assert!(
            entries.iter().any(|entry| entry["name"] == name),
            "{list}: {text}"
        );
    }
}

/// Looks as if it were compressed.
const SOME_ARCHIVE: &[u8] = b"\x1f\x8b\x08";

/// A device tree with a root and nothing else but its cell sizes.
fn smallest_tree() -> Vec<u8> {
    let strings = b"#address-cells\0#size-cells\0";
    let structure: [u32; 12] = [1, 0, 3, 4, 0, 1, 3, 4, 15, 1, 2, 9];
    let structure_at = 56;
    let strings_at = structure_at + 4 * structure.len() as u32;
    let total = strings_at + strings.len() as u32;
    let header = [
        0xd00d_feed,
        total,
        structure_at,
        strings_at,
        40,
        17,
        16,
        0,
        strings.len() as u32,
        4 * structure.len() as u32,
        0,
        0,
        0,
        0,
    ];
    let words = header.iter().chain(&structure);
    let mut tree: Vec<u8> = words.flat_map(|w| w.to_be_bytes()).collect();
    tree.extend(strings);
    tree
}

#[test]
fn a_guest_that_sleeps_for_ever_ends_at_the_limit_though_input_may_still_come() {
    // mov r0, r0; wait for interrupt; b . -- and zeros, as a raw image of that size.
    let code = [0xe1a0_0000u32, 0xee07_0f90, 0xeaff_fffe];
    let mut image: Vec<u8> = code.iter().flat_map(|w| w.to_le_bytes()).collect();
    image.resize(0x2000, 0);
    let kernel = scratch("asleep", &image);
    let tree = scratch("asleep.dtb", &smallest_tree());
    let initrd = scratch("asleep.gz", SOME_ARCHIVE);
    let mut boot = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["boot", "--limit", "0.3", "--kernel"])
        .arg(&kernel)
        .arg("--dtb")
        .arg(&tree)
        .arg("--initrd")
        .arg(&initrd)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let open = boot.stdin.take();
    let output = boot.wait_with_output().expect("the program ends");
    drop(open);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("waits for an interrupt that nothing can raise"),
        "{message}"
    );
}

#[test]
fn output_that_cannot_be_written_is_a_message_and_no_panic() {
    let full = std::fs::File::create("/dev/full").expect("Linux has one");
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .arg("list")
        .stdout(full)
        .output()
        .expect("the program starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("cannot write the output"), "{message}");
}

#[test]
fn messages_that_cannot_be_written_are_dropped_and_the_exit_code_stays() {
    let shell = |redirected: &str| {
        let program = env!("CARGO_BIN_EXE_warmswitch");
        let line = format!("'{program}' boot --board nonsuch {redirected}");
        let ended = Command::new("sh").args(["-c", &line]).status();
        ended.expect("a shell starts").code()
    };
    for redirected in [
        "2>&-",
        "2>/dev/full",
        ">&- 2>&-",
        ">/dev/full 2>/dev/full",
        "<&- >&- 2>&-",
    ] {
        assert_eq!(shell(redirected), Some(2), "{redirected}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_program_as_a_shell_counts_it() {
    let program = env!("CARGO_BIN_EXE_warmswitch");
    // The second command ends without reading; the pipe takes less than all completions.
    let line = format!("{{ '{program}' completions bash; echo $? >&2; }} | true");
    let output = Command::new("sh").args(["-c", &line]).output();
    let message = output.expect("a shell starts").stderr;
    assert_eq!(String::from_utf8_lossy(&message).trim(), "141");
}
