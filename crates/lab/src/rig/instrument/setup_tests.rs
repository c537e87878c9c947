// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an experiment may ask of instruments.

use super::super::tables::Step;
use super::*;

fn scope(text: &str) -> Result<()> {
    let table: ScopeTable = toml::from_str(text)?;
    let scope = Some(&table);
    Setup { scope, host: None }.check()
}

fn host(text: &str) -> Result<()> {
    let table: HostTable = toml::from_str(text)?;
    let host = Some(&table);
    Setup { scope: None, host }.check()
}

#[test]
fn what_cannot_be_built_is_refused_with_its_key() {
    let good = "steps = [{hz = 1000, s = 1.0}, {hz = 2000}]\nwidth_us = 10.0\nwindow_us = 500.0";
    scope(good).unwrap();
    for (from, to, word) in [
        ("s = 1.0", "s = -1.0", "scope.steps: s -1"),
        (", s = 1.0", "", "only the last"),
        ("1000", "0", "hz 0"),
        ("10.0", "nan", "scope.width_us"),
        ("500.0", "0.0", "scope.window_us"),
        ("2000", "200000", "hz 200000: a period"),
        ("1.0}", "0.001}", "shorter than two"),
        ("2000", "1000", "twice on one way"),
    ] {
        let error = scope(&good.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(word), "{to}: {error}");
    }
    let good =
        "mbit = 100\nasks = \"commands\"\njitter_percent = 50.0\nbytes = 64\nmeasures = \"reply\"";
    host(good).unwrap();
    for (from, to, word) in [
        ("mbit = 100", "mbit = 11", "host.mbit"),
        ("50.0", "101.0", "host.jitter_percent"),
        ("64", "1473", "host.bytes"),
        ("asks = \"commands\"\n", "", "host.measures"),
        ("\"reply\"", "\"period\"", "sends by itself"),
        ("\nmeasures = \"reply\"", "", "nothing else measures"),
    ] {
        let error = host(&good.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(word), "{to}: {error}");
    }
}

#[test]
fn points_that_differ_in_what_instruments_do_are_no_others_run() {
    let table: HostTable = toml::from_str("mbit = 100\nasks = \"commands\"").unwrap();
    let setup = Setup {
        scope: None,
        host: Some(&table),
    };
    let identity = |hz| {
        let axes = [(REQUEST_HZ.to_string(), hz), ("duration_s".to_string(), 1)];
        let point = Point {
            board: String::new(),
            kernel: String::new(),
            mode: String::new(),
            axes: axes.into(),
            seed: 1,
        };
        setup.identity(&point).unwrap()
    };
    assert_ne!(identity(100), identity(200));
    assert!(!identity(100).contains("duration_s"), "that is the guest's");
}

#[test]
fn a_pulse_counts_from_the_tasks_first_wait_to_its_last_answer() {
    let edge = |cycle, pin, level| Edge { cycle, pin, level };
    let mut edges = vec![
        edge(5, STIMULUS, true),
        edge(10, SERVING, true),
        edge(15, STIMULUS, false),
    ];
    assert!(served(&edges).is_empty(), "it never answered");
    edges.extend([edge(40, ANSWERED, true), edge(80, ANSWERED, false)]);
    edges.push(edge(90, SERVING, false));
    assert_eq!(served(&edges), 10..81);
    assert_eq!(answers(&edges), [40, 80]);
}

fn pulse(at: u64, task: Option<u64>) -> Pulse {
    Pulse {
        at,
        interrupt: Some(1),
        task,
    }
}

#[test]
fn a_late_answer_belongs_to_the_pulse_that_was_handled() {
    let cycles = [
        (10, STIMULUS),
        (12, ANSWER),
        (15, ANSWER),
        (16, ANSWERED),
        (20, STIMULUS),
        (21, ANSWER),
        (30, STIMULUS),
        (31, ANSWER),
        (32, ANSWERED),
        (34, ANSWER),
        (40, STIMULUS),
        (41, ANSWER),
        (43, ANSWER),
        (44, ANSWERED),
    ];
    let mut level = false;
    let edges: Vec<Edge> = cycles
        .into_iter()
        .map(|(cycle, pin)| {
            level ^= pin == ANSWERED;
            let level = level || pin != ANSWERED;
            Edge { cycle, pin, level }
        })
        .collect();
    let told: Vec<_> = pulses(&edges)
        .iter()
        .map(|p| (p.at, p.interrupt, p.task))
        .collect();
    let expected = [
        (10, Some(2), Some(5)),
        (20, Some(1), Some(11)),
        (30, Some(4), None),
        (40, Some(1), Some(3)),
    ];
    assert_eq!(told, expected);
}

#[test]
fn latencies_are_those_of_handler_and_task() {
    let pulses = [pulse(150, Some(2)), pulse(250, None), pulse(350, Some(4))];
    let series = latencies(&pulses, 100);
    let ns = 1_000_000_000 / 100;
    assert_eq!((series[0].asked, &*series[0].ns), (3, &[(ns, 3)][..]));
    assert_eq!(series[1].ns, [(2 * ns, 1), (4 * ns, 1)]);
    assert_eq!(series[1].answered, 2);
}

#[test]
fn answers_belong_to_the_frequency_of_their_time() {
    let step = |hz, s| Step { hz, s };
    let table = ScopeTable {
        steps: vec![step(10, Some(1.0)), step(20, Some(1.0)), step(10, None)],
        width_us: 1.0,
        jitter_us: 0.0,
        window_us: 1.0,
    };
    let pulses = [150, 250, 299, 350].map(|at| pulse(at, Some(1)));
    let series = table.shares(&pulses, &[155, 200, 310, 360], 100, 100);
    let told: Vec<_> = series
        .iter()
        .map(|s| (s.name.as_str(), s.at["hz"], s.asked, s.answered))
        .collect();
    let expected = [
        ("rising", 10, 1, 1),
        ("rising", 20, 2, 1),
        ("falling", 10, 1, 1),
    ];
    assert_eq!(told, expected);
}
