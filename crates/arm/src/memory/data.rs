// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data side of the memory path: loads and stores. Each function handles hits first. All other accesses take the slow
//! path below, which defines the behaviour.

use crate::addr::{Mva, Pa, Va};
use crate::bus::{Bus, BusError, Width};
use crate::cpu::cp15::Unaligned;
use crate::cpu::exception::Exception;
use crate::cpu::{Aborted, Access, Cpu};
use crate::dcache::Dirty;
use crate::memory::MemoryPath;
use crate::mmu::{self, DescriptorRead, Fault, Kind, Resolved};
use crate::observe::{Cause, Event, Side};
use crate::write_buffer::Biu;

const CACHED_READ: u32 = mmu::READ | mmu::CACHE;
const WRITE_BACK: u32 = mmu::WRITE | mmu::CACHE | mmu::BUFFER;

/// Reads descriptors for a translation-table walk and counts the time.
struct Walker<'a, B: Bus> {
    biu: &'a mut Biu,
    bus: &'a mut B,
    now: u64,
    reads: usize,
    /// Addresses and values of the descriptors, for observers.
    read: [(Pa, u32); 2],
}

impl<B: Bus> DescriptorRead for Walker<'_, B> {
    fn descriptor(&mut self, pa: Pa) -> Option<u32> {
        let read = self.biu.walk_read(self.bus, self.now, pa);
        let value = read.map_or(0, |(value, _)| value);
        self.read[self.reads & 1] = (pa, value);
        self.reads += 1;
        self.now = read.ok()?.1;
        Some(value)
    }
}

impl<B: Bus> Cpu<B> {
    /// Whether loads and stores may use [`crate::grants`]. If an observer must see all accesses, grants must not be
    /// used.
    pub(super) const GRANTS: bool = B::SHORTCUTS && !B::ACCESSES_OBSERVED;

    #[inline(always)]
    pub(super) fn data_mva(&self, va: u32) -> Mva {
        self.fcse.data(Va(va))
    }

    /// Returns the word that holds `mva`, if a grant allows the read. `misaligned` is the mask of the address bits
    /// that must be clear.
    #[inline(always)]
    fn granted_word(&self, mva: Mva, misaligned: u32) -> Option<u32> {
        if !Self::GRANTS {
            return None;
        }
        let line = self.memory.mmu.grants.read(mva, misaligned)?;
        Some(self.memory.dcache.line(line)[(mva.0 >> 2 & 7) as usize])
    }

    /// Loads by a grant, from the D-cache alone.
    #[inline(always)]
    pub(crate) fn granted_load(&self, va: u32, width: Width) -> Option<u32> {
        let mva = self.data_mva(va);
        let word = self.granted_word(mva, width.bytes() - 1)?;
        let value = match width {
            Width::Word => word,
            Width::Half => word >> (8 * (va & 2)) & 0xffff,
            Width::Byte => word >> (8 * (va & 3)) & 0xff,
        };
        Some(value)
    }

    /// Stores by a grant, to the D-cache alone. Returns false, and does nothing, if there is no grant.
    #[inline(always)]
    pub(crate) fn granted_store(&mut self, va: u32, width: Width, value: u32) -> bool {
        self.granted_store_at(self.data_mva(va), width, value)
    }

    /// Stores by a grant, at an address that the FCSE has relocated.
    #[inline(always)]
    pub(super) fn granted_store_at(&mut self, mva: Mva, width: Width, value: u32) -> bool {
        if !Self::GRANTS {
            return false;
        }
        let Some(line) = self.memory.mmu.grants.write(mva, width.bytes() - 1) else {
            return false;
        };
        let shift = match width {
            Width::Word => 0,
            Width::Half => 8 * (mva.0 & 2),
            Width::Byte => 8 * (mva.0 & 3),
        };
        self.memory
            .dcache
            .write(line, mva, value << shift, width.mask() << shift, true);
        true
    }

    #[inline(always)]
    pub(crate) fn load(&mut self, va: u32, width: Width) -> Access<u32> {
        match self.granted_load(va, width) {
            Some(value) => Ok(value),
            None => self.load_slow(self.data_mva(va), width, self.memory.mmu.privileged()),
        }
    }

    #[inline(always)]
    pub(crate) fn store(&mut self, va: u32, width: Width, value: u32) -> Access<()> {
        if self.granted_store(va, width, value) {
            return Ok(());
        }
        self.store_slow(
            self.data_mva(va),
            width,
            value,
            self.memory.mmu.privileged(),
            false,
        )
    }

