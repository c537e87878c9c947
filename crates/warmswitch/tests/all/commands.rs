// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the user's commands, programs and files in the guest, and of the exit codes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use board::fdt::Tree;

use crate::plain_kernel;

/// Programs that show bugs which no test of `mm_suite` shows.
pub const PROOFS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../linux/6.12/proofs");
const PROGRAM: &str = env!("CARGO_BIN_EXE_warmswitch");

/// Runs the program with `input` on its standard input.
pub fn with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(PROGRAM)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // If the program rejects its arguments, it does not read its input, and the write fails.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

pub fn warmswitch(arguments: &[&str]) -> Output {
    with_input(arguments, b"")
}

pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Makes an empty directory for a test.
pub fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
#[ignore = "needs the kernel"]
fn a_command_keeps_its_quoting_and_its_status() {
    let guest = |command: &[&str]| {
        let output = warmswitch(&[&["guest", "--"], command].concat());
        let text = out(&output).replace('\r', "").trim().to_string();
        (text, output.status.code(), err(&output))
    };
    let (text, code, _) = guest(&["true; false"]);
    assert_eq!((&*text, code), ("", Some(1)));
    let (text, code, _) = guest(&["sh", "-c", "echo a b; echo c"]);
    assert_eq!((&*text, code), ("a b\nc", Some(0)));
    let (text, code, _) = guest(&["grep", "-c", "command line", "/init"]);
    assert_eq!((&*text, code), ("1", Some(0)));
    let (_, code, message) = guest(&["exit 3"]);
    assert_eq!(code, Some(1));
    assert!(message.contains("ended with 3"), "{message}");
    for missing in [&["nosuchprogram"][..], &["true; nosuchprogram"]] {
        let (_, code, message) = guest(missing);
        assert_eq!(code, Some(2), "{missing:?}: {message}");
        let is_named = message.starts_with("error: ") && message.contains("no such program");
        assert!(is_named, "{message}");
    }
}

