// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `warmswitch host`, which measures the machine that it runs on. They pass with and without privileges.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn host(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .arg("host")
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn json(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {errors}"))
}

/// Returns the smallest sample of a case.
fn minimum(cases: &Value, name: &str, accesses: u64) -> u64 {
    let mut all = cases.as_array().expect("a list").iter();
    let case = all.find(|case| case["case"] == name && case["accesses"] == accesses);
    let cycles = case.unwrap_or_else(|| panic!("no {name}"))["cycles"].as_array();
    let cycles = cycles.expect("samples").iter().filter_map(Value::as_u64);
    cycles
        .min()
        .unwrap_or_else(|| panic!("no sample of {name}"))
}

#[test]
fn where_ports_are_refused_what_is_missing_is_named_and_the_rest_is_measured() {
    let output = host(&["ioperm", "--turns", "50", "--json"]);
    let printed = String::from_utf8_lossy(&output.stderr);
    if !cfg!(target_arch = "x86_64") {
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains("only x86 has I/O ports"), "{printed}");
        return;
    }
    let document = json(&output);
    let measured = &document["measured"];
    assert_eq!(measured["cases"][0]["case"], "none");
    assert!(
        document["setup"]
            .as_array()
            .is_some_and(|checks| checks.len() > 5)
    );
    if measured["refused"].is_null() {
        assert!(minimum(&measured["cases"], "own-65535", 64) > 0);
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{printed}");
    let causes = ["CONFIG_X86_IOPL_IOPERM", "CAP_SYS_RAWIO", "locked down"];
    assert!(
        causes.iter().any(|cause| printed.contains(cause)),
        "{printed}"
    );
}

#[test]
fn the_bench_of_the_algorithms_runs_without_a_privilege() {
    let document = json(&host(&["bitmap", "--json"]));
    let cells = document["measured"]["cells"].as_array().expect("cells");
    for algorithm in ["copy-all", "copy-used", "lazy", "sequence"] {
        let mut own = cells.iter().filter(|cell| cell["algorithm"] == algorithm);
        let cell = own.find(|cell| cell["case"] == "none").expect("a cell");
        assert_eq!(cell["lines"], 2.0, "{algorithm}");
        assert_eq!(cell["ns"].as_array().map(Vec::len), Some(31));
    }
}

/// Returns the runs of a tool. A run without figures, which a busy machine may cause, must give a reason.
fn runs(arguments: &[&str]) -> Vec<Value> {
    let output = host(arguments);
    let document = json(&output);
    let runs = document["measured"]["runs"]
        .as_array()
        .expect("runs")
        .clone();
    let failed = runs.iter().any(|run| !run["failed"].is_null());
    assert_eq!(
        output.status.code(),
        Some(i32::from(failed)),
        "{arguments:?}"
    );
    for run in &runs {
        let figures = run["figures"].as_array().expect("figures");
        assert_eq!(figures.is_empty(), !run["failed"].is_null(), "{run}");
        assert!(run["command"][0].is_string());
    }
    assert!(!runs.is_empty());
    runs
}

#[test]
fn the_boards_workloads_measure_this_machine_and_keep_their_samples() {
    let pipe = runs(&["pipe", "--quick", "--json"]);
    assert_eq!(
        pipe[0]["printed"]["values"].as_array().map(Vec::len),
        Some(5)
    );
    let ring = runs(&[
        "ctx",
        "--quick",
        "--size-kb",
        "0",
        "--tasks",
        "2,3",
        "--json",
    ]);
    assert_eq!(ring.len(), 4);
    let messages = runs(&["messaging", "-g", "1", "--quick", "--json"]);
    assert_eq!(
        messages[0]["printed"]["times_s"].as_array().map(Vec::len),
        Some(3)
    );
    let overhead = runs(&["overhead", "--quick", "--json"]);
    assert_eq!(overhead[1]["printed"]["turns"][1]["switches"], 31);
    let memory = runs(&["memory", "--quick", "--max-kb", "8", "--json"]);
    assert_eq!(
        memory[0]["printed"]["sizes"].as_array().map(Vec::len),
        Some(6)
    );
}

