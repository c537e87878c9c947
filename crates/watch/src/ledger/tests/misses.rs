// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small programs with known misses. The tests check the cycles and the evictor of each miss. The programs come from
//! adversarial reviews.

use super::ledger;
use crate::ledger::{Kind, Miss, MissCause, Missed};
use crate::shared_tests::busy::runs_on;
use arm::Counters;
use board::boot::Boot;
use board::{BoardSpec, Machine, Stop};
use std::time::Duration;

/// Section descriptors: cached; buffered but not cached; neither buffered nor cached, mapped to other memory.
const CACHED: u32 = 0xc1e;
const BUFFERED: u32 = 0xc16;
const UNBUFFERED: u32 = (4 << 20) | 0xc12;
/// Bits of the control register.
const DCACHE: u32 = 1 << 2;
const ICACHE: u32 = 1 << 12;
const SELF: u32 = 0xeaff_fffe;
const NOP: u32 = 0xe1a0_0000;

/// Runs code with the MMU and these control bits on, and with the sections that `section` returns.
fn run(
    board: &str,
    code: &[u32],
    on: u32,
    section: impl Fn(u32) -> u32,
) -> (Vec<(Miss, Missed)>, Counters) {
    let mut words = vec![SELF; 0x200 / 4];
    words.extend(code);
    words.push(SELF);
    words.resize(0x3000 / 4, 0);
    // Sets the table at 0x4000, opens all domains, and jumps to the code at 0x200.
    words.extend([0xe3a0_0901, 0xee02_0f10, 0xe3e0_0000, 0xee03_0f10]);
    words.extend([0xee11_0f10, 0xe380_0001 | (on & DCACHE)]);
    words.push(if on & ICACHE != 0 { 0xe380_0a01 } else { NOP });
    words.extend([0xee01_0f10, 0xe3a0_fc02]);
    words.resize(0x4000 / 4, 0);
    let device = 0xc12;
    let entry = |n: u32| (n << 20) | if n < 128 { section(n) } else { device };
    words.extend((0..4096).map(entry));
    let boot = Boot::Bare {
        load: 0,
        entry: 0x3000,
        bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    };
    let mut spec = BoardSpec::named(board).expect("a board");
    spec.ram_bytes = 16 << 20;
    let machine = Machine::new(spec, &boot).expect("it fits");
    let mut machine = machine.observed_by(ledger());
    assert_eq!(machine.run_for(Duration::from_micros(200)), Stop::Limit);
    let missed = machine.observer().missed().collect();
    (missed, *machine.counters())
}

fn stores(missed: &[(Miss, Missed)]) -> Missed {
    let stores = missed.iter().filter(|(miss, _)| miss.kind == Kind::Store);
    let mut sum = Missed::default();
    for (_, missed) in stores {
        sum.count += missed.count;
        sum.cycles += missed.cycles;
    }
    sum
}

/// `mov r1, #2 MB`, `ldr r3, [r1, #-0x800]`, which loads the translation.
const AT_2_MB: [u32; 2] = [0xe3a0_1602, 0xe511_3800];

/// Returns code that sets r1 to 3 MB - 16 and runs `last`. If `warm`, the code first loads the translations of 2, 3 and
/// 5 MB. Then it runs `last` twice, the second time from the I-cache.
fn at_3_mb(last: &[u32], warm: bool) -> Vec<u32> {
    let or_nop = |word: u32| if warm { word } else { NOP };
    let mut code = vec![
        0xe3a0_1603,         // mov r1, #0x300000
        0xe3a0_2605,         // mov r2, #0x500000
        or_nop(0xe591_3000), // ldr r3, [r1]
        or_nop(0xe592_3000), // ldr r3, [r2]
        0xe511_3800,         // ldr r3, [r1, #-0x800]
        0xe241_1010,         // sub r1, r1, #16
        0xe1a0_7001,         // mov r7, r1
    ];
    if !warm {
        code.extend(last);
        return code;
    }
    twice(&mut code, &[last, &[0xe1a0_1007]].concat());
    code
}

/// Appends a loop of two rounds: mov r6, #2; `what`; subs r6, r6, #1; bne
fn twice(code: &mut Vec<u32>, what: &[u32]) {
    code.push(0xe3a0_6002);
    code.extend(what);
    let back = (what.len() as i32 + 3).wrapping_neg() as u32 & 0xff_ffff;
    code.extend([0xe256_6001, 0x1a00_0000 | back]);
}

