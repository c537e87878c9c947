// SPDX-License-Identifier: MIT OR Apache-2.0
//! System control coprocessor of the ARM926EJ-S (`DDI0198D 2.3`): one match arm an operation.
//!
//! Operands of operations by address are MVAs and are not relocated by the FCSE. Reads of
//! write-only and writes of read-only registers, and registers the manual does not list, end the
//! run, and so do bits of debug registers that would change what the core does: nothing is guessed.

use crate::addr::{Mva, Pa};
use crate::bus::Bus;
use crate::config::{CacheGeometry, Config};
use crate::cpu::{Cpu, Exit};
use crate::dcache::Dirty;
use crate::fcse::Relocation;
use crate::mmu::Control;
use crate::observe::{Event, Side};

/// SCTLR bits the 926 implements; B (7) is refused, the rest reads as at reset.
const SCTLR_WRITABLE: u32 = 0x0000_f307;
const SCTLR_RESET: u32 = 0x0005_0078;
const SCTLR_BIG_ENDIAN: u32 = 1 << 7;
/// The bit of the cache debug control register that is modelled; the others keep lines from being
/// filled (`DDI0198D 2.3.15`).
const FORCE_WRITE_THROUGH: u32 = 1 << 2;

/// Registers of the coprocessor.
#[derive(Clone, Debug)]
pub struct Cp15 {
    /// Control register.
    pub sctlr: u32,
    /// Translation table base.
    pub ttb: u32,
    /// Domain access control.
    pub dacr: u32,
    /// Data fault status.
    pub dfsr: u32,
    /// Instruction fault status.
    pub ifsr: u32,
    /// Fault address: the MVA of the data access.
    pub far: u32,
    /// FCSE PID, bits 31:25.
    pub pid: u32,
    context_id: u32,
    cache_debug: u32,
    ctr: u32,
    midr: u32,
}

crate::state!(
    Cp15: sctlr, ttb, dacr, dfsr, ifsr, far, pid, context_id, cache_debug; ctr, midr
);

/// Cache type register for the given caches (`DDI0198D 2.3.2`): write-back, clean operations of
/// c7, lockdown format C, separate caches.
pub fn cache_type(icache: CacheGeometry, dcache: CacheGeometry) -> u32 {
    let field =
        |c: CacheGeometry| (c.size.trailing_zeros() - 9) << 6 | c.ways.trailing_zeros() << 3 | 0b10;
    0b1110 << 25 | 1 << 24 | field(dcache) << 12 | field(icache)
}

impl Cp15 {
    /// As at reset.
    pub fn new(config: &Config) -> Cp15 {
        Cp15 {
            sctlr: SCTLR_RESET,
            ttb: 0,
            dacr: 0,
            dfsr: 0,
            ifsr: 0,
            far: 0,
            pid: 0,
            context_id: 0,
            cache_debug: 0,
            ctr: cache_type(config.icache, config.dcache),
            midr: config.midr,
        }
    }

    /// SCTLR.A.
    #[inline(always)]
    pub fn alignment_checked(&self) -> bool {
        self.sctlr & 2 != 0
    }

    fn mmu_control(&self) -> Control {
        let bit = |n: u32| self.sctlr >> n & 1 != 0;
        Control {
            on: bit(0),
            dcache_on: bit(2),
            icache_on: bit(12),
            s: bit(8),
            r: bit(9),
            force_write_through: self.cache_debug & FORCE_WRITE_THROUGH != 0,
            ttb: self.ttb,
            dacr: self.dacr,
        }
    }
}

impl<B: Bus> Cpu<B> {
    /// SCTLR.V: exception vectors at 0xffff0000.
    pub(crate) fn high_vectors(&self) -> bool {
        self.cp15.sctlr >> 13 & 1 != 0
    }

    /// SCTLR.L4 clear: loads to pc take the Thumb bit.
    pub(crate) fn loads_interwork(&self) -> bool {
        self.cp15.sctlr >> 15 & 1 == 0
    }

