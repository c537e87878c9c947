// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `profile` and `explain`. The sums must equal the cycles of the clock. Observing a board must not change its
//! cycles.

use std::collections::BTreeMap;
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

/// Sums the values of a key over all rows.
fn column(rows: &Value, key: &str) -> u64 {
    let rows = rows.as_array().expect("a list");
    rows.iter().map(|row| number(&row[key])).sum()
}

/// Returns a value in the output of `guest --counters`.
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
        charged_as_counted(board, "plain", command);
    }
}

/// Asserts that the cycles of all causes add up to the cycles of a run without the profiler. The cycles of all tasks,
/// and the cycles of all functions, must have the same sum.
pub fn charged_as_counted(board: &str, kernel: &str, command: &str) {
    let rest = ["--board", board, "--kernel", kernel, "--", command];
    let on = |verb: &[&str]| output(&[verb, &rest].concat());
    let (text, error, status) = on(&["guest", "--counters"]);
    assert_eq!(status, Some(0), "{error}");
    let (cycles, idle) = (counter(&text, "cycles"), counter(&text, "idle_cycles"));
    let (text, error, status) = on(&["profile", "--json"]);
    assert_eq!(status, Some(0), "{error}");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(number(&result["cycles"]), cycles, "{board}: {command}");
    assert_eq!(
        number(&result["causes"]["idle"]),
        idle,
        "{board}: {command}"
    );
    let took = number(&result["to_cycle"]) - number(&result["from_cycle"]);
    assert_eq!(took, cycles);
    assert_eq!(sum(&result["causes"]), cycles);
    assert_eq!(column(&result["tasks"], "cycles"), cycles);
    assert_eq!(column(&result["functions"], "cycles"), cycles);
}

#[test]
#[ignore = "needs the kernel"]
fn a_latency_is_the_sum_of_its_parts_whatever_they_are_told_by() {
    // The test runs once with load, and once on an idle board. Each command is one line. The line is quoted as one word
    // for the guest's shell.
    for command in [
        "hackbench -g 1 -l 100000 > /dev/null & cyclictest -l 80 -p 50 -q -h 1000",
        "cyclictest -l 80 -p 50 -q -h 1000",
    ] {
        latencies_are_the_sum_of_their_parts(command);
    }
}

fn latencies_are_the_sum_of_their_parts(command: &str) {
    let (text, error, status) = output(&["profile", "--json", "--worst", "5", "--", command]);
    assert_eq!(status, Some(0), "{error}");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert!(
        result["latency_task"]
            .as_str()
            .unwrap()
            .starts_with("cyclictest"),
        "{}",
        result["latency_task"]
    );
    let all = result["latency_cycles"].as_array().unwrap();
    assert!((72..=81).contains(&all.len()), "{} latencies", all.len());
    let worst = result["latencies"].as_array().unwrap();
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

/// Parses a message in protobuf's wire format. Returns each field's number, its value or length, and its bytes.
fn fields(mut message: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(from: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = from[0];
            *from = &from[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
        }
        panic!("a number is too long");
    }
    let mut all = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let value = varint(&mut message);
        let bytes = match key & 7 {
            0 => 0,
            2 => value as usize,
            other => panic!("wire type {other}"),
        };
        all.push((key >> 3, value, &message[..bytes]));
        message = &message[bytes..];
    }
    all
}

/// Returns one field of a message.
fn field(message: &[u8], number: u64) -> Option<(u64, &[u8])> {
    let found = fields(message).into_iter().find(|f| f.0 == number);
    found.map(|(_, value, bytes)| (value, bytes))
}

/// Event types of perfetto's track_event.proto: slice begin, slice end, instant.
const TYPES: [u64; 3] = [1, 2, 3];

