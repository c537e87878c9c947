// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::addr::{Mva, Pa};
use crate::bus::{Bus, Width};
use crate::cpu::Cpu;
use crate::dcache::DCache;
use crate::icache::ICache;
use crate::memory::fetch::FetchState;
use crate::mmu::{Mmu, Resolved};
use crate::tag::UNTRANSLATED;
use crate::tests::bus::TestBus;
use crate::tests::core::{COARSE, HERE, arm, mapped};
use crate::write_buffer::{Biu, Buffers};

/// Access to the units for the tests of other folders.
impl<B: Bus> Cpu<B> {
    pub(crate) fn icache(&self) -> &ICache<B> {
        &self.memory.icache
    }

    pub(crate) fn dcache(&self) -> &DCache {
        &self.memory.dcache
    }

    /// Line of the virtually tagged D-cache that holds an address.
    pub(crate) fn data_line(&self, mva: Mva) -> Option<usize> {
        self.memory.dcache.find(mva, UNTRANSLATED)
    }

    /// Line of the virtually tagged I-cache that holds an address.
    pub(crate) fn instruction_line(&self, mva: Mva) -> Option<usize> {
        self.memory.icache.find(mva, UNTRANSLATED)
    }

    pub(crate) fn dcache_mut(&mut self) -> &mut DCache {
        &mut self.memory.dcache
    }

    pub(crate) fn mmu(&self) -> &Mmu {
        &self.memory.mmu
    }

    pub(crate) fn mmu_mut(&mut self) -> &mut Mmu {
        &mut self.memory.mmu
    }

    pub(crate) fn biu(&self) -> &Biu {
        &self.memory.biu
    }

    pub(crate) fn biu_mut(&mut self) -> &mut Biu {
        &mut self.memory.biu
    }
}

impl FetchState {
    pub(crate) fn resolved(&self) -> Resolved {
        self.resolved
    }
}

/// Physical address without memory.
const NOWHERE: u32 = 0x1000_0000;

#[test]
fn a_line_fill_that_fails_writes_its_victim_back() {
    let mut cpu = mapped();
    cpu.cp15_write(0, 1, 0, 0, 0x5005); // round robin
    // Write-back pages: one without memory, and four whose lines are in one set.
    cpu.bus.put(COARSE, &[NOWHERE | 0xffe]);
    for va in [0x2_0000, 0x2_0400, 0x2_0800, 0x2_0c00] {
        assert!(cpu.load(va, Width::Word).is_ok());
        assert!(cpu.store(va, Width::Word, va).is_ok());
    }
    assert!(cpu.load(0x10_0000, Width::Word).is_err());
    assert!(cpu.data_line(Mva(0x2_0000)).is_none());
    assert_eq!(cpu.load(0x2_0000, Width::Word), Ok(0x2_0000));
}

/// Returns FSR and FAR of the abort of an instruction at [`HERE`]. r0 is 1, and r1 points to the first page of the
/// second megabyte. The page has these descriptor bits and no memory.
fn abort(insn: u32, bits: u32) -> Option<(u32, u32)> {
    let mut cpu = mapped();
    cpu.bus.put(COARSE, &[NOWHERE | bits]);
    (cpu.r[0], cpu.r[1]) = (1, 0x10_0000);
    arm(&mut cpu, insn);
    (cpu.pc == 0x10).then_some((cpu.cp15.dfsr, cpu.cp15.far))
}

#[test]
fn the_bus_aborts_reads_and_stores_that_the_core_waits_for() {
    let uncached = [0xff2, 0xff6]; // not buffered, buffered
    let external = Some((0b1010, 0x10_0000));
    let str = uncached.map(|bits| abort(0xe581_0000, bits)); // str r0, [r1]
    assert_eq!(str, [external, None]);
    let strb = uncached.map(|bits| abort(0xe5c1_0000, bits)); // strb r0, [r1]
    assert_eq!(strb, [external, None]);
    let ldr = uncached.map(|bits| abort(0xe591_0000, bits)); // ldr r0, [r1]
    assert_eq!(ldr, [external; 2]);
    // Write-through: a miss goes to the write buffer.
    assert_eq!(abort(0xe581_0000, 0xffa), None);
}