    /// MRC. The value's top four bits are the flags when the destination is r15.
    pub(crate) fn cp15_read(&mut self, opc1: u32, crn: u32, crm: u32, opc2: u32) -> Option<u32> {
        self.cycles += u64::from(self.config.cost.cp15_busy);
        let value = match (opc1, crn, crm, opc2) {
            (0, 0, 0, 1) => self.cp15.ctr,
            (0, 0, 0, 2) => 0, // TCM status: none
            (0, 0, 0, _) => self.cp15.midr,
            (0, 1, 0, 0) => self.cp15.sctlr,
            (0, 2, 0, 0) => self.cp15.ttb,
            (0, 3, 0, 0) => self.cp15.dacr,
            (0, 5, 0, 0) => self.cp15.dfsr,
            (0, 5, 0, 1) => self.cp15.ifsr,
            (0, 6, 0, 0) => self.cp15.far,
            (0, 7, 10, 3) => self.test_and_clean(),
            (0, 7, 14, 3) => self.test_clean_and_invalidate(),
            (0, 9, 0, 0) => self.dcache.victim.locked & 15 | 0xfff0,
            (0, 9, 0, 1) => self.icache.victim.locked & 15 | 0xfff0,
            (0, 9, 1, 0 | 1) => 0, // TCM regions: size 0
            (0, 10, 0, 0) => self.mmu.tlb.lockdown_register(),
            (0, 13, 0, 0) => self.cp15.pid,
            (0, 13, 0, 1) => self.cp15.context_id,
            (0, 15, 0, 0) => 0, // debug override: nothing is
            (7, 15, 0, 0) => self.cp15.cache_debug,
            _ => return self.unmodelled_cp15(opc1, crn, crm, opc2),
        };
        Some(value)
    }

    /// MCR.
    pub(crate) fn cp15_write(
        &mut self,
        opc1: u32,
        crn: u32,
        crm: u32,
        opc2: u32,
        value: u32,
    ) -> Option<()> {
        self.cycles += u64::from(self.config.cost.cp15_busy);
        match (opc1, crn, crm, opc2) {
            (0, 1, 0, 0) => self.write_sctlr(value),
            (0, 2, 0, 0) => {
                self.cp15.ttb = value & 0xffff_c000;
                self.counters.ttb_writes += 1;
                if B::OBSERVED {
                    // Entries of the old tables are to be told of when they are used again.
                    self.mmu.drop_translations();
                }
                self.control_changed();
            }
            (0, 3, 0, 0) => {
                self.cp15.dacr = value;
                self.control_changed();
            }
            (0, 5, 0, 0) => self.cp15.dfsr = value & 0xff,
            (0, 5, 0, 1) => self.cp15.ifsr = value & 0xff,
            (0, 6, 0, 0) => self.cp15.far = value,
            (0, 7, _, _) => return self.cache_operation(crm, opc2, value),
            (0, 8, 5..=7, 0) => {
                self.mmu.invalidate_tlb();
                self.counters.tlb_invalidates += 1;
                self.tell(Event::TlbInvalidateAll);
            }
            (0, 8, 5..=7, 1) => {
                let gone = self.mmu.invalidate_tlb_entry(Mva(value));
                if B::OBSERVED {
                    for (entry, _) in gone.iter().enumerate().filter(|(_, gone)| **gone) {
                        self.tell(Event::TlbInvalidate { entry });
                    }
                }
            }
            (0, 9, 0, 0) => self.dcache.victim.locked = value & 15,
            (0, 9, 0, 1) => self.icache.victim.locked = value & 15,
            (0, 9, 1, 0 | 1) => {} // no TCM to place
            (0, 10, 0, 0) => self.mmu.tlb.set_lockdown_register(value),
            (0, 13, 0, 0) => self.write_pid(value),
            (0, 13, 0, 1) => self.cp15.context_id = value,
            (0, 15, 0, 0) if value == 0 => {}
            (7, 15, 0, 0) if value & !FORCE_WRITE_THROUGH == 0 => {
                self.cp15.cache_debug = value;
                self.control_changed();
            }
            _ => return self.unmodelled_cp15(opc1, crn, crm, opc2).map(|_| ()),
        }
        Some(())
    }

    fn unmodelled_cp15(&mut self, opc1: u32, crn: u32, crm: u32, opc2: u32) -> Option<u32> {
        let operation = opc1 << 24 | crn << 16 | crm << 8 | opc2;
        self.exit = Some(Exit::UnmodelledCp15 { operation });
        self.horizon = 0;
        Some(0)
    }

    fn write_sctlr(&mut self, value: u32) {
        if value & SCTLR_BIG_ENDIAN != 0 {
            let _ = self.unmodelled_cp15(0, 1, 0, 0);
        }
        let mmu_changed = (self.cp15.sctlr ^ value) & 1 != 0;
        self.cp15.sctlr = SCTLR_RESET | value & SCTLR_WRITABLE;
        let round_robin = value >> 14 & 1 != 0;
        self.dcache.victim.set_round_robin(round_robin);
        self.icache.victim.set_round_robin(round_robin);
        self.icache.prefetch = None;
        self.control_changed();
        self.data_relocation = Relocation::new(self.cp15.pid, value & 1 != 0);
        if mmu_changed {
            self.refill_pipeline();
        }
    }

    fn control_changed(&mut self) {
        self.mmu.set_control(self.cp15.mmu_control());
        self.refetch();
    }

