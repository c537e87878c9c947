// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests with files from the field, which are in `fixtures`, and with variants of them.

use super::*;
use results::figures::figure::Measured;
use results::runs::point::Place;

pub const SIGNALTEST: &str = include_str!("fixtures/signaltest.json");
pub const HISTOGRAM: &str = include_str!("fixtures/cyc-hist.txt");
pub const JSON: &str = include_str!("fixtures/cyc-json-stdout.txt");
pub const PLAIN: &str = include_str!("fixtures/cyc-plain.txt");
pub const OLD_LOG: &str = include_str!("fixtures/dmesg-2.6.22.txt");
pub const LOG: &str = include_str!("fixtures/dmesg-6.x.txt");
pub const HACKBENCH: &str = include_str!("fixtures/hackbench.txt");
pub const LMBENCH: &str = include_str!("fixtures/lmbench-ctx.txt");
/// Two screens of `rtla timerlat top -u`. The second screen shows two processors.
pub const TOP: &str = "\u{1b}c\u{1b}[2;37;40m                     Timer Latency          \u{1b}[0;0;0m\n\
  0 00:00:01   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)      |    Ret user Timer Latency (us)\n\
CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max |      cur       min       avg       max\n\
  0 #100       |        2         1         2        40 |        9         5         8        90 |       11         7        10        99\n\
\u{1b}c                     Timer Latency\n\
  0 00:00:02   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)      |    Ret user Timer Latency (us)\n\
CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max |      cur       min       avg       max\n\
  0 #300       |        2         1         2        40 |        9         5         8        90 |       11         7        10       120\n\
  1 #100       |        2         1         2        40 |        9         5         8        90 |       11         6        30        60\n\
---------------|----------------------------------------|----------------------------------------|---------------------------------------\n\
ALL #400    e0 |                  1         2        40 |                  5         8        90 |                  6        15       120\n";

fn of(text: &str) -> Machine {
    bytes_of(text.as_bytes()).unwrap_or_else(|error| panic!("{error:#}"))
}

fn error(text: &str) -> String {
    format!("{:#}", bytes_of(text.as_bytes()).unwrap_err())
}

fn values(machine: &Machine) -> Vec<(&str, f64, &str)> {
    let items = machine.items.iter();
    let each = items.map(|i| (i.what.as_str(), i.estimate.value, i.unit.as_str()));
    each.collect()
}

fn value(machine: &Machine, what: &str) -> f64 {
    let all = values(machine);
    let found = all.iter().find(|(name, ..)| *name == what);
    found.unwrap_or_else(|| panic!("no {what} in {all:?}")).1
}

#[test]
fn case_12_another_program_of_rt_tests_is_refused_by_its_name() {
    let said = error(SIGNALTEST);
    assert!(said.contains("\"cmdline:\" says signaltest"), "{said}");
    for program in [
        "cyclicdeadline",
        "/usr/bin/ptsematest",
        "./pmqtest",
        "sigwaittest",
        "svsematest",
    ] {
        let said = error(&SIGNALTEST.replace("signaltest -p", &format!("{program} -p")));
        let name = program.rsplit('/').next().unwrap();
        assert!(said.contains(&format!("says {name},")), "{said}");
    }
    let said = error(&SIGNALTEST.replace("signaltest -p", "mytest -p"));
    assert!(
        said.contains("says mytest: use the output of cyclictest"),
        "{said}"
    );
    assert!(error(&SIGNALTEST.replace("cmdline:", "x")).contains("no \"cmdline:\""));
    // The boards' own documents have the command line as typed on the board.
    let ours = SIGNALTEST.replace("signaltest -p", "beside-load /usr/bin/cyclictest -p");
    assert_eq!(value(&of(&ours), "timer, max"), 512.0);
    // Text output of other programs of rt-tests.
    let said = error("T: 0 ( 812) P:80 C:  60000 Min:     38 Act:   44 Avg:   48 Max:     512\n");
    assert!(said.starts_with("line 1: signaltest"), "{said}");
    let said = error("T: 0 ( 812) I:1000 C:  60000 Min:     38 Act:   44 Avg:   48 Max:     512\n");
    assert!(said.starts_with("line 1: cyclicdeadline"), "{said}");
    let said = error(
        "#0: ID9, P80, CPU0, I1000; #1: ID8, P80, CPU0, Cycles 99\n#1 -> #0, Min    1, Cur    2, Avg    2, Max   48\n",
    );
    assert!(said.starts_with("line 2: ptsematest, "), "{said}");
}

