// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of memory cards with the content of a file (`--sd`).

use std::fs::{self, File};
use std::path::{Path, PathBuf};

#[cfg(feature = "every-kernel")]
use crate::commands::{out, with_input};
use crate::commands::{scratch, warmswitch};

/// Makes a card of zeros.
fn card(name: &str, bytes: u64) -> PathBuf {
    let path = scratch(name).join("card.img");
    File::create(&path).unwrap().set_len(bytes).unwrap();
    path
}

/// Asserts that all verbs with a card refuse these options in one line, without a boot, and do not change the file.
fn refused(card: &Path, options: &[&str], parts: &[&str]) {
    let before = fs::read(card);
    let card_option = ["--sd", card.to_str().expect("a plain path")];
    for verb in ["boot", "guest"] {
        let words = [&[verb], options, &card_option, &["--", "true"]].concat();
        let output = warmswitch(&words);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {message}");
        for part in parts {
            assert!(
                message.contains(part),
                "{words:?}: no {part:?} in: {message}"
            );
        }
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    }
    assert!(before.ok() == fs::read(card).ok());
}

const BOARD: [&str; 2] = ["--board", "sam9263-ek"];

#[test]
fn a_card_that_the_board_cannot_have_is_refused_before_the_boot() {
    let good = card("card-good", 1 << 20);
    let name = good.to_str().expect("a plain path");
    refused(
        &good,
        &[],
        &["--sd", name, "sam9263 has no slot", "sam9263-ek"],
    );
    let odd = card("card-odd", 1_000_000);
    refused(
        &odd,
        &BOARD,
        &["--sd", "1000000 bytes", "truncate -s 1024K"],
    );
    let folder = good.parent().expect("a folder");
    refused(folder, &BOARD, &["--sd", "no regular file"]);
    refused(
        &folder.join("none"),
        &BOARD,
        &["--sd", "none", "there is no such file"],
    );
}

#[test]
fn a_card_that_cannot_be_kept_is_refused_before_the_boot() {
    let path = card("card-keep", 1 << 20);
    let keep = [&BOARD[..], &["--sd-keep"]].concat();
    let locked = File::open(&path).unwrap();
    locked.lock_shared().unwrap();
    refused(&path, &keep, &["--sd", "another program has locked it"]);
    drop(locked);
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    refused(&path, &keep, &["--sd", "read-only", "--sd-keep"]);
}

#[test]
fn options_that_do_not_fit_a_card_are_refused() {
    let path = card("card-options", 1 << 20);
    let path = path.to_str().expect("a plain path");
    let without = warmswitch(&["boot", "--sd-keep"]);
    assert_eq!(without.status.code(), Some(2));
    for option in ["--qemu", "--chaos=1"] {
        let output = warmswitch(&["guest", "--sd", path, option, "--", "true"]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("--sd"), "{message}");
    }
}

#[cfg(feature = "every-kernel")]
/// Typed at the guest's prompt. The card has no file system.
const TYPED: &str = "dd if=/dev/mmcblk0 bs=4096 count=1 2>/dev/null | md5sum
seq 100000 | dd of=/dev/mmcblk0 bs=4096 seek=3 count=99 iflag=fullblock 2>/dev/null; sync
dd if=/dev/mmcblk0 bs=4096 count=102 2>/dev/null | md5sum; echo \"st\"'atus' $?
";

#[cfg(feature = "every-kernel")]
#[test]
#[ignore = "needs the kernel"]
fn a_card_keeps_what_the_guest_wrote_only_with_sd_keep() {
    let path = card("card-written", 1 << 20);
    let path = path.to_str().expect("a plain path");
    let run = |more: &[&str], last: &[&str], typed: &str| {
        // The device tree gives two pins of the card to the SPI, too.
        let words = [
            &["boot"],
            &BOARD[..],
            &["--sd", path],
            more,
            &["--"],
            &CMDLINE,
            last,
        ]
        .concat();
        let output = with_input(&words, typed.as_bytes());
        let note = String::from_utf8_lossy(&output.stderr).into_owned();
        (out(&output), note, output.status.code())
    };
    let zeros = vec![0; 1 << 20];
    let (first, note, code) = run(&[], &[], TYPED);
    assert!(
        first.contains("status 0") && code == Some(0),
        "{first}{note}"
    );
    assert!(fs::read(path).unwrap() == zeros && !note.contains("card.img"));
    // A panic is no good end.
    let (_, note, code) = run(&["--sd-keep"], &["panic=-1", "rdinit=/bin/true"], "");
    assert!(note.contains("is not changed") && code != Some(0), "{note}");
    assert!(fs::read(path).unwrap() == zeros);
    let (second, note, code) = run(&["--sd-keep"], &[], TYPED);
    assert!(
        note.contains("bytes were written to") && code == Some(0),
        "{note}"
    );
    assert_eq!(first, second);
    let mut expected = zeros;
    let numbers: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    let length = 99 * 4096;
    expected[3 * 4096..][..length].copy_from_slice(&numbers.as_bytes()[..length]);
    assert!(fs::read(path).unwrap() == expected);
}

#[cfg(feature = "every-kernel")]
/// Command line of the kernel.
const CMDLINE: [&str; 2] = [
    "console=ttyS0,115200",
    "initcall_blacklist=atmel_spi_driver_init",
];