    fn write_pid(&mut self, value: u32) {
        self.cp15.pid = value & 0xfe00_0000;
        self.counters.pid_writes += 1;
        self.data_relocation = Relocation::new(self.cp15.pid, self.cp15.sctlr & 1 != 0);
        self.horizon = 0;
    }

    /// Writes to c7 (`DDI0198D 2.3.7`, table 2-18).
    fn cache_operation(&mut self, crm: u32, opc2: u32, value: u32) -> Option<()> {
        let before = self.cycles;
        let line = |cpu: &mut Self| cpu.dcache.find(Mva(value));
        match (crm, opc2) {
            (0, 4) => {
                self.drain_write_buffer();
                self.waiting = true;
                self.horizon = 0;
                return Some(());
            }
            (7, 0) => {
                self.invalidate_icache();
                self.invalidate_dcache();
            }
            (5, 0) => self.invalidate_icache(),
            (5, 1) => {
                if let Some(line) = self.icache.find(Mva(value)) {
                    self.invalidate_icache_line(line);
                }
                self.refetch();
            }
            (5, 2) => {
                let line = self.icache.line_by_index(value);
                self.invalidate_icache_line(line);
                self.refetch();
            }
            (13, 1) => {
                if let Err(fault) = self.prefetch_icache_line(Mva(value)) {
                    // Nothing aborts (`DDI0198D 3.3.1`).
                    self.cp15.ifsr = fault.fsr();
                }
                return Some(());
            }
            (6, 0) => self.invalidate_dcache(),
            (6, 1) => {
                if let Some(line) = line(self) {
                    self.invalidate_dcache_line(line);
                }
            }
            (6, 2) => self.invalidate_dcache_line(self.dcache.line_by_index(value)),
            (10, 1) => {
                if let Some(line) = line(self) {
                    self.clean_line(line);
                }
            }
            (10, 2) => self.clean_line(self.dcache.line_by_index(value)),
            (14, 1) => {
                if let Some(line) = line(self) {
                    self.clean_line(line);
                    self.invalidate_dcache_line(line);
                }
            }
            (14, 2) => {
                let line = self.dcache.line_by_index(value);
                self.clean_line(line);
                self.invalidate_dcache_line(line);
            }
            (10, 4) => {
                self.drain_write_buffer();
                return Some(());
            }
            _ => return self.unmodelled_cp15(0, 7, crm, opc2).map(|_| ()),
        }
        self.counters.cache_op_cycles +=
            self.cycles - before + 1 + u64::from(self.config.cost.cp15_busy);
        Some(())
    }

    fn invalidate_dcache(&mut self) {
        self.tell_dcache_invalidate_all();
        self.dcache.invalidate_all();
        self.mmu.grants.take_all();
    }

    fn invalidate_dcache_line(&mut self, line: usize) {
        self.tell_dcache_invalidate(line);
        if let Some((mva, _)) = self.dcache.state(line) {
            self.mmu.grants.take(mva);
        }
        self.dcache.invalidate(line);
    }

    fn invalidate_icache_line(&mut self, line: usize) {
        if B::OBSERVED
            && let Some(mva) = self.icache.mva(line)
        {
            let (side, pa) = (Side::Instruction, Pa(self.icache.pa(line)));
            self.tell(Event::Invalidate {
                side,
                mva,
                pa,
                halves: 0,
            });
        }
        self.icache.invalidate(line);
    }

    fn invalidate_icache(&mut self) {
        self.tell(Event::InvalidateAll {
            side: Side::Instruction,
        });
        self.icache.invalidate_all();
        self.icache.prefetch = None;
        self.counters.icache_invalidates += 1;
        self.refetch();
    }

    fn clean_line(&mut self, line: usize) {
        let mva = self.dcache.state(line).map_or(Mva(0), |(mva, _)| mva);
        let Some(dirty) = self.dcache.take_dirty(line) else {
            return;
        };
        self.tell_write_back(mva, &dirty, false);
        let Dirty { pa, halves, data } = dirty;
        self.counters.dcache_cleans += 1;
        self.counters.dcache_halves_written += u64::from(halves.count_ones());
        self.cycles = self
            .biu
            .evict(&mut self.bus, self.cycles, pa, halves, &data);
        self.bus_used();
    }

    /// Tests some lines, cleans the first dirty one; Z says whether the whole cache is clean.
    fn test_and_clean(&mut self) -> u32 {
        let before = self.cycles;
        if let Some(line) = self.dcache.test(self.config.cost.lines_tested_per_op) {
            self.clean_line(line);
        }
        self.counters.test_clean_ops += 1;
        self.counters.cache_op_cycles +=
            self.cycles - before + 1 + u64::from(self.config.cost.cp15_busy);
        if self.dcache.any_dirty() { 0 } else { 1 << 30 }
    }