#[test]
fn case_13_cyclictests_histogram_text_is_read() {
    let machine = of(HISTOGRAM);
    assert_eq!(value(&machine, "timer, min"), 38.0);
    assert_eq!(value(&machine, "timer, avg"), 48.0);
    assert_eq!(value(&machine, "timer, p50"), 41.0);
    assert_eq!(value(&machine, "timer, p99.9"), 140.0);
    assert_eq!(value(&machine, "timer, max"), 512.0);
    // The histogram has more information than the lines printed during the run, so these lines are ignored.
    assert_eq!(
        values(&of(&format!("{PLAIN}{HISTOGRAM}"))),
        values(&machine)
    );
    let twice = error(&HISTOGRAM.repeat(2));
    assert!(
        twice.starts_with("lines 3 and 163: two results of cyclictest"),
        "{twice}"
    );
    let cut = HISTOGRAM.find("# Max").unwrap();
    assert!(error(&HISTOGRAM[..cut]).contains("without its line \"# Max Latencies\""));
}

#[test]
fn case_13_cyclictests_lines_are_read_and_a_threads_last_one_counts() {
    let machine = of(PLAIN);
    assert_eq!(
        values(&machine),
        [
            ("timer, min", 38.0, "us"),
            ("timer, avg", 48.0, "us"),
            ("timer, max", 512.0, "us")
        ]
    );
    assert!(machine.notes[0].contains("-h"), "{:?}", machine.notes);
    let line = |n: u32, count: u32, avg: u32, max: u32| {
        format!(
            "T:{n:2} (  801) P:80 I:1000 C:{count:7} Min:      9 Act:   44 Avg:{avg:5} Max:{max:8}\r\n"
        )
    };
    let screens = [
        line(0, 10, 20, 30),
        "\u{1b}[1A".into(),
        line(0, 30, 20, 50),
        line(1, 10, 60, 70),
    ];
    let machine = of(&screens.concat());
    assert_eq!(
        (value(&machine, "timer, avg"), value(&machine, "timer, max")),
        (30.0, 70.0)
    );
    let said = error(&[line(0, 30, 1, 9), line(0, 10, 1, 9)].concat());
    assert!(
        said.contains("line 2: ") && said.contains("two calls"),
        "{said}"
    );
    let ns =
        "T: 0 (  801) P:80 I:1000 C:  60000 Min:  38000 Act:   44000 Avg:   48500 Max:  512000\n";
    assert_eq!(value(&of(ns), "timer, avg"), 48.5);
    assert!(error(&line(0, 0, 0, 0)).contains("no thread has woken"));
    assert!(error(&PLAIN.replace("Min:     38", "Min:     -3")).contains("-3 is not from 0"));
    assert!(error(&PLAIN.replace("   512", "512999999999")).contains("line 5: "));
    let cut = PLAIN.find("Avg").unwrap();
    assert!(
        error(&PLAIN[..cut]).contains("no \"Avg:\"; expected T: N (PID)"),
        "{}",
        error(&PLAIN[..cut])
    );
}

#[test]
fn case_13_json_on_standard_output_is_read_with_what_stands_around_it() {
    let machine = of(JSON);
    assert!(machine.about.contains("6.6.51-rt42") && machine.is_arm);
    assert_eq!(value(&machine, "timer, p50"), 41.0);
    // Without -q, cyclictest's lines come before the document. With -h, its histogram comes after the document.
    let around = format!("{PLAIN}{JSON}{HISTOGRAM}");
    assert_eq!(values(&of(&around)), values(&machine));
    let cut = error(&JSON[..JSON.len() / 2]);
    assert!(
        cut.contains(": line 10: the document ends too soon"),
        "{cut}"
    );
    let (_, headless) = JSON.split_once("{\n").unwrap();
    assert!(error(headless).contains("without its beginning"));
    assert!(error(&JSON.repeat(2)).contains("two results of cyclictest"));
}