/// Returns the section of a megabyte: 3 MB is neither cached nor buffered, 5 MB is buffered.
fn around(megabyte: u32) -> u32 {
    match megabyte {
        3 => UNBUFFERED,
        5 => BUFFERED,
        _ => CACHED,
    }
}

#[test]
fn a_store_is_not_charged_the_waits_of_the_rest_of_its_stm() {
    // stmia r1, {r4-r11}, as one instruction and as two. Four words miss in a cached page.
    let on = DCACHE | ICACHE;
    let one = run("sam9263", &at_3_mb(&[0xe881_0ff0], true), on, around);
    let two = at_3_mb(&[0xe8a1_00f0, 0xe881_0f00], true);
    let two = run("sam9263", &two, on, around);
    let (one, two) = (stores(&one.0), stores(&two.0));
    assert_eq!(one.count, two.count);
    assert!(one.cycles.abs_diff(two.cycles) <= 4, "{one:?} {two:?}");
}

#[test]
fn a_store_is_not_charged_the_waits_of_a_faulting_walk() {
    let faulting = |n: u32| if n == 3 { 0 } else { around(n) };
    let code = at_3_mb(&[0xe881_0ff0], false);
    let (missed, counters) = run("sam9263", &code, DCACHE | ICACHE, faulting);
    let (missed, waited) = (stores(&missed), counters.write_wait_cycles);
    assert!(missed.count > 0 && missed.cycles <= waited, "{missed:?}");
}

#[test]
fn a_store_is_not_charged_the_waits_of_the_next_uncached_fetch() {
    let mut code = AT_2_MB.to_vec();
    for n in 0..40 {
        // `str r0, [r1, #n * 32]`, then a branch to the next instruction, which must be fetched.
        code.extend([0xe581_0000 | (n * 32), 0xeaff_ffff]);
    }
    for n in 0..8 {
        code.extend([0xe581_0800 | (n * 32), NOP, NOP, NOP, NOP]);
    }
    let (missed, counters) = run("sam9263", &code, DCACHE, |_| CACHED);
    let (missed, waited) = (stores(&missed), counters.write_wait_cycles);
    assert!(missed.count >= 40, "{missed:?}");
    assert!(missed.cycles <= waited, "{missed:?} {waited}");
}

#[test]
fn a_store_is_charged_its_waits_for_a_cleaned_line() {
    // mcr p15, 0, r1, c7, c10, 1; mcr p15, 0, r4, c7, c10, 1.
    for cleans in [[NOP; 2], [0xee07_1f3a, 0xee07_4f3a]] {
        let mut code = vec![
            0xe3a0_1602, // mov r1, #0x200000
            0xe3a0_2605, // mov r2, #0x500000: cached, but absent
            0xe592_3800, // ldr r3, [r2, #0x800]
            0xe591_3000, // ldr r3, [r1]
            0xe581_3000, // str r3, [r1]
            0xe581_3010, // str r3, [r1, #16]
            0xe591_3020, // ldr r3, [r1, #32]
            0xe581_3020, // str r3, [r1, #32]
            0xe581_3030, // str r3, [r1, #48]
            0xe281_4020, // add r4, r1, #32
        ];
        // strb r0, [r2, #n * 64]; then stores that make both lines dirty again.
        let missing = Vec::from_iter((0..8).map(|n| 0xe5c2_0000 | (n * 64)));
        let dirty = [0xe581_3000, 0xe581_3010, 0xe581_3020, 0xe581_3030];
        twice(&mut code, &[&cleans[..], &missing, &dirty].concat());
        let on = DCACHE | ICACHE;
        let (missed, counters) = run("sam9263", &code, on, |_| CACHED);
        let (missed, waited) = (stores(&missed), counters.write_wait_cycles);
        assert!(waited > 50, "{waited}");
        assert!(missed.cycles.abs_diff(waited) <= 4, "{missed:?} {waited}");
    }
}