    /// Grants the next accesses to the line of `mva`.
    fn grant(&mut self, mva: Mva, line: usize) {
        if Self::GRANTS
            && !self.memory.dcache.is_nowhere(line)
            && let Some(page) = self.memory.mmu.lookup(mva, Kind::Read)
        {
            let write = page.has(WRITE_BACK) && !self.monitor.is_in_line(mva);
            let read = page.has(CACHED_READ);
            self.memory.mmu.grants.give(mva, line, read, write);
        }
    }

    pub(crate) fn load_user(&mut self, va: u32, width: Width) -> Access<u32> {
        self.load_slow(self.data_mva(va), width, false)
    }

    pub(crate) fn store_user(&mut self, va: u32, width: Width, value: u32) -> Access<()> {
        self.store_slow(self.data_mva(va), width, value, false, false)
    }

    /// Translates and checks an access. Enters the data abort if the access is refused.
    pub(super) fn access(&mut self, mva: Mva, kind: Kind, privileged: bool) -> Access<Resolved> {
        match self.translate(mva, kind, privileged) {
            Ok(page) => Ok(page),
            Err(fault) => Err(self.data_abort_of(kind, fault, mva)),
        }
    }

    #[inline]
    pub(crate) fn translate(
        &mut self,
        mva: Mva,
        kind: Kind,
        privileged: bool,
    ) -> Result<Resolved, Fault> {
        if B::SHORTCUTS
            && privileged == self.memory.mmu.privileged()
            && let Some(page) = self
                .memory
                .mmu
                .lookup(mva, kind)
                .filter(|page| page.has(kind.permission()))
        {
            return Ok(page);
        }
        self.translate_slow(mva, kind, privileged)
    }

    #[inline(never)]
    pub(crate) fn translate_slow(
        &mut self,
        mva: Mva,
        kind: Kind,
        privileged: bool,
    ) -> Result<Resolved, Fault> {
        let before = self.cycles;
        let mut walker = Walker {
            biu: &mut self.memory.biu,
            bus: &mut self.bus,
            now: before,
            reads: 0,
            read: [(Pa(0), 0); 2],
        };
        let result = self
            .memory
            .mmu
            .translate(mva, kind, privileged, &mut walker);
        let Walker {
            now, reads, read, ..
        } = walker;
        if B::OBSERVED {
            self.tell_translation(mva, (kind, privileged), &read[..reads], result);
        }
        if reads > 0 {
            let walked = now + u64::from(self.config().cost.walk_overhead);
            self.wait_until(Cause::TableWalk, walked);
            self.counters.tlb_walks += 1;
            self.counters.tlb_walk_cycles += self.cycles - before;
            self.bus_used();
        }
        result
    }

    #[cold]
    pub(crate) fn data_abort(&mut self, fault: Fault, mva: Mva) -> Aborted {
        self.cp15.dfsr = fault.fsr();
        self.cp15.far = mva.0;
        self.take_exception(Exception::DataAbort);
        Aborted
    }

    /// Enters the data abort of a read or a write. ARMv6 says which of the two in bit 11 of the fault status (B4.6).
    #[cold]
    pub(crate) fn data_abort_of(&mut self, kind: Kind, fault: Fault, mva: Mva) -> Aborted {
        let aborted = self.data_abort(fault, mva);
        self.cp15.dfsr |= u32::from(self.is_v6() && kind == Kind::Write) << 11;
        aborted
    }

    #[inline(never)]
    pub(crate) fn load_slow(&mut self, mva: Mva, width: Width, privileged: bool) -> Access<u32> {
        if mva.0 & (width.bytes() - 1) != 0 {
            match self.cp15.unaligned() {
                Unaligned::Rotates => {}
                Unaligned::Works => return self.load_unaligned(mva, width, privileged),
                Unaligned::Faults => return Err(self.data_abort(Fault::ALIGNMENT, mva)),
            }
        }
        let page = self.access(mva, Kind::Read, privileged)?;
        self.load_at(page, mva, width)
    }

    /// Loads from a page that may be read.
    #[inline(always)]
    pub(super) fn load_at(&mut self, page: Resolved, mva: Mva, width: Width) -> Access<u32> {
        let aligned = Mva(mva.0 & !(width.bytes() - 1));
        self.compare_watched(aligned, width.bytes(), Kind::Read);
        let value = if page.has(mmu::CACHE) {
            let line = self.cached_line(aligned, page)?;
            let word = self.memory.dcache.line(line)[(aligned.0 >> 2 & 7) as usize];
            let value = word >> (8 * (aligned.0 & 3)) & width.mask();
            self.tell_load(page, aligned, width, value, true);
            self.grant(aligned, line);
            value
        } else {
            self.uncached_read(aligned, page, width)?
        };
        let rotate = if width == Width::Word {
            8 * (mva.0 & 3)
        } else {
            0
        };
        Ok(value.rotate_right(rotate))
    }