#[test]
fn case_14_a_boot_logs_speeds_are_read_from_any_kernel_and_behind_any_prefix() {
    let machine = of(LOG);
    assert_eq!(machine.about, "boot log of ARM926EJ-S");
    assert_eq!(value(&machine, "xor, arm4regs"), 629.0);
    assert_eq!(value(&machine, "raid6, int32x1"), 60.0);
    assert_eq!((machine.items.len(), machine.notes.len()), (7, 0));
    assert!(
        machine
            .items
            .iter()
            .all(|i| i.unit == "MB/s" && i.experiment == "memory")
    );
    let behind = |prefix: &str| {
        let lines = LOG
            .lines()
            .map(|line| format!("{prefix}{}\r\n", &line[15..]));
        of(&lines.collect::<String>())
    };
    for prefix in [
        "kern  :info  : [    0.310011] ",
        "<6>[    0.310011] ",
        "[    0.310011][    T1] ",
        "[Mon Jan 12 00:00:00 2026] ",
        "Jan 12 00:00:00 board kernel: ",
        "",
    ] {
        assert_eq!(values(&behind(prefix)), values(&machine), "{prefix}");
    }
    let chosen = "raid6: using algorithm int32x4 gen() 80 MB/s\nraid6: .... xor() 41 MB/s, rmw enabled\n\
                  xor: using function: arm4regs (629 MB/sec)\n";
    assert_eq!(
        values(&of(chosen)),
        [
            ("xor, arm4regs", 629.0, "MB/s"),
            ("raid6, int32x4", 80.0, "MB/s")
        ]
    );
    let said = error("   neon            :  1200 MB/sec\nraid6: neonx4   gen()  900 MB/s\n");
    assert!(
        said.contains("neon, neonx4") && said.contains("arm4regs"),
        "{said}"
    );
    let two = format!("{LOG}{}", LOG.replace("ARM926EJ-S", "XScale-IXP42x"));
    assert!(error(&two).contains("ARM926EJ-S and XScale-IXP42x"));
    assert!(error(&LOG.replace("   629 MB/sec", "  -629 MB/sec")).starts_with("a boot log"));
    // Text with speeds of other programs is not a boot log.
    assert!(
        error(" Timing buffered disk reads:  56 MB in  3.09 seconds =  18.14 MB/sec\n")
            .contains("no result")
    );
}

#[test]
fn case_14_old_kernels_megabytes_become_those_of_ours() {
    let machine = of(OLD_LOG);
    assert!((value(&machine, "xor, arm4regs") - 903.6 * 1.024).abs() < 1e-9);
    assert_eq!(value(&machine, "raid6, int32x4"), 102.0);
    assert_eq!(machine.items.len(), 7);
    assert!(machine.notes[0].contains("10^6") && machine.notes[1].contains("16 pages"));
}

#[test]
fn case_14_hackbenchs_text_is_read_where_it_did_what_the_boards_do() {
    let machine = of(HACKBENCH);
    assert_eq!(
        values(&machine),
        [("hackbench, 10 groups, time of 1 run", 14.218, "s")]
    );
    let three = [
        HACKBENCH,
        &HACKBENCH.replace("14.218", "16"),
        &HACKBENCH.replace("14.218", "15"),
    ];
    let machine = of(&three.concat());
    assert_eq!(
        value(&machine, "hackbench, 10 groups, time of 3 runs"),
        15.0
    );
    let said = error(&HACKBENCH.replace("process", "threaded"));
    assert!(
        said.contains("line 2: ") && said.contains("process mode (-P)"),
        "{said}"
    );
    assert!(error(&HACKBENCH.replace("100 messages", "500 messages")).contains("line 3: "));
    assert!(error(&HACKBENCH.replace("using 40", "using 20")).contains("-f 20"));
    assert!(error("Time: 14.218\n").contains("line 1: "));
    assert!(error(&HACKBENCH.replace("14.218", "-1")).contains("expected seconds"));
    let cut = HACKBENCH.find("Time").unwrap();
    assert!(error(&HACKBENCH[..cut]).contains("line 2: no line \"Time:\" follows"));
}