#[test]
fn an_allocated_line_evicts_another_line() {
    let mut code = vec![
        0xe3a0_1602, // mov r1, #0x200000
        0xe591_3000, // ldr r3, [r1]
        0xe3a0_2605, // mov r2, #0x500000
        0xe3a0_6028, // mov r6, #40
        0xee07_2fb2, // mcr p15, 0, r2, c7, c2, 5
        0xe282_2b01, // add r2, r2, #1024
        0xe256_6001, // subs r6, r6, #1
        0x1aff_fffb, // bne -3
        0xe591_3000, // ldr r3, [r1]
    ];
    code.extend([NOP; 2]);
    let (missed, _) = run("ixp425", &code, DCACHE | ICACHE, |_| CACHED);
    let data: Vec<_> = missed
        .iter()
        .filter(|(m, _)| m.kind == Kind::Data)
        .collect();
    let first = data.iter().filter(|(miss, _)| miss.by == MissCause::First);
    assert_eq!(data.iter().map(|(_, missed)| missed.count).sum::<u64>(), 2);
    assert_eq!(first.map(|(_, missed)| missed.count).sum::<u64>(), 1);
}

#[test]
fn without_a_d_cache_no_store_misses() {
    for board in board::spec::board_names().into_iter().filter(runs_on) {
        let code = [0xe3a0_1602, 0xe581_0000, 0xe581_0040, 0xe8a1_0ff0];
        let (missed, _) = run(board, &code, ICACHE, |_| CACHED);
        assert_eq!(stores(&missed).count, 0, "{board}");
    }
}

fn of_kind(missed: &[(Miss, Missed)], kind: Kind) -> Vec<(MissCause, Missed)> {
    let of_kind = missed.iter().filter(|(miss, _)| miss.kind == kind);
    of_kind.map(|(miss, missed)| (miss.by, *missed)).collect()
}

/// Regression test: loads waited 222 cycles for lines, and the ledger charged only 80 of these cycles to misses.
#[test]
fn the_wait_for_a_line_that_a_pld_fills_is_part_of_its_miss() {
    let preload = |n: u32| 0xf5d1_f000 | (n * 32); // pld [r1, #n * 32]
    let load = |n: u32| 0xe591_3000 | (n * 32); // ldr r3, [r1, #n * 32]
    let store = |n: u32| 0xe581_3000 | (n * 32); // str r3, [r1, #n * 32]
    let programs: [&[u32]; 5] = [
        &[preload(0), load(0)],
        &[preload(0), preload(1), load(1), load(0)],
        &[preload(0), store(0)],
        // One more PLD than there are fill buffers.
        &[preload(0), preload(1), preload(2), preload(3), preload(4)],
        // ldmia r1, {r3-r11}, which ends in the next line.
        &[preload(0), preload(1), 0xe891_0ff8],
    ];
    for program in programs {
        let code = [&AT_2_MB[..], program, &[NOP; 4]].concat();
        let (missed, counters) = run("ixp425", &code, DCACHE | ICACHE, |_| CACHED);
        let data = of_kind(&missed, Kind::Data);
        let cycles: u64 = data.iter().map(|(_, missed)| missed.cycles).sum();
        let count: u64 = data.iter().map(|(_, missed)| missed.count).sum();
        assert!(counters.dcache_fill_cycles > 60, "{counters:?}");
        // A miss includes the waits for the bus before its fill.
        assert!(cycles >= counters.dcache_fill_cycles, "{data:?}");
        assert!(cycles - counters.dcache_fill_cycles < 30, "{data:?}");
        assert_eq!(count, counters.dcache_fills, "{data:?}");
    }
}

/// The wait has the same evictor as the line's fill.
#[test]
fn the_wait_for_a_pld_has_the_evictor_of_the_line() {
    let code = [
        &AT_2_MB[..],
        &[
            0xe591_3000, // ldr r3, [r1]
            0xee07_1f36, // mcr p15, 0, r1, c7, c6, 1
            0xf5d1_f000, // pld [r1]
            0xe591_3000, // ldr r3, [r1]
            NOP,
        ],
    ]
    .concat();
    let (missed, counters) = run("ixp425", &code, DCACHE | ICACHE, |_| CACHED);
    let by = |invalidated: bool| -> (u64, u64) {
        let is = |by: &MissCause| matches!(by, MissCause::Invalidated(_)) == invalidated;
        let data = of_kind(&missed, Kind::Data);
        let selected = data.iter().filter(|(by, _)| is(by));
        selected.fold((0, 0), |sum, (_, m)| (sum.0 + m.count, sum.1 + m.cycles))
    };
    assert_eq!((by(true).0, by(false).0), (1, 2));
    assert!(by(true).1 > 20, "{missed:?}");
    assert!(by(true).1 + by(false).1 >= counters.dcache_fill_cycles);
}

