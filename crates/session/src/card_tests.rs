// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the card's file: what is refused, what is written, and when.

use super::*;
use std::os::unix::fs::PermissionsExt;

const BYTES: u64 = 1 << 20;

/// Makes a file in an empty folder. A part of the file is a hole.
fn image(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("warmswitch-sd-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("card.img");
    let file = File::create(&path).unwrap();
    file.set_len(BYTES).unwrap();
    file.write_all_at(&[0x5a; 5000], 1000).unwrap();
    path
}

fn remove(path: &Path) {
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

fn error<T>(result: Result<T>) -> String {
    result
        .map(|_| "no error")
        .map_or_else(|e| format!("{e:#}"), str::to_owned)
}

fn board() -> BoardSpec {
    BoardSpec::named("sam9263-ek").unwrap()
}

fn options(path: &Path, sd_keep: bool) -> Options {
    Options {
        sd: Some(path.to_path_buf()),
        sd_keep,
    }
}

/// Returns the error of opening a card's file.
fn refused(path: &Path, keep: bool) -> String {
    error(options(path, keep).open(&board()))
}

#[test]
fn a_board_without_a_slot_names_the_boards_with_one() {
    let path = image("slot");
    let versatile = BoardSpec::named("sam9263").unwrap();
    let error = error(options(&path, false).open(&versatile));
    assert!(error.contains("the board sam9263 has no slot"), "{error}");
    assert!(error.contains("with a slot: sam9263-ek"), "{error}");
    assert!(Options::default().open(&versatile).unwrap().is_none());
    remove(&path);
}

#[test]
fn files_that_cannot_be_a_card_are_refused_by_name() {
    let path = image("bad");
    let file = File::options().write(true).open(&path).unwrap();
    let told = format!("--sd {}", path.display());
    file.set_len(BYTES + 1).unwrap();
    let odd = refused(&path, false);
    assert!(
        odd.starts_with(&told) && odd.contains("truncate -s 1536K"),
        "{odd}"
    );
    file.set_len(BYTES).unwrap();
    // An ext file system of 2 MiB.
    file.write_all_at(&2048u32.to_le_bytes(), 1028).unwrap();
    file.write_all_at(&[0; 4], 1048).unwrap();
    file.write_all_at(&[0x53, 0xef], 1080).unwrap();
    let cut = refused(&path, false);
    assert!(cut.contains("cut off") && cut.contains("2097152"), "{cut}");
    let folder = path.parent().unwrap();
    assert!(refused(folder, false).contains("no regular file"));
    assert!(refused(&folder.join("none"), false).contains("there is no such file"));
    assert!(refused(Path::new("/dev/null"), true).contains("no regular file"));
    remove(&path);
}

#[test]
fn a_file_that_is_read_only_or_locked_is_refused_only_if_it_would_be_written() {
    let path = image("locked");
    let set_mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    set_mode(0o444);
    assert!(refused(&path, true).contains("read-only"));
    let reader = CardFile::open(&path, false).unwrap();
    set_mode(0o644);
    let other = CardFile::open(&path, false).unwrap();
    assert!(refused(&path, true).contains("locked"));
    drop((reader, other));
    let writer = CardFile::open(&path, true).unwrap();
    for keep in [false, true] {
        assert!(refused(&path, keep).contains("another program has locked it"));
    }
    drop(writer);
    assert!(CardFile::open(&path, true).is_ok());
    remove(&path);
}

#[test]
fn the_file_is_written_only_at_a_good_end_and_only_with_sd_keep() {
    let path = image("keep");
    let before = std::fs::read(&path).unwrap();
    let (one, two) = ([1; 4096], [2; 4096]);
    let pages: [(u64, &[u8]); 2] = [(4096, &one), (BYTES - 4096, &two)];
    let ended = |keep, well| {
        let card = CardFile::open(&path, keep).unwrap();
        let mut slot = board::device::card::Slot::default();
        slot.insert(Some(card.content()));
        card.end(slot.card(), well).unwrap().unwrap_or_default()
    };
    assert_eq!(ended(false, true), "");
    assert!(ended(true, false).ends_with("is not changed, because the run did not end well"));
    assert!(ended(true, true).starts_with("0 bytes were written"));
    assert!(std::fs::read(&path).unwrap() == before);
    let card = CardFile::open(&path, true).unwrap();
    assert_eq!(card.write(&pages).unwrap(), 8192);
    let mut expected = before;
    expected[4096..8192].fill(1);
    expected[BYTES as usize - 4096..].fill(2);
    assert!(std::fs::read(&path).unwrap() == expected);
    remove(&path);
}

#[test]
fn a_file_that_another_program_changed_or_replaced_is_not_written() {
    let path = image("changed");
    let page = [1; 4096];
    let card = CardFile::open(&path, true).unwrap();
    let writer = File::options().write(true).open(&path).unwrap();
    writer.write_all_at(&[9], BYTES - 1).unwrap();
    let changed = error(card.write(&[(0, &page)]));
    assert!(changed.contains("it was not written"), "{changed}");
    drop(card);
    let card = CardFile::open(&path, true).unwrap();
    let copy = path.with_extension("copy");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::rename(&copy, &path).unwrap();
    assert!(error(card.write(&[(0, &page)])).contains("replaced"));
    let mut expected = vec![0; BYTES as usize];
    expected[1000..6000].fill(0x5a);
    expected[BYTES as usize - 1] = 9;
    assert!(std::fs::read(&path).unwrap() == expected);
    remove(&path);
}

#[test]
fn what_the_guest_reads_is_what_was_there_before_the_run() {
    let path = image("during");
    let card = CardFile::open(&path, false).unwrap();
    let mut slot = board::device::card::Slot::default();
    slot.insert(Some(card.content()));
    let writer = File::options().write(true).open(&path).unwrap();
    // A hole that was filled still reads as zeros.
    writer.write_all_at(&[9], BYTES / 2).unwrap();
    let mut byte = [1];
    let read = |at, byte: &mut [u8]| slot.card().unwrap().read(at, byte);
    read(BYTES / 2, &mut byte);
    assert!(byte == [0] && card.check(slot.card()).is_ok());
    writer.write_all_at(&[9], 2000).unwrap();
    read(1500, &mut byte);
    let error = error(card.check(slot.card()));
    assert!(
        error.contains("card.img was changed by another program"),
        "{error}"
    );
    assert!(card.end(slot.card(), true).is_err());
    remove(&path);
}

#[test]
fn a_sparse_card_of_32_gb_is_opened_at_once() {
    let path = image("sparse");
    let file = File::options().write(true).open(&path).unwrap();
    let bytes = 32 << 30;
    if file.set_len(bytes).is_err() {
        return; // The file system has no such files.
    }
    file.write_all_at(&[7], bytes - 1).unwrap();
    let card = CardFile::open(&path, true).unwrap();
    assert_eq!(card.content().bytes(), bytes);
    let mut slot = board::device::card::Slot::default();
    slot.insert(Some(card.content()));
    let mut last = [0; 2];
    slot.card().unwrap().read(bytes - 2, &mut last);
    assert_eq!(last, [0, 7]);
    remove(&path);
}

#[test]
fn the_last_root_on_the_command_line_counts() {
    for (words, on_card) in [
        ("console=ttyS0 root=/dev/mmcblk0p2 rootwait", true),
        ("root=/dev/ram0 root=/dev/mmcblk0", true),
        ("root=/dev/mmcblk0 root=/dev/ram0", false),
        ("rootwait xroot=/dev/mmcblk0", false),
    ] {
        assert_eq!(has_root(words), on_card, "{words}");
    }
}
