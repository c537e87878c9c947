// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::addr::{Mva, Pa};
use crate::bus::Width;
use crate::config::{Config, Victims};
use crate::cpu::Cpu;
use crate::dcache::DCache;
use crate::mmu::{Descriptors, Kind, Mmu, mapping};
use crate::model::SPLIT;
use crate::observe::TlbSide;
use crate::state::{Saved, State};
use crate::tests::bus::TestBus;
use crate::tests::core::{COARSE, mapped, mapped_on};

/// Returns the number of walks for each of the reads in turn.
fn walks<const N: usize>(cpu: &mut Cpu<TestBus>, reads: [u32; N]) -> [u64; N] {
    reads.map(|va| {
        let before = cpu.counters.tlb_walks;
        assert_eq!(
            cpu.load(va, Width::Word),
            Ok(cpu.bus.word(0x2_0000 | va & 0xffff))
        );
        cpu.counters.tlb_walks - before
    })
}

fn invalidate(cpu: &mut Cpu<TestBus>, mva: u32) {
    cpu.cp15_write(0, 8, 7, 1, mva);
}

#[test]
fn a_quarter_with_permissions_of_its_own_is_an_entry_of_its_own() {
    let mut cpu = mapped();
    // A 4 KB page at 128 KB whose quarters have AP 3, 3, 3 and 2, and a page with AP 3 everywhere.
    cpu.bus.put(COARSE, &[0x2_0bf2, 0x2_1ff2]);
    let quarters = [0x10_0000, 0x10_0400, 0x10_0800, 0x10_0bfc];
    assert_eq!(walks(&mut cpu, quarters), [1, 1, 1, 0]);
    let whole = [0x10_1000, 0x10_1400, 0x10_1800, 0x10_1ffc];
    assert_eq!(walks(&mut cpu, whole), [1, 0, 0, 0]);
}

#[test]
fn the_quarters_of_a_page_are_invalidated_one_by_one() {
    let mut cpu = mapped();
    cpu.bus.put(COARSE, &[0x2_0bf2]);
    assert_eq!(walks(&mut cpu, [0x10_0000, 0x10_0400]), [1, 1]);
    invalidate(&mut cpu, 0x10_0000);
    // Unmaps the page. The entries of its other quarters stay.
    cpu.bus.put(COARSE, &[0]);
    assert_eq!(walks(&mut cpu, [0x10_0400]), [0]);
    assert!(cpu.load(0x10_0000, Width::Word).is_err());
    assert_eq!((cpu.cp15.dfsr, cpu.cp15.far), (0b0111, 0x10_0000));
}

#[test]
fn a_large_page_has_quarters_of_16_kb() {
    let mut cpu = mapped();
    cpu.bus.put(COARSE, &[0x2_0bf1; 16]);
    let reads = [0x10_0000, 0x10_0ffc, 0x10_c000, 0x10_cffc];
    assert_eq!(walks(&mut cpu, reads), [1, 0, 1, 0]);
    let tlb = &cpu.mmu().tlbs[0];
    let quarter = tlb.entry(tlb.find(Mva(0x10_c000)).unwrap());
    assert_eq!(
        (quarter.size(), quarter.pa, quarter.attributes.ap),
        (0x4000, Pa(0x2_c000), 2)
    );
}

/// Returns the results of a load with all shortcuts, and without any.
fn read_both_ways(cpu: &mut Cpu<TestBus>, va: u32) -> [u32; 2] {
    let fast = cpu.load(va, Width::Word);
    cpu.mmu_mut().drop_translations();
    [fast, cpu.load(va, Width::Word)].map(|read| read.unwrap())
}

#[test]
fn of_overlapping_entries_shortcuts_and_tlb_use_the_one_that_was_first() {
    let mut cpu = mapped();
    // The page is uncached, so that the result depends on the translation alone.
    cpu.bus.put(COARSE, &[0x2_0ff2]);
    cpu.bus.put(0x2_0000, &[1]);
    cpu.bus.put(0x8_0000, &[2]);
    cpu.cp15_write(0, 10, 0, 0, 1);
    assert_eq!(read_both_ways(&mut cpu, 0x10_0000), [1, 1]);
    cpu.cp15_write(0, 10, 0, 0, 0);
    // A section replaces the page without an invalidation. A load of another address loads the section's TLB entry.
    cpu.bus.put(0x4004, &[0x8_0c02]);
    assert!(cpu.load(0x18_0000, Width::Word).is_ok());
    assert_eq!(read_both_ways(&mut cpu, 0x10_0000), [1, 1]);
}

#[test]
fn a_quarter_that_was_first_stays_a_quarter_of_a_page_loaded_later() {
    let mut cpu = mapped();
    cpu.bus.put(COARSE, &[0x2_0bb2]);
    cpu.bus.put(0x2_0000, &[1]);
    cpu.bus.put(0x3_0000, &[2]);
    for late in [0x10_0400, 0x10_0000] {
        assert_eq!(read_both_ways(&mut cpu, 0x10_0000), [1, 1]);
        cpu.bus.put(COARSE, &[0x3_0ff2]);
        assert!(cpu.load(late, Width::Word).is_ok());
    }
    assert_eq!(read_both_ways(&mut cpu, 0x10_0000), [1, 1]);
}

