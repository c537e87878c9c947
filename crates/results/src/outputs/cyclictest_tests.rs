// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the exports against the files of Debian's cyclictest.

use super::*;
use crate::runs::for_tests::made_up_runs;
use serde_json::{Value, json};

fn run_of(command: &str, histogram: &Histogram) -> Run {
    let mut run = made_up_runs().remove(0);
    run.provenance.command = command.into();
    run.kind = "cyclictest".into();
    run.output = rt_tests_text(&run, histogram);
    run
}

#[test]
fn a_histogram_has_rt_tests_fields_and_lines() {
    let histogram = Histogram {
        us: vec![(3, 2), (12, 1)],
        overflows: 0,
        max_us: 12,
        avg_us: 6,
    };
    let run = run_of("cyclictest -D 1 -q -h 14", &histogram);
    let document: Value = serde_json::from_str(&rt_tests_json(&run, &histogram)).unwrap();
    let thread = json!({
        "histogram": {"3": 2, "12": 1},
        "cycles": 3, "min": 3, "max": 12, "avg": 6.0, "cpu": 0, "node": -1,
    });
    assert_eq!(document["thread"], json!({ "0": thread }));
    assert_eq!(document["cmdline:"], "cyclictest -D 1 -q -h 14");
    let text = rt_tests_text(&run, &histogram);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 14 + 5);
    assert_eq!((lines[4], lines[5]), ("000003 000002", "000004 000000"));
    assert_eq!(lines[15], "# Total: 000000003");
    assert_eq!(read(&text).unwrap(), histogram);
}

#[test]
fn every_run_has_files_of_its_own() {
    let runs = made_up_runs();
    let mut stems: Vec<String> = runs.iter().map(file_stem).collect();
    assert_eq!(stems[0], "sam9263-6.12-plain-process-size_kb0-tasks2-seed1");
    stems.sort();
    stems.dedup();
    assert_eq!(stems.len(), runs.len());
}

#[test]
fn an_average_is_rounded_as_printf_rounds() {
    // The double nearest to 63.495 is smaller than 63.495, so "%.2f" writes 63.49.
    let h = Histogram {
        us: vec![(63, 505), (64, 495)],
        max_us: 64,
        avg_us: 63,
        ..Histogram::default()
    };
    assert_eq!(format!("{}", average(&h)), "63.49");
}

const CYCLICTEST: &str = "# /dev/cpu_dma_latency set to 0us\r\n# Histogram\r\n000000 000000\r\n\
    000001 000007\r\n000002 000003\r\n# Total: 000000010\r\n# Min Latencies: 00001\r\n\
    # Avg Latencies: 00021\r\n# Max Latencies: 00199\r\n# Histogram Overflows: 00001\r\n\
    # Histogram Overflow at cycle number:\r\n# Thread 0: 00004\r\n";

#[test]
fn every_latency_of_cyclictest_is_kept_also_those_beyond_the_histogram() {
    let h = read(CYCLICTEST).unwrap();
    assert_eq!(h.us, [(1, 7), (2, 3)]);
    assert_eq!(
        (h.overflows, h.max_us, h.avg_us, h.total()),
        (1, 199, 21, 11)
    );
    let cut = CYCLICTEST.replace("000002 000003\r\n", "");
    assert!(read(&cut).is_err());
    assert!(read("T: 0").is_err());
}