#[test]
fn an_external_abort_of_a_transfer_names_its_last_word_or_the_last_of_the_kilobyte() {
    let far = |insn, first: u32| {
        let mut cpu = mapped();
        // The next page is RAM.
        cpu.bus.put(COARSE, &[NOWHERE | 0xff2, 0x2_0ff2]);
        cpu.r[1] = first;
        arm(&mut cpu, insn);
        assert_eq!(cpu.cp15.dfsr, 0b1010);
        cpu.cp15.far
    };
    let (ldm, stm) = (0xe891_00f0, 0xe881_00f0); // {r4 - r7}
    for insn in [ldm, stm] {
        assert_eq!(far(insn, 0x10_0000), 0x10_000c);
        assert_eq!(far(insn, 0x10_0018), 0x10_0024);
        assert_eq!(far(insn, 0x10_03f8), 0x10_03fc);
        assert_eq!(far(insn, 0x10_0ff8), 0x10_0ffc);
    }
    assert_eq!(far(0xe1c1_40d0, 0x10_0000), 0x10_0004); // ldrd r4, [r1]
}

#[test]
fn a_transfer_goes_on_at_address_zero_behind_the_last() {
    let mut cpu = mapped();
    cpu.bus.put(0x4000 + 4 * 0xfff, &[0x9801]);
    cpu.bus.put(0x9800 + 4 * 0xff, &[0x2_0ffe]);
    cpu.bus.put(0x2_0ffc, &[1]);
    cpu.bus.put(0, &[2]);
    cpu.r[1] = 0xffff_fffc;
    arm(&mut cpu, 0xe891_0030); // ldmia r1, {r4, r5}
    assert_eq!(cpu.r[4..6], [1, 2]);
    arm(&mut cpu, 0xe881_0030); // stmia
    assert_eq!(cpu.pc, HERE + 4);
}

/// Returns a core with a line of which only the upper half is dirty.
fn with_a_dirty_upper_half() -> crate::cpu::Cpu<crate::tests::bus::TestBus> {
    let mut cpu = mapped();
    assert!(cpu.load(0x2_0100, Width::Word).is_ok());
    assert!(cpu.store(0x2_0110, Width::Word, 7).is_ok());
    cpu
}

#[test]
fn test_and_clean_sees_a_dirty_upper_half() {
    let mut cpu = with_a_dirty_upper_half();
    cpu.config_mut().cost.lines_tested_per_op = 1;
    let mut operations = 0;
    while cpu.cp15_read(0, 7, 14, 3) == 0 {
        operations += 1;
    }
    cpu.drain_write_buffer();
    assert!(operations > 0);
    assert_eq!(cpu.bus.word(0x2_0110), 7);
}

#[test]
fn clean_and_invalidate_by_way_cleans() {
    let mut cpu = with_a_dirty_upper_half();
    for way in 0..4 {
        cpu.cp15_write(0, 7, 14, 2, way << 30 | 0x100);
    }
    cpu.drain_write_buffer();
    assert_eq!(cpu.bus.word(0x2_0110), 7);
    assert!(cpu.data_line(Mva(0x2_0100)).is_none());
}

#[test]
fn a_locked_way_of_the_i_cache_keeps_its_line() {
    let mut cpu = mapped();
    cpu.cp15_write(0, 9, 0, 1, 0xe);
    cpu.cp15_write(0, 7, 13, 1, 0x2_0000);
    cpu.cp15_write(0, 9, 0, 1, 0x1);
    for n in 1..64 {
        cpu.cp15_write(0, 7, 13, 1, 0x2_0000 + 0x400 * n);
    }
    assert!(cpu.instruction_line(Mva(0x2_0000)).is_some());
}

/// An address of [`mapped`] that is uncached and buffered.
const BUFFERED: u32 = 0x42_0000;

#[test]
fn a_swap_waits_until_everything_is_written() {
    // An uncached swap, and a swap that hits a line and is not written to memory.
    for at in [BUFFERED + 0x100, 0x3_0000] {
        let mut cpu = mapped();
        assert!(cpu.load(0x3_0000, Width::Word).is_ok());
        for n in 0..3 {
            assert!(cpu.store(BUFFERED + 4 * n, Width::Word, 7).is_ok());
        }
        assert_eq!(cpu.bus.word(0x2_0008), 0);
        assert_eq!(cpu.swap(at, Width::Word, 8), Ok(0));
        assert_eq!(cpu.bus.word(0x2_0008), 7, "{at:#x}");
    }
}

#[test]
fn the_bus_aborts_the_write_of_a_swap_in_a_buffered_page_and_not_that_of_a_store() {
    let mut cpu = mapped();
    cpu.bus.read_only_from = 0x2_0000;
    assert!(cpu.store(BUFFERED, Width::Word, 1).is_ok());
    assert!(cpu.swap(BUFFERED, Width::Word, 1).is_err());
    assert_eq!((cpu.cp15.dfsr, cpu.cp15.far), (0b1000, BUFFERED));
}

