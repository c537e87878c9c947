// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates random programs. A few physical pages are mapped many times, with pages of every kind, so that addresses,
//! TLB sets, cache sets and shared decode slots collide often.

use super::code;
use super::program::{Event, Op, Program, Setup};
use super::random::Random;

/// Blocks of memory with code and data: 64 KB, 512 KB and 1 MB apart.
const BLOCKS: [u32; 5] = [0x4_0000, 0x5_0000, 0xc_0000, 0xd_0000, 0x14_0000];
/// Two first-level tables.
const TABLES: [u32; 2] = [0x1_0000, 0x1_4000];
const COARSE: u32 = 0x2_0000;
const FINE: u32 = 0x2_8000;
/// Start and end of the area with all tables.
pub const TABLES_START: u32 = 0x1_0000;
pub const TABLES_END: u32 = 0x3_0000;
/// Whether a word of the tables is a first-level descriptor.
pub fn is_first_level(pa: u32) -> bool {
    (TABLES_START..COARSE).contains(&pa)
}

/// Number of second-level tables of each kind.
const SECOND: u32 = 5;
/// Number of first-level descriptors, in both tables, for PIDs that no program selects.
const OTHER_PIDS: usize = 2 * 124 * 6;
/// Address of the section that maps the tables.
const WINDOW: u32 = 0x4000_0000;

/// Returns the address of a 4 KB page. The page is usually memory, sometimes the device, and sometimes has no memory.
fn frame(r: &mut Random) -> u32 {
    match r.below(40) {
        0 => 0x30_0000,
        1 => super::bus::DEVICE,
        _ => r.pick(&BLOCKS) + (r.below(4) << 12),
    }
}

fn permissions(r: &mut Random) -> u32 {
    match r.below(4) {
        0 | 1 => 0xff0,
        2 => r.below(4) * 0x550,
        _ => r.below(256) << 4,
    }
}

/// Returns C and B of a page. The device's page has neither: a buffered store takes effect only when the core
/// next uses the bus (docs/understand/LIMITS.md).
fn cacheable(r: &mut Random, frame: u32) -> u32 {
    if frame & !0xfff == super::bus::DEVICE {
        return 0;
    }
    if r.percent(55) { 0xc } else { r.below(4) << 2 }
}

/// Returns a descriptor of a small or large page.
fn page(r: &mut Random, large: bool) -> u32 {
    let (frame, kind) = if large {
        (r.pick(&BLOCKS), 1)
    } else {
        (frame(r), 2)
    };
    match r.below(30) {
        0 => 0,
        _ => frame | permissions(r) | cacheable(r, frame) | kind,
    }
}

fn tiny(r: &mut Random) -> u32 {
    let ap = if r.percent(70) { 3 } else { r.below(4) };
    let frame = frame(r) | r.below(4) << 10;
    frame | ap << 4 | cacheable(r, frame) | 3
}

fn first(r: &mut Random, megabyte: u32) -> u32 {
    let domain = r.below(4) << 5;
    let section = (r.below(2) << 20) | r.pick(&[0xc00, 0xc00, 0xc00, 0x800, 0x400, 0]);
    let section = section | cacheable(r, 0) | 2;
    let n = r.below(SECOND);
    let tables = [(COARSE + n * 0x400) | 1, (FINE + n * 0x1000) | 3];
    let kind = match megabyte {
        0 | 3 => tables[0],
        1 | 2 => section,
        4 => tables[1],
        _ => r.pick(&[section, tables[0], tables[1], 0]),
    };
    kind | domain
}

