// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the variant `product`, with and without FCSE. They test its features on the board, memory that the kernel
//! shares with processes, and known failures. `cargo xtask ci --all` runs these tests. `make test` does not build these
//! kernels.
//!
//! A test `known_to_fail_...` asserts a known failure. Unless the test's comment states otherwise, the failure also
//! occurs in plain Linux. The test fails when the bug is fixed. Then reverse the test's assertion, so that no round may
//! fail, and rename the test. If docs/understand/LINUX-FINDINGS.md describes the bug, mark its section as fixed. If
//! docs/understand/LIMITS.md describes it, remove the limit.

use crate::commands::{number_after, proof, warmswitch};
use crate::fcse::output_text;

const PLAIN: &str = "product";
const FCSE: [&str; 2] = ["product-fcse-guaranteed", "product-fcse-best-effort"];
const PRODUCT_SH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../linux/6.12/proofs/product.sh"
);

/// Runs a program of `linux/6.12/proofs` on a kernel. The program must run to its end. Returns whether the program
/// found no error. Also returns the program's output.
fn says(kernel: &str, command: &str) -> (bool, String) {
    says_with(kernel, "16K", command)
}

fn says_with(kernel: &str, dcache: &str, command: &str) -> (bool, String) {
    let program = proof(command.split(' ').next().expect("a name"));
    let dcache = format!("caches.dcache_bytes={dcache}");
    let options = [
        "guest", "--kernel", kernel, "--set", &dcache, "--add", &program,
    ];
    let output = warmswitch(&[&options[..], &["--", command]].concat());
    let text = output_text(&output);
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{kernel}, {command}: {text}");
    (code == Some(0), text)
}

fn all_kernels() -> impl Iterator<Item = &'static str> {
    [PLAIN].into_iter().chain(FCSE)
}

/// Asserts that a program fails, and that the number after the text `what` in its output is not zero.
fn fails(kernel: &str, command: &str, what: &str) {
    fails_with(kernel, "16K", command, what);
}

fn fails_with(kernel: &str, dcache: &str, command: &str, what: &str) {
    let (right, text) = says_with(kernel, dcache, command);
    let fixed = "fixed? the module comment says what to do";
    assert!(!right, "{kernel}, {command}: {fixed}: {text}");
    assert!(
        number_after(&text, what) > 0,
        "{kernel}, {command}: {fixed}: {text}"
    );
}

fn holds(kernel: &str, command: &str) {
    holds_with(kernel, "16K", command);
}

fn holds_with(kernel: &str, dcache: &str, command: &str) {
    let (right, text) = says_with(kernel, dcache, command);
    assert!(right, "{kernel}, {command}: {text}");
}

/// The series `zeroing` and `vivt-fixes` have a patch for each of these bugs. On `plain`, each program and each test
/// must fail.
#[test]
#[ignore = "needs kernels"]
fn what_is_mended_in_plain_linux_is_right() {
    for command in ["trunc_tail 50", "ksm_store 600 225 325"] {
        holds("plain-fixes", command);
        assert!(!says("plain", command).0, "plain, {command}");
    }
    for test in [
        "hole_punched",
        "vm_own_line",
        "private_of_shared",
        "written_in_own_flush",
        "swap_looked_vm",
        "swap_looked_mem",
        "swap_looked_lent",
    ] {
        for (kernel, begins) in [("plain-fixes", "ok 1 "), ("plain", "not ok 1 ")] {
            let command = format!("mm_suite --only {test}");
            let text = output_text(&warmswitch(&["guest", "--kernel", kernel, "--", &command]));
            assert!(
                text.lines().any(|line| line.starts_with(begins)),
                "{kernel}, {test}: {text}"
            );
        }
    }
}

/// The interrupts of perf read the memory of the process without a task switch.
#[test]
#[ignore = "needs kernels"]
fn what_interrupts_of_perf_read_of_a_process_is_flushed() {
    for kernel in FCSE {
        holds(kernel, "perf_late 200");
        holds(kernel, "perf_late 200 thread");
    }
}

#[test]
#[ignore = "needs kernels"]
fn who_has_a_disk_mapped_sees_what_its_file_system_changes() {
    for kernel in all_kernels() {
        holds(kernel, "disk_entries 20");
    }
}

#[test]
#[ignore = "needs kernels"]
fn a_child_that_is_forked_while_dev_mem_is_mapped_sees_no_old_words() {
    for kernel in ["plain", "fcse-guaranteed", "fcse-best-effort"] {
        holds(kernel, "fork_mem 20");
    }
}

#[test]
#[ignore = "needs kernels"]
fn each_feature_that_a_shell_can_try_is_there() {
    for kernel in all_kernels() {
        let options = ["guest", "--kernel", kernel, "--add", PRODUCT_SH];
        let text = output_text(&warmswitch(&[&options[..], &["--", "product.sh"]].concat()));
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
            assert!(number_after(&text, what) > 0, "{kernel}: {text}");
        }
    }
}

/// The fair server gives ordinary tasks 50 ms of each second, even with real-time throttling off (-1).
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
        let text = output_text(&warmswitch(&[&options[..], &["--", &command]].concat()));
        let (before, after) = text.split_once('\n').expect("two lines");
        assert!(number_after(before, "kept off ") >= 1, "{kernel}: {text}");
        assert_eq!(number_after(after, "kept off "), 0, "{kernel}: {text}");
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

