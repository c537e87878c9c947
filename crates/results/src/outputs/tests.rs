// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of figures from the output of guests and instruments.

use super::*;
use crate::figures::measure;
use crate::runs::for_tests::made_up_run;
use crate::runs::instrument_record::{InstrumentRecord, Series};

/// Formats these latencies as cyclictest prints them.
fn printed(us: &[(u32, u64)]) -> String {
    let bins: String = us
        .iter()
        .map(|(us, n)| format!("{us:06} {n:06}\n"))
        .collect();
    let total: u64 = us.iter().map(|(_, n)| n).sum();
    let (min, max) = (us[0].0, us.last().unwrap().0);
    format!(
        "# Histogram\n{bins}# Total: {total}\n# Min Latencies: {min}\n# Avg Latencies: 0\n\
         # Max Latencies: {max}\n# Histogram Overflows: 0\n"
    )
}

fn latency_run(seed: u64, us: &[(u32, u64)]) -> Run {
    let mut run = made_up_run("sam9263", "process", 0, 2, 60.0);
    run.point.seed = seed;
    run.kind = "cyclictest".into();
    run.output = printed(us);
    run
}

fn measured(runs: &[Run]) -> (Vec<Measured>, Warnings) {
    measure::measured(runs, checked(runs).unwrap())
}

#[test]
fn seeds_make_one_figure_with_their_range() {
    let runs = [
        latency_run(1, &[(10, 500), (20, 500)]),
        latency_run(2, &[(12, 999), (90, 1)]),
    ];
    let (figures, warnings) = measured(&runs);
    let of = |name: &str| figures.iter().find(|f| f.metric == name);
    let max = of("max").unwrap();
    assert_eq!((max.low, max.value, max.high), (20.0, 90.0, 90.0));
    let min = of("min").unwrap();
    assert_eq!((min.low, min.value, min.high), (10.0, 10.0, 12.0));
    assert!((of("avg").unwrap().value - 13.539).abs() < 1e-9);
    assert_eq!(of("p99").unwrap().value, 20.0);
    assert!(of("p99.99").is_none(), "2000 samples are too few");
    assert!(
        warnings
            .texts()
            .join("\n")
            .contains("too few samples for p99.9 and p99.99")
    );
}

#[test]
fn each_series_of_instruments_is_a_figure_of_its_own() {
    let mut run = made_up_run("sam9263", "load", 0, 2, 60.0);
    run.point.axes.clear();
    let task = Series::new("task", 4, vec![50_000, 70_000]);
    let mut rising = Series::new("rising", 0, vec![]);
    rising.at.insert("hz".into(), 1000);
    run.kind = "instruments".into();
    run.seen = Some(InstrumentRecord {
        series: vec![Series::new("interrupt", 4, vec![10_000; 4]), task, rising],
        screen: None,
    });
    let (figures, _) = measured(&[run]);
    let of = |series: &str, metric: &str| {
        let mut found = figures.iter();
        let found = found.find(|f| f.place.series == series && f.metric == metric);
        found.map(|f| f.value)
    };
    assert_eq!(of("interrupt", "answered"), Some(100.0));
    assert_eq!(of("task", "answered"), Some(50.0));
    assert_eq!(
        (of("task", "min"), of("task", "avg")),
        (Some(50.0), Some(60.0))
    );
    assert_eq!(of("rising", "answered"), None, "nobody asked");
    assert_eq!(figures[0].place.what(), "load, interrupt");
    let known = named("instruments").unwrap().metrics();
    assert!(figures.iter().all(|f| known.contains(&f.metric)));
}

#[test]
fn rings_give_the_median_switch_of_each_mode() {
    let runs = [
        made_up_run("sam9263", "process", 0, 2, 100.0),
        made_up_run("sam9263", "thread", 0, 2, 40.0),
    ];
    let (figures, _) = measured(&runs);
    assert_eq!(figures.len(), 2);
    assert!((figures[1].value - 40.05).abs() < 1e-9);
}

#[test]
fn a_run_whose_output_is_not_whole_is_named() {
    let mut run = latency_run(1, &[(10, 5)]);
    assert_eq!(checked(&[run.clone()]).unwrap().name(), "cyclictest");
    run.output.truncate(12);
    let error = checked(&[run.clone()]).unwrap_err().to_string();
    assert!(
        error.contains(&run.hash) && error.contains("damaged"),
        "{error}"
    );
    run.kind = "cyclictests".into();
    let error = checked(&[run]).unwrap_err().to_string();
    assert!(error.contains("did you mean \"cyclictest\"?"), "{error}");
}

#[test]
fn every_kind_has_its_place_in_the_document_of_exports() {
    let exports = include_str!("../../../../docs/use/EXPORTS.md");
    for kind in ALL {
        let quoted = format!("`{}`", kind.name());
        assert!(exports.contains(&quoted), "{quoted}");
    }
}
