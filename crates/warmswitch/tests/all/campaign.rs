// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of campaigns that are killed, that fail or that fill the disk. No result may be lost, and no failure may be
//! silent.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::snapshot::undisturbed;
use crate::{Files, RUN_FEW, make_project, results};

/// Makes a project for a test.
fn project(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("warmswitch-{}-{name}", std::process::id()));
    make_project(&dir);
    dir
}

fn warmswitch(project: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warmswitch"));
    command.args(arguments).current_dir(project);
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

fn stored(files: &Files) -> usize {
    let is_run = |path: &&PathBuf| path.ends_with("run.json");
    files.keys().filter(is_run).count()
}

#[test]
#[ignore = "needs kernels"]
fn a_campaign_that_was_killed_goes_on_and_ends_with_the_same_bytes() {
    let killed = project("killed");
    let (uninterrupted, whole) = undisturbed();
    let mut child = warmswitch(&killed, &RUN_FEW)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    while stored(&results(&killed)) < 2 {
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before it was killed"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (then, all) = (stored(&results(&killed)), stored(whole));
    assert!(then < all, "{then} of {all} runs: nothing was left to do");
    let half_written = killed.join("out/campaigns/few/.full.json.4194305.ThreadId(2)");
    fs::write(half_written, b"{").unwrap();
    let resumed = output(&mut warmswitch(&killed, &RUN_FEW));
    assert_eq!(resumed.status.code(), uninterrupted.status.code());
    assert_eq!(resumed.stdout, uninterrupted.stdout);
    let resumed = results(&killed);
    assert!(whole.keys().eq(resumed.keys()), "{:?}", resumed.keys());
    for (path, content) in whole {
        assert!(resumed[path] == *content, "{} differs", path.display());
    }
    fs::remove_dir_all(killed).unwrap();
}

#[test]
#[ignore = "needs kernels"]
fn a_point_without_a_result_is_a_row_with_its_reason_and_its_consoles_log() {
    let dir = project("failed");
    let short = [&RUN_FEW[..], &["--limit", "0.001"]].concat();
    let failed = output(&mut warmswitch(&dir, &short));
    let text = String::from_utf8_lossy(&failed.stdout);
    assert_eq!(failed.status.code(), Some(1), "{text}");
    let row = "FAILED: s3c24a0 6.12/fcse-best-effort bw-vfork, mb 1, seed 1: waiting for";
    assert!(text.contains(row), "{text}");
    let log = text
        .split("console: ")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    let log = fs::read_to_string(dir.join(log.expect("a log is named"))).unwrap();
    assert!(log.contains("BusyBox"), "{log}");
    // The next campaign gives the point enough time, so the table of that campaign has no row for a failure.
    let good = output(&mut warmswitch(&dir, &RUN_FEW));
    assert!(!String::from_utf8_lossy(&good.stdout).contains("FAILED: s3c24a0 6.12"));
    let left = results(&dir)
        .into_keys()
        .filter(|path| path.ends_with("failed.txt"));
    assert_eq!(left.count(), 0);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
#[ignore = "needs kernels"]
fn a_disk_without_room_is_said_and_leaves_what_was_there() {
    let dir = project("full");
    assert!(
        output(&mut warmswitch(&dir, &RUN_FEW))
            .status
            .code()
            .is_some()
    );
    let before = results(&dir);
    // Limits files to 1 KB and ignores the signal SIGXFSZ, so that a write fails as on a full disk.
    let program = env!("CARGO_BIN_EXE_warmswitch");
    let script = format!("trap '' XFSZ; ulimit -f 2; exec {program} run few --seed 2");
    let full = output(Command::new("sh").args(["-c", &script]).current_dir(&dir));
    let message = String::from_utf8_lossy(&full.stderr);
    assert_eq!(full.status.code(), Some(2), "{message}");
    assert!(message.contains("cannot write out/"), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    let after = results(&dir);
    for (path, content) in before
        .iter()
        .filter(|(path, _)| !path.starts_with("out/campaigns"))
    {
        assert!(
            after.get(path) == Some(content),
            "{} is gone or changed",
            path.display()
        );
    }
    let table = output(&mut warmswitch(&dir, &["table", "few"]));
    assert!(
        table.status.code() != Some(2),
        "{}",
        String::from_utf8_lossy(&table.stderr)
    );
    fs::remove_dir_all(dir).unwrap();
}

/// Returns the value of a metric of a series in a campaign's JSON.
fn metric(printed: &serde_json::Value, series: &str, metric: &str) -> f64 {
    let all = printed["figures"].as_array().expect("a list");
    let found = all
        .iter()
        .find(|m| m["series"] == series && m["metric"] == metric);
    let found = found.unwrap_or_else(|| panic!("no {metric} of {series}: {printed}"));
    found["value"].as_f64().expect("a number")
}

/// Runs the quick form of an experiment in a project. Returns the JSON output.
fn quick(project: &Path, name: &str) -> serde_json::Value {
    let arguments = ["run", name, "--quick", "--json", "--jobs", "2"];
    let output = output(&mut warmswitch(project, &arguments));
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).expect(&error)
}

/// Runs in our own project, because later tests of `make test` compare the `--quick` campaigns of this project with
/// those of other projects.
#[test]
#[ignore = "needs kernels"]
fn every_command_over_the_network_is_answered() {
    let replies = quick(Path::new(env!("CARGO_MANIFEST_DIR")), "packet_reply");
    assert_eq!(metric(&replies, "reply", "answered"), 100.0);
    // The frame of a command takes about 9 us on the cable. After that, the board has to receive the frame, wake the
    // task and answer.
    assert!(metric(&replies, "reply", "min") > 50.0, "{replies}");
}

#[test]
#[ignore = "needs kernels"]
fn experiments_with_instruments_answer_and_write_the_same_bytes_twice() {
    // Earlier tests may have left these runs in our project. The other project measures the runs again, with equal
    // results.
    let (ours, again) = (
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        project("instruments"),
    );
    let latency = quick(&ours, "irq_latency");
    let both = ["interrupt", "task"].map(|series| metric(&latency, series, "min"));
    assert!(0.0 < both[0] && both[0] < both[1], "{latency}");
    assert_eq!(quick(&again, "irq_latency"), latency);
    let files = results(&again);
    assert!(files.len() >= 3, "{:?}", files.keys());
    for (name, bytes) in files {
        assert!(fs::read(ours.join(&name)).unwrap() == bytes, "{name:?}");
    }
    let period = quick(&ours, "packet_period");
    assert_eq!(metric(&period, "period", "answered"), 100.0);
    let average = metric(&period, "period", "avg");
    assert!((average - 500.0).abs() < 1.0, "{period}");
    let rate = quick(&ours, "irq_rate");
    let calm = metric(&rate, "rising", "answered");
    let most = metric(&rate, "falling", "answered");
    assert!(calm > 99.9 && most < calm, "{rate}");
    fs::remove_dir_all(again).unwrap();
}

#[test]
fn a_board_that_cannot_boot_the_kernels_is_refused_before_they_are_built() {
    for (experiment, board, help) in [
        (
            "switch-cost",
            "sam9263-ek",
            "`warmswitch run switch-cost-sam9263-ek` measures on sam9263-ek",
        ),
        (
            "switch-cost-sam9263-ek",
            "sam9263",
            "the experiment is made for sam9263-ek",
        ),
    ] {
        let output = crate::commands::warmswitch(&["run", experiment, "--board", board]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(help), "{text}");
    }
}
