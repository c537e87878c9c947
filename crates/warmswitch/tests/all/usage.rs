// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of wrong usage and wrong files. Each must give a clear message and exit code 2, and never a panic.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn warmswitch(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

/// Asserts exit code 2 and that the message has all `parts`.
pub(super) fn refused(arguments: &[&str], parts: &[&str]) {
    let output = warmswitch(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    for part in parts {
        assert!(
            message.contains(part),
            "{arguments:?}: no {part:?} in: {message}"
        );
    }
    assert!(!message.contains("panicked"), "{message}");
}

fn scratch(name: &str, content: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("warmswitch-{}-{name}", std::process::id()));
    std::fs::write(&path, content).expect("the temporary directory takes a file");
    path
}

#[test]
fn a_wrong_name_is_answered_with_the_nearest_one() {
    refused(
        &["run", "switch-cots"],
        &["switch-cots", "did you mean \"switch-cost\"?"],
    );
    refused(&["table", "swich-cost"], &["did you mean \"switch-cost\"?"]);
    refused(
        &["boot", "--board", "sam9623"],
        &["did you mean \"sam9263\"?"],
    );
    refused(
        &["run", "switch-cost", "--board", "s3c24ao"],
        &["did you mean \"s3c24a0\"?"],
    );
    refused(&["kernel", "build", "6.12/plian"], &["plian", "plain"]);
}

#[test]
fn wrong_usage_is_exit_code_2() {
    refused(&[], &["Usage"]);
    refused(&["dance"], &["dance"]);
    refused(&["run", "switch-cost", "--jobs", "0"], &["--jobs 0"]);
    refused(&["boot", "--limit=-3"], &["--limit"]);
    refused(&["boot", "--limit", "nan"], &["--limit"]);
}

#[test]
fn a_file_that_is_no_kernel_is_refused_by_name() {
    let text = scratch(
        "text",
        b"this is no kernel, it is a line of text that is long enough",
    );
    let empty = scratch("empty", b"");
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(256, 0);
    elf[18] = 62;
    let foreign = scratch("elf", &elf);
    let dtb = scratch("dtb", &smallest_tree());
    let initrd = scratch("initrd", SOME_ARCHIVE);
    for kernel in [&text, &empty, &foreign] {
        let kernel = kernel.to_str().expect("a plain path");
        let [dtb, initrd] = [&dtb, &initrd].map(|path| path.to_str().expect("a plain path"));
        let arguments = ["boot", "--kernel", kernel, "--dtb", dtb, "--initrd", initrd];
        refused(&arguments, &[kernel]);
    }
    refused(
        &[
            "boot",
            "--kernel",
            "/nowhere/zImage",
            "--dtb",
            "/nowhere/dtb",
        ],
        &["/nowhere"],
    );
    refused(
        &["boot", "--kernel", "./zImage"],
        &["--kernel ./zImage: No such file"],
    );
}

#[test]
fn a_board_file_with_a_mistake_is_named_with_its_key() {
    let missing = scratch("missing.toml", b"name = \"x\"\n");
    let unknown = scratch("unknown.toml", b"nmae = \"x\"\n");
    let missing = missing.to_str().expect("a plain path");
    let unknown = unknown.to_str().expect("a plain path");
    refused(&["boot", "--board", missing], &[missing]);
    refused(&["boot", "--board", unknown], &[unknown, "nmae"]);
    refused(
        &["boot", "--board", "/nowhere/b.toml"],
        &["/nowhere/b.toml"],
    );
}

