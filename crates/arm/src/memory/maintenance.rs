// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maintenance of caches and TLBs: what the operations of CP15 c7 and c8 do.

use crate::addr::{Mva, Pa};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::dcache::Dirty;
use crate::icache;
use crate::mmu::{Fault, Kind};
use crate::observe::{Cause, Event, Side, TlbSide};
use crate::tag::{Tagging, UNTRANSLATED};

impl<B: Bus> Cpu<B> {
    pub(crate) fn invalidate_tlb(&mut self, side: TlbSide) {
        self.counters.tlb_invalidates += 1;
        for tlb in self.memory.mmu.reached(side) {
            self.memory.mmu.invalidate_tlb(tlb);
            let side = self.memory.mmu.side(tlb);
            self.tell(Event::TlbInvalidateAll { side });
        }
    }

    pub(crate) fn invalidate_tlb_entry(&mut self, side: TlbSide, mva: Mva) {
        for tlb in self.memory.mmu.reached(side) {
            let (side, mut from) = (self.memory.mmu.side(tlb), 0);
            while let Some(entry) = self.memory.mmu.invalidate_tlb_entry(tlb, mva, from) {
                self.tell(Event::TlbInvalidate { side, entry });
                from = entry + 1;
            }
        }
    }

    /// Restarts the caches' random choice of victims from a seed ([`crate::Config::victim_seed`]).
    pub fn reseed_victims(&mut self, seed: u32) {
        self.memory.dcache.victim.reseed(seed);
        self.memory.icache.victim.reseed(icache::own_seed(seed));
    }

    /// Does an operation whose time counts as cache maintenance.
    pub(crate) fn maintain(&mut self, operation: impl FnOnce(&mut Self)) {
        let before = self.cycles;
        operation(self);
        let issue = u64::from(self.timing().coprocessor) + u64::from(self.config().cost.cp15_busy);
        self.counters.cache_op_cycles += self.cycles - before + issue;
    }

    /// Does maintenance on the D-cache line that holds an address, if there is one. Takes a data abort if the operation
    /// needs a translation and there is none.
    pub(crate) fn maintain_line(&mut self, mva: u32, operation: impl FnOnce(&mut Self, usize)) {
        let mva = Mva(mva);
        match self.translate_for_maintenance(mva) {
            Ok(pa) => self.maintain(|cpu| {
                if let Some(line) = cpu.memory.dcache.find(mva, pa) {
                    operation(cpu, line);
                }
            }),
            Err(fault) => {
                self.data_abort(fault, mva);
            }
        }
    }

    /// Invalidates the I-cache line that holds an address, if there is one. The fault status of a missing translation is
    /// that of maintenance of the I-cache.
    pub(crate) fn invalidate_icache_mva(&mut self, mva: Mva) {
        match self.translate_for_maintenance(mva) {
            Ok(pa) => self.maintain(|cpu| {
                if let Some(line) = cpu.memory.icache.find(mva, pa) {
                    cpu.invalidate_icache_line(line);
                }
                cpu.refetch();
            }),
            Err(_) => {
                self.data_abort(Fault::ICACHE_MAINTENANCE, mva);
            }
        }
    }

    /// Returns the physical address for an operation on the line of an address. An operation on physical tags translates
    /// as a read does, but needs no permission to read (R; `DDI0211` 6.10 has the faults). An operation on virtual tags
    /// does not translate.
    fn translate_for_maintenance(&mut self, mva: Mva) -> Result<Pa, Fault> {
        if self.config().core.tagging == Tagging::Virtual {
            return Ok(UNTRANSLATED);
        }
        match self.translate(mva, Kind::Read, self.memory.mmu.privileged()) {
            Ok(page) => Ok(page.pa(mva)),
            Err(fault) => {
                let held = self.memory.mmu.held(mva, Kind::Read);
                let held = held.filter(|_| fault.is_of_permission());
                held.map(|entry| entry.translate(mva)).ok_or(fault)
            }
        }
    }

    /// Does maintenance on a D-cache line by set and way.
    pub(crate) fn maintain_index(&mut self, index: u32, operation: impl FnOnce(&mut Self, usize)) {
        let line = self.memory.dcache.line_by_index(index);
        self.maintain(|cpu| operation(cpu, line));
    }

    pub(crate) fn clean_and_invalidate_line(&mut self, line: usize) {
        self.clean_line(line);
        self.invalidate_dcache_line(line);
    }

