// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that a guest does not notice a debugger that steps, sets watchpoints and reads memory.

use arm::{Bus as _, Counters, Mva, Pa, Watched, Watchpoint};

use crate::Rig;
use crate::rig::DATA;

/// Virtual base address of the programs and of their scratch memory.
const CODE: u32 = 0x7000_0000;
/// Cycle at which runs are compared. Every program has ended by then.
const END: u64 = 400_000;

const PROGRAMS: [(&str, u32); 6] = [
    ("two_tasks_at_one_address", 2),
    ("replacement", 0),
    ("rewritten_code", 3),
    ("descriptor_in_the_write_buffer", 0),
    ("unaligned_access", 1),
    ("dirty_halves", 1),
];

fn watch(address: u32, reads: bool, writes: bool) -> Watchpoint {
    Watchpoint {
        mva: Mva(address),
        bytes: 4,
        reads,
        writes,
    }
}

/// Returns cycle, counters and memory hash after `advance` has run a program.
fn state(program: (&str, u32), advance: impl FnOnce(&mut Rig)) -> (u64, Counters, String) {
    let mut rig = Rig::new(program.0, program.1);
    advance(&mut rig);
    let machine = rig.machine();
    (
        machine.now(),
        *machine.counters(),
        machine.memory_hash().to_string(),
    )
}

fn straight(rig: &mut Rig) {
    rig.machine().run_until(END);
}

#[test]
fn stepping_and_watching_change_no_cycle_and_no_memory() {
    for program in PROGRAMS {
        let expected = state(program, straight);
        let stepped = state(program, |rig| {
            let machine = rig.machine();
            while machine.now() < END {
                machine.run_until(machine.now() + 1);
            }
        });
        assert_eq!(stepped, expected, "{program:?} instruction by instruction");
        let watched = state(program, |rig| {
            let everything = Watchpoint {
                bytes: u32::MAX,
                ..watch(0, true, true)
            };
            rig.machine().cpu_mut().set_watchpoints(vec![everything]);
            straight(rig);
        });
        assert_eq!(watched, expected, "{program:?} watched");
    }
}

/// Returns the watched accesses of `store_miss`, which reads a word of [`DATA`], stores to it, and reads it again.
fn accesses(point: Watchpoint) -> Vec<Watched> {
    let mut rig = Rig::new("store_miss", 1);
    let machine = rig.machine();
    machine.cpu_mut().set_watchpoints(vec![point]);
    let mut seen = Vec::new();
    while machine.now() < END {
        machine.run_until(machine.now() + 1);
        seen.extend(machine.cpu_mut().take_watched());
    }
    seen
}

#[test]
fn a_watchpoint_sees_the_accesses_of_its_kind_and_address_only() {
    let mva = Mva(CODE + DATA);
    let (read, write) = (Watched { mva, write: false }, Watched { mva, write: true });
    assert_eq!(accesses(watch(mva.0, true, false)), [read, read]);
    assert_eq!(accesses(watch(mva.0, false, true)), [write]);
    assert_eq!(accesses(watch(mva.0, true, true)), [read, write, read]);
    assert_eq!(accesses(watch(mva.0 + 4, true, true)), []);
    assert_eq!(accesses(watch(mva.0 - 4, true, true)), []);
    // Another virtual address of this memory is not watched.
    assert_eq!(accesses(watch(0x8000_0000 + DATA, true, true)), []);
}

#[test]
fn a_debugger_reads_what_the_core_would_and_not_what_memory_holds() {
    let mut rig = Rig::new("memory_to_device", 0);
    rig.run_to_device();
    let cpu = rig.machine().cpu_mut();
    assert_eq!(cpu.debug_read(Mva(CODE + DATA)), Some(2), "the dirty line");
    assert_eq!(cpu.bus.peek(Pa(DATA)), Some(1));
    assert_eq!(
        cpu.debug_read(Mva(0x4000_0000 + DATA)),
        Some(1),
        "the uncached address"
    );
    assert_eq!(cpu.debug_read(Mva(0x9100_0000)), None, "not mapped");
    assert!(cpu.debug_write(Mva(CODE + DATA), 7));
    assert_eq!(cpu.debug_read(Mva(CODE + DATA)), Some(7));
    assert_eq!(cpu.bus.peek(Pa(DATA)), Some(1), "in the line only");
    assert!(!cpu.debug_write(Mva(0x9100_0000), 7));
}