#[test]
fn what_there_is_can_be_listed_for_people_and_for_programs() {
    let output = warmswitch(&["list", "--json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let lists: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(output.status.success());
    for (list, name) in [
        ("boards", "sam9263"),
        ("kernels", "6.12/plain"),
        ("workloads", "lat_ctx"),
        ("experiments", "switch-cost"),
    ] {
        let entries = lists[list].as_array().expect("a list");
        assert!(
            entries.iter().any(|entry| entry["name"] == name),
            "{list}: {text}"
        );
    }
}

/// Bytes that look like a compressed archive.
const SOME_ARCHIVE: &[u8] = b"\x1f\x8b\x08";

/// Returns a device tree with only a root and its cell sizes.
fn smallest_tree() -> Vec<u8> {
    let strings = b"#address-cells\0#size-cells\0";
    let structure: [u32; 12] = [1, 0, 3, 4, 0, 1, 3, 4, 15, 1, 2, 9];
    let structure_at = 56;
    let strings_at = structure_at + 4 * structure.len() as u32;
    let total = strings_at + strings.len() as u32;
    let header = [
        0xd00d_feed,
        total,
        structure_at,
        strings_at,
        40,
        17,
        16,
        0,
        strings.len() as u32,
        4 * structure.len() as u32,
        0,
        0,
        0,
        0,
    ];
    let words = header.iter().chain(&structure);
    let mut tree: Vec<u8> = words.flat_map(|w| w.to_be_bytes()).collect();
    tree.extend(strings);
    tree
}

#[test]
fn a_guest_that_sleeps_for_ever_ends_at_the_limit_though_input_may_still_come() {
    // mov r0, r0; wait for interrupt; b . -- The rest, up to the size of a raw image, is zeros.
    let code = [0xe1a0_0000u32, 0xee07_0f90, 0xeaff_fffe];
    let mut image: Vec<u8> = code.iter().flat_map(|w| w.to_le_bytes()).collect();
    image.resize(0x2000, 0);
    let kernel = scratch("asleep", &image);
    let tree = scratch("asleep.dtb", &smallest_tree());
    let initrd = scratch("asleep.gz", SOME_ARCHIVE);
    let mut boot = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["boot", "--limit", "0.3", "--kernel"])
        .arg(&kernel)
        .arg("--dtb")
        .arg(&tree)
        .arg("--initrd")
        .arg(&initrd)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let open = boot.stdin.take();
    let output = boot.wait_with_output().expect("the program ends");
    drop(open);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("waits for an interrupt that nothing can raise"),
        "{message}"
    );
}