/// Counts slices and instants. Asserts that each track is declared and that its slices do not overlap.
fn perfetto(file: &[u8]) -> (usize, usize) {
    let (mut tracks, mut open) = (Vec::new(), std::collections::BTreeMap::new());
    let (mut slices, mut instants) = (0, 0);
    for (number, _, packet) in fields(file) {
        assert_eq!(number, 1, "a packet");
        if let Some((_, track)) = field(packet, 60) {
            tracks.push(field(track, 1).unwrap().0);
            assert!(!field(track, 2).unwrap().1.is_empty(), "a track's name");
            continue;
        }
        let ns = field(packet, 8).unwrap().0;
        let (_, event) = field(packet, 11).unwrap();
        let track = field(event, 11).unwrap().0;
        assert!(tracks.contains(&track), "track {track} is declared");
        let kind = field(event, 9).unwrap().0;
        match TYPES.iter().position(|known| *known == kind) {
            Some(0) => assert!(open.insert(track, ns).is_none(), "a slice in a slice"),
            Some(1) => {
                assert!(open.remove(&track).unwrap() <= ns);
                slices += 1;
            }
            Some(2) => instants += 1,
            other => panic!("type {other:?}"),
        }
    }
    assert!(open.is_empty());
    (slices, instants)
}

#[test]
#[ignore = "needs the kernel"]
fn files_for_other_programs_have_every_cycle_and_the_worst_latencies() {
    let dir = std::env::temp_dir().join(format!("warmswitch-explain-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = |name: &str| dir.join(name).display().to_string();
    let names = ["folded", "callgrind", "perfetto"].map(path);
    let [folded, callgrind, trace] = &names;
    let command = [
        &["profile", "--json", "--worst", "2", "--cost"][..],
        &["--folded", folded, "--callgrind", callgrind],
        &["--perfetto", trace, "--"],
        &["cyclictest -l 50 -p 50 -q | wc"],
    ];
    let (text, error, status) = output(&command.concat());
    assert_eq!(status, Some(0), "{error}");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let cycles = number(&result["cycles"]);
    assert!(result["cost"]["ratio"].as_f64().unwrap() > 0.0);

    let folded = std::fs::read_to_string(folded).unwrap();
    let count = |line: &str| -> u64 { line.rsplit(' ').next().unwrap().parse().unwrap() };
    assert_eq!(folded.lines().map(count).sum::<u64>(), cycles);
    let sleeps = "cyclictest#2;(user land);vector_swi;sys_clock_nanosleep";
    let in_schedule = |line: &&str| line.contains(";schedule;__schedule;D-cache misses ");
    let mut of_sleeps = folded.lines().filter(|line| line.starts_with(sleeps));
    assert!(of_sleeps.any(|line| in_schedule(&line)));
    // In the stacks, the cycles of a function without its callees must equal the cycles in the table.
    let mut by_function: BTreeMap<&str, u64> = BTreeMap::new();
    for line in folded.lines() {
        let function = line.rsplit(';').nth(1).unwrap();
        *by_function.entry(function).or_default() += count(line);
    }
    for row in result["functions"].as_array().unwrap() {
        let function = row["name"].as_str().unwrap();
        assert_eq!(by_function[function], number(&row["cycles"]), "{function}");
    }
    let calls = "cyclictest#2;(user land);vector_swi;";
    let of_calls = folded.lines().filter(|line| line.starts_with(calls));
    let system_calls: u64 = of_calls.map(count).sum();

    let callgrind = std::fs::read_to_string(callgrind).unwrap();
    let events = callgrind.lines().find_map(|l| l.strip_prefix("events: "));
    let events = events.unwrap().split(' ').count();
    let (mut all, mut costs, mut called) = (0, 0, 0);
    let mut before = "";
    for text in callgrind.lines() {
        let is_call = std::mem::replace(&mut before, text).starts_with("calls=");
        let Some(line) = text.strip_prefix("0 ") else {
            continue;
        };
        let numbers: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        assert_eq!(numbers.len(), events);
        assert_eq!(numbers[1..].iter().sum::<u64>(), numbers[0]);
        match is_call {
            true => called += 1,
            false => (all, costs) = (all + numbers[0], costs + 1),
        }
    }
    let user = "fl=cyclictest#2\nfn=(user land)\n";
    let user = &callgrind[callgrind.find(user).unwrap()..];
    let call = &user[user.find("cfn=vector_swi\ncalls=").unwrap()..];
    let line = call.lines().find_map(|line| line.strip_prefix("0 "));
    let whole = line.unwrap().split(' ').next().unwrap();
    assert_eq!(whole.parse(), Ok(system_calls));
    assert_eq!(all, cycles);
    assert!(
        costs > 100 && called > 100 && callgrind.starts_with("# callgrind format\nversion: 1\n")
    );
    for line in [format!("summary: {cycles} "), format!("totals: {cycles} ")] {
        assert!(callgrind.contains(&line), "{line}");
    }

    let (slices, instants) = perfetto(&std::fs::read(trace).unwrap());
    assert!(slices > 500 && instants > 50, "{slices} {instants}");
    std::fs::remove_dir_all(&dir).unwrap();
}

/// An experiment with one run of three seconds. The run keeps a snapshot that is at least half a second earlier than
/// the later latencies.
const ONE: &str = r#"
format = 1
title = "one run"
workload = "cyclictest"
kernels = ["6.12/plain"]
limit_s = 60.0
modes = ["idle"]
[[plan]]
board = "sam9263"
duration_s = [3]
"#;

#[test]
#[ignore = "needs the kernel"]
fn a_latency_from_a_snapshot_along_the_run_is_that_of_the_whole_run() {
    let dir = std::env::temp_dir().join(format!("warmswitch-along-{}", std::process::id()));
    crate::make_project(&dir);
    std::fs::create_dir_all(dir.join("experiments/one")).unwrap();
    std::fs::write(dir.join("experiments/one/experiment.toml"), ONE).unwrap();
    let here = |arguments: &[&str]| {
        let output = Command::new(PROGRAM)
            .args(arguments)
            .current_dir(&dir)
            .output();
        let output = output.expect("the program runs");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{error}");
        (String::from_utf8(output.stdout).unwrap(), error)
    };
    let json = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    here(&["run", "one"]);
    let runs = std::fs::read_dir(dir.join("out/runs")).unwrap();
    let names = runs.map(|run| run.unwrap().file_name().into_string().unwrap());
    let [run] = &names.collect::<Vec<_>>()[..] else {
        panic!("one run")
    };
    let (text, error) = here(&["explain", run, "--json", "--sample", "2800"]);
    assert!(error.contains("repeated from its boot, "), "{error}");
    let whole = json(&text);
    let (text, error) = here(&["explain", run, "--json", "--only", "--sample", "2800"]);
    assert_eq!(error, "", "nothing is run from its boot");
    let only = json(&text);
    assert_eq!(whole["latency_task"], only["latency_task"]);
    assert_eq!(whole["latency_cycles"], only["latency_cycles"]);
    let (a, b) = (&whole["latencies"][0], &only["latencies"][0]);
    assert!(number(&b["from_snapshot"]) + 90_000_000 <= number(&b["from_cycle"]));
    for key in ["number", "line", "from_cycle", "to_cycle", "causes"] {
        assert_eq!(a[key], b[key], "{key}");
    }
    let phases = |latency: &Value| -> Vec<(String, u64)> {
        let phases = latency["phases"].as_array().unwrap().iter();
        phases
            .map(|p| (p["name"].to_string(), number(&p["cycles"])))
            .collect()
    };
    assert_eq!(phases(a), phases(b));
    assert_eq!(
        a["misses"].as_array().unwrap().len(),
        b["misses"].as_array().unwrap().len()
    );
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_run_that_is_not_there_is_named() {
    let (_, error, status) = output(&["explain", "nonesuch"]);
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("nonesuch: no run is"), "{error}");
}

/// A mutant in which the tick only counts time and does none of its other work.
const TICK: &str = r#"
[[mutant]]
name = "tick-without-its-work"
function = "tick_nohz_handler"
change = { skip-call = { callee = "update_process_times", which = 1 } }
why = "accounting, timers, RCU and the scheduler do not see the tick"
expect = "stale-read"
survives = "no maintenance is taken out: the cause of latencies is"
"#;

/// Returns the cycles of a function and its callees, in folded stacks.
fn inclusive(folded: &str, function: &str) -> u64 {
    let within = format!(";{function};");
    let lines = folded.lines().filter(|line| line.contains(&within));
    let count = |line: &str| line.rsplit(' ').next()?.parse::<u64>().ok();
    lines.filter_map(count).sum()
}

/// Every tenth wake-up comes just after a tick. `profile` must find that the tick makes this wake-up late, and by how
/// many cycles. Without the tick's work, these wake-ups must come earlier by this number of cycles.
#[test]
#[ignore = "needs the kernel"]
fn what_makes_latencies_long_is_named_and_without_it_they_are_not() {
    let dir = std::env::temp_dir().join(format!("warmswitch-cause-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let list = dir.join("tick.toml");
    std::fs::write(&list, TICK).unwrap();
    let mutant = format!("{}:tick-without-its-work", list.display());
    let run = |name: &str, mutant: &[&str]| {
        let file = |end: &str| dir.join(format!("{name}.{end}")).display().to_string();
        let (folded, calls) = (file("folded"), file("callgrind"));
        let head = ["profile", "--json", "--worst", "1", "--folded", &folded];
        let head = [&head[..], &["--callgrind", &calls]].concat();
        let command = "beside-load cyclictest -l 200 -p 50 -q --secaligned=900";
        let (text, error, status) = output(&[&head, mutant, &["--", command]].concat());
        assert_eq!(status, Some(0), "{error}");
        let result: Value = serde_json::from_str(&text).expect("JSON");
        let two = &result["populations"];
        assert_eq!(two["function"], "tick_nohz_handler", "{name}");
        let late = Vec::from_iter(two["with_cycles"].as_array().unwrap().iter().map(number));
        let worst = number(result["latency_cycles"].as_array().unwrap().last().unwrap());
        let read = |path| std::fs::read_to_string(path).unwrap();
        (late, worst, read(folded), read(calls))
    };
    let (late, worst, folded, calls) = run("as-it-is", &[]);
    let (less_late, less, without, _) = run("without", &["--mutant", &mutant]);
    std::fs::remove_dir_all(&dir).unwrap();
    assert!((18..=20).contains(&late.len()), "one of ten");
    assert_eq!(*late.last().unwrap(), worst);
    assert!(less < worst, "{less} {worst}");
    let named = ["update_process_times", "handle_softirqs"];
    assert!(named.iter().all(|name| inclusive(&without, name) == 0));
    let named: u64 = named.iter().map(|name| inclusive(&folded, name)).sum();
    let of_tick = calls.split("cfn=tick_nohz_handler\ncalls=").skip(1);
    let count = |text: &str| -> u64 { text.split(' ').next().unwrap().parse().unwrap() };
    let a_tick = named / of_tick.map(count).sum::<u64>();
    let earlier = late[late.len() / 2] - less_late[less_late.len() / 2];
    // A part of the softirq runs only after the task and does not delay it. Therefore, the share may be less than 1.
    let share = earlier as f64 / a_tick as f64;
    assert!((0.75..1.05).contains(&share), "{earlier} of {a_tick}");
}

/// Considers the functions whose sections another task ends, and selects the most frequent of these functions. Returns
/// the time of its longest section, in us. Also returns the entries of all functions.
fn longest_switch(kernel: &str) -> (f64, Vec<Value>) {
    let command = "lat_ctx -P -s 0 -n 100 2";
    let (text, error, code) = output(&[
        "profile",
        "--preempt-off",
        "--json",
        "--kernel",
        kernel,
        "--",
        command,
    ]);
    assert_eq!(code, Some(0), "{error}");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let all = document["sections"].as_array().expect("a list").clone();
    // The rare sections belong to switches at the end of a process.
    let switched = all.iter().filter(|section| section["switched"] == true);
    let own = switched.max_by_key(|section| number(&section["times"]));
    let us = own.and_then(|section| section["us"].as_f64());
    (us.expect("a switch"), all)
}

#[test]
#[ignore = "needs kernels"]
fn who_keeps_preemption_off_is_named_and_a_switch_does_for_a_shorter_time_with_fcse() {
    let (plain, sections) = longest_switch("plain");
    let (fcse, _) = longest_switch("fcse-guaranteed");
    assert!(fcse > 5.0 && fcse < plain, "{fcse} us, plain {plain} us");
    let is_switch = |section: &&Value| {
        let within = section["within"].as_array().expect("a list");
        within.iter().any(|call| call[0] == "cpu_arm926_switch_mm")
    };
    let switch = sections.iter().find(is_switch).expect("a switch");
    assert_eq!(switch["switched"], true, "{switch}");
    let times: u64 = sections.iter().map(|s| number(&s["times"])).sum();
    assert!(times > 1000, "{times} sections");
}
