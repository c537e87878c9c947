// SPDX-License-Identifier: MIT OR Apache-2.0
//! Caches with physical tags. The core is an ARM926EJ-S with such caches ([`PHYSICAL`]). With 16 KB, a way has 4 KB, so
//! every address of a line selects the same set. With 64 KB, a way has 16 KB, and pages have four colours.

use crate::addr::{Mva, Pa};
use crate::bus::{Bus, Width};
use crate::cpu::Cpu;
use crate::model::{ARM926EJS, Core, PHYSICAL};
use crate::observe::TlbSide;
use crate::tests::bus::{PlainBus, TestBus};
use crate::tests::core::{COARSE, config};
use crate::tests::fuzz::random::Random;

const SMALL: u32 = 16384;
const LARGE: u32 = 65536;

/// First of the pages under test. The other pages map every address to itself.
const PAGES: u32 = 0x10_0000;
/// Number of the pages in a random run.
const COUNT: u32 = 64;

/// Returns a core with 1 MB of RAM, and with MMU and caches on. The first megabyte maps the RAM as write-back. `COARSE`
/// has the pages of the second megabyte.
fn mapped_on<B: Bus>(core: &'static Core, bytes: u32, bus: impl FnOnce(TestBus) -> B) -> Cpu<B> {
    let mut ram = TestBus::new(1 << 20);
    ram.put(0x4000, &[0xc0e, COARSE | 1]);
    let mut cpu = Cpu::new(config(core, bytes), bus(ram));
    for (register, value) in [(2, 0x4000), (3, 1), (1, 0x1005)] {
        cpu.cp15_write(0, register, 0, 0, value);
    }
    cpu
}

fn mapped(bytes: u32) -> Cpu<TestBus> {
    mapped_on(&PHYSICAL, bytes, |ram| ram)
}

/// Address of a page under test.
fn page(n: u32) -> u32 {
    PAGES + 4096 * n
}

/// Maps a page to a frame of memory, with these descriptor bits.
fn map_as<B: Bus>(cpu: &mut Cpu<B>, page: u32, frame: u32, bits: u32) {
    let at = Pa(COARSE + (page - PAGES) / 1024);
    let descriptor = frame | bits;
    for (byte, value) in (0..).zip(descriptor.to_le_bytes()) {
        assert!(cpu.bus.poke(at.plus(byte), value));
    }
    cpu.invalidate_tlb_entry(TlbSide::Both, Mva(page));
}

/// Maps a page as write-back, for all accesses.
fn map<B: Bus>(cpu: &mut Cpu<B>, page: u32, frame: u32) {
    map_as(cpu, page, frame, 0xffe);
}

const FRAME: u32 = 0x4_0000;

#[test]
fn two_addresses_of_a_frame_have_one_line_if_they_select_one_set() {
    for (bytes, second, lines) in [(SMALL, 1, 1), (LARGE, 1, 2), (LARGE, 4, 1)] {
        let mut cpu = mapped(bytes);
        map(&mut cpu, page(0), FRAME);
        map(&mut cpu, page(second), FRAME);
        assert_eq!(cpu.load(page(0) + 0x20, Width::Word), Ok(0));
        assert_eq!(cpu.store(page(0) + 0x20, Width::Word, 7), Ok(()));
        let seen = if lines == 1 { 7 } else { 0 };
        assert_eq!(cpu.load(page(second) + 0x20, Width::Word), Ok(seen));
        assert_eq!(cpu.counters.dcache_fills, lines, "{bytes}");
    }
}

#[test]
fn a_line_stays_when_its_address_gets_another_frame() {
    let mut cpu = mapped(SMALL);
    cpu.bus.put(FRAME + 0x1000, &[9]);
    map(&mut cpu, page(0), FRAME);
    assert_eq!(cpu.load(page(0), Width::Word), Ok(0));
    assert_eq!(cpu.store(page(0), Width::Word, 7), Ok(()));
    map(&mut cpu, page(0), FRAME + 0x1000);
    assert_eq!(cpu.load(page(0), Width::Word), Ok(9));
    // A third address meets the first line.
    map(&mut cpu, page(3), FRAME);
    assert_eq!(cpu.load(page(3), Width::Word), Ok(7));
    assert_eq!(cpu.counters.dcache_fills, 2);
}

#[test]
fn maintenance_reaches_a_line_through_any_of_its_addresses() {
    for (crm, memory, held) in [(10, 7, true), (14, 7, false), (6, 0, false)] {
        let mut cpu = mapped(SMALL);
        map(&mut cpu, page(0), FRAME);
        map(&mut cpu, page(5), FRAME);
        assert_eq!(cpu.load(page(0), Width::Word), Ok(0));
        assert_eq!(cpu.store(page(0), Width::Word, 7), Ok(()));
        cpu.cp15_write(0, 7, crm, 1, page(5));
        cpu.drain_write_buffer();
        assert_eq!(cpu.bus.word(FRAME), memory, "c{crm}");
        let line = cpu.dcache().find(Mva(page(0)), Pa(FRAME));
        assert_eq!(line.is_some(), held, "c{crm}");
    }
}

