// SPDX-License-Identifier: MIT OR Apache-2.0
//! The variant `product` and FCSE on top of it: each feature on the board, programs on memory that the kernel shares with
//! processes, and what is known to fail. `cargo xtask ci --all` runs these: `make test` builds none of the kernels.
//!
//! A test `known_to_fail_...` asserts today's failure. It turns red when the hole is mended. Then turn its assertion round
//! (no round may fail), give it the name of what holds, and delete the hole's line in docs/LIMITS.md ("Known holes") or
//! mark its section in docs/LINUX-FINDINGS.md.

use crate::commands::{compiled, number_behind, proof, scratch, warmswitch};
use crate::fcse::said;

const PLAIN: &str = "product";
const FCSE: [&str; 2] = ["product-fcse-guaranteed", "product-fcse-best-effort"];
const PRODUCT_SH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../linux/6.12/proofs/product.sh"
);
const LARGE_ARRAY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../linux/6.12/proofs/large_array.c"
);

/// What a program of `linux/6.12/proofs` says on a kernel, and whether it found everything right. It must come to its last
/// line.
fn says(kernel: &str, command: &str) -> (bool, String) {
    let program = proof(command.split(' ').next().expect("a name"));
    let options = ["guest", "--kernel", kernel, "--add", &program];
    let output = warmswitch(&[&options[..], &["--", command]].concat());
    let text = said(&output);
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{kernel}, {command}: {text}");
    (code == Some(0), text)
}

fn all_kernels() -> impl Iterator<Item = &'static str> {
    [PLAIN].into_iter().chain(FCSE)
}

/// Asserts that a program fails, and that the count behind `what` is not zero.
fn fails(kernel: &str, command: &str, what: &str) {
    let (right, text) = says(kernel, command);
    let mended = "mended? what to do is said above in this file";
    assert!(!right, "{kernel}, {command}: {mended}: {text}");
    assert!(
        number_behind(&text, what) > 0,
        "{kernel}, {command}: {mended}: {text}"
    );
}

fn holds(kernel: &str, command: &str) {
    let (right, text) = says(kernel, command);
    assert!(right, "{kernel}, {command}: {text}");
}

#[test]
#[ignore = "needs kernels"]
fn each_feature_that_a_shell_can_try_is_there() {
    for kernel in all_kernels() {
        let options = ["guest", "--kernel", kernel, "--add", PRODUCT_SH];
        let text = said(&warmswitch(&[&options[..], &["--", "product.sh"]].concat()));
        for part in [
            "fair server: runtime 50000000 ns",
            "bpf jit: 1",
            "compaction: asked for",
            "modules: 0 loaded",
            "flash: mtd0: 00800000 00020000",
            "jffs2: 1000 lines after mounting again",
            "overlay: old, above it new",
            "cgroups: cpu pids, in 0::/one",
            "Seccomp:0",
            "file systems: squashfs vfat",
            "sound:  0 [Loopback",
        ] {
            assert!(text.contains(part), "{kernel}: no {part:?}: {text}");
        }
        for what in ["ftrace: ", "kprobes: "] {
            assert!(number_behind(&text, what) > 0, "{kernel}: {text}");
        }
    }
}

/// The fair server gives common tasks 50 ms of each second, which real-time throttling at -1 does not change.
#[test]
#[ignore = "needs kernels"]
fn the_fair_server_keeps_a_real_time_task_off_until_its_runtime_is_zero() {
    let program = proof("kept_off");
    let unthrottled = "echo -1 >/proc/sys/kernel/sched_rt_runtime_us";
    let off = "mount -t debugfs debugfs /sys/kernel/debug; \
               echo 0 >/sys/kernel/debug/sched/fair_server/cpu0/runtime";
    let command = format!("{unthrottled}; kept_off 2; {off}; kept_off 2");
    for kernel in all_kernels() {
        let options = ["guest", "--kernel", kernel, "--add", &program];
        let text = said(&warmswitch(&[&options[..], &["--", &command]].concat()));
        let (before, after) = text.split_once('\n').expect("two lines");
        assert!(number_behind(before, "kept off ") >= 1, "{kernel}: {text}");
        assert_eq!(number_behind(after, "kept off "), 0, "{kernel}: {text}");
    }
}