    pub(crate) fn invalidate_icache_index(&mut self, index: u32) {
        let line = self.memory.icache.line_by_index(index);
        self.invalidate_icache_line(line);
        self.refetch();
    }

    pub(crate) fn invalidate_dcache(&mut self) {
        self.tell_dcache_invalidate_all();
        self.memory.dcache.invalidate_all();
        self.memory.mmu.grants.take_all();
    }

    pub(crate) fn invalidate_dcache_line(&mut self, line: usize) {
        self.tell_dcache_invalidate(line);
        if let Some((mva, _)) = self.memory.dcache.state(line) {
            self.memory.mmu.grants.take(line, mva);
        }
        self.memory.dcache.invalidate(line);
    }

    fn invalidate_icache_line(&mut self, line: usize) {
        if B::OBSERVED
            && let Some(mva) = self.memory.icache.mva(line)
        {
            let (side, pa) = (Side::Instruction, self.memory.icache.pa(line));
            self.tell(Event::Invalidate {
                side,
                mva,
                pa,
                halves: 0,
            });
        }
        self.memory.icache.invalidate(line);
    }

    pub(crate) fn invalidate_icache(&mut self) {
        self.tell(Event::InvalidateAll {
            side: Side::Instruction,
        });
        self.memory.icache.invalidate_all();
        self.memory.icache.prefetch = None;
        self.counters.icache_invalidates += 1;
        self.branches.forget();
        self.refetch();
    }

    pub(crate) fn clean_line(&mut self, line: usize) {
        let mva = self
            .memory
            .dcache
            .state(line)
            .map_or(Mva(0), |(mva, _)| mva);
        let Some(dirty) = self.memory.dcache.take_dirty(line) else {
            return;
        };
        self.tell_write_back(mva, &dirty, false);
        self.write_back(&dirty);
    }

    /// Moves dirty data to the victim buffer, as maintenance.
    fn write_back(&mut self, dirty: &Dirty) {
        self.counters.dcache_cleans += 1;
        self.counters.dcache_halves_written += u64::from(dirty.halves.count_ones());
        let accepted = self.evict(self.cycles, dirty);
        self.memory.biu.writes.victim_is_of(Cause::Maintenance);
        self.spend_until(Cause::Maintenance, accepted);
        self.bus_used();
    }

    /// Tests some lines and cleans the first dirty one. Returns flags, with Z set if the whole cache is clean.
    pub(crate) fn test_and_clean(&mut self) -> u32 {
        let before = self.cycles;
        if let Some(line) = self
            .memory
            .dcache
            .test(self.config().cost.lines_tested_per_op)
        {
            self.clean_line(line);
        }
        self.counters.test_clean_ops += 1;
        self.counters.cache_op_cycles +=
            self.cycles - before + 1 + u64::from(self.config().cost.cp15_busy);
        if self.memory.dcache.any_dirty() {
            0
        } else {
            1 << 30
        }
    }

    pub(crate) fn test_clean_and_invalidate(&mut self) -> u32 {
        let clean = self.test_and_clean();
        if clean != 0 {
            self.invalidate_dcache();
        }
        clean
    }

    /// Waits until all pending writes are in memory, and then for `more` cycles. The wait is part of an operation. The
    /// separate counter of waits for the write buffer does not count these cycles.
    pub(crate) fn finish_writes(&mut self, more: u64) {
        let drained = self.memory.biu.drain(&mut self.bus, self.cycles) + more;
        self.spend_until(Cause::Maintenance, drained);
        self.bus_used();
    }

    /// Assigns a line of a virtually tagged D-cache to `mva`, unless a line already holds `mva`. Reads nothing, not even a translation. The
    /// line's contents are `words`. The victim is the line at the set's pointer. Its dirty data is written back.
    pub(crate) fn claim_line(&mut self, mva: Mva, words: [u32; 8]) {
        if self.memory.dcache.find(mva, UNTRANSLATED).is_some() {
            return;
        }
        let line = self.memory.dcache.choose_in_turn(mva);
        let (victim, dirty) = self.memory.dcache.empty(line);
        if let Some(victim) = victim {
            self.memory.mmu.grants.take(line, victim);
            let side = Side::Data;
            self.tell(Event::Replaced { side, mva: victim });
        }
        if let Some((victim, dirty)) = victim.zip(dirty) {
            self.tell_write_back(victim, &dirty, false);
            self.write_back(&dirty);
        }
        self.memory.dcache.claim(line, mva, words);
        self.tell(Event::Claim { mva });
    }
}