/// Numbers of the operations on a line of the D-cache, and on a line of the I-cache, with the fault status that a
/// missing page gives.
const OPERATIONS: [([u32; 2], u32); 4] = [
    ([6, 1], 0b0111),
    ([10, 1], 0b0111),
    ([14, 1], 0b0111),
    ([5, 1], 0b0100),
];

#[test]
fn maintenance_by_address_needs_a_translation_and_no_permission() {
    for ([crm, opc2], status) in OPERATIONS {
        let mut cpu = mapped(SMALL);
        cpu.cp15_write(0, 7, crm, opc2, page(0));
        let aborted = (cpu.pc, cpu.cp15.dfsr & 15, cpu.cp15.far);
        assert_eq!(aborted, (0x10, status, page(0)), "c{crm}");
        let mut cpu = mapped(SMALL);
        map_as(&mut cpu, page(0), FRAME, 0x00e);
        cpu.cp15_write(0, 7, crm, opc2, page(0));
        assert_eq!(cpu.pc, 0, "c{crm}");
        assert_eq!(cpu.counters.tlb_walks, 1, "c{crm}");
        assert!(cpu.load(page(0), Width::Word).is_err());
    }
}

#[test]
fn maintenance_of_virtual_tags_does_not_translate() {
    for ([crm, opc2], _) in OPERATIONS {
        let mut cpu = mapped_on(&ARM926EJS, SMALL, |ram| ram);
        cpu.cp15_write(0, 7, crm, opc2, page(0));
        assert_eq!((cpu.pc, cpu.counters.tlb_walks), (0, 0), "c{crm}");
    }
}

/// Writes a routine into a frame: `mov r0, #value`, `mov pc, lr`.
fn routine(cpu: &mut Cpu<TestBus>, frame: u32, value: u32) {
    cpu.bus.put(frame, &[0xe3a0_0000 | value, 0xe1a0_f00e]);
}

/// Calls the routine at an address. Returns its value.
fn call(cpu: &mut Cpu<TestBus>, at: u32) -> u32 {
    cpu.r[14] = 0x1000;
    cpu.set_pc(at);
    for _ in 0..2 {
        assert_eq!(cpu.step(), None);
    }
    assert_eq!(cpu.pc, 0x1000);
    cpu.r[0]
}

#[test]
fn a_new_frame_has_its_own_instructions_and_an_old_one_keeps_its_line() {
    let mut cpu = mapped(SMALL);
    routine(&mut cpu, FRAME, 1);
    routine(&mut cpu, FRAME + 0x1000, 2);
    for _ in 0..3 {
        map(&mut cpu, page(0), FRAME);
        assert_eq!([0; 3].map(|_| call(&mut cpu, page(0))), [1; 3]);
        map(&mut cpu, page(0), FRAME + 0x1000);
        assert_eq!([0; 3].map(|_| call(&mut cpu, page(0))), [2; 3]);
    }
    assert_eq!(cpu.counters.icache_fills, 2);
    // Memory changes, and the line does not, through whichever address it is called.
    routine(&mut cpu, FRAME, 3);
    map(&mut cpu, page(7), FRAME);
    assert_eq!(call(&mut cpu, page(7)), 1);
    cpu.cp15_write(0, 7, 5, 1, page(7));
    assert_eq!(call(&mut cpu, page(7)), 3);
    assert_eq!(cpu.counters.icache_fills, 3);
}

#[test]
fn instructions_of_one_frame_have_a_line_for_each_colour() {
    let mut cpu = mapped(LARGE);
    for n in 0..4 {
        map(&mut cpu, page(n), FRAME);
        routine(&mut cpu, FRAME, n);
        assert_eq!(call(&mut cpu, page(n)), n);
    }
    for n in 0..8 {
        map(&mut cpu, page(n), FRAME);
        assert_eq!([0; 2].map(|_| call(&mut cpu, page(n))), [n % 4; 2]);
    }
    assert_eq!(cpu.counters.icache_fills, 4);
}

/// Observer of the property below: a core, and the newest store to each byte of the frames.
struct Newest<B: Bus> {
    cpu: Cpu<B>,
    random: Random,
    /// Frame of each page.
    frames: Vec<u32>,
    memory: Vec<u8>,
    /// Number of loads, and of loads that returned something else than the newest store.
    loads: u64,
    stale: u64,
}

const FRAMES: u32 = 32;