#[test]
fn a_mapping_allows_what_its_domain_says() {
    // A section of domain 1 that only privileged code may use.
    let section = |_| Some(0x0010_0422);
    let found = mapping(Descriptors::Arm, 0x4000, Mva(0x10_0000), section).unwrap();
    let allowed = |dacr| {
        let modes = [true, false];
        modes.map(|privileged| found.allows(Kind::Read, privileged, dacr, 0))
    };
    assert_eq!(allowed(0b00 << 2), [false, false]);
    assert_eq!(allowed(0b01 << 2), [true, false]);
    assert_eq!(allowed(0b10 << 2), [false, false]);
    assert_eq!(allowed(0b11 << 2), [true, true]);
}

#[test]
fn where_each_side_has_a_tlb_a_translation_is_of_one_side() {
    let mut cpu = mapped_on(&SPLIT, TestBus::new(1 << 20), |bus| bus);
    cpu.bus.put(COARSE, &[0x2_0ff2]);
    let at = Mva(0x10_0000);
    let walks = |cpu: &mut Cpu<TestBus>, kind| {
        let before = cpu.counters.tlb_walks;
        let page = cpu.translate(at, kind, true).unwrap();
        assert_eq!(page.pa(at), Pa(0x2_0000));
        (
            cpu.counters.tlb_walks - before,
            cpu.mmu().last_entry().unwrap().side,
        )
    };
    let (instruction, data) = (TlbSide::Instruction, TlbSide::Data);
    assert_eq!(walks(&mut cpu, Kind::Fetch), (1, instruction));
    assert_eq!(walks(&mut cpu, Kind::Read), (1, data));
    assert_eq!(walks(&mut cpu, Kind::Fetch).0, 0);
    for (side, walked) in [
        (instruction, [1, 0]),
        (data, [0, 1]),
        (TlbSide::Both, [1, 1]),
    ] {
        cpu.invalidate_tlb_entry(side, at);
        assert_eq!(
            [Kind::Fetch, Kind::Write].map(|kind| walks(&mut cpu, kind).0),
            walked
        );
        cpu.invalidate_tlb(side);
        assert_eq!(
            [Kind::Fetch, Kind::Write].map(|kind| walks(&mut cpu, kind).0),
            walked
        );
    }
}

#[test]
fn a_damaged_state_of_a_unit_is_an_error_and_no_panic() {
    let mut cpu = mapped();
    cpu.bus.put(COARSE, &[0x2_0ff2]);
    assert!(cpu.load(0x10_0000, Width::Word).is_ok());
    assert!(cpu.store(0x30_0000, Width::Word, 1).is_ok());
    fn each<T: State + Clone>(part: &T, mut restored: impl FnMut(T)) {
        let mut good = Vec::new();
        part.save(&mut good);
        for (at, flip) in (0..good.len()).flat_map(|at| [1, 0x14, 0x80, 0xff].map(|f| (at, f))) {
            let mut bytes = good.clone();
            bytes[at] ^= flip;
            let mut other = part.clone();
            if other.restore(&mut Saved::new(&bytes)).is_ok() {
                restored(other);
            }
        }
    }
    let still = |cpu: &Cpu<TestBus>| {
        let mut cpu = cpu.clone();
        for va in [0x10_0000, 0x1_0020, 0x40_0000] {
            let _ = cpu.load(va, Width::Word);
            let _ = cpu.store(va, Width::Word, 7);
        }
        cpu.drain_write_buffer();
    };
    let base = cpu.clone();
    each(base.mmu(), |mmu| {
        *cpu.mmu_mut() = mmu;
        still(&cpu);
    });
    let mut cpu = base.clone();
    each(base.biu(), |biu| {
        *cpu.biu_mut() = biu;
        still(&cpu);
    });
    for late in [Victims::Random, Victims::Late] {
        let cache = DCache::new(&Config {
            victims: late,
            victim_seed: 1,
            ..base.config().clone()
        });
        let mut cpu = base.clone();
        each(&cache.victim, |victim| {
            *cpu.dcache_mut() = cache.clone();
            cpu.dcache_mut().victim = victim;
            still(&cpu);
        });
    }
}

fn saved(mmu: &Mmu) -> Vec<u8> {
    let mut bytes = Vec::new();
    mmu.save(&mut bytes);
    bytes
}

#[test]
fn no_translation_is_at_hand_after_a_drop_or_a_restore() {
    fn at_hand(mmu: &Mmu) -> [bool; 2] {
        let mva = Mva(0x4000);
        let granted = mmu.grants.read(mva, 3);
        [mmu.lookup(mva, Kind::Read).is_some(), granted.is_some()]
    }
    let mut cpu = mapped();
    let before = saved(cpu.mmu());
    assert!(cpu.load(0x4000, Width::Word).is_ok());
    assert_eq!(at_hand(cpu.mmu()), [true; 2]);
    let mut dropped = cpu.mmu().clone();
    dropped.drop_translations();
    assert_eq!(at_hand(&dropped), [false; 2]);
    assert_ne!(dropped.epoch(), cpu.mmu().epoch());
    assert_eq!(cpu.mmu_mut().restore(&mut Saved::new(&before)), Ok(()));
    assert_eq!(at_hand(cpu.mmu()), [false; 2]);
}

#[test]
fn translations_of_a_restored_mmu_are_of_its_domain_register() {
    let mut cpu = mapped();
    cpu.set_cpsr(0x10);
    let bytes = saved(cpu.mmu());
    // The state of a core whose MMU was never on.
    *cpu.mmu_mut() = Mmu::new(cpu.config());
    assert_eq!(cpu.mmu_mut().restore(&mut Saved::new(&bytes)), Ok(()));
    assert!(cpu.load(0x4000, Width::Word).is_ok());
    cpu.cp15_write(0, 3, 0, 0, 0);
    assert!(cpu.load(0x4000, Width::Word).is_err());
}