#[test]
fn case_14_lmbenchs_text_is_read() {
    let machine = of(LMBENCH);
    assert_eq!(machine.items.len(), 8);
    assert_eq!(value(&machine, "lat_ctx, 16 processes, 16 KB"), 141.21);
    // The figures stand among other results, as in the files of `make results`.
    let all = format!(
        "[lmbench3.0 results for Linux board]\nPipe latency: 272.1000 microseconds\nPipe bandwidth: 12.58 MB/sec\n\
         {LMBENCH}\n\"stride=64\n0.00049 5.000\n0.00098 5.000\n"
    );
    let machine = of(&all);
    assert_eq!(machine.items.len(), 10);
    assert_eq!(
        values(&machine)[1],
        ("lmbench, Pipe bandwidth", 12.58, "MB/s")
    );
    let said = error(&LMBENCH.replace("8 108.96", "8"));
    assert!(
        said.contains("line 5: \"8\": expected a number of tasks"),
        "{said}"
    );
    assert!(error(&LMBENCH.replace("size=16k", "size=0k")).contains("twice"));
    assert!(error("\"size=0k ovr=7.13\n").contains("line 1: no line"));
    assert!(error(&LMBENCH.replace("96.40", "-96.40")).contains("-96.40"));
}

#[test]
fn rtlas_top_is_read_by_its_last_screen_and_its_other_forms_are_named() {
    let machine = of(TOP);
    assert_eq!(value(&machine, "timer, task, min"), 6.0);
    assert_eq!(value(&machine, "timer, task, avg"), 15.0);
    assert_eq!(value(&machine, "timer, task, max"), 120.0);
    let ns = of(&TOP.replace("(us)", "(ns)"));
    assert_eq!(value(&ns, "timer, task, max"), 0.12);
    // Without -u, rtla measures at two places only.
    let kernel: String = TOP
        .lines()
        .map(|line| {
            line.rsplit_once('|')
                .map_or(line, |(start, _)| start)
                .to_string()
                + "\n"
        })
        .collect();
    let machine = of(&kernel);
    assert_eq!(value(&machine, "timer, kernel's thread, max"), 90.0);
    assert!(machine.notes[1].contains("-u"), "{:?}", machine.notes);
    assert!(error(&TOP.replace("       120\n", "       x\n")).contains("not a number: x"));
    for (text, says) in [
        (
            "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n",
            "rtla osnoise",
        ),
        (
            "          Operating System Noise    \nduration:   0 00:00:01 | time is in us\n",
            "rtla osnoise",
        ),
        ("          Hardware-related Noise\n", "rtla hwnoise"),
        ("# tracer: timerlat\n#\n", "a trace of"),
    ] {
        let said = error(text);
        assert!(
            said.contains(says) && said.contains("rtla timerlat hist"),
            "{said}"
        );
    }
}

#[test]
fn results_of_several_programs_in_one_text_come_together() {
    let machine = of(&[LOG, HACKBENCH, LMBENCH, HISTOGRAM].concat());
    assert_eq!(
        machine.experiments(),
        ["cyclictest", "hackbench", "switch-cost", "memory"]
    );
    assert!(
        machine
            .about
            .contains("cyclictest; hackbench; lmbench; boot log of ARM926EJ-S")
    );
}

#[test]
fn what_is_measured_stands_beside_runs_and_the_rest_beside_the_record() {
    let figure = |kb: u32, tasks: u32, us: f64| {
        let place = Place {
            board: "sam9263".into(),
            kernel: "6.12/plain".into(),
            mode: "process".into(),
            axes: [("size_kb".to_string(), kb), ("tasks".to_string(), tasks)].into(),
            ..Place::default()
        };
        Measured::switch(place, us)
    };
    let mut machine = of(LMBENCH);
    machine.name = "board.txt".into();
    let (measured, record) = (
        [figure(0, 2, 192.8)],
        [figure(0, 2, 1.0), figure(0, 4, 99.12)],
    );
    let rows = |part: Option<results::render::part::Part>| part.unwrap().tables[0].rows.clone();
    assert_eq!(
        rows(machine.beside("switch-cost", &measured)),
        [["lat_ctx, 2 processes, 0 KB", "96.4 us", "193 (2.00)"]]
    );
    assert_eq!(
        rows(machine.beside_record("switch-cost", &record, &measured)),
        [["lat_ctx, 4 processes, 0 KB", "99.1 us", "99.1 (1.00)"]]
    );
    let part = machine
        .beside_record("switch-cost", &record, &measured)
        .unwrap();
    assert!(
        part.text
            .contains("records/switch-cost.csv, not measured here"),
        "{}",
        part.text
    );
    assert!(
        part.text.contains("lat_ctx subtracts"),
        "the text above the table notes the difference"
    );
    assert_eq!(machine.alone("switch-cost", &measured).len(), 7);
}