#[test]
fn a_swap_of_what_may_not_be_written_reads_nothing() {
    let mut cpu = mapped();
    cpu.bus.put(COARSE, &[0x2_0aa2]); // AP 2: User mode reads
    cpu.set_cpsr(0x10);
    assert_eq!(cpu.load(0x10_0000, Width::Word), Ok(0));
    cpu.bus.log.clear();
    assert!(cpu.swap(0x10_0000, Width::Word, 1).is_err());
    assert_eq!((cpu.cp15.dfsr, cpu.cp15.far), (0b1111, 0x10_0000));
    assert_eq!(cpu.bus.log, []);
}

#[test]
fn a_wait_for_interrupt_begins_when_everything_is_written() {
    let mut cpu = mapped();
    for n in 0..3 {
        assert!(cpu.store(BUFFERED + 4 * n, Width::Word, 7).is_ok());
    }
    cpu.cp15_write(0, 7, 0, 4, 0);
    assert!(cpu.is_waiting());
    assert_eq!(cpu.bus.word(0x2_0008), 7);
}

#[test]
fn forced_write_through_writes_lines_through_that_would_be_written_back() {
    for (forced, memory) in [(0, 0), (4, 7)] {
        let mut cpu = mapped();
        cpu.cp15_write(7, 15, 0, 0, forced);
        assert!(cpu.load(0x2_0000, Width::Word).is_ok());
        assert!(cpu.store(0x2_0000, Width::Word, 7).is_ok());
        cpu.drain_write_buffer();
        assert_eq!(cpu.bus.word(0x2_0000), memory);
        assert_eq!(cpu.memory.dcache.any_dirty(), forced == 0);
        assert_eq!(cpu.load(0x2_0000, Width::Word), Ok(7));
    }
}

#[test]
fn the_write_buffer_counts_the_words_of_each_address() {
    let (mut biu, mut bus) = (Biu::new(0, Buffers::ARM926EJS), TestBus::new(0x1_0000));
    // A line fill has the bus until cycle 15. Ten words follow, and each takes four cycles.
    assert!(biu.read_line(&mut bus, 0, Pa(0x1000), &mut [0; 8]).is_ok());
    assert_eq!(biu.store_words(&mut bus, 0, Pa(0x400), &[1; 10]), 0);
    assert_eq!(biu.store_words(&mut bus, 0, Pa(0x800), &[1; 6]), 0);
    assert_eq!(biu.store_words(&mut bus, 0, Pa(0xc00), &[1]), 55);
    assert_eq!(bus.word(0x424), 1);
}

#[test]
fn a_victim_waits_for_stores_to_its_bytes_that_are_under_way() {
    let mut cpu = mapped();
    cpu.cp15_write(0, 1, 0, 0, 0x5005); // round robin
    assert!(cpu.load(0x2_0000, Width::Word).is_ok());
    assert!(cpu.store(0x2_0000, Width::Word, 7).is_ok());
    for va in [0x2_0400, 0x2_0800, 0x2_0c00] {
        assert!(cpu.load(va, Width::Word).is_ok());
    }
    // The first store has the bus until the fill. The second store waits for the bus. The third overlaps the victim.
    for va in [BUFFERED + 0x2000, BUFFERED + 0x3000, BUFFERED + 4] {
        assert!(cpu.store(va, Width::Word, 8).is_ok());
    }
    let before = cpu.cycles;
    assert!(cpu.load(0x2_1000, Width::Word).is_ok());
    let (single, last) = (u64::from(cpu.bus.single), u64::from(cpu.bus.line.last));
    assert_eq!(cpu.cycles - before, single + last + 2 * single);
    cpu.drain_write_buffer();
    assert_eq!((cpu.bus.word(0x2_0000), cpu.bus.word(0x2_0004)), (7, 0));
}

#[test]
fn what_waits_in_the_victim_buffer_can_be_looked_at() {
    let (mut biu, mut bus) = (Biu::new(0, Buffers::ARM926EJS), TestBus::new(0x1_0000));
    let line = [0x3322_1100; 8];
    biu.evict(&mut bus, 0, Pa(0x500), 0b10, &line);
    let looks = [0x4ff, 0x500, 0x50f, 0x510, 0x511, 0x51f, 0x520];
    let found = looks.map(|at| biu.pending_byte(Pa(at)));
    let upper = [Some(0x00), Some(0x11), Some(0x33)];
    assert_eq!(found[3..6], upper);
    assert_eq!([&found[..3], &found[6..]].concat(), [None; 4]);
}