fn tables(r: &mut Random) -> Vec<(u32, u32)> {
    let mut words = Vec::new();
    for table in TABLES {
        for pid in 0..3 {
            let at = table + pid * 32 * 4;
            words.extend((0..6).map(|n| (at + 4 * n, first(r, n))));
        }
        let above = [0xc02 | r.below(2) << 2, first(r, 3)];
        words.extend([(table + 0x1000, above[0]), (table + 0x1004, above[1])]);
        words.push((table + 0x3ffc, first(r, 3)));
    }
    for n in 0..SECOND {
        let at = COARSE + n * 0x400;
        words.push((at, r.pick(&BLOCKS) | 0xff2 | cacheable(r, 0)));
        words.push((at + 4 * 0xf0, r.pick(&BLOCKS) | 0xff2 | cacheable(r, 0)));
        words.extend((1..16).map(|n| (at + 4 * n, page(r, false))));
        let large = page(r, true);
        words.extend((16..32).map(|n| (at + 4 * n, large)));
        words.extend((32..48).map(|n| (at + 4 * n, page(r, false))));
        let at = FINE + n * 0x1000;
        words.extend((0..64).map(|n| (at + 4 * n, tiny(r))));
        for n in 16..32 {
            let small = page(r, false);
            words.extend((0..4).map(|quarter| (at + 16 * n + 4 * quarter, small)));
        }
        let large = page(r, true);
        words.extend((128..192).map(|n| (at + 4 * n, large)));
    }
    // The other PIDs use the pages of the PIDs above.
    for table in TABLES {
        let descriptor_at = |at: u32| {
            words
                .iter()
                .find(|word| word.0 == at)
                .map_or(0, |word| word.1)
        };
        let above = (3..128).filter(|pid| *pid != WINDOW >> 25);
        let entries = above.flat_map(|pid| (0..6).map(move |n| (pid, n)));
        let more: Vec<_> = entries
            .map(|(pid, n)| {
                let like = table + (pid % 3 * 32 + n) * 4;
                (table + (pid * 32 + n) * 4, descriptor_at(like))
            })
            .collect();
        words.extend(more);
    }
    words
}

fn lines(r: &mut Random) -> Vec<(u32, [u32; 8])> {
    let pool: Vec<_> = (0..96).map(|_| code::line(r)).collect();
    let mut lines = vec![(0, code::vectors(r)), (32, code::HANDLER)];
    for block in BLOCKS {
        lines.extend([(block, code::vectors(r)), (block + 32, code::HANDLER)]);
        for at in (block + 64..block + 0x1_0000).step_by(32) {
            lines.push((at, r.pick(&pool)));
        }
    }
    lines
}

/// Returns a virtual or modified virtual address that may be mapped.
fn address(r: &mut Random) -> u32 {
    let within = r.below(4) << 10 | r.pick(&[0, 0, 0x20, 0x3e0, 0x3e0, 0x100]) | r.below(8) << 2;
    let page = match r.below(10) {
        0..6 => r.below(4),
        6..8 => 16 + r.below(16),
        _ => r.below(48),
    };
    let pid = if r.percent(15) { r.below(3) << 25 } else { 0 };
    match r.below(14) {
        n @ (0 | 1) => (n + 1) << 20 | r.pick(&BLOCKS) & 0xf_ffff | (page & 3) << 12 | within | pid,
        2 => WINDOW | 1 << 20 | page << 12 | within,
        n => [0, 0, 0, 3, 3, 4, 4, 4, 4, 5, 5][n as usize - 3] << 20 | page << 12 | within | pid,
    }
}

/// Returns an address of code, with the Thumb bit.
pub fn code_address(r: &mut Random) -> u32 {
    address(r) | u32::from(r.percent(30))
}

fn registers(r: &mut Random, pool: &[(u32, [u32; 8])]) -> Op {
    let mut values = [0; 15].map(|_: u32| address(r));
    for value in &mut values[..4] {
        *value = match r.below(4) {
            0 => r.word(),
            1 => r.below(3) << 25,
            2 => r.pick(pool).1[r.below(8) as usize],
            _ => page(r, false),
        };
    }
    values[8..12].fill_with(|| code_address(r));
    if r.percent(30) {
        values[12] = WINDOW | (r.pick(&[COARSE, FINE, TABLES[0]]) + 4 * r.below(32));
    }
    Op::Registers(values)
}

