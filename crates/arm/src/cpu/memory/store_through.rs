// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores past the cache, and the write buffer.

use crate::addr::Mva;
use crate::bus::{Bus, Width};
use crate::cpu::{Access, Cpu};
use crate::mmu::{self, Resolved};
use crate::observe::Cause;

impl<B: Bus> Cpu<B> {
    /// Past the cache, through the write buffer where the page has it.
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
            // A fence, too, and nothing that others join.
            let now = self.biu.drain(&mut self.bus, before);
            self.biu.push_single(now, pa, width, value);
            (now, Ok(()))
        } else if buffered && self.separates_accesses() {
            let now = self
                .biu
                .store_alone(&mut self.bus, before, pa, width, value);
            (now, Ok(()))
        } else if buffered {
            let accepted = self.biu.store(&mut self.bus, before, pa, width, value);
            (accepted, Ok(()))
        } else {
            (self.biu).store_unbuffered(&mut self.bus, before, pa, width, value)
        };
        self.wait_until(own, done);
        self.counters.write_wait_cycles += done - before;
        self.bus_used();
        answer.map_err(|_| self.data_abort(self.mmu.external_abort(page), mva))
    }

    /// Whether no access is sequential to another one: on the ARM920T while its D-cache is off (S3C2410A p. 4-6).
    #[inline(always)]
    pub(super) fn separates_accesses(&self) -> bool {
        self.biu.reads_bursts() && self.cp15.sctlr & 4 == 0
    }

    /// Of a store that goes past the cache.
    pub(crate) fn update_line(&mut self, mva: Mva, width: Width, value: u32) {
        let on = self.cp15.sctlr >> 2 & 1 != 0;
        if let Some(line) = self.dcache.find(mva).filter(|_| on) {
            let shift = 8 * (mva.0 & 3);
            let mask = width.mask() << shift;
            self.dcache.write(line, mva, value << shift, mask, false);
        }
    }

    /// CP15 c7,c10,4: waits until nothing is left to be written.
    pub(crate) fn drain_write_buffer(&mut self) {
        let before = self.cycles;
        let drained = self.biu.drain(&mut self.bus, before);
        self.wait_until(Cause::WriteBuffer, drained);
        self.counters.write_wait_cycles += self.cycles - before;
        self.bus_used();
    }
}