impl<B: Bus> Newest<B> {
    fn new(cpu: Cpu<B>, seed: u64) -> Newest<B> {
        let mut newest = Newest {
            cpu,
            random: Random::new(seed),
            frames: vec![0; COUNT as usize],
            memory: vec![0; (4096 * FRAMES) as usize],
            loads: 0,
            stale: 0,
        };
        (0..COUNT).for_each(|n| newest.remap(n, n % FRAMES));
        newest
    }

    fn remap(&mut self, n: u32, frame: u32) {
        self.frames[n as usize] = frame;
        map(&mut self.cpu, page(n), FRAME + 4096 * frame);
    }

    /// Maps a page anew, loads or stores. Loads and stores often meet, because they use few lines of each page.
    fn step(&mut self, may_map: impl Fn(u32, u32) -> bool) {
        let n = self.random.below(COUNT);
        if self.random.percent(2) {
            let frame = self.random.below(FRAMES);
            if may_map(n, frame) {
                self.remap(n, frame);
            }
            return;
        }
        let width = self.random.pick(&[Width::Byte, Width::Half, Width::Word]);
        let line = self.random.pick(&[0, 32, 64, 0x7e0, 0xfe0]);
        let offset = line + (self.random.below(32) & !(width.bytes() - 1));
        let (at, value) = (page(n) + offset, self.random.word() & width.mask());
        let start = (4096 * self.frames[n as usize] + offset) as usize;
        let bytes = start..start + width.bytes() as usize;
        if self.random.percent(40) {
            assert_eq!(self.cpu.store(at, width, value), Ok(()));
            let count = bytes.len();
            self.memory[bytes].copy_from_slice(&value.to_le_bytes()[..count]);
        } else {
            let mut newest = [0; 4];
            newest[..bytes.len()].copy_from_slice(&self.memory[bytes]);
            let loaded = self.cpu.load(at, width).unwrap();
            self.loads += 1;
            self.stale += u64::from(loaded != u32::from_le_bytes(newest));
        }
    }

    /// Runs that many steps. Returns how many loads were not of the newest store.
    fn run(mut self, steps: u32, may_map: impl Fn(u32, u32) -> bool) -> u64 {
        (0..steps).for_each(|_| self.step(&may_map));
        assert!(self.loads > u64::from(steps / 2));
        assert!(self.cpu.counters.dcache_fills > u64::from(steps / 100));
        self.stale
    }
}

/// Number of steps of a run. The nightly run has more.
const STEPS: u32 = 200_000;

fn steps() -> u32 {
    let set = std::env::var("TAGGING_STEPS").ok();
    set.map_or(STEPS, |text| text.parse().unwrap())
}

/// A store that misses goes to the write buffer, and a load of its bytes waits for it. Hence no load is older than the
/// newest store, although no cache is ever maintained.
#[test]
fn with_ways_of_4_kb_every_load_returns_the_newest_store() {
    assert_eq!(Newest::new(mapped(SMALL), 1).run(steps(), |_, _| true), 0);
    let plain = mapped_on(&PHYSICAL, SMALL, PlainBus);
    assert_eq!(Newest::new(plain, 2).run(steps() / 4, |_, _| true), 0);
}

/// Software that gives all addresses of a frame one colour needs no maintenance either.
#[test]
fn with_larger_ways_every_load_returns_the_newest_store_if_the_colours_agree() {
    let agree = |n: u32, frame: u32| n % 4 == frame % 4;
    assert_eq!(Newest::new(mapped(LARGE), 3).run(steps(), agree), 0);
    let stale = Newest::new(mapped(LARGE), 3).run(steps(), |_, _| true);
    assert!(stale > u64::from(steps() / 500), "{stale}");
    let stale = Newest::new(mapped(SMALL * 2), 3).run(steps(), |_, _| true);
    assert!(stale > u64::from(steps() / 500), "{stale}");
}

/// The same programs on virtual tags: the property is that of the tags.
#[test]
fn with_virtual_tags_loads_are_stale() {
    let cpu = mapped_on(&ARM926EJS, SMALL, |ram| ram);
    let stale = Newest::new(cpu, 1).run(steps(), |_, _| true);
    assert!(stale > u64::from(steps() / 500), "{stale}");
}

/// Grants and the table of translations change no cycle and no count.
#[test]
fn loads_and_stores_take_as_long_with_shortcuts_as_without() {
    for bytes in [SMALL, LARGE] {
        let mut fast = Newest::new(mapped(bytes), 4);
        let mut plain = Newest::new(mapped_on(&PHYSICAL, bytes, PlainBus), 4);
        for step in 0..steps() / 4 {
            fast.step(|_, _| true);
            plain.step(|_, _| true);
            let (one, other) = (&fast.cpu, &plain.cpu);
            assert_eq!(one.cycles, other.cycles, "step {step}");
            assert_eq!(one.counters, other.counters, "step {step}");
        }
        assert_eq!(fast.stale, plain.stale);
    }
}
