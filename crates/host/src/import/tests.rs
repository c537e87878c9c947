// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests with files as the programs write them.

use super::*;
use results::figures::figure::Measured;
use results::runs::point::Place;

/// Document of cyclictest 2.40 with two threads. The first thread has latencies beyond its histogram.
const CYCLICTEST: &str = r#"{"file_version": 1, "cmdline:": "cyclictest", "sysinfo": {"machine": "armv5tejl", "release": "6.12.1"},
  "num_threads": 2, "resolution_in_ns": 0, "thread": {
    "0": {"histogram": {"14": 3, "9": 1, "20": 4}, "cycles": 9, "min": 9, "max": 586, "avg": 82.5, "cpu": 0},
    "1": {"histogram": {"11": 10}, "cycles": 10, "min": 11, "max": 11, "avg": 11.0, "cpu": 1}}}"#;

pub const RTLA: &str = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:02\n\
Index   IRQ-001   Thr-001   Usr-001   IRQ-002   Thr-002   Usr-002\n\
0          1000       944         0       999       998         0\n\
10            0        55       990         0         1       990\n\
20            0         1         8         0         0         9\n\
over:         0         0         2         0         0         0\n\
count:     1000      1000      1000       999       999       999\n\
min:          0         3        10         0         2        10\n\
avg:          1         7        12         0         2        11\n\
max:          7        21       240         3        11        25\n\
ALL:        IRQ       Thr       Usr\ncount:     1999      1999      1999\n";

fn value(machine: &Machine, what: &str) -> f64 {
    let found = machine.items.iter().find(|item| item.what == what);
    found
        .unwrap_or_else(|| panic!("no {what} in {:?}", machine.items))
        .estimate
        .value
}

#[test]
fn cyclictests_threads_come_together_and_latencies_beyond_the_histogram_count() {
    let machine = read(CYCLICTEST).unwrap();
    assert!(machine.is_arm && machine.about.contains("6.12.1"));
    assert_eq!(value(&machine, "timer, min"), 9.0);
    assert_eq!(value(&machine, "timer, max"), 586.0);
    let average = value(&machine, "timer, avg");
    assert!(
        (average - (82.5 * 9.0 + 110.0) / 19.0).abs() < 0.01,
        "{average}"
    );
    // Without -h, there are three figures and a note.
    let no_bins = r#"{"file_version":1,"cmdline:":"cyclictest","sysinfo":{},"thread":{"0":{"cycles":9,"min":9,"max":58,"avg":12.5}}}"#;
    let machine = read(no_bins).unwrap();
    assert_eq!((machine.items.len(), machine.notes.len()), (3, 1));
    assert_eq!(value(&machine, "timer, avg"), 12.5);
}

#[test]
fn rtlas_tasks_of_user_land_are_taken_before_the_kernels_threads() {
    let machine = read(RTLA).unwrap();
    assert_eq!(value(&machine, "timer, task, max"), 240.0);
    assert_eq!(value(&machine, "timer, task, p50"), 10.0);
    assert!(machine.notes.is_empty());
    let without = RTLA.replace("Usr-", "Xxx-");
    let machine = read(&without).unwrap();
    assert_eq!(value(&machine, "timer, kernel's thread, max"), 21.0);
    assert!(machine.notes[0].contains("-u"));
    let (whole, _) = RTLA.split_once("ALL:").unwrap();
    let stopped = format!(
        "{whole}rtla timerlat hit stop tracing\n## CPU 1 hit stop tracing, analyzing it ##\n"
    );
    assert_eq!(value(&read(&stopped).unwrap(), "timer, task, max"), 240.0);
    let (no_summary, _) = RTLA.split_once("over:").unwrap();
    assert!(format!("{:#}", read(no_summary).unwrap_err()).contains("--no-summary"));
    let ns = RTLA.replace("microseconds (us)", "nanoseconds (ns)");
    assert_eq!(value(&read(&ns).unwrap(), "timer, task, max"), 0.0);
}