    fn uncached_read(&mut self, mva: Mva, page: Resolved, width: Width) -> Access<u32> {
        let before = self.cycles;
        let now = match self.behaviour().uncached_reads_fence {
            false => before,
            true => self.memory.biu.drain(&mut self.bus, before),
        };
        let read = self
            .memory
            .biu
            .read(&mut self.bus, now, page.pa(mva), width);
        self.uncached_is_read(page, mva, 1, read.map(|(_, done)| done))?;
        let value = read.map_or(0, |(value, _)| value);
        self.tell_load(page, mva, width, value, false);
        Ok(value)
    }

    /// Accounts for an uncached read of `words` words and waits until it is complete at `done`. A bus error aborts it.
    pub(super) fn uncached_is_read(
        &mut self,
        page: Resolved,
        mva: Mva,
        words: u64,
        done: Result<u64, BusError>,
    ) -> Access<()> {
        let Ok(done) = done else {
            self.bus_used();
            return Err(self.data_abort(self.memory.mmu.external_abort(page), mva));
        };
        self.counters.uncached_reads += words;
        self.counters.uncached_read_cycles += done - self.cycles;
        self.wait_until(Cause::Uncached, done);
        self.bus_used();
        Ok(())
    }

    /// Whether the core has page fill policies and the page has all of `flags`.
    #[inline(always)]
    pub(super) fn has_policy(&self, page: Resolved, flags: u32) -> bool {
        self.behaviour().page_fill_policies && page.has(flags)
    }

    /// Returns the line for a store to a cacheable page. Fills it first if the page allocates on writes.
    #[inline(always)]
    pub(super) fn line_to_store(&mut self, mva: Mva, page: Resolved) -> Access<Option<usize>> {
        let found = self.memory.dcache.find(mva, page.pa(mva));
        let behaviour = self.behaviour();
        match behaviour.page_fill_policies || behaviour.preload_fills {
            true => self.line_to_store_if_filled(mva, page, found),
            false => Ok(found),
        }
    }

    /// Returns the line for a store on a core that fills lines for stores or in the background.
    #[inline(never)]
    fn line_to_store_if_filled(
        &mut self,
        mva: Mva,
        page: Resolved,
        found: Option<usize>,
    ) -> Access<Option<usize>> {
        let line = match found {
            None if self.has_policy(page, mmu::ALLOCATE) => Some(self.cached_line(mva, page)?),
            found => found,
        };
        if let Some(line) = line
            && self.config().core.behaviour.preload_fills
        {
            self.wait_for_fill(line);
            if self.memory.dcache.is_nowhere(line) {
                self.memory.dcache.place(line, page.pa(mva));
            }
        }
        Ok(line)
    }

    /// Chooses the line to fill for `mva`. Returns it with its victim and what is dirty in the victim.
    #[inline(always)]
    fn make_room(&mut self, mva: Mva, page: Resolved) -> (usize, Option<Mva>, Option<Dirty>) {
        let line = match self.has_policy(page, mmu::MINI) {
            true => self.memory.dcache.choose_in_mini(mva),
            false => self.memory.dcache.choose(mva),
        };
        let (victim, dirty) = self.memory.dcache.empty(line);
        if let Some(victim) = victim {
            self.memory.mmu.grants.take(line, victim);
            let side = Side::Data;
            self.tell(Event::Replaced { side, mva: victim });
        }
        (line, victim, dirty)
    }

    /// Returns the line that holds `mva`. Fills it if it is missing.
    #[inline(always)]
    fn cached_line(&mut self, mva: Mva, page: Resolved) -> Access<usize> {
        if let Some(line) = self.memory.dcache.find(mva, page.pa(mva)) {
            if self.config().core.behaviour.preload_fills {
                self.wait_for_fill(line);
            }
            return Ok(line);
        }
        let (line, resume) = self.fill_dcache(mva, page)?;
        self.counters.dcache_fill_cycles += resume - self.cycles;
        self.wait_until(Cause::DataMiss, resume);
        Ok(line)
    }