fn disturbance(r: &mut Random, program: &Program) -> Vec<Op> {
    let after = r.below(200);
    match r.below(10) {
        0..4 => {
            let level: fn(bool) -> Event = if r.percent(60) {
                Event::Irq
            } else {
                Event::Fiq
            };
            let longest = r.pick(&[40, 40, 40, 300, 2000]);
            let length = 1 + r.below(longest);
            let down = Op::Later(after + length, level(false));
            vec![Op::Later(after, level(true)), down]
        }
        4..6 => {
            let at = r.pick(&program.lines).0;
            let words = if r.percent(20) {
                [0; 8]
            } else {
                r.pick(&program.lines).1
            };
            vec![Op::Later(after, Event::Write(at, words.to_vec()))]
        }
        6 => {
            let used = program.tables.len() - OTHER_PIDS;
            let (at, _) = r.pick(&program.tables[..used]);
            let words = [page(r, false), page(r, true), tiny(r), 0];
            let word = r.pick(&words);
            vec![Op::Later(after, Event::Write(at, vec![word]))]
        }
        7 => {
            let sctlr = 0x1005 | r.below(16) << 12 & 0x6000 | r.below(4) << 8 | r.below(2) << 1;
            vec![Op::Control(1, sctlr), jump(r)]
        }
        8 => vec![Op::Control(3, r.pick(&[0x55, 0xff, 0x5d, 0x77])), jump(r)],
        _ => vec![jump(r)],
    }
}

fn jump(r: &mut Random) -> Op {
    let mode = r.pick(&[0x10, 0x13, 0x13, 0x1f, 0x1f, 0x12, 0x11]);
    let at = code_address(r);
    let thumb = (at & 1) << 5;
    Op::Jump {
        pc: at & if thumb != 0 { !1 } else { !3 },
        cpsr: mode | thumb | r.below(4) << 6 | r.below(16) << 28,
    }
}

/// Returns operations that end a state in which every address aborts. They set tables, domains and a PID that have
/// pages, and switch the MMU on.
fn way_back(r: &mut Random) -> [Op; 4] {
    let rights = r.pick(&[0, 0, 0x100, 0x200]);
    [
        Op::Control(1, 0x1005 | r.below(4) << 13 | rights | r.below(2) << 1),
        Op::Control(2, r.pick(&TABLES)),
        Op::Control(3, r.pick(&[0x55, 0x55, 0xff, 0x5d])),
        Op::Control(13, r.below(3) << 25),
    ]
}

/// Enters a mode. The next operation sets the registers of this mode.
fn stay(mode: u32) -> Op {
    Op::Jump {
        pc: 0,
        cpsr: mode | 0xc0,
    }
}

/// Returns the program of a seed.
pub fn program(seed: u64) -> Program {
    let r = &mut Random::new(seed);
    let setup = Setup {
        icache: r.pick(&[4096, 4096, 8192, 16384]),
        dcache: r.pick(&[4096, 4096, 8192, 16384]),
        late: r.percent(40),
        seed: r.word(),
        single: 1 + r.below(9),
        first: 1 + r.below(12),
        last: 13 + r.below(20),
        by_step: r.percent(40),
    };
    let mut program = Program {
        setup,
        tables: tables(r),
        lines: lines(r),
        ops: Vec::new(),
    };
    let domains = r.pick(&[0x55, 0xff, 0x5d]);
    let mut ops = vec![Op::Control(2, TABLES[0]), Op::Control(3, domains)];
    ops.push(Op::Control(1, 0x1005 | r.below(4) << 13));
    for mode in [0x11, 0x12, 0x17, 0x1b, 0x13] {
        ops.extend([stay(mode), registers(r, &program.lines)]);
    }
    ops.push(jump(r));
    for _ in 0..150 {
        if r.percent(60) {
            if r.percent(60) {
                ops.extend(way_back(r));
            }
            ops.push(jump(r));
        }
        if r.percent(80) {
            ops.push(registers(r, &program.lines));
        }
        if r.percent(60) {
            ops.extend(disturbance(r, &program));
        }
        let longest = r.pick(&[100, 300, 300, 300, 1200]);
        ops.push(Op::Run(1 + r.below(longest)));
    }
    program.ops = ops;
    program
}