    fn test_clean_and_invalidate(&mut self) -> u32 {
        let clean = self.test_and_clean();
        if clean != 0 {
            self.invalidate_dcache();
        }
        clean
    }

    /// CP15 registers, for display.
    pub fn cp15(&self) -> &Cp15 {
        &self.cp15
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::Exit;
    use crate::isa::testing::{COARSE, mapped, steps};

    #[test]
    fn debug_bits_that_are_not_modelled_end_the_run() {
        let written = |opc1, value| {
            let mut cpu = mapped();
            cpu.cp15_write(opc1, 15, 0, 0, value);
            cpu.exit
        };
        for (opc1, value) in [(0, 0), (7, 0), (7, 4)] {
            assert_eq!(written(opc1, value), None);
        }
        for (opc1, value) in [(0, 1 << 16), (7, 1), (7, 6), (7, 8)] {
            let operation = opc1 << 24 | 15 << 16;
            let exit = Some(Exit::UnmodelledCp15 { operation });
            assert_eq!(written(opc1, value), exit, "{opc1} {value:#x}");
        }
    }

    #[test]
    fn a_prefetched_line_is_in_the_i_cache_as_it_was_then() {
        let mut cpu = mapped();
        cpu.bus.put(0x2_0000, &[0xe3a0_0001]); // mov r0, #1
        cpu.bus.put(0x2_1000, &[0xee07_1f3d]); // mcr p15, 0, r1, c7, c13, 1
        cpu.r[1] = 0x2_0004;
        cpu.set_pc(0x2_1000);
        steps(&mut cpu, 1);
        let (fills, cycles) = (cpu.counters.icache_fills, cpu.cycles);
        assert_eq!(fills, 2);
        cpu.bus.put(0x2_0000, &[0xe3a0_0002]);
        cpu.set_pc(0x2_0000);
        steps(&mut cpu, 1);
        assert_eq!((cpu.r[0], cpu.counters.icache_fills), (1, 2));
        assert_eq!(cpu.cycles, cycles + 1);
    }

    #[test]
    fn a_prefetch_may_evict_the_line_that_asks_for_it() {
        let mut cpu = mapped();
        cpu.bus
            .put(0x2_1000, &[0xee07_1f3d, 0xe281_1b01, 0xeaff_fffc]);
        cpu.r[1] = 0x3_0000;
        cpu.set_pc(0x2_1000);
        // mcr p15, 0, r1, c7, c13, 1; add r1, r1, #0x400; b to the mcr
        steps(&mut cpu, 3 * 40);
        assert_eq!(cpu.r[1], 0x3_0000 + 40 * 0x400);
        assert!(
            cpu.counters.icache_fills > 41,
            "{}",
            cpu.counters.icache_fills
        );
    }

    #[test]
    fn a_prefetch_from_nowhere_or_past_the_cache_fills_nothing_and_aborts_nothing() {
        let mut cpu = mapped();
        cpu.bus.put(COARSE, &[0x1000_0ffe, 0x2_0ff2]);
        for (mva, status) in [(0x10_0000, 0b1010), (0x10_1000, 0), (0x10_2000, 0b0111)] {
            cpu.cp15.ifsr = 0;
            cpu.cp15_write(0, 7, 13, 1, mva);
            assert_eq!((cpu.cp15.ifsr, cpu.pc), (status, 0));
        }
        assert_eq!(cpu.counters.icache_fills, 0);
    }

    #[test]
    fn cp15_registers_are_read_as_they_were_written() {
        let mut cpu = mapped();
        let mut read = |opc1, crn, crm, opc2| cpu.cp15_read(opc1, crn, crm, opc2);
        assert_eq!(read(0, 0, 0, 1), Some(0x1d0d_20d2));
        for (crn, crm, opc2) in [(0, 0, 2), (9, 1, 0), (9, 1, 1), (15, 0, 0)] {
            assert_eq!(read(0, crn, crm, opc2), Some(0), "c{crn}, c{crm}, {opc2}");
        }
        // Ways locked in either cache; the context ID; the cache debug register. No TCM can be placed.
        let written = [
            (0, 9, 0, 0, 5, 0xfff5),
            (0, 9, 0, 1, 6, 0xfff6),
            (0, 9, 1, 0, 0x0010_0001, 0),
            (0, 13, 0, 1, 0x1234_5678, 0x1234_5678),
            (7, 15, 0, 0, 4, 4),
        ];
        for (opc1, crn, crm, opc2, value, found) in written {
            cpu.cp15_write(opc1, crn, crm, opc2, value);
            let read = cpu.cp15_read(opc1, crn, crm, opc2);
            assert_eq!(
                (read, cpu.exit),
                (Some(found), None),
                "{opc1}, c{crn}, c{crm}, {opc2}"
            );
        }
    }
}