#[test]
#[ignore = "needs kernels"]
fn files_of_flash_and_of_processes_are_read_as_they_were_written() {
    for kernel in all_kernels() {
        for command in [
            "flash_files 4",
            "fuse_file 20 buffered",
            "fuse_file 20 direct",
        ] {
            holds(kernel, command);
        }
    }
}

/// What fails with FCSE alone: on plain each message between processes implies a switch, which flushes.
#[test]
#[ignore = "needs kernels"]
fn plain_is_right_where_a_switch_comes_between() {
    for command in [
        "binder_words 100",
        "devmem_read 100",
        "bpf_array 10",
        "perf_ring 100",
        "sound_ring 20 switch",
        "fuse_file 50 beside",
    ] {
        holds(PLAIN, command);
    }
}

// What FCSE leaves out: the next issue's list (docs/LIMITS.md, "Known holes of FCSE").

/// Hole B: memory of the kernel that a process has mapped, and that the kernel writes.
#[test]
#[ignore = "needs kernels"]
fn known_to_fail_what_the_kernel_writes_to_mapped_memory_of_its_own() {
    for kernel in FCSE {
        for (command, what) in [
            ("binder_words 100", "the receiver sees old words in "),
            ("perf_ring 100", "the record is not seen in "),
            ("bpf_array 10", "its words for the process in "),
            ("sound_ring 20 switch", "of which "),
        ] {
            fails(kernel, command, what);
        }
    }
}

/// Hole C: one process that has pinned a page of its own makes all switches flush.
#[test]
#[ignore = "needs kernels"]
fn known_to_fail_a_pinned_page_of_one_process_makes_all_switches_flush() {
    let program = proof("uring_pin");
    let command = "mount -t debugfs debugfs /sys/kernel/debug; uring_pin 100 no; uring_pin 100";
    for kernel in FCSE {
        let options = ["guest", "--kernel", kernel, "--add", &program];
        let text = said(&warmswitch(&[&options[..], &["--", command]].concat()));
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.contains(" switches, "))
            .collect();
        assert_eq!(lines.len(), 2, "{kernel}: {text}");
        assert_eq!(
            number_behind(lines[0], " switches, "),
            0,
            "{kernel}: {text}"
        );
        assert!(
            number_behind(lines[1], " switches, ") >= 200,
            "{kernel}: {text}"
        );
    }
}

/// Hole D.
#[test]
#[ignore = "needs kernels"]
fn known_to_fail_dev_mem_gives_what_memory_had() {
    for kernel in FCSE {
        fails(kernel, "devmem_read 100", "/dev/mem gives old words in ");
    }
}

/// Hole E. Guaranteed mode refuses the program.
#[test]
#[ignore = "needs kernels"]
fn known_to_fail_a_large_array_lies_over_the_stack() {
    let source = std::fs::read_to_string(LARGE_ARRAY).expect("a proof");
    let program = compiled(
        &scratch("large_array"),
        "large_array",
        &source,
        &["-static"],
    );
    let program = program.display().to_string();
    for (kernel, over) in [(PLAIN, 0), ("product-fcse-best-effort", 1)] {
        let options = ["guest", "--kernel", kernel, "--add", &program];
        let text = said(&warmswitch(
            &[&options[..], &["--", "large_array word"]].concat(),
        ));
        let found = number_behind(&text, "the array lies over the stack: ");
        assert_eq!(found, over, "{kernel}: {text}");
    }
}

// Plain Linux's own (docs/LINUX-FINDINGS.md).

#[test]
#[ignore = "needs kernels"]
fn known_to_fail_a_cut_file_shows_its_old_words() {
    fails(PLAIN, "trunc_tail 100", "by read(2) in ");
}

#[test]
#[ignore = "needs kernels"]
fn known_to_fail_rings_of_the_kernel_without_a_switch() {
    for (command, what) in [
        ("uring 20 read", "its result not seen in "),
        ("uring 20 fixed", "the data old in "),
        ("uring 20 write", "the data old in "),
        ("perf_ring 100 self", "the record is not seen in "),
        ("bpf_array 10 self", "its words for the process in "),
        ("sound_ring 20", "of which "),
    ] {
        fails(PLAIN, command, what);
    }
}
