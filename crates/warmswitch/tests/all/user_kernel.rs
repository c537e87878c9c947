// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of kernels that the user gives by path: appended device trees, U-Boot images, names, and wrong pairs of files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use board::fdt::Tree;

use crate::commands::{out, with_input};
use crate::plain_kernel;

/// Makes an empty folder for a test.
fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("warmswitch-user-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Runs a verb with a kernel and further options.
fn with_kernel(verb: &[&str], kernel: &Path, more: &[&str], input: &[u8]) -> Output {
    let kernel = kernel.to_str().expect("a plain path");
    with_input(&[verb, &["--kernel", kernel], more].concat(), input)
}

/// Asserts that the boot is refused with a text.
fn refused(kernel: &Path, more: &[&str], says: &str) {
    let output = with_kernel(&["boot"], kernel, more, b"");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(says), "no {says:?} in: {message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
}

/// Makes a file that looks like an Image of Linux for one machine.
fn image_for(machine: &str) -> Vec<u8> {
    let mut image = 0xe1a0_0000_u32.to_le_bytes().to_vec();
    image.extend(format!("\0Linux version 6.12 (x)\0{machine}\0").bytes());
    image.resize(0x2000, 0);
    image
}

fn tree_for(machine: &str) -> Vec<u8> {
    let mut tree = Tree::default();
    tree.root.set_text("compatible", machine);
    tree.root.set_u32("#address-cells", 1);
    tree.root.set_u32("#size-cells", 1);
    tree.to_blob()
}

/// Makes a U-Boot image of a kernel for Linux on ARM.
fn uimage(kind: u8, load: u32, data: &[u8]) -> Vec<u8> {
    let crc32 = |bytes: &[u8]| {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            let step = |crc: u32, _| crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
            (0..8).fold(crc ^ u32::from(*byte), step)
        })
    };
    let fields = [
        0x2705_1956,
        0,
        0,
        data.len() as u32,
        load,
        load,
        crc32(data),
    ];
    let mut image: Vec<u8> = fields.iter().flat_map(|f| f.to_be_bytes()).collect();
    image.extend([5, 2, kind, 0]);
    image.resize(64, b'x');
    let crc = crc32(&image);
    image[4..8].copy_from_slice(&crc.to_be_bytes());
    [&image[..], data].concat()
}

#[test]
fn a_kernel_that_does_not_fit_is_one_line_before_the_boot() {
    let dir = scratch("unfit");
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let pb = write("pb.dtb", &tree_for("arm,versatile-pb"));
    let at91 = write("at91.dtb", &tree_for("atmel,at91sam9263ek"));
    let pb = ["--dtb", pb.to_str().unwrap()];
    let at91 = ["--dtb", at91.to_str().unwrap()];
    let kernel = write("Image", &image_for("atmel,at91sam9"));
    refused(
        &kernel,
        &pb,
        "the kernel is for another machine: it has no code for \"arm,versatile-pb\"",
    );
    refused(
        &kernel,
        &at91,
        "the device tree is for \"atmel,at91sam9263ek\", but the board's machine is versatilepb",
    );
    refused(
        &kernel,
        &[],
        "needs --dtb FILE, as no device tree is behind the kernel",
    );
    let kernel = write("Image", &image_for("arm,versatile-pb"));
    let text = write("vmlinux.txt", b"text");
    let own = [&pb[..], &["--vmlinux", text.to_str().unwrap()]].concat();
    refused(
        &kernel,
        &own,
        "vmlinux.txt: is not a vmlinux: it is not an ELF file",
    );
    let image = uimage(2, 0x2000_8000, &image_for("arm,versatile-pb"));
    let elsewhere = write("uImage", &image);
    refused(
        &elsewhere,
        &pb,
        "the U-Boot image loads its kernel to 0x20008000, but this board's RAM is",
    );
    let cut = write("cut", &image[..1000]);
    refused(
        &cut,
        &pb,
        "cut: the U-Boot image is cut short: 1000 bytes of 8256",
    );
    let multi = write("multi", &uimage(4, 0x8000, b"x"));
    refused(&multi, &pb, "multi: is a U-Boot image of several files");
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
#[ignore = "needs the kernel"]
fn a_zimage_with_a_tree_behind_it_boots_plain_and_in_a_u_boot_image() {
    let dir = scratch("appended");
    let [zimage, tree] = ["zimage", "dtb"].map(|file| fs::read(plain_kernel(file)).unwrap());
    let both = [zimage, tree].concat();
    let files = [
        ("zImage", both.clone()),
        ("uImage", uimage(2, 0x8000, &both)),
    ];
    for (name, bytes) in files {
        let path = dir.join(name);
        fs::write(&path, bytes).unwrap();
        let output = with_kernel(&["boot"], &path, &[], b"uname -m\n");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{message}");
        assert!(out(&output).contains("\narmv5tejl"), "{}", out(&output));
        let note = "the device tree behind the kernel is used; it is for \"arm,versatile-pb\"";
        assert!(message.contains(note), "{message}");
    }
    let cut = dir.join("cut");
    fs::write(&cut, &both[..both.len() - 100]).unwrap();
    refused(&cut, &[], "the device tree behind the zImage is cut short");
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
#[ignore = "needs the kernel"]
fn names_come_from_the_kernels_own_table_or_from_the_vmlinux_of_its_build() {
    let dir = scratch("names");
    let alone = dir.join("zImage");
    fs::copy(plain_kernel("zimage"), &alone).unwrap();
    let [dtb, vmlinux] = ["dtb", "vmlinux"].map(plain_kernel);
    let (dtb, vmlinux) = (dtb.to_str().unwrap(), vmlinux.to_str().unwrap());
    let places = ["--at", "sys_newuname", "--", "uname", "-a"];
    let at = |more: &[&str]| {
        let more = [&["--dtb", dtb][..], more, &places].concat();
        let output = with_kernel(&["look"], &alone, &more, b"");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{message}");
        (out(&output), message)
    };
    let (own, notes) = at(&[]);
    let (given, _) = at(&["--vmlinux", vmlinux]);
    assert_eq!(own, given);
    assert!(own.contains("sys_newuname"), "{own}");
    assert!(!notes.contains("no vmlinux"), "{notes}");
    // A vmlinux of another build beside the kernel is not used.
    let mut other = fs::read(vmlinux).unwrap();
    let note = other
        .windows(16)
        .position(|w| w == b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0");
    other[note.expect("a build ID") + 16] ^= 0xff;
    fs::write(dir.join("vmlinux"), other).unwrap();
    let (again, notes) = at(&[]);
    assert_eq!(again, own);
    assert!(
        notes.contains("is of another build: its build ID begins"),
        "{notes}"
    );
    let theirs = dir.join("vmlinux");
    let more = ["--dtb", dtb, "--vmlinux", theirs.to_str().unwrap()];
    refused(&alone, &more, "is of another build");
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
#[ignore = "needs the kernel"]
fn a_kernel_in_the_current_folder_is_a_path_for_the_checker_too() {
    let dir = scratch("here");
    fs::copy(plain_kernel("zimage"), dir.join("zImage")).unwrap();
    let dtb = plain_kernel("dtb");
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["coherence", "--kernel", "zImage", "--dtb"])
        .arg(&dtb)
        .args(["--", "true"])
        .current_dir(&dir)
        .output()
        .expect("the program starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(out(&output).contains("0 reports; "), "{}", out(&output));
    fs::remove_dir_all(&dir).unwrap();
}
