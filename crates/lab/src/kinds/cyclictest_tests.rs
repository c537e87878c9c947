// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exports beside what Debian's cyclictest itself writes.

use super::*;
use crate::base::boards;
use crate::rig::boot::Recipe;
use crate::rig::session::Session;
use crate::runs::for_tests::made_up_runs;
use crate::runs::markers;
use crate::supply::kernel;
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

/// What the program printed in a guest: its JSON, its text.
fn printed(session: &mut Session, command: &str) -> (Value, String) {
    let measured = session.run_guest(command, 60.0).unwrap();
    let console = String::from_utf8_lossy(&measured.console).replace('\r', "");
    let (output, status) = markers::between_markers(&console).unwrap();
    assert_eq!(status, 0, "{output}");
    let (json, text) = output.split_at(output.find("# Histogram").unwrap());
    let json = &json[json.find('{').unwrap()..];
    (serde_json::from_str(json).unwrap(), text.to_string())
}

fn keys(value: &Value) -> Vec<&String> {
    value.as_object().unwrap().keys().collect()
}

#[test]
fn an_average_is_rounded_as_printf_rounds() {
    // 63.495 has no double: the nearest lies below, and "%.2f" writes 63.49.
    let h = Histogram {
        us: vec![(63, 505), (64, 495)],
        max_us: 64,
        avg_us: 63,
        ..Histogram::default()
    };
    assert_eq!(format!("{}", average(&h)), "63.49");
}

#[test]
#[ignore = "needs the kernel"]
fn both_forms_are_what_cyclictest_itself_writes() {
    let kernel = kernel::build(&kernel::Request {
        name: "plain".into(),
        ..kernel::Request::default()
    })
    .unwrap();
    let board = boards::load("sam9263").unwrap().0;
    let boot = Recipe::of("plain").prepare(&board).unwrap().boot();
    let booted = Session::boot(&board, 1, &boot).unwrap();
    // The second has latencies beyond its last bin.
    for bins in [1000, 60] {
        let command = format!("cyclictest -D 1 -p 50 -q -h {bins} --json=-");
        let (theirs, text) = printed(&mut booted.clone(), &command);
        let h = read(&text).unwrap();
        assert_eq!(h.overflows > 0, bins == 60);
        let mut run = run_of(&command, &h);
        run.provenance.kernel_version = kernel.record.release.clone();
        let ours: Value = serde_json::from_str(&rt_tests_json(&run, &h)).unwrap();
        assert_eq!(keys(&ours), keys(&theirs));
        assert_eq!(keys(&ours["sysinfo"]), keys(&theirs["sysinfo"]));
        for key in ["file_version", "cmdline:", "return_code", "num_threads"] {
            assert_eq!(ours[key], theirs[key], "{key}");
        }
        for key in ["sysname", "release", "machine", "realtime"] {
            assert_eq!(ours["sysinfo"][key], theirs["sysinfo"][key], "{key}");
        }
        assert_eq!(ours["resolution_in_ns"], theirs["resolution_in_ns"]);
        let (mut ours, mut theirs) = (ours["thread"].clone(), theirs["thread"].clone());
        if h.overflows > 0 {
            let [ours, theirs] = [&mut ours, &mut theirs].map(|t| t["0"]["avg"].take());
            assert!((ours.as_f64().unwrap() - theirs.as_f64().unwrap()).abs() <= 1.0);
        }
        assert_eq!(ours, theirs);
        let known = text.split("# Histogram Overflow at").next().unwrap();
        assert_eq!(rt_tests_text(&run, &h), known);
    }
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
