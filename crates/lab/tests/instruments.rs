// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruments on a board that runs Linux.

use std::process::Command;

/// Runs `warmswitch scope` with these options; what it prints as JSON, and the VCD it writes.
fn scope(options: &[&str], guest: &str) -> (serde_json::Value, String) {
    let name = format!("warmswitch-scope-{}.vcd", std::process::id());
    let path = std::env::temp_dir().join(name);
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["scope", "--json", "--vcd"])
        .arg(&path)
        .args(options)
        .arg("--")
        .args(guest.split(' '))
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let vcd = std::fs::read_to_string(&path).expect("the file is there");
    std::fs::remove_file(&path).expect("it can go");
    (serde_json::from_slice(&output.stdout).expect("JSON"), vcd)
}

#[test]
#[ignore = "needs the kernel"]
fn a_scope_sees_generator_and_guest_and_two_runs_write_the_same_bytes() {
    let options = [
        "--channels",
        "2,0,1",
        "--trigger",
        "0",
        "--hz",
        "1000,5000",
        "--seconds",
        "0.02",
        "--jitter-us",
        "5",
        "--depth",
        "100",
    ];
    let guest = "lat_ctx -P -g -s 4 -n 20 -r 6 -l 1000 4";
    let (result, vcd) = scope(&options, guest);
    assert_eq!(result["pulses_sent"], 20 + 100);
    assert_eq!(result["triggers"], 6, "one a timed section");
    assert_eq!(result["edges_lost"], 0);
    assert!(vcd.contains("$timescale 1 ns $end"), "{vcd}");
    assert_eq!((result, vcd), scope(&options, guest));
}
