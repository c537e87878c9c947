// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that the caches hold data: without the cache maintenance in its address-space switch, Linux must fail. The
//! unchanged kernel must run the same commands without an error. The test needs the built kernel.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use object::{Object as _, ObjectSymbol as _};

use crate::plain_kernel;

const PROGRAM: &str = env!("CARGO_BIN_EXE_warmswitch");

/// Commands that fork, execute and pipe, and print a checksum five times.
const COMMANDS: &str = "i=0; while [ $i -lt 5 ]; do md5sum /bin/busybox; \
    echo hello | sed s/l/L/g | cat; i=$((i+1)); done; echo finished=$?\n";

/// Instructions of `cpu_arm926_switch_mm`: test, clean and invalidate; branch back; invalidate the I-cache.
const MAINTENANCE: [u32; 3] = [0xee17_ff7e, 0x1aff_fffd, 0xee07_cf15];
/// `mov r0, r0`.
const NOP: u32 = 0xe1a0_0000;

/// Returns the Image, in which instructions that do nothing replace the cache maintenance of the switch.
fn without_maintenance(image: &Path) -> Vec<u8> {
    let vmlinux = std::fs::read(plain_kernel("vmlinux")).expect("vmlinux");
    let elf = object::File::parse(&*vmlinux).expect("an ELF file");
    let symbol = |name| {
        elf.symbol_by_name(name)
            .expect("a symbol of vmlinux")
            .address()
    };
    let start = (symbol("cpu_arm926_switch_mm") - symbol("_text")) as usize;
    let mut image = std::fs::read(image).expect("Image");
    let mut replaced = 0;
    for word in image[start..start + 48].chunks_exact_mut(4) {
        let insn = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        if MAINTENANCE.contains(&insn) {
            word.copy_from_slice(&NOP.to_le_bytes());
            replaced += 1;
        }
    }
    assert_eq!(
        replaced,
        MAINTENANCE.len(),
        "the switch is not as this test knows it"
    );
    image
}

fn console(image: &Path, dtb: &Path) -> String {
    let mut child = Command::new(PROGRAM)
        .args(["boot", "--board", "sam9263", "--limit", "12"])
        .arg("--kernel")
        .arg(image)
        .arg("--dtb")
        .arg(dtb)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(COMMANDS.as_bytes())
        .expect("it reads its input");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns whether the console shows the complete output, with five equal checksums.
fn survives(console: &str) -> bool {
    let sums: Vec<&str> = console
        .lines()
        .filter(|line| line.ends_with("  /bin/busybox"))
        .collect();
    let whole = sums.len() == 5 && sums.iter().all(|sum| *sum == sums[0]);
    let complaints = [
        "Illegal instruction",
        "Segmentation fault",
        "Oops",
        "Kernel panic",
    ];
    whole
        && console.matches("heLLo").count() == 5
        && console.contains("finished=0")
        && !complaints.iter().any(|c| console.contains(c))
}

#[test]
#[ignore = "needs the kernel"]
fn a_kernel_whose_switch_skips_the_clean_does_not_survive() {
    let (image, dtb) = (plain_kernel("image"), plain_kernel("dtb"));
    let whole = console(&image, &dtb);
    assert!(survives(&whole), "the unpatched kernel:\n{whole}");

    let patched = Path::new(env!("CARGO_TARGET_TMPDIR")).join("Image-without-maintenance");
    std::fs::write(&patched, without_maintenance(&image)).expect("the patched Image is written");
    let broken = console(&patched, &dtb);
    assert!(
        !survives(&broken),
        "nothing went wrong without cache maintenance:\n{broken}"
    );
}