    /// Fills a line for `mva`, which is missing. Returns the cycle until which the caller must make the pipeline wait.
    pub(crate) fn fill_dcache(&mut self, mva: Mva, page: Resolved) -> Access<(usize, u64)> {
        let before = self.cycles;
        let pa = page.pa(mva);
        let (line, victim, dirty) = self.make_room(mva, page);
        // A victim at the same physical line (an alias) must be in memory before the fill.
        let alias = dirty.as_ref().is_some_and(|d| d.pa == pa.line());
        if let Some((victim, d)) = victim.zip(dirty.as_ref()) {
            self.tell_write_back(victim, d, true);
        }
        let mut now = before;
        if let Some(d) = dirty.as_ref().filter(|_| alias) {
            now = self.evict(now, d);
        }
        let mut data = [0; 8];
        let filled = self.memory.biu.read_line(&mut self.bus, now, pa, &mut data);
        let Ok((start, time)) = filled else {
            // The victim has left its line even though the fill failed.
            if let Some(d) = dirty.as_ref().filter(|_| !alias) {
                let accepted = self.evict(now, d);
                self.wait_until(Cause::Eviction, accepted);
            }
            self.bus_used();
            return Err(self.data_abort(self.memory.mmu.external_abort(page), mva));
        };
        let mut resume = start + self.exposed(time);
        if let Some(d) = &dirty {
            self.counters.dcache_victims += 1;
            self.counters.dcache_halves_written += u64::from(d.halves.count_ones());
            if !alias {
                let filled_at = start + u64::from(time.last);
                let accepted = self.evict(filled_at, d);
                if accepted > filled_at {
                    resume = resume.max(accepted);
                }
            }
        }
        self.memory.dcache.fill(line, mva, pa, data);
        let (side, at) = (Side::Data, Mva(mva.0 & !31));
        self.tell(Event::Fill {
            side,
            mva: at,
            pa: pa.line(),
        });
        self.counters.dcache_fills += 1;
        self.bus_used();
        Ok((line, resume))
    }

    /// Moves the dirty halves of a line to the victim buffer. Returns the cycle at which the core can continue.
    pub(super) fn evict(&mut self, now: u64, dirty: &Dirty) -> u64 {
        let MemoryPath { biu, dcache, .. } = &mut self.memory;
        let Dirty { line, pa, halves } = *dirty;
        biu.evict(&mut self.bus, now, pa, halves, dcache.line(line))
    }

    /// Cycles from the bus grant of a line fill until the pipeline continues.
    pub(super) fn exposed(&self, time: crate::bus::BurstTime) -> u64 {
        let tail = (time.last - time.first) * self.config().cost.tail_exposed_256 / 256;
        u64::from(time.first + tail)
    }

    /// `locked` marks the store of a SWP, which is buffered only in cacheable pages.
    #[inline(never)]
    pub(crate) fn store_slow(
        &mut self,
        mva: Mva,
        width: Width,
        value: u32,
        privileged: bool,
        locked: bool,
    ) -> Access<()> {
        if mva.0 & (width.bytes() - 1) != 0 {
            match self.cp15.unaligned() {
                Unaligned::Rotates => {}
                Unaligned::Works => return self.store_unaligned(mva, (width, value), privileged),
                Unaligned::Faults => {
                    return Err(self.data_abort_of(Kind::Write, Fault::ALIGNMENT, mva));
                }
            }
        }
        let page = self.access(mva, Kind::Write, privileged)?;
        let mva = Mva(mva.0 & !(width.bytes() - 1));
        self.store_at(page, mva, (width, value), locked)
    }

    /// Stores to a page that may be written.
    #[inline(always)]
    pub(super) fn store_at(
        &mut self,
        page: Resolved,
        mva: Mva,
        (width, value): (Width, u32),
        locked: bool,
    ) -> Access<()> {
        self.monitor.stored(mva, width.bytes());
        self.compare_watched(mva, width.bytes(), Kind::Write);
        let cached = page.has(mmu::CACHE);
        let line = match cached {
            true => self.line_to_store(mva, page)?,
            false => None,
        };
        if let Some(line) = line {
            let shift = 8 * (mva.0 & 3);
            let mask = width.mask();
            let write_back = page.has(mmu::BUFFER);
            self.memory
                .dcache
                .write(line, mva, value << shift, mask << shift, write_back);
            if write_back {
                self.tell_store(page, mva, width, value & mask, true);
                self.grant(mva, line);
                return Ok(());
            }
        } else if !cached && self.config().core.uncached_stores_update {
            self.update_line(mva, page.pa(mva), width, value);
        }
        let value = value & width.mask();
        self.tell_store(page, mva, width, value, false);
        let before = self.cycles;
        self.store_to_memory(page, mva, (width, value), locked)?;
        if cached && line.is_none() {
            let cycles = self.cycles - before;
            self.tell(Event::StoreMissed { mva, cycles });
        }
        Ok(())
    }
}