#[test]
#[ignore = "needs the kernel"]
fn what_a_command_prints_comes_byte_for_byte_and_is_never_taken_for_its_end() {
    let output = warmswitch(&["guest", "--", r"printf '  a \n\n\377\n'"]);
    assert_eq!(output.stdout, b"  a \n\n\xff\n");
    let forged = "E=end; echo @@$E 0; sleep 0.1; echo @@end 0; false";
    let output = warmswitch(&["guest", "--", forged]);
    assert_eq!(
        (&*out(&output), output.status.code()),
        ("@@end 0\n@@end 0\n", Some(1))
    );
    let output = warmswitch(&["guest", "--", "cat /guest/run-guest | wc -l; cat; exit 9"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("ended with 9"), "{}", err(&output));
}

#[test]
#[ignore = "needs the kernel"]
fn a_program_that_is_not_there_is_no_good_commit() {
    let coherence = |more: &[&str]| {
        let output = warmswitch(&[&["coherence"], more].concat());
        (out(&output), output.status.code())
    };
    let (_, code) = coherence(&["--", "true; nosuchprogram"]);
    assert_eq!(code, Some(2));
    // `git bisect run` skips a commit at exit code 125.
    let (_, code) = coherence(&["--bisect", "--", "true; nosuchprogram"]);
    assert_eq!(code, Some(125));
    // A failed command proves nothing about the commit. The commit is also not to blame for a wrong option.
    let (_, code) = coherence(&["--bisect", "--", "mm_suite --only nosuchtest"]);
    assert_eq!(code, Some(125));
    let (_, code) = coherence(&["--bisect", "--dtb", "/nosuch", "--", "true"]);
    assert_eq!(code, Some(128));
    let (text, code) = coherence(&["--", "echo it \"is  seen\""]);
    assert_eq!(code, Some(0));
    assert!(
        text.contains("it is  seen") && text.contains("0 reports"),
        "{text}"
    );
}

#[test]
#[ignore = "needs the kernel"]
fn a_guest_that_has_come_to_its_end_ends_the_run_with_its_last_words() {
    let dir = scratch("ends");
    let end = |command: &str| {
        let output = warmswitch(&["guest", "--fresh-boot", "--limit", "60", "--", command]);
        (output.status.code(), err(&output) + &out(&output))
    };
    let (code, printed) = end("halt -f");
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("error: the guest halted itself"),
        "{printed}"
    );
    let (_, printed) = end("poweroff -f");
    assert!(!printed.contains("limit of board time"), "{printed}");
    // A root file system without a first process must cause an error before the boot.
    let empty = dir.join("empty.cpio");
    fs::write(&empty, b"").unwrap();
    let text = dir.join("text");
    fs::write(&text, "no archive").unwrap();
    for file in [&empty, &text] {
        let file = file.to_str().unwrap();
        let output = warmswitch(&["guest", "--initrd", file, "--", "true"]);
        assert_eq!(output.status.code(), Some(2), "{file}");
        let message = err(&output);
        let is_named = message.starts_with("error: ") && message.contains(file);
        assert!(is_named, "{message}");
    }
    // The first process ends, so the kernel panics.
    let broken = dir.join("init");
    fs::write(&broken, "#!/bin/sh\nexit 3\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let add = format!("{}:/init", broken.display());
    let output = warmswitch(&["guest", "--add", &add, "--", "true"]);
    let message = err(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("Kernel panic - not syncing"), "{message}");
    // A damaged zImage may unpack to anything. With these bytes, the guest is stuck in a loop. The watchdog soon ends
    // the run.
    let mut zimage = fs::read(plain_kernel("zimage")).unwrap();
    let quarter = zimage.len() / 4;
    zimage[quarter..quarter + 64].fill(0x55);
    let damaged = dir.join("zImage");
    fs::write(&damaged, zimage).unwrap();
    let (damaged, dtb) = (damaged.to_str().unwrap(), plain_kernel("dtb"));
    let dtb = dtb.to_str().unwrap();
    let output = warmswitch(&["guest", "--kernel", damaged, "--dtb", dtb, "--", "true"]);
    let message = err(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    // A note says that the kernel has no names.
    assert!(message.contains("\nerror: "), "{message}");
}

#[test]
#[ignore = "needs the kernel"]
fn a_piped_boot_waits_for_what_it_typed_and_leaves_no_escape_sequences() {
    let output = with_input(&["boot"], b"sleep 10; cat /proc/uptime\n");
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let uptime = text.lines().rev().find_map(|line| {
        let first = line.split_whitespace().next()?;
        first.contains('.').then(|| first.parse::<f64>().ok())?
    });
    let uptime = uptime.unwrap_or_else(|| panic!("no uptime in {text}"));
    assert!((10.0..20.0).contains(&uptime), "{uptime}: {text}");
}

/// Writes a changed copy of the plain kernel's device tree.
fn changed_tree(dir: &Path, change: impl Fn(&mut Tree)) -> PathBuf {
    let mut tree = Tree::parse(&fs::read(plain_kernel("dtb")).unwrap()).unwrap();
    change(&mut tree);
    let path = dir.join("changed.dtb");
    fs::write(&path, tree.to_blob()).unwrap();
    path
}

#[test]
#[ignore = "needs the kernel"]
fn the_timers_count_what_the_device_tree_says() {
    let dir = scratch("clock");
    // The clock runs at 1 MHz, as in the kernel's own versatile-pb.dts.
    let dtb = changed_tree(&dir, |tree| {
        let clock = tree.node("/core-module/clock-1000000").unwrap();
        clock.set_u32("clock-div", 24);
    });
    let dtb = dtb.to_str().unwrap();
    let typed = b"dmesg | grep 'sched_clock: 32'; sleep 10; cut -d. -f1 /proc/uptime\n";
    let output = with_input(&["boot", "--json", "--dtb", dtb], typed);
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("sched_clock: 32 bits at 1000kHz"), "{text}");
    let mut uptime = text
        .lines()
        .filter_map(|line| line.trim().parse::<f64>().ok());
    let end = text
        .lines()
        .rev()
        .find(|line| line.starts_with('{'))
        .unwrap();
    let end: serde_json::Value = serde_json::from_str(end).unwrap();
    let (uptime, board_s) = (
        uptime.next_back().unwrap(),
        end["seconds"].as_f64().unwrap(),
    );
    // The guest's clock starts some tenths of a second after power-on. The run ends some time after the last output.
    assert!(
        (10.0..board_s).contains(&uptime) && board_s < uptime + 4.0,
        "{uptime}, {board_s}"
    );
}

#[test]
#[ignore = "needs the kernel"]
fn a_device_tree_of_another_machine_is_refused_by_its_name() {
    let dir = scratch("machine");
    let dtb = changed_tree(&dir, |tree| {
        tree.root.set_text("compatible", "microchip,sam9x60ek");
    });
    for verb in ["boot", "guest", "coherence"] {
        let output = warmswitch(&[verb, "--dtb", dtb.to_str().unwrap(), "--", "true"]);
        let message = err(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        let is_named =
            message.starts_with("error: ") && message.contains("\"microchip,sam9x60ek\"");
        assert!(is_named, "{message}");
    }
}

/// Compiles a program for the guest.
pub fn compiled(dir: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    compiled_for("armv5te", dir, name, source, flags)
}

fn compiled_for(programs: &str, dir: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (file, program) = (dir.join(format!("{name}.c")), dir.join(name));
    fs::write(&file, source).unwrap();
    let built = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["cc", "--for", programs, "-O2", "-o"])
        .arg(&program)
        .arg(&file)
        .args(flags)
        .status();
    assert!(built.expect("the cross compiler").success());
    program
}

/// Returns a program of `linux/6.12/proofs`. Compiles each program only once, because tests that run at the same time
/// share the file.
pub fn proof(name: &str) -> String {
    proof_with(name, name, &["-pthread"])
}

/// Compiles a program of `linux/6.12/proofs` for boards with an ARM920T.
#[cfg(feature = "every-kernel")]
pub fn proof_for_armv4t(name: &str) -> String {
    let source = fs::read_to_string(format!("{PROOFS}/{name}.c")).expect("a proof");
    let dir = scratch(&format!("{name}-armv4t"));
    compiled_for("armv4t", &dir, name, &source, &[])
        .display()
        .to_string()
}

/// Returns the program `name`. Compiles it once from a source of `linux/6.12/proofs` with these flags.
pub fn proof_with(name: &str, source: &str, flags: &[&str]) -> String {
    static COMPILED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let mut all = COMPILED.lock().expect("nobody failed here");
    let compile = || {
        let source = fs::read_to_string(format!("{PROOFS}/{source}.c")).expect("a proof");
        let program = compiled(&scratch(name), name, &source, flags);
        program.display().to_string()
    };
    all.entry(name.to_string()).or_insert_with(compile).clone()
}

/// Returns the argument of `--mutant` for a mutant of `linux/6.12/proofs`. A program in this folder shows the mutant's
/// bug.
pub fn proofs_mutant(name: &str) -> String {
    format!("{PROOFS}/mutants.toml:{name}")
}

/// Returns the number after `text`.
pub fn number_after(output: &str, text: &str) -> u32 {
    let rest = output.split_once(text).map(|(_, rest)| rest);
    let rest = rest.unwrap_or_else(|| panic!("no {text:?}: {output}"));
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    digits.unwrap().parse().expect("a number")
}

#[test]
#[ignore = "needs the kernel"]
fn a_program_for_a_newer_c_library_is_refused_before_the_boot() {
    let dir = scratch("newer");
    let library = dir.join("libnewer.so");
    let versions = dir.join("versions");
    fs::write(&versions, "GLIBC_2.99 { newer; };").unwrap();
    let script = format!(
        "-Wl,-soname,libc.so.6,--version-script={}",
        versions.display()
    );
    let source = "int newer(void) { return 1; }\n";
    let built = compiled(&dir, "newer", source, &["-shared", "-nostdlib", &script]);
    fs::rename(built, &library).unwrap();
    let source = "int newer(void); int main(void) { return newer(); }\n";
    let flags = [library.to_str().unwrap(), "-nostdlib", "-Wl,-e,main"];
    let program = compiled(&dir, "asks", source, &flags);
    let output = warmswitch(&["guest", "--add", program.to_str().unwrap(), "--", "asks"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "asks: it needs GLIBC_2.99 of libc.so.6, which is newer than the guest's";
    assert!(err(&output).contains(expected), "{}", err(&output));
}

#[test]
#[ignore = "needs the kernel"]
fn a_program_of_the_users_runs_and_its_file_comes_back() {
    let dir = scratch("own");
    let source = "#include <stdio.h>\nint main(void) { FILE *f = fopen(\"/result\", \"wb\"); int c;\n\
        while ((c = getchar()) != EOF) putc(c ^ 0xff, f); puts(\"done\"); return fclose(f); }\n";
    let all: Vec<u8> = (0..=255).cycle().take(5000).collect();
    for (name, flags) in [("dynamic", &[][..]), ("static", &["-static"])] {
        let program = compiled(&dir, name, source, flags);
        let back = dir.join(format!("{name}.back"));
        let fetch = format!("/result:{}", back.display());
        let program = program.to_str().unwrap();
        let arguments = ["guest", "--add", program, "--fetch", &fetch, "--", name];
        let output = with_input(&arguments, &all);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert_eq!(out(&output).trim(), "done");
        let inverted: Vec<u8> = all.iter().map(|byte| byte ^ 0xff).collect();
        assert_eq!(fs::read(&back).unwrap(), inverted, "{name}");
    }
    let output = warmswitch(&["guest", "--fetch", "/none", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("--fetch /none: the guest has no such plain file"));
}

#[test]
#[ignore = "needs the kernel"]
fn a_program_that_cannot_start_is_one_line_before_the_boot() {
    let dir = scratch("cannot");
    let library = compiled(
        &dir,
        "libmine.so",
        "int mine;\n",
        &["-shared", "-Wl,-soname,libmine.so"],
    );
    let source = "extern int mine; int main(void) { return mine; }\n";
    let flags = [library.to_str().unwrap()];
    let program = compiled(&dir, "uses", source, &flags);
    let v7 = compiled(
        &dir,
        "v7",
        "int main(void) { return 0; }\n",
        &["-march=armv7-a", "-static"],
    );
    let foreign = std::env::current_exe().unwrap();
    let refused = |program: &Path, part: &str| {
        let program = program.to_str().unwrap();
        let output = warmswitch(&["guest", "--add", program, "--", "true"]);
        let message = err(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(
            message.starts_with("error: --add ") && message.contains(part),
            "{message}"
        );
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    };
    refused(&program, "which is not in the guest");
    refused(&v7, "ARMv6 or newer");
    refused(&foreign, "not for little-endian ARM");
    let both = [program, library].map(|path| path.to_str().unwrap().to_string());
    let arguments = ["guest", "--add", &both[0], "--add", &both[1], "--", "uses"];
    let output = warmswitch(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
}
