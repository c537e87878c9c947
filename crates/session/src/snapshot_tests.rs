// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests with good and bad snapshot files.

use super::*;
use board::boot::Place;
use std::cell::RefCell;
use std::time::Duration;

fn scratch(name: &str) -> PathBuf {
    let name = format!("warmswitch-snapshot-{name}-{}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn at(dir: &Path) -> Snapshots {
    Snapshots {
        dir: Some(dir.to_path_buf()),
        ..Snapshots::cached_if(false)
    }
}

/// Returns a board with little RAM. A program on it has stored increasing numbers for 1 ms.
fn machine() -> Machine {
    // mov r1, #4096; add r0, r0, #1; str r0, [r1, #4]!; b .-8
    let program = [0xe3a0_1a01u32, 0xe280_0001, 0xe5a1_0004, 0xeaff_fffc];
    let boot = Boot::Bare {
        load: 0,
        entry: 0,
        bytes: program.iter().flat_map(|w| w.to_le_bytes()).collect(),
    };
    let mut spec = BoardSpec::named("sam9263").unwrap();
    spec.ram_bytes = 4 << 20;
    let mut machine = Machine::new(spec, &boot).unwrap();
    machine.run_for(Duration::from_millis(1));
    machine
}

const NAME: &str = "0123456789abcdef0123456789abcdef";

/// Looks for the machine. Returns it and the notes.
fn found(dir: &Path) -> (Option<Machine>, Vec<String>) {
    let notes = RefCell::new(Vec::new());
    let note = |line: &str| notes.borrow_mut().push(line.to_string());
    let machine = at(dir).find(NAME, machine().spec(), &note);
    (machine, notes.into_inner())
}

#[test]
fn a_kept_machine_is_found_and_goes_on_as_it_would_have() {
    let dir = scratch("kept");
    assert!(found(&dir).0.is_none() && found(&dir).1.is_empty());
    let mut straight = machine();
    at(&dir).keep(NAME, &straight, &|line| panic!("{line}"));
    let (restored, notes) = found(&dir);
    assert_eq!(notes, [""; 0]);
    let mut restored = restored.unwrap();
    straight.run_for(Duration::from_millis(1));
    restored.run_for(Duration::from_millis(1));
    assert!(restored.snapshot() == straight.snapshot());
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn nothing_is_found_or_kept_where_there_are_no_snapshots() {
    let none = Snapshots::cached_if(false);
    none.keep(NAME, &machine(), &|line| panic!("{line}"));
    let found = none.find(NAME, machine().spec(), &|line| panic!("{line}"));
    assert!(found.is_none());
}

#[test]
fn a_file_that_is_not_the_machines_snapshot_is_named_and_not_used() {
    let dir = scratch("wrong");
    let path = dir.join(format!("{NAME}.snapshot"));
    let good = file(NAME, &machine().snapshot().unwrap());
    let other = NAME.replace('0', "9");
    let newer = {
        let mut bytes = good.clone();
        bytes[MAGIC.len()] = 2;
        bytes
    };
    // A valid file with an invalid state.
    let nonsense = file(NAME, b"nonsense");
    let wrong = [
        (&b""[..], "it is cut off"),
        (&good[..HEADER - 1], "it is cut off"),
        (&good[..HEADER], "it is damaged"),
        (&good[..good.len() - 1], "it is damaged"),
        (b"#!/bin/sh", "it is not a snapshot"),
        (&newer, "it has format 2, and this program reads format 1"),
        (&file(&other, b""), "it belongs to another machine"),
        (&nonsense, "not a state of this board"),
    ];
    for (bytes, reason) in wrong {
        fs::write(&path, bytes).unwrap();
        let (machine, notes) = found(&dir);
        assert!(machine.is_none() && notes.len() == 1, "{reason}: {notes:?}");
        assert!(notes[0].contains(reason), "{reason}: {}", notes[0]);
        assert!(notes[0].contains(NAME), "{}", notes[0]);
    }
    at(&dir).keep(NAME, &machine(), &|line| panic!("{line}"));
    assert!(found(&dir).0.is_some(), "it is replaced");
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let dir = scratch("flipped");
    let path = dir.join(format!("{NAME}.snapshot"));
    let good = file(NAME, &machine().snapshot().unwrap());
    for bit in (0..good.len() * 8).step_by(good.len() / 19) {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, bytes).unwrap();
        let (machine, notes) = found(&dir);
        assert!(machine.is_none() && notes.len() == 1, "bit {bit}");
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_place_that_takes_nothing_is_noted_once() {
    let dir = scratch("no-place");
    fs::write(dir.join("file"), b"").unwrap();
    let snapshots = at(&dir.join("file"));
    let notes = RefCell::new(Vec::new());
    for _ in 0..2 {
        let note = |line: &str| notes.borrow_mut().push(line.to_string());
        snapshots.keep(NAME, &machine(), &note);
    }
    let notes = notes.into_inner();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("note: boots are not kept: "));
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn those_not_used_for_the_longest_time_make_room() {
    let dir = scratch("room");
    let names = ["a", "b", "c", "d"].map(|letter| NAME.replace('0', letter));
    let size = file(NAME, &machine().snapshot().unwrap()).len() as u64;
    let snapshots = Snapshots {
        most: 3 * size + size / 2,
        ..at(&dir)
    };
    let note = |line: &str| panic!("{line}");
    for (age, name) in names[..3].iter().enumerate() {
        snapshots.keep(name, &machine(), &note);
        let then = SystemTime::now() - Duration::from_secs(100 - age as u64);
        let file = File::open(snapshots.path(name).unwrap()).unwrap();
        file.set_modified(then).unwrap();
    }
    let exists = |name: &String| snapshots.path(name).unwrap().is_file();
    assert!(snapshots.find(&names[0], machine().spec(), &note).is_some());
    snapshots.keep(&names[3], &machine(), &note);
    let left: Vec<bool> = names.iter().map(exists).collect();
    assert_eq!(left, [true, false, true, true], "the second is the oldest");
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn every_input_changes_the_name() {
    let blob = |text: &str| Blob {
        name: "x".into(),
        bytes: text.into(),
    };
    let linux = LinuxBoot {
        kernel: blob("kernel"),
        place: None,
        dtb: blob("dtb"),
        initrd: Some(blob("root")),
        command_line: "quiet".into(),
        overrides: Vec::new(),
    };
    let spec = BoardSpec::named("sam9263").unwrap();
    let mut seeded = spec.clone();
    seeded.core.victim_seed = 7;
    let named = |spec: &BoardSpec, linux: &LinuxBoot| name(spec, &Boot::Linux(linux.clone()));
    let mut names = vec![named(&spec, &linux), named(&seeded, &linux)];
    for change in [
        |linux: &mut LinuxBoot| linux.kernel.bytes.push(0),
        |linux: &mut LinuxBoot| {
            linux.place = Some(Place {
                load: 0x8000,
                entry: 0x8000,
            });
        },
        |linux: &mut LinuxBoot| linux.dtb.bytes.push(0),
        |linux: &mut LinuxBoot| linux.initrd = None,
        |linux: &mut LinuxBoot| linux.command_line.push('x'),
    ] {
        let mut changed = linux.clone();
        change(&mut changed);
        names.push(named(&spec, &changed));
    }
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    let elsewhere = LinuxBoot {
        kernel: Blob {
            name: "elsewhere".into(),
            ..linux.kernel.clone()
        },
        ..linux.clone()
    };
    assert_eq!(named(&spec, &elsewhere), named(&spec, &linux));
    assert_eq!(name(&spec, &Boot::BareElf(blob("elf"))), None);
}
