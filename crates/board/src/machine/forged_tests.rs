// SPDX-License-Identifier: MIT OR Apache-2.0
//! Snapshots with one forged field. Only an attacker who also forges the hash can make such snapshots. A machine either
//! refuses the snapshot or continues with the forged value; it never panics.

use super::busy_tests::{STORE, cached_in};
use super::*;
use crate::link::Rate;
use arm::{Bus as _, Pa, Saved, State as _, Width};

/// Forged values, as numbers of 64, 32 and 8 bits. At an offset inside a field, a value overwrites parts of two fields.
const FORGED: [&[u8]; 6] = [
    &[0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    &[0xff; 8],
    &[0xff; 4],
    &[0, 0, 0, 0, 0, 0, 0, 0x40],
    &[200],
    &[0],
];

/// Uses every part of a bus, in any state.
fn use_all(bus: &mut SystemBus, spec: &BoardSpec, mut now: u64) {
    bus.send(now, b"x");
    for _ in 0..2 {
        for device in &spec.peripherals.devices {
            for at in (0..0x40).step_by(4).chain([0x200, 0xfe0]) {
                if at < device.size {
                    let _ = bus.read(now, Pa(device.base + at), Width::Word);
                }
            }
        }
        for bank in 0..4 {
            let chip = NETWORK;
            let _ = bus.write(now, Pa(chip + 14), Width::Half, bank);
            for at in (0..16).step_by(2) {
                let _ = bus.read(now, Pa(chip + at), Width::Half);
            }
        }
        let frame = [&[0xff; 12][..], &[0; 50]].concat();
        bus.with_link(|link| link.send(now, frame, true, false));
        // Commands: allocate, remove and release, release, send, clear the queues.
        for (at, value) in [
            (14, 2),
            (0, 0x20),
            (0, 0x80),
            (0, 0xa0),
            (0, 0xc0),
            (12, 2),
            (0, 0xe0),
        ] {
            let _ = bus.write(now, Pa(NETWORK + at), Width::Half, value);
        }
        for _ in 0..40 {
            now = bus.next_event().clamp(now + 1, now + 100_000);
            bus.advance(now);
        }
    }
    bus.take_stop();
    bus.plug(now, Some(Rate::Ten));
    let _ = bus.write_words(now, Pa(0x1000), &[1; 8]);
    let _ = bus.read(now, Pa(0x1000), Width::Word);
    bus.save(&mut Vec::new());
}

/// Address of the network controller on every board.
const NETWORK: u32 = 0x1001_0000;

#[test]
fn forged_devices_are_refused_or_used_and_never_panic() {
    let mut spec = BoardSpec::named(crate::spec::DEFAULT_BOARD).unwrap();
    spec.ram_bytes = 1 << 20;
    let busy = {
        let mut bus = SystemBus::new(&spec).unwrap();
        bus.send(0, b"xyz");
        // Three frames: one is received, one waits, and one is on the wire.
        let writes = [
            (14, 0),
            (4, 0x300),
            (0, 0x81),
            (14, 2),
            (0, 0x20),
            (2, 0),
            (0, 0xc0),
        ];
        for (at, value) in writes {
            let written = bus.write(20_000_000, Pa(NETWORK + at), Width::Half, value);
            assert!(written.is_ok());
        }
        bus.with_link(|link| link.send(0, vec![0xff; 60], true, false));
        bus.advance(20_000_100);
        assert_eq!(bus.link().to_board().taken, 1);
        let mut bytes = Vec::new();
        bus.save(&mut bytes);
        bytes
    };
    let packets = busy
        .windows(8)
        .position(|eight| eight == 8192u64.to_le_bytes());
    let packets = packets.expect("the memory of the network controller");
    let fresh = SystemBus::new(&spec).unwrap();
    let mut ram = Vec::new();
    fresh.ram().save(&mut ram);
    let (mut refused, mut used) = (0, 0);
    let fields = (ram.len()..packets + 16).chain(packets + 8192..busy.len());
    for at in fields {
        for forged in FORGED
            .iter()
            .filter(|forged| at + forged.len() <= busy.len())
        {
            let mut bytes = busy.clone();
            bytes[at..at + forged.len()].copy_from_slice(forged);
            let mut bus = fresh.clone();
            let mut from = Saved::new(&bytes);
            if bus.restore(&mut from).is_err() || from.end().is_err() {
                refused += 1;
                continue;
            }
            use_all(&mut bus, &spec, 20_000_100);
            used += 1;
        }
    }
    assert!(refused > 500 && used > 500, "{refused} {used}");
}

/// Returns the number of bytes of a snapshot up to the end of the core.
fn of_core(machine: &Machine, snapshot: &[u8]) -> usize {
    let mut bus = Vec::new();
    machine.cpu.bus.save(&mut bus);
    snapshot.len() - bus.len()
}

/// Bytes of a snapshot before the core: the board's hash, and the number of console bytes that were taken.
const HEAD: usize = 32 + 8;

#[test]
fn a_machine_whose_console_was_taken_before_it_printed_is_refused() {
    let m = cached_in("sam9263", [STORE; 3], 4 << 20);
    let mut saved = m.snapshot().unwrap();
    saved[HEAD - 8] = 1;
    assert!(Machine::restored(m.spec().clone(), &saved).is_err());
}

#[test]
fn forged_cores_are_refused_or_go_on_and_never_panic() {
    // add r8, r8, r6; eor r8, r8, r3
    let executed = [0xe088_8006, 0xe028_8003, STORE];
    for (board, step) in [("sam9263", 1), ("ixp425", 5), ("at91rm9200", 1)] {
        let mut m = cached_in(board, executed, 4 << 20);
        m.run_for(Duration::from_micros(700));
        let saved = m.snapshot().unwrap();
        let end = of_core(&m, &saved);
        // The core's state begins with the registers. It ends with the write buffer and the counters.
        let ends = (HEAD..500).chain(end - 1000..end).step_by(step);
        let (mut refused, mut used) = (0, 0);
        for at in ends.chain((500..end - 1000).step_by(997)) {
            for forged in FORGED.iter().step_by(2).filter(|f| at + f.len() <= end) {
                let mut bytes = saved.clone();
                bytes[at..at + forged.len()].copy_from_slice(forged);
                // The test restores into the existing core, because making a new core takes long.
                m.ended = None;
                if m.cpu.restore(&mut Saved::new(&bytes[HEAD..])).is_err() {
                    refused += 1;
                    continue;
                }
                let until = m.now() + 2_000;
                m.run_until(until);
                used += 1;
            }
        }
        assert!(refused > 50 && used > 50, "{refused} {used}");
    }
}
