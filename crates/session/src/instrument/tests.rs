// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the instruments' tables.

use super::*;

fn check(name: &str, text: &str) -> Result<()> {
    let setup: Setup = toml::from_str(&format!("[{name}]\n{text}"))?;
    setup.check()
}

#[test]
fn what_cannot_be_built_is_refused_with_its_key() {
    let good = "steps = [{hz = 1000, s = 1.0}, {hz = 2000}]\nwidth_us = 10.0\nwindow_us = 500.0";
    check("scope", good).unwrap();
    for (from, to, word) in [
        ("s = 1.0", "s = -1.0", "scope.steps: s -1"),
        (", s = 1.0", "", "only the last step"),
        ("1000", "0", "hz 0"),
        ("10.0", "nan", "scope.width_us"),
        ("500.0", "0.0", "scope.window_us"),
        ("2000", "200000", "hz 200000: a period"),
        ("1.0}", "0.001}", "shorter than two"),
        ("2000", "1000", "occurs twice in the rising steps"),
    ] {
        let error = check("scope", &good.replace(from, to))
            .unwrap_err()
            .to_string();
        assert!(error.contains(word), "{to}: {error}");
    }
    let good =
        "mbit = 100\nasks = \"commands\"\njitter_percent = 50.0\nbytes = 64\nmeasures = \"reply\"";
    check("host", good).unwrap();
    for (from, to, word) in [
        ("mbit = 100", "mbit = 11", "host.mbit"),
        ("50.0", "101.0", "host.jitter_percent"),
        ("64", "1473", "host.bytes"),
        ("asks = \"commands\"\n", "", "host.measures"),
        ("\"reply\"", "\"period\"", "sends by itself"),
        ("\nmeasures = \"reply\"", "", "none of them measures"),
    ] {
        let error = check("host", &good.replace(from, to))
            .unwrap_err()
            .to_string();
        assert!(error.contains(word), "{to}: {error}");
    }
}

#[test]
fn points_that_differ_in_what_instruments_do_are_no_others_run() {
    let setup: Setup = toml::from_str("[host]\nmbit = 100\nasks = \"commands\"").unwrap();
    let identity = |hz| {
        let axes = [
            ("request_hz".to_string(), hz),
            ("duration_s".to_string(), 1),
        ];
        let point = Point {
            board: String::new(),
            kernel: String::new(),
            mode: String::new(),
            axes: axes.into(),
            seed: 1,
            layout: 0,
        };
        setup.identity(&point).unwrap()
    };
    assert_ne!(identity(100), identity(200));
    assert!(
        !identity(100).contains("duration_s"),
        "only the guest uses it"
    );
}