#[test]
fn output_that_cannot_be_written_is_a_message_and_no_panic() {
    let full = std::fs::File::create("/dev/full").expect("Linux has one");
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .arg("list")
        .stdout(full)
        .output()
        .expect("the program starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("cannot write the output"), "{message}");
}

#[test]
fn messages_that_cannot_be_written_are_dropped_and_the_exit_code_stays() {
    let shell = |redirected: &str| {
        let program = env!("CARGO_BIN_EXE_warmswitch");
        let line = format!("'{program}' boot --board nonsuch {redirected}");
        let ended = Command::new("sh").args(["-c", &line]).status();
        ended.expect("a shell starts").code()
    };
    for redirected in [
        "2>&-",
        "2>/dev/full",
        ">&- 2>&-",
        ">/dev/full 2>/dev/full",
        "<&- >&- 2>&-",
    ] {
        assert_eq!(shell(redirected), Some(2), "{redirected}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_program_as_a_shell_counts_it() {
    let program = env!("CARGO_BIN_EXE_warmswitch");
    // The second command ends without reading. The pipe holds less than all completions, so the first command's write
    // fails.
    let line = format!("{{ '{program}' completions bash; echo $? >&2; }} | true");
    let output = Command::new("sh").args(["-c", &line]).output();
    let message = output.expect("a shell starts").stderr;
    assert_eq!(String::from_utf8_lossy(&message).trim(), "141");
}

/// Runs the program with an empty cache and an empty home. Builds are forbidden, so that errors are about the options.
fn in_empty_home(arguments: &[&str]) -> Output {
    let home = std::env::temp_dir().join(format!("warmswitch-home-{}", std::process::id()));
    std::fs::create_dir_all(&home).expect("a directory is made");
    Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(arguments)
        .env("HOME", &home)
        .env("WARMSWITCH_CACHE", home.join("cache"))
        .env("WARMSWITCH_NO_BUILD", "1")
        .env("PATH", "/nowhere")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

/// Bad options, each with a part of the expected message. Some are bad for all verbs, some for one verb. Spaces
/// separate the words of a line. `-- true` is appended to each line.
const BAD: [(&str, &str); 66] = [
    ("guest --board nonsuch", "nonsuch"),
    ("guest --set nonsuch=1", "nonsuch"),
    (
        "guest --set dcache=32K",
        "did you mean \"caches.dcache_bytes\"?",
    ),
    ("guest --set caches.dcache_bytes=33K", "33792 bytes"),
    (
        "guest --set sdram.banks=3",
        "sdram.banks: 3 is not a power of two",
    ),
    ("guest --kernel nonsuch", "nonsuch"),
    (
        "guest --kernel ./Cargo.toml",
        "--kernel ./Cargo.toml: is not an ARM kernel",
    ),
    (
        "guest --vmlinux ./Cargo.toml --kernel plain",
        "--vmlinux: --kernel plain has its own",
    ),
    ("guest --vmlinux ./Cargo.toml", "--kernel <KERNEL>"),
    (
        "guest --kernel plain --vmlinux /nowhere/x",
        "--vmlinux /nowhere/x: there is no such file",
    ),
    ("guest --kernel at91-dt", "has no device tree for it"),
    (
        "guest --kernel ./Cargo.toml --dtb ./Cargo.toml",
        "--kernel ./Cargo.toml: is not an ARM kernel",
    ),
    (
        "guest --kernel /dev/null --dtb ./Cargo.toml",
        "--kernel /dev/null: the file is empty",
    ),
    (
        "guest --kernel . --dtb ./Cargo.toml",
        "--kernel .: Is a directory",
    ),
    (
        "guest --dtb ./Cargo.toml",
        "--dtb ./Cargo.toml: not a device tree",
    ),
    ("guest --dtb /nowhere/x", "--dtb /nowhere/x"),
    (
        "guest --initrd ./Cargo.toml",
        "--initrd: ./Cargo.toml: no root file system",
    ),
    ("guest --initrd .", "--initrd .: Is a directory"),
    ("guest --linux .", "--linux .: no source tree of Linux"),
    (
        "guest --linux ./Cargo.toml",
        "--linux ./Cargo.toml: no source tree of Linux",
    ),
    ("guest --config ./Cargo.toml", "--linux"),
    ("guest --victims nonsuch", "nonsuch"),
    ("guest --add /nowhere/x", "/nowhere/x"),
    ("guest --mutant nonsuch", "--mutant nonsuch"),
    ("guest --mutant /nowhere/x:y", "/nowhere/x"),
    ("guest --limit 0", "--limit 0"),
    ("guest --limit=-1", "--limit -1"),
    (
        "guest --fetch /x:/nowhere/y",
        "--fetch /nowhere/y: there is no directory /nowhere",
    ),
    ("guest --fetch /x:/", "--fetch /: it is a directory"),
    ("guest --chaos x", "x"),
    ("guest --qemu --limit 3", "'--limit <SECONDS>'"),
    ("guest --qemu --victims late", "'--victims <POLICY>'"),
    ("profile --folded /nowhere/x", "--folded /nowhere/x"),
    ("profile --callgrind .", "--callgrind .: it is a directory"),
    ("profile --perfetto /nowhere/x", "--perfetto /nowhere/x"),
    ("profile --worst 1001", "--worst 1001"),
    ("profile --task x", "--task"),
    ("profile --mutant nonsuch", "--mutant nonsuch"),
    ("coverage --save /nowhere/x", "--save /nowhere/x"),
    (
        "coverage --with ./Cargo.toml",
        "./Cargo.toml: not a file of `coverage --save`",
    ),
    ("look --at 0x1000 --svg /nowhere/x", "--svg /nowhere/x"),
    ("look --at 0x1000 --nth 0", "--nth 0"),
    ("look --at 0x1000 --mutant nonsuch", "--mutant nonsuch"),
    ("look --at r0", "--at"),
    ("scope --hz 0", "--hz 0"),
    ("scope --hz nan", "--hz NaN"),
    ("scope --pin 9", "--pin 9"),
    ("scope --answer 8", "--answer 8"),
    ("scope --trigger 8", "--trigger 8"),
    ("scope --channels 2,8", "--channels 8"),
    ("scope --channels 2,2", "pin 2 is given twice"),
    ("scope --depth 0", "--depth 0"),
    ("scope --window-us 0", "--window-us 0"),
    ("scope --width-us 5", "--hz"),
    ("scope --vcd /nowhere/x", "--vcd /nowhere/x"),
    ("scope --fst .", "--fst .: it is a directory"),
    ("scope --svg /nowhere/x", "--svg /nowhere/x"),
    ("net --mbit 7", "--mbit 7"),
    ("net --ping-hz 0", "--ping-hz 0"),
    ("net --ping-seconds 2", "--ping-hz"),
    ("net --pcapng /nowhere/x", "--pcapng /nowhere/x"),
    ("coherence --mutant nonsuch", "--mutant nonsuch"),
    ("coherence --suppressions /nowhere/x", "/nowhere/x"),
    ("coherence --suppressions ./Cargo.toml", "./Cargo.toml"),
    ("coherence --port 1", "--gdb"),
    ("coherence --jobs 2", "--jobs"),
];

/// Bad options of verbs that take no command.
const BAD_OF_OTHERS: [(&str, &str); 12] = [
    ("overhead --kernel nonsuch", "nonsuch"),
    ("overhead --board nonsuch", "nonsuch"),
    (
        "bench --no-qemu --cache-plugin ./Cargo.toml",
        "'--no-qemu' cannot be used with",
    ),
    ("bench --against /nowhere/x", "--against /nowhere/x"),
    ("bench --against .", "--against .: not an executable file"),
    (
        "bench --against ./Cargo.toml",
        "--against ./Cargo.toml: not an executable file",
    ),
    ("kernel build plain --jobs 0", "--jobs"),
    ("kernel build nonsuch", "nonsuch"),
    ("debug --kernel nonsuch", "nonsuch"),
    (
        "run switch-cost --quick --board ,",
        "--board: a name is empty",
    ),
    ("compare --jobs 0", "--jobs 0"),
    ("gage switch-cost --seeds 1", "at least 2 seeds"),
];

#[test]
fn a_port_that_is_taken_is_refused_before_anything_is_built() {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = taken.local_addr().expect("it listens").port().to_string();
    for arguments in [
        &["debug", "--port", &port][..],
        &[
            "coherence",
            "--gdb",
            "0xc0001008@2000000",
            "--port",
            &port,
            "--",
            "true",
        ],
    ] {
        let output = in_empty_home(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(&format!("--port {port}: ")), "{message}");
    }
}

#[test]
fn a_bad_option_is_refused_by_name_before_anything_is_fetched_or_built() {
    let with_command = BAD.map(|(line, says)| (format!("{line} -- true"), says));
    let others = BAD_OF_OTHERS.map(|(line, says)| (line.to_string(), says));
    for (line, says) in with_command.into_iter().chain(others) {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = in_empty_home(&arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        assert!(message.contains(says), "{line}: no {says:?} in: {message}");
        assert!(
            !message.contains("WARMSWITCH_NO_BUILD"),
            "{line}: {message}"
        );
    }
}

#[test]
fn the_keys_of_a_board_are_listed_with_unit_range_and_source() {
    let output = in_empty_home(&["list", "keys", "--board", "ixp425", "--json"]);
    let lists: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let keys = lists["keys"].as_array().expect("a list");
    let hz = keys
        .iter()
        .find(|key| key["name"] == "clocks.cpu_hz")
        .expect("a key");
    assert_eq!(
        (&hz["unit"], &hz["highest"]),
        (&"Hz".into(), &2_000_000_000f64.into())
    );
    let text = in_empty_home(&["list", "keys"]).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains("4096 to 131072, a power of two; D: Atmel"),
        "{text}"
    );
    let refused = in_empty_home(&["list", "boards", "--board", "ixp425"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_signal_ends_apt_and_what_apt_has_started() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = std::env::temp_dir().join(format!("warmswitch-apt-{}", std::process::id()));
    std::fs::create_dir_all(&home).expect("a directory is made");
    let (apt, started) = (home.join("apt-get"), home.join("pid"));
    let script = format!(
        "#!/bin/sh\nsleep 1000 &\necho $! >{0}.new\nmv {0}.new {0}\nwait\n",
        started.display()
    );
    std::fs::write(&apt, script).expect("a file is written");
    let runs = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&apt, runs).expect("a mode is set");
    let path = std::env::var("PATH").expect("a path");
    let mut child = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["kernel", "build", "6.12/plain"])
        .env("WARMSWITCH_CACHE", home.join("cache"))
        .env("PATH", format!("{}:{path}", home.display()))
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    while !started.exists() {
        let ended = child.try_wait().expect("a status");
        assert!(ended.is_none(), "it ended before apt-get ran: {ended:?}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
    let sleeps = std::fs::read_to_string(&started).expect("a number");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", sleeps.trim()));
    assert!(
        stat.map_or(true, |stat| stat.contains(") Z ")),
        "sleep runs on"
    );
    std::fs::remove_dir_all(&home).expect("it goes");
}
