// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of chaos. Some tests run only the guest `mm_chaos`, on the board and on QEMU, which has no caches. Other tests
//! run seeds under the checker.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Programs with each op at least once, in processes, in threads, and after exec.
const PROGRAMS: [&str; 3] = [
    "ma0.4 w0.0.4.2 v0.2 r2.0.4.2 z2.10 r2.0.9.1 af2.0.1 ao2.0.2 r2.0.1.2 ma3.8 uf3.0.4 r3.0.8.2 \
     um3.2.0.2 l2.0.2 lu2.0.2 ko2.0.2 ki2.1 vs2.1.2 p2.0.1.1 w2.0.1.1 ad2.0.1 r2.0.2.2",
    "mf1.4.2 w1.0.4.2 mp6.2.2 w6.0.1.0 ms7.3 w7.0.3.2 fo1 th1 vx2 t2.3 ph2.0.1 aw1.0.2 ap6.0.2 y \
     n3 xr1.1.0.1 xw1.1.1 pt1.7.0 fw2.0.2 fr2.0.2 si2.1 so2.1 ar1.0.1 u1.1.1 j r7.0.3.2|\
     r1.0.4.1 w7.1.1.1 n20 r7.0.3.2 ex r7.9.9.2|mf0.2.2 r0.0.2.2",
    "mc4.8.0 c4.0.8 kf0.3 c4.0.8 ks4.2 c4.0.8 ac4 c4.0.8 vc4.5 pc5.0 c5.0.2 pc5.1 c5.0.8 mx4.8.0 \
     ks4.1 c4.0.8 c5.0.8 fo1 j c4.0.8 uc4.0.2|c4.0.8 ks4.1 c4.0.8",
];

fn build(dir: &Path) -> PathBuf {
    std::fs::create_dir_all(dir).expect("the temporary directory takes a folder");
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest/mm_chaos");
    let workload = std::fs::read_to_string(guest.join("workload.toml")).expect("a guest");
    let workload: toml::Table = workload.parse().expect("TOML");
    let sources = workload["build"]["sources"].as_array().expect("sources");
    let sources = sources.iter().filter_map(toml::Value::as_str);
    let program = dir.join("mm_chaos");
    let built = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["cc", "-O2", "-std=gnu11"])
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .args(sources.map(|source| guest.join(source)))
        .status();
    assert!(built.expect("the compiler starts").success());
    program
}

fn run(program: &Path, options: &[&str], text: &str) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .arg("guest")
        .args(options)
        .arg("--add")
        .arg(program)
        .args(["--", "mm_chaos", text])
        .output();
    output.expect("the program starts")
}

#[test]
fn programs_of_memory_management_are_right_and_wrong_text_is_refused() {
    let dir = std::env::temp_dir().join(format!("warmswitch-chaos-{}", std::process::id()));
    let program = build(&dir);
    for options in [&["--qemu"][..], &[]] {
        for text in PROGRAMS {
            let output = run(&program, options, text);
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{options:?} {text}: {printed}");
            assert!(printed.contains("ok: "), "{printed}");
        }
    }
    let output = run(&program, &[], "ma0.4 w0.0.4");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        printed.contains("op \"w0.0.4\": too few numbers"),
        "{printed}"
    );
    std::fs::remove_dir_all(&dir).expect("it is there");
}

/// Runs the program without input. Returns the exit code and the standard output.
fn ended(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .output()
        .expect("the program starts");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), printed)
}

#[test]
fn a_seed_gives_the_same_bytes_again_and_from_a_snapshot_and_another_seed_others() {
    let run = |seed, fresh: &[&str]| {
        let guest = [&["guest", "--counters", "--chaos", seed], fresh].concat();
        let (code, printed) = ended(&[&guest[..], &["--", "mm_chaos"]].concat());
        assert_eq!(code, Some(0), "{printed}");
        printed
    };
    let first = run("4", &["--fresh-boot"]);
    // The second run makes a snapshot if there was none. The third run starts from this snapshot.
    assert_eq!(first, run("4", &[]));
    assert_eq!(first, run("4", &[]));
    assert_ne!(first, run("5", &[]));
}

/// Options with a mutant that leaves unmapped code in the I-cache.
const BROKEN: [&str; 5] = [
    "coherence",
    "--kernel",
    "fcse-guaranteed",
    "--mutant",
    "fcse-range-keeps-code",
];

/// A program that maps new code at an address where other code was mapped. About half of the seeds trigger the bug. The
/// second mapping keeps the page table alive. Without it, the kernel would free the page table and flush everything
/// below it.
const CODES: &str = "mc5.2.0 mc4.2.0 c4.0.2 mc4.2.1 c4.0.2 mc4.2.0 c4.0.2 mc4.2.1 c4.0.2 mc4.2.0 c4.0.2 mc4.2.1 c4.0.2 \
                     mc4.2.0 c4.0.2 mc4.2.1 c4.0.2 mc4.2.0 c4.0.2 mc4.2.1 c4.0.2 mc4.2.0 c4.0.2 mc4.2.1 c4.0.2";

#[test]
fn seeds_find_what_is_missing_are_kept_and_lead_back_to_the_instruction() {
    let many = [&BROKEN[..], &["--chaos-seeds", "0..8", "--json"]].concat();
    let again = [&many[..], &["--again", "--", "mm_chaos", CODES]].concat();
    let (code, first) = ended(&again);
    assert_eq!(code, Some(1), "{first}");
    let summary: serde_json::Value = serde_json::from_str(&first).expect("JSON");
    let seed = summary["causes"][0]["seeds"][0].to_string();
    assert_eq!(
        ended(&[&many[..], &["--", "mm_chaos", CODES]].concat()),
        (Some(1), first)
    );
    let one = [&BROKEN[..], &["--chaos", &seed]].concat();
    let (code, text) = ended(&[&one[..], &["--", "mm_chaos", CODES]].concat());
    assert_eq!(code, Some(1), "{text}");
    let place = text.split("--gdb ").nth(1).expect("a replay");
    let place = place.split(' ').next().unwrap_or_default();
    // With this place, the program waits for a gdb that never connects. With a place from another run, the program ends
    // with an error.
    let (code, _) = ended(
        &[
            &one[..],
            &["--gdb", place, "--stdio", "--", "mm_chaos", CODES],
        ]
        .concat(),
    );
    assert_eq!(code, Some(0), "{place}");
    let other = place.replace('@', "@1");
    let (code, _) = ended(
        &[
            &one[..],
            &["--gdb", &other, "--stdio", "--", "mm_chaos", CODES],
        ]
        .concat(),
    );
    assert_eq!(code, Some(2), "{other}");
}

#[test]
fn a_range_that_is_none_and_chaos_without_a_command_are_refused() {
    for wrong in ["5..5", "5", "a..b", "9..3"] {
        let (code, _) = ended(&["coherence", "--chaos-seeds", wrong, "--", "true"]);
        assert_eq!(code, Some(2), "{wrong}");
    }
    assert_eq!(ended(&["coherence", "--chaos", "1"]).0, Some(2));
    let (code, printed) = ended(&["guest", "--chaos", "1", "--", "mm_chaos", "zz1"]);
    assert_eq!(code, Some(1));
    assert!(printed.contains("op \"zz1\": no such op"), "{printed}");
}

#[test]
fn a_command_that_never_ends_is_a_result_with_its_place() {
    let hangs = [
        "coherence",
        "--chaos",
        "1",
        "--limit",
        "0.3",
        "--",
        "sleep 1000",
    ];
    let (code, printed) = ended(&hangs);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("it hung at "), "{printed}");
}