#[test]
fn what_is_none_of_these_or_damaged_is_an_error_that_says_what_is_read() {
    let error = |text: &str| format!("{:#}", read(text).unwrap_err());
    for text in ["hello", "[1, 2]", "{}", "\u{0}\u{1}"] {
        let said = error(text);
        for form in FORMS {
            assert!(said.contains(form.name), "{text}: {said}");
        }
    }
    assert!(error("{}").starts_with("the file is JSON in an unknown form"));
    assert!(error("{\"tool\": \n").contains("EOF while parsing a value at line 2"));
    assert!(error(&RTLA.replace("944", "inf")).contains("line 5: \"0          1000       inf"));
    assert!(error(&RTLA.replace("944", "nine")).contains("not a number: nine"));
    assert!(error(&RTLA.replace("944", "943")).contains("column Thr-001: 999"));
    assert!(error(&RTLA.replace("10            0", "10 ")).contains("6 values, not 5"));
    assert!(error(&RTLA.replace("Index", "")).contains("--no-index"));
    let (_, headless) = RTLA.split_once("Index").unwrap();
    assert!(error(headless).contains("--no-header"));
    assert!(error(&RTLA.replace("microseconds", "fortnights")).contains("fortnights"));
    assert!(error(&CYCLICTEST.replace("\"14\": 3", "\"x\": 3")).contains("a bin"));
    assert!(
        error(&CYCLICTEST.replace("\"file_version\": 1", "\"file_version\": 2"))
            .contains("file_version 2")
    );
    let below = CYCLICTEST.replace("\"max\": 11", "\"max\": -1");
    assert!(
        error(&below).contains("a thread's \"max\" is -1"),
        "{}",
        error(&below)
    );
    let huge = CYCLICTEST.replace("\"max\": 11", "\"max\": 1e300");
    assert!(
        error(&huge).contains("from 0 to 4294967295"),
        "{}",
        error(&huge)
    );
    assert!(error(&CYCLICTEST.replace("\"cycles\": 9", "\"cycles\": 7")).contains("counts 8"));
    let document = r#"{"format":1,"tool":"ctx","machine":{},"measured":{"runs":[{"what":7}]}}"#;
    assert!(read(document).is_err());
    let document = r#"{"format":2,"tool":"ctx","machine":{},"measured":{}}"#;
    assert!(error(document).contains("format 2"));
}

#[test]
fn a_document_stands_beside_the_figures_that_mean_the_same() {
    let document = r#"{"format":1,"tool":"ctx","machine":{"architecture":"armv5tejl","processor":"ARM926","kernel":"6.6"},"measured":{"runs":[
        {"what":"2 processes, 0 KB","command":["lat_ctx"],"printed":{"mode":"process","tasks":2,"size_kb":0},
         "figures":[{"at":"","metric":"switch","unit":"us","value":100.0,"low":90.0,"high":110.0},
                    {"at":"","metric":"hop","unit":"us","value":120.0,"low":120.0,"high":120.0}]}]}}
        {"format":1,"tool":"memory","machine":{"architecture":"armv5tejl","processor":"ARM926","kernel":"6.6"},"measured":{"runs":[
        {"what":"memory","command":["memory"],"printed":{"sizes":[{"kb":4},{"kb":8}]},
         "figures":[{"at":"4 KB","metric":"load min","unit":"ns","value":15.5,"low":15.5,"high":15.5},
                    {"at":"4 KB","metric":"read max","unit":"MB/s","value":260,"low":1,"high":1},
                    {"at":"4 KB","metric":"write max","unit":"MB/s","value":410,"low":1,"high":1}]}]}}"#;
    let machine = read(document).unwrap();
    assert!(machine.is_arm);
    assert_eq!(machine.memory.len(), 1, "8 KB has no figures");
    assert_eq!(
        (machine.memory[0].kb, machine.memory[0].write_mb_s),
        (4, 410.0)
    );
    let ours = |mode: &str, tasks: u32, value: f64| {
        Measured::switch(
            Place {
                board: "sam9263".into(),
                kernel: "6.12/plain".into(),
                mode: mode.into(),
                axes: [("size_kb".to_string(), 0), ("tasks".to_string(), tasks)].into(),
                ..Place::default()
            },
            value,
        )
    };
    let measured = [
        ours("thread", 2, 40.0),
        ours("process", 2, 150.0),
        ours("process", 8, 180.0),
    ];
    let part = machine.beside("switch-cost", &measured).unwrap();
    let [table] = &part.tables[..] else {
        panic!("one table")
    };
    assert_eq!(
        table.rows,
        [[
            "ctx: 2 processes, 0 KB, switch",
            "100 (90.0..110) us",
            "150 (1.50)"
        ]]
    );
    assert!(machine.beside("ipc", &measured).is_none());
}
