// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `warmswitch coverage` as a program.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn coverage(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .arg("coverage")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

fn document(arguments: &[&str]) -> Value {
    let output = coverage(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns whether a site of this function was not reached.
fn lacks(document: &Value, function: &str) -> bool {
    let unreached = document["inside"]["unreached"].as_array().expect("a list");
    unreached.iter().any(|site| site["function"] == function)
}

fn reached(document: &Value) -> u64 {
    let sites = &document["inside"]["total"]["sites"];
    sites["reached"].as_u64().expect("a number")
}

#[test]
fn wrong_usage_is_named_and_ends_with_2() {
    for (arguments, part) in [
        (&["--limit", "0"][..], "--limit 0"),
        (&["--kernel", "plane"], "did you mean \"plain\"?"),
    ] {
        let output = coverage(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(part), "{message}");
    }
}

#[test]
#[ignore = "needs the kernel"]
fn a_kernel_without_symbols_is_named() {
    // A damaged kernel cannot be unpacked, so no table of symbols is found in it.
    let mut image = std::fs::read(crate::plain_kernel("zimage")).expect("the kernel");
    let quarter = image.len() / 4;
    image[quarter..quarter + 64].fill(0x55);
    let alone = std::env::temp_dir().join(format!("warmswitch-alone-{}", std::process::id()));
    std::fs::create_dir_all(&alone).expect("the temporary directory takes one");
    let image_alone = alone.join("zImage");
    std::fs::write(&image_alone, image).expect("a file");
    let dtb = crate::plain_kernel("dtb");
    let paths = [&image_alone, &dtb].map(|path| path.to_str().expect("a plain name"));
    let output = coverage(&["--kernel", paths[0], "--dtb", paths[1]]);
    std::fs::remove_dir_all(&alone).expect("it is there");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("no vmlinux with symbols"), "{message}");
}

#[test]
#[ignore = "needs the kernel"]
fn a_site_is_reached_by_the_program_that_leads_there_and_kept_in_a_file() {
    // Linux calls this function when a process maps one page twice.
    let function = "do_adjust_pte";
    let file = std::env::temp_dir().join(format!("warmswitch-cov-{}.json", std::process::id()));
    let file = file.to_str().expect("a plain name");
    let before = document(&["--json", "--", "true"]);
    assert!(lacks(&before, function), "{before}");
    let test = ["mm_suite", "--only", "alias_wide", "--rounds", "1"];
    let with = document(&[&["--json", "--save", file, "--"], &test[..]].concat());
    assert!(!lacks(&with, function), "{with}");
    assert!(reached(&with) > reached(&before));
    let later = document(&["--json", "--with", file]);
    assert_eq!(later["inside"], with["inside"]);
    let output = coverage(&["--kernel", "fcse-guaranteed", "--with", file]);
    std::fs::remove_file(file).expect("it is there");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("of another kernel"), "{message}");
}