/// `mov r2, #P`, `mcr p15, 0, r2, c10, c0, 0`: with P = 1, the next translation becomes lockdown entry 0.
fn locks(preserve: u32) -> [u32; 2] {
    [0xe3a0_2000 | preserve, 0xee0a_2f10]
}

/// A locked entry stays until another entry is locked in its place (`DDI0198D 2.3.9`).
#[test]
fn a_locked_translation_survives_an_invalidate_of_all() {
    let mut code = vec![0xe3a0_1605, 0xe3a0_4606]; // mov r1, #0x500000; mov r4, #0x600000
    code.extend(locks(1));
    code.push(0xe591_3000); // ldr r3, [r1]
    code.extend(locks(0));
    code.push(0xee08_2f17); // mcr p15, 0, r2, c8, c7, 0
    // Loads the code's own translation again.
    code.extend([NOP; 20]);
    code.push(0xe591_3000);
    code.extend(locks(1));
    code.push(0xe594_3000); // ldr r3, [r4]
    code.extend(locks(0));
    code.extend([0xe591_3000, NOP]);
    let (missed, _) = run("sam9263", &code, DCACHE | ICACHE, |_| CACHED);
    let walks = of_kind(&missed, Kind::Translation);
    let count = |is: fn(&MissCause) -> bool| -> u64 {
        let selected = walks.iter().filter(|(by, _)| is(by));
        selected.map(|(_, missed)| missed.count).sum()
    };
    // The invalidate evicted the translation of the code. The translation of 6 MB replaced the translation of 5 MB.
    assert_eq!(
        count(|by| matches!(by, MissCause::Invalidated(_))),
        1,
        "{walks:?}"
    );
    assert_eq!(
        count(|by| matches!(by, MissCause::Replaced(_))),
        1,
        "{walks:?}"
    );
}

/// Regression test: XScale's unlock operation sent no event.
#[test]
fn an_unlocked_translation_is_evicted_by_an_invalidate_of_all() {
    for unlocks in [false, true] {
        let mut code = vec![
            0xe3a0_1605, // mov r1, #0x500000
            0xee0a_1f18, // mcr p15, 0, r1, c10, c8, 0
        ];
        code.push(if unlocks { 0xee0a_1f38 } else { NOP }); // mcr p15, 0, r1, c10, c8, 1
        // mcr p15, 0, r1, c8, c6, 0
        code.extend([0xee08_1f16, 0xe591_3000, NOP]);
        let (missed, _) = run("ixp425", &code, DCACHE | ICACHE, |_| CACHED);
        let walks = of_kind(&missed, Kind::Translation);
        let invalidated = walks
            .iter()
            .filter(|(by, _)| matches!(by, MissCause::Invalidated(_)));
        let count: u64 = invalidated.map(|(_, missed)| missed.count).sum();
        assert_eq!(count, u64::from(unlocks), "{walks:?}");
    }
}

/// Returns the cycles of all misses of data lines, and the fill cycles that the core counted.
fn of_data((missed, counters): (Vec<(Miss, Missed)>, Counters)) -> (u64, u64) {
    let data = of_kind(&missed, Kind::Data);
    let cycles = data.iter().map(|(_, missed)| missed.cycles).sum();
    (cycles, counters.dcache_fill_cycles)
}

#[test]
fn a_miss_is_not_charged_later_waits_of_its_instruction() {
    // ldmia r1, {r3-r5, r8-r12}: four words miss, and four words are in an uncached page.
    let reads_past = at_3_mb(&[0xe891_1f38], true);
    // Buffered stores `strb r0, [r2, #n * 64]`, then `sub r7, r7, #64` and `swp r3, r0, [r7]`. The swp waits for the
    // write buffer.
    let mut drains = at_3_mb(&[], true);
    drains.extend((0..4).map(|n| 0xe5c2_0000 | (n * 64)));
    drains.extend([0xe247_7040, 0xe107_3090]);
    for code in [reads_past, drains] {
        for board in ["sam9263", "at91rm9200", "ixp425"] {
            let (missed, filled) = of_data(run(board, &code, DCACHE | ICACHE, around));
            assert_eq!(missed, filled, "{board}");
        }
    }
}
