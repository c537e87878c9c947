// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where cycles went: the sums are the clock's, and a board that is looked at takes the cycles of one that is not.

use std::process::Command;

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_warmswitch");

fn output(arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .output()
        .expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    )
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value}: no number"))
}

fn sum(values: &Value) -> u64 {
    let object = values.as_object().expect("an object");
    object.values().map(number).sum()
}

/// Sum of a key of all rows.
fn column(rows: &Value, key: &str) -> u64 {
    let rows = rows.as_array().expect("a list");
    rows.iter().map(|row| number(&row[key])).sum()
}

/// A value of what `guest --counters` says.
fn counter(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(word, _)| *word == name);
    let value = found.and_then(|(_, value)| value.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[test]
#[ignore = "needs the kernel"]
fn every_cycle_is_charged_and_they_are_those_of_a_board_nobody_looks_at() {
    for (board, command) in [
        ("sam9263", "lat_ctx -P -s 0 -n 200 2"),
        ("omap1610", "lat_ctx -P -s 0 -n 200 2"),
        ("sam9263", "hackbench -g 1 -l 2"),
        (
            "s3c24a0",
            "cyclictest -l 50 -p 50 -q | wc; cat; ls -l /proc",
        ),
    ] {
        let on = |verb: &[&str]| output(&[verb, &["--board", board, "--", command]].concat());
        let (text, error, status) = on(&["guest", "--counters"]);
        assert_eq!(status, Some(0), "{error}");
        let (cycles, idle) = (counter(&text, "cycles"), counter(&text, "idle_cycles"));
        let (text, error, status) = on(&["profile", "--json"]);
        assert_eq!(status, Some(0), "{error}");
        let said: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(number(&said["cycles"]), cycles, "{board}: {command}");
        assert_eq!(number(&said["causes"]["idle"]), idle, "{board}: {command}");
        let took = number(&said["to_cycle"]) - number(&said["from_cycle"]);
        assert_eq!(took, cycles);
        assert_eq!(sum(&said["causes"]), cycles);
        assert_eq!(column(&said["tasks"], "cycles"), cycles);
        assert_eq!(column(&said["functions"], "cycles"), cycles);
    }
}

#[test]
#[ignore = "needs the kernel"]
fn a_latency_is_the_sum_of_its_parts_whatever_they_are_told_by() {
    // Beside a load, and on an idle board by one line that is quoted as a whole for the guest's shell.
    for command in [
        "hackbench -g 1 -l 100000 > /dev/null & cyclictest -l 200 -p 50 -q -h 1000",
        "cyclictest -l 200 -p 50 -q -h 1000",
    ] {
        latencies_are_the_sum_of_their_parts(command);
    }
}

fn latencies_are_the_sum_of_their_parts(command: &str) {
    let (text, error, status) = output(&["profile", "--json", "--worst", "5", "--", command]);
    assert_eq!(status, Some(0), "{error}");
    let said: Value = serde_json::from_str(&text).expect("JSON");
    assert!(
        said["latency_task"]
            .as_str()
            .unwrap()
            .starts_with("cyclictest"),
        "{}",
        said["latency_task"]
    );
    let all = said["latency_cycles"].as_array().unwrap();
    assert!((180..=201).contains(&all.len()), "{} latencies", all.len());
    let worst = said["latencies"].as_array().unwrap();
    assert_eq!(worst.len(), 5);
    assert_eq!(worst[0]["cycles"], all[all.len() - 1]);
    for latency in worst {
        let cycles = number(&latency["cycles"]);
        assert_eq!(sum(&latency["causes"]), cycles);
        assert_eq!(column(&latency["phases"], "cycles"), cycles);
        for phase in latency["phases"].as_array().unwrap() {
            assert_eq!(column(&phase["places"], "cycles"), number(&phase["cycles"]));
        }
    }
}

#[test]
fn a_run_that_is_not_there_is_named() {
    let (_, error, status) = output(&["explain", "nonesuch"]);
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("nonesuch: no run is"), "{error}");
}