/// Tests memory that the kernel and a process map at different addresses. The data flows in both directions. Each
/// message between processes implies a switch. A switch from or to a process with such memory flushes (`fcse.rst`,
/// "Memory of the kernel").
#[test]
#[ignore = "needs kernels"]
fn memory_of_the_kernel_is_right_where_a_switch_comes_between() {
    for kernel in all_kernels() {
        for command in [
            "binder_words 100",
            "devmem_read 100",
            "devmem_map 20 shared",
            "devmem_map 20 private",
            "devmem_map 64 ram",
            "bpf_array 10",
            "bpf_child 20 inherited",
            "bpf_child 20 late",
            "perf_ring 100",
            "sound_ring 20 switch",
            "fuse_file 100 beside",
        ] {
            holds(kernel, command);
        }
        // A smaller cache would evict the data that the kernel wrote before the first page was mapped.
        holds_with(kernel, "128K", "perf_ring 20");
    }
}

/// Returns four numbers: all switches, flushing switches, the time of a hop between two processes while `beside` runs,
/// and the time of a hop before `beside` runs. Times are in ns.
fn bystanders(kernel: &str, beside: &str) -> [u32; 4] {
    let (program, binder) = (proof("bystander"), proof("binder_words"));
    let command = format!("mount -t debugfs debugfs /sys/kernel/debug; {beside}");
    let options = [
        "guest", "--kernel", kernel, "--add", &program, "--add", &binder,
    ];
    let text = output_text(&warmswitch(&[&options[..], &["--", &command]].concat()));
    ["switches: ", "flushed: ", "ns a hop: ", "before: "].map(|what| number_after(&text, what))
}

/// If a process pins pages or maps memory of the kernel, switches between other processes still do not flush.
#[test]
#[ignore = "needs kernels"]
fn a_process_that_pins_pages_or_maps_the_kernels_costs_others_nothing() {
    for kernel in FCSE {
        for beside in [
            "bystander 500",
            "bystander 500 uring",
            "bystander 500 fuse",
            "bystander 500 once",
            "bystander 500 once uring",
            "bystander 500 file",
            "binder_words 5; bystander 500",
        ] {
            let found = bystanders(kernel, beside);
            // Each of the ring's 500 hops takes two switches. All other switches are from or to the process that pins
            // pages.
            let others = found[0].saturating_sub(2 * 500);
            assert!(found[1] <= 2 * others, "{kernel}, {beside}: {found:?}");
            assert!(
                found[2] * 20 <= found[3] * 21,
                "{kernel}, {beside}: {found:?}"
            );
        }
        // If the pinning process also runs, each switch to and from that process flushes.
        let found = bystanders(kernel, "bystander 500 uring run");
        let others = found[0] - 2 * 500;
        assert!(found[1] <= 2 * others, "{kernel}: {found:?}");
    }
}

// The known failures follow (docs/understand/LINUX-FINDINGS.md, docs/understand/LIMITS.md).
#[test]
#[ignore = "needs kernels"]
fn known_to_fail_a_cut_file_shows_its_old_words() {
    fails(PLAIN, "trunc_tail 100", "by read(2) in ");
}

#[test]
#[ignore = "needs kernels"]
fn known_to_fail_a_thread_beside_a_cut_brings_old_words_back() {
    for command in ["trunc_race 200 40 100 cut", "trunc_race 200 0 150 hole"] {
        fails("plain-fixes", command, "old words back in ");
    }
}

#[test]
#[ignore = "needs kernels"]
fn known_to_fail_a_page_is_moved_as_the_kernel_last_saw_it() {
    holds(PLAIN, "migrated 20 unread");
    fails(PLAIN, "migrated 60", "lost stores: ");
}

#[test]
#[ignore = "needs kernels"]
fn a_page_is_moved_with_its_stores_where_that_is_mended() {
    holds("product-fixes", "migrated 60");
}

#[test]
#[ignore = "needs kernels"]
fn a_strangers_pin_of_a_page_that_was_once_pinned_makes_no_switch_flush() {
    for kernel in FCSE {
        holds(kernel, "pin_reused");
        holds(kernel, "pin_reused beside");
    }
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

/// The program's output begins with the count. `plain-fixes` and the kernels with FCSE fail, too.
#[test]
#[ignore = "needs kernels"]
fn known_to_fail_a_call_that_writes_its_own_source_reads_old_words() {
    fails(PLAIN, "writev_overlap 100", "");
}

/// Within one process, this is a bug of plain Linux. Between two processes, this is a bug of FCSE in guaranteed mode.
/// The bug needs a large cache, because the kernel's old line does not stay in a small cache long enough.
#[test]
#[ignore = "needs kernels"]
fn known_to_fail_a_build_id_is_recorded_as_the_kernel_last_saw_it() {
    let [guaranteed, best_effort] = FCSE;
    fails_with(PLAIN, "128K", "build_id 100 self", "");
    fails_with(guaranteed, "128K", "build_id 100", "");
    for kernel in [PLAIN, best_effort] {
        holds_with(kernel, "128K", "build_id 100");
    }
}
