// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores that bypass the cache, and the drain of the write buffer.

use crate::addr::{Mva, Pa};
use crate::bus::{Bus, Width};
use crate::cpu::{Access, Cpu};
use crate::mmu::{self, Kind, Resolved};
use crate::observe::Cause;

impl<B: Bus> Cpu<B> {
    /// Stores a value to memory, bypassing the cache. Uses the write buffer if the page is buffered.
    pub(super) fn store_to_memory(
        &mut self,
        page: Resolved,
        mva: Mva,
        (width, value): (Width, u32),
        locked: bool,
    ) -> Access<()> {
        let before = self.cycles;
        self.counters.buffered_stores += 1;
        let buffered = page.has(mmu::CACHE) || page.has(mmu::BUFFER) && !locked;
        let pa = page.pa(mva);
        let own = if buffered {
            Cause::WriteBuffer
        } else {
            Cause::Uncached
        };
        let (done, answer) = if buffered && self.has_policy(page, mmu::SINGLE) {
            // The store is also a fence, and no other store joins its entry.
            let now = self.memory.biu.drain(&mut self.bus, before);
            self.memory.biu.push_single(now, pa, width, value);
            (now, Ok(()))
        } else if buffered && self.separates_accesses() {
            let now = self
                .memory
                .biu
                .store_alone(&mut self.bus, before, pa, width, value);
            (now, Ok(()))
        } else if buffered {
            let accepted = self
                .memory
                .biu
                .store(&mut self.bus, before, pa, width, value);
            (accepted, Ok(()))
        } else {
            (self.memory.biu).store_unbuffered(&mut self.bus, before, pa, width, value)
        };
        self.wait_until(own, done);
        self.counters.write_wait_cycles += done - before;
        self.bus_used();
        answer.map_err(|_| {
            let fault = self.memory.mmu.external_abort(page);
            self.data_abort_of(Kind::Write, fault, mva)
        })
    }

    /// Whether all accesses are nonsequential, as on the ARM920T while its D-cache is off (S3C2410A p. 4-6).
    #[inline(always)]
    pub(super) fn separates_accesses(&self) -> bool {
        self.memory.biu.reads_bursts() && self.cp15.sctlr & 4 == 0
    }

    /// Updates the line that holds the address of a store that bypasses the cache.
    pub(super) fn update_line(&mut self, mva: Mva, pa: Pa, width: Width, value: u32) {
        let on = self.cp15.sctlr >> 2 & 1 != 0;
        if let Some(line) = self.memory.dcache.find(mva, pa).filter(|_| on) {
            let shift = 8 * (mva.0 & 3);
            let mask = width.mask() << shift;
            self.memory
                .dcache
                .write(line, mva, value << shift, mask, false);
        }
    }

    /// Drains the write buffer (CP15 c7,c10,4).
    pub(crate) fn drain_write_buffer(&mut self) {
        let before = self.cycles;
        let drained = self.memory.biu.drain(&mut self.bus, before);
        self.wait_until(Cause::WriteBuffer, drained);
        self.counters.write_wait_cycles += self.cycles - before;
        self.bus_used();
        // ARMv6 sees that a buffered write failed, as an imprecise abort. The model reports it when the buffer is
        // drained, because the time at which a write reaches the bus depends on how the run is divided (I).
        if self.is_v6() && self.memory.biu.take_failure() {
            self.pend_imprecise_abort();
        }
    }
}
