// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of instruments on a board that runs Linux.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// Runs `warmswitch VERB` with these options. Returns its JSON, and the content of the file that `option` writes.
fn recorded(verb: &str, option: &str, options: &[&str], guest: &[&str]) -> (Value, Vec<u8>) {
    // The tests of this file run at the same time, so each run gets its own file.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("warmswitch-{verb}-{}-{n}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args([verb, "--json", option])
        .arg(&path)
        .args(options)
        .arg("--")
        .args(guest)
        .output()
        .expect("the program starts");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    let file = std::fs::read(&path).expect("the file is there");
    std::fs::remove_file(&path).expect("it can go");
    (serde_json::from_slice(&output.stdout).expect("JSON"), file)
}

/// Runs `warmswitch scope`. Returns its JSON and its VCD file.
fn scope(options: &[&str], guest: &str) -> (Value, String) {
    let guest: Vec<&str> = guest.split(' ').collect();
    let (result, vcd) = recorded("scope", "--vcd", options, &guest);
    (result, String::from_utf8(vcd).expect("text"))
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
    let guest = "lat_ctx -P -g pl061@101e4000 -s 4 -n 20 -r 6 -l 1000 4";
    let (result, vcd) = scope(&options, guest);
    assert_eq!(result["pulses_sent"], 20 + 100);
    assert_eq!(result["triggers"], 6, "one a timed section");
    assert_eq!(result["edges_lost"], 0);
    assert!(vcd.contains("$timescale 1 ns $end"), "{vcd}");
    assert_eq!((result, vcd), scope(&options, guest));
}

const SOME_PINGS: &str = "sh -c 'ping -c 3 -i 0.1 10.0.0.1 && sleep 0.5'";

/// Runs `warmswitch net`. Returns its JSON and its pcapng file.
fn net(options: &[&str], guest: &str) -> (Value, Vec<u8>) {
    recorded("net", "--pcapng", options, &[guest])
}

#[test]
#[ignore = "needs the kernel"]
fn the_board_pings_its_host_and_is_pinged_at_both_rates() {
    // The host takes 10 us from the last bit of a request to the first bit of the answer.
    for (mbit, answered_us) in [("100", 18.8), ("10", 98.0)] {
        let options = ["--mbit", mbit, "--ping-hz", "200", "--ping-seconds", "0.5"];
        let (result, file) = net(&options, SOME_PINGS);
        assert_eq!(result["host_requests"], 100);
        assert_eq!(result["host_answers"], 100);
        assert_eq!(result["board_answers_us"]["count"], 100);
        assert_eq!(result["host_answers_us"]["count"], 4);
        assert_eq!(result["host_answers_us"]["min"], answered_us);
        assert_eq!(result["to_board"]["no_room"], 0);
        let again = net(&options, SOME_PINGS);
        assert!((result, file) == again, "two runs differ");
    }
}

#[test]
#[ignore = "needs the kernel"]
fn five_seconds_of_flood_are_answered_or_counted() {
    let (result, _) = net(&["--flood", "--ping-seconds", "5"], "sleep 5.5");
    let number = |v: &Value| v.as_u64().expect("a number");
    let requests = number(&result["host_requests"]);
    let dropped = number(&result["to_board"]["no_room"]);
    assert!(requests > 5_000, "{result}");
    assert_eq!(
        number(&result["host_answers"]) + dropped,
        requests,
        "{result}"
    );
    assert_eq!(result["frames_lost"], 0);
}

#[test]
#[ignore = "needs the kernel"]
fn a_programs_period_is_what_it_was_told() {
    let (result, _) = net(&[], "udp_period 1 10.0.0.1 2000");
    let periods = &result["program_periods_us"];
    assert_eq!(periods["count"], 499, "{result}");
    let mean = periods["avg"].as_f64().expect("a number");
    assert!((1990.0..2010.0).contains(&mean), "{result}");
}

#[test]
#[ignore = "needs kernels"]
fn the_latency_driver_answers_every_pulse_and_recovers_from_too_many() {
    let options = [
        "--kernel",
        "plain-latency",
        "--hz",
        "1000,50000,1000",
        "--seconds",
        "0.5",
    ];
    let (result, _) = scope(&options, "latency-under-load 1.4 0 pl061@101e4000");
    let rate = |n: usize, key: &str| result["rates"][n][key].as_u64().expect("a number");
    for calm in [0, 2] {
        assert!(rate(calm, "pulses") > 50, "{result}");
        // At the end of a step, the answer to the last pulse may still be on its way.
        assert!(rate(calm, "without_second") <= 2, "{result}");
    }
    assert!(rate(1, "pulses") > 20_000, "{result}");
    assert!(rate(1, "without_second") > 20_000, "{result}");
    assert_eq!(result["edges_lost"], 0);
    let output = result["output"].as_str().expect("text");
    assert!(output.contains("\"irq_threads\":2"), "{output}");
}