#[test]
fn cyclic_takes_cyclictests_options_and_keeps_every_latency() {
    let two = runs(&[
        "cyclic", "-i", "200", "-t", "2", "-d", "100", "-l", "100", "-m", "--json",
    ]);
    let threads = two[0]["printed"]["threads"].as_array().expect("threads");
    assert_eq!(threads[1]["interval_us"], 300);
    assert_eq!(threads[0]["ns"].as_array().map(Vec::len), Some(100));
    let binned = runs(&["cyclic", "-i", "200", "-l", "100", "-h", "100000", "--json"]);
    let thread = &binned[0]["printed"]["threads"][0];
    let bins = thread["us"].as_array().expect("bins").iter();
    let counted: u64 = bins.filter_map(|bin| bin[1].as_u64()).sum();
    assert_eq!(
        counted + thread["overflows"].as_u64().expect("a count"),
        100
    );
    let busy = json(&host(&["cyclic", "-l", "100", "--load", "paper", "--json"]));
    assert_eq!(busy["load"], "paper");
    let wrong = host(&["cyclic", "-i", "1"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn packets_are_timed_and_a_device_that_is_not_there_is_named() {
    // Both tools use the same ports, so they run one after the other. Another program may already use these ports.
    for tool in ["reply", "period"] {
        let run = &runs(&[tool, "--quick", "--json"])[0];
        if run["failed"].is_null() {
            assert!(
                run["printed"]["ns"]
                    .as_array()
                    .is_some_and(|ns| ns.len() > 10),
                "{tool}"
            );
        }
    }
    let output = host(&["irq", "--device", "/nowhere/uio7"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/uio7"));
}

/// Waits until a thread of the process has started a program with this name.
fn wait_for_child(process: u32, name: &str) {
    let is_child = |status: String| {
        let has = |line: &str| status.lines().any(|l| l == line);
        has(&format!("PPid:\t{process}")) && has(&format!("Name:\t{name}"))
    };
    for _ in 0..1200 {
        let processes = std::fs::read_dir("/proc").expect("Linux has one").flatten();
        let mut all =
            processes.filter_map(|p| std::fs::read_to_string(p.path().join("status")).ok());
        if all.any(is_child) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("no {name} was started");
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let child = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["host", "cyclic", "-i", "500", "-D", "600", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    wait_for_child(child.id(), "cyclic");
    std::thread::sleep(Duration::from_secs(1));
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("the program ends");
    let document = json(&output);
    assert_eq!(document["interrupted"], true);
    let thread = &document["measured"]["runs"][0]["printed"]["threads"][0];
    let samples = thread["ns"].as_array().map_or(0, Vec::len);
    assert!((1..1_200_000).contains(&samples), "{samples}");
}

/// The figures are instructions of the emulator. They must agree with Linux' source: a switch between tasks that share
/// a bitmap copies nothing. A switch between tasks with two bitmaps copies bytes up to the highest port.
#[test]
#[ignore = "needs QEMU"]
fn under_debians_kernel_the_papers_lines_are_there_and_only_bitmaps_that_differ_are_copied() {
    if !cfg!(target_arch = "x86_64") {
        println!("not this machine's: the program is built by its compiler");
        return;
    }
    let output = host(&["ioperm", "--qemu", "--turns", "30", "--json"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let document = json(&output);
    let measured = &document["measured"];
    assert!(
        measured["note"]
            .as_str()
            .is_some_and(|note| note.contains("never as times"))
    );
    let cases = &measured["result"]["cases"];
    let of = |name: &str| minimum(cases, name, 0);
    assert!(of("none") < of("port-80"));
    assert_eq!(of("port-80"), of("port-65535"));
    // Two copies of 8 KB minus 24 bytes need at least one instruction per 8 bytes.
    let (low, high) = (of("own-80"), of("own-65535"));
    assert!(high - low >= 2 * (8192 - 24) / 8, "{low} and {high}");
    assert!(
        minimum(cases, "iopl-3", 64) >= of("iopl-3") + 128,
        "64 accesses of two tasks"
    );
}

/// The guests that are missing from every root file system also run on the board.
#[test]
#[ignore = "needs the kernel"]
fn what_measures_a_pc_measures_the_board() {
    let dir = std::env::temp_dir().join(format!("warmswitch-host-guests-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("the temporary directory takes a folder");
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest");
    let mut words = vec!["guest".to_string()];
    for name in ["cyclic", "memory", "overhead"] {
        let program = dir.join(name);
        let workload = std::fs::read_to_string(guests.join(name).join("workload.toml"));
        let workload: toml::Table = workload.expect("a guest").parse().expect("TOML");
        let sources = workload["build"]["sources"].as_array().expect("sources");
        let sources = sources.iter().filter_map(toml::Value::as_str);
        let built = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
            .args(["cc", "-O2", "-Wall", "-Wextra", "-Werror"])
            .arg("-I")
            .arg(guests.join("shared"))
            .arg("-o")
            .arg(&program)
            .args(sources.map(|source| guests.join(name).join(source)))
            .arg("-lpthread")
            .status();
        assert!(built.expect("the compiler starts").success(), "{name}");
        words.extend(["--add".to_string(), program.to_string_lossy().into_owned()]);
    }
    let command =
        "cyclic -p 50 -l 50; memory -m 64 -r 1 -t 1 -l 32; overhead -n 2 -r 2 aes crc 1 2";
    words.extend(["--".to_string(), command.to_string()]);
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(words)
        .output();
    let output = output.expect("the program starts");
    std::fs::remove_dir_all(&dir).expect("it is there");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let line = |guest: &str| -> Value {
        let start = format!("{{\"guest\":\"{guest}\"");
        let found = printed.lines().find(|line| line.starts_with(&start));
        serde_json::from_str(found.unwrap_or_else(|| panic!("no {guest} in {printed}")))
            .expect("JSON")
    };
    assert_eq!(line("cyclic")["threads"][0]["count"], 50);
    assert_eq!(line("overhead")["turns"][1]["switches"], 3);
    // The board's D-cache holds 16 KB.
    let memory = line("memory");
    let load_ns = |kb: u64| {
        let mut sizes = memory["sizes"].as_array().expect("sizes").iter();
        let size = sizes.find(|size| size["kb"] == kb).expect("the size");
        size["load_ns"][0].as_f64().expect("a time")
    };
    assert!(load_ns(64) > 5.0 * load_ns(8), "{memory}");
}

/// Makes a folder with the product's program, `measure`.
fn built_for_a_product(name: &str) -> (PathBuf, String) {
    let dir = std::env::temp_dir().join(format!("warmswitch-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("the temporary directory takes a folder");
    let program = dir.join("measure").to_string_lossy().into_owned();
    let built = host(&["build", "--output", &program]);
    let printed = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{printed}");
    (dir, program)
}

/// Does what a user with a product does: builds the program, runs it on the product, and reads its log here.
#[test]
#[ignore = "needs the kernel"]
fn a_products_log_gives_the_documents_that_this_machine_gives() {
    let (dir, program) = built_for_a_product("product");
    let run = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args([
            "guest",
            "--add",
            &program,
            "--",
            "measure -q pipe memory && ! measure pipes",
        ])
        .output()
        .expect("the program starts");
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let printed = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(
        printed.contains("no tool \"pipes\"; there are: all, ctx, fifo, pipe, messaging"),
        "{printed}"
    );
    let log = dir.join("product.log");
    std::fs::write(&log, &printed).expect("it can be written");
    let name = format!("test-{}", std::process::id());
    let read = |log: &Path| host(&["read", &log.to_string_lossy(), "--name", &name, "--json"]);
    let output = read(&log);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let documents: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(documents.len(), 2);
    assert_eq!(documents[0]["machine"]["architecture"], "armv5tejl");
    assert_eq!(
        documents[0]["measured"]["runs"].as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!(documents[1]["tool"], "memory");
    assert_eq!(documents[1]["cpu"], 0);
    // This console log is cut off.
    std::fs::write(
        &log,
        &printed[..printed.find("\"tool\":\"memory\"").expect("its line")],
    )
    .expect("again");
    let cut = read(&log);
    assert_eq!(cut.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&cut.stderr).into_owned();
    assert!(
        errors.contains("is left out") && errors.contains("ends before"),
        "{errors}"
    );
    let kept = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../out/host")
        .join(&name);
    std::fs::remove_dir_all(kept).expect("it is there");
    std::fs::remove_dir_all(&dir).expect("it is there");
}

/// `calibrate` must find the numbers of a changed board from the output of the product's program on that board.
#[test]
#[cfg(feature = "every-kernel")]
#[ignore = "needs the kernel, and a minute"]
fn a_boards_numbers_are_found_again_from_its_memory_figures() {
    const NUMBERS: [&str; 4] = [
        "sdram.first_word_row_hit_bus=10",
        "sdram.first_word_row_miss_bus=14",
        "sdram.clk_per_word_bus=2",
        "sdram.write_setup_bus=8",
    ];
    let (dir, program) = built_for_a_product("calibrate");
    let run = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args([
            "guest",
            "--set",
            &NUMBERS.join(","),
            "--add",
            &program,
            "--",
            "measure memory",
        ])
        .output()
        .expect("the program starts");
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let log = dir.join("product.log");
    std::fs::write(&log, &run.stdout).expect("it can be written");
    let printed = json(&host(&["calibrate", &log.to_string_lossy(), "--json"]));
    std::fs::remove_dir_all(&dir).expect("it is there");
    assert_eq!(printed["fit"]["changes"], serde_json::json!(NUMBERS));
    assert!(
        printed["switches"][0]["changed_us"].as_f64()
            > printed["switches"][0]["as_it_is_us"].as_f64()
    );
}

#[test]
fn a_file_that_is_no_result_is_named_before_anything_is_measured() {
    let wrong = |file: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
            .args(["compare", "--with", file])
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(wrong("/nowhere/a.json").contains("/nowhere/a.json"));
    let printed = wrong(&format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR")));
    assert!(
        printed.contains("Cargo.toml") && printed.contains("cyclictest --json"),
        "{printed}"
    );
}

/// Runs `host read` on a file that another program wrote. Returns the exit code and the output.
fn read_file(name: &str) -> (Option<i32>, String) {
    let path = format!(
        "{}/../host/src/import/fixtures/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    let output = host(&["read", &path]);
    let printed = [&output.stdout[..], &output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&printed).into_owned(),
    )
}

#[test]
fn case_12_signaltest_is_refused_before_anything_is_measured() {
    let file = format!(
        "{}/../host/src/import/fixtures/signaltest.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["compare", "--quick", "--with", &file])
        .output()
        .expect("the program starts");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("signaltest.json") && printed.contains("\"cmdline:\" says signaltest"),
        "{printed}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn what_other_programs_printed_is_shown_beside_the_records() {
    for (name, parts) in [
        ("cyc-hist.txt", ["timer, p99", "records/cyclictest.csv"]),
        ("cyc-plain.txt", ["timer, max", "no quantiles"]),
        ("cyc-json-stdout.txt", ["Linux 6.6.51-rt42", "512 us"]),
        ("dmesg-2.6.22.txt", ["ARM926EJ-S", "records/memory.csv"]),
        ("hackbench.txt", ["14.2 s", "records/hackbench.csv"]),
        ("lmbench-ctx.txt", ["141 us", "records/switch-cost.csv"]),
    ] {
        let (code, printed) = read_file(name);
        assert_eq!(code, Some(0), "{name}: {printed}");
        for part in parts {
            assert!(printed.contains(part), "{name}: no {part} in {printed}");
        }
    }
}
