// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory path: every load, store and fetch goes FCSE -> TLB -> cache line -> write buffer -> bus.
//!
//! [`MemoryPath`] has the units between FCSE and bus. Only this folder reaches these units. For everything that takes
//! time, aborts, or goes to the bus, the rest of the crate uses the methods here, and the methods of [`Cpu`] in this
//! folder:
//!
//! - `data.rs` loads and stores single words, `transfer.rs` several words. `store_through.rs` has the stores that
//!   bypass the cache, `unaligned.rs` swaps, and the unaligned and
//!   exclusive accesses of ARMv6.
//! - `fetch.rs` finds the line of the next instruction.
//! - `maintenance.rs` has the operations on caches and TLBs.
//! - `debug.rs` and `look.rs` are for debuggers, `events.rs` for observers.

use core::mem::offset_of;

use crate::addr::{Mva, Pa};
use crate::bus::Bus;
use crate::config::Config;
use crate::cpu::engine::{Entries, Tables};
use crate::dcache::DCache;
use crate::icache::ICache;
use crate::isa::Op;
use crate::mmu::{Control, Kind, Mmu};
use crate::observe::Cause;
use crate::state::State;
use crate::tlb::Lock;
use crate::victim::Victim;
use crate::write_buffer::Biu;
use debug::Watch;

/// The units of the memory path. The units that every instruction uses come first.
#[derive(Clone)]
#[repr(C)]
pub(crate) struct MemoryPath<B: Bus> {
    icache: ICache<B>,
    dcache: DCache,
    mmu: Mmu,
    biu: Biu,
    watch: Watch,
}

crate::state!(MemoryPath<B: Bus>: mmu, icache, dcache, biu; watch);

/// What code of an engine reads and writes in the units.
impl<B: Bus> MemoryPath<B> {
    /// Offset of the generation of the I-cache's hints.
    pub(crate) const GENERATION: usize = offset_of!(Self, icache) + ICache::<B>::GENERATION;
    /// Offset of the translation epoch.
    pub(crate) const EPOCH: usize = offset_of!(Self, mmu) + Mmu::OFFSETS[0];
    /// Offset of the grants.
    pub(crate) const GRANTS: usize = offset_of!(Self, mmu) + Mmu::OFFSETS[1];

    /// Addresses of the tables, with the heads of a state. There are no branches.
    pub(crate) fn tables(&mut self, thumb: bool) -> Tables {
        let (hints, heads) = self.icache.lookup(thumb);
        let (lines, tags) = self.dcache.lookup();
        Tables {
            hints,
            heads,
            lines,
            tags,
            branches: core::ptr::null_mut(),
        }
    }

    /// The mark of a slot.
    #[inline(always)]
    pub(crate) fn mark<const THUMB: bool>(&mut self, slot: usize) -> &mut u32 {
        self.icache.mark::<THUMB>(slot)
    }

    /// Clears the marks of all slots.
    pub(crate) fn clear_marks(&mut self) {
        self.icache.clear_marks();
    }

    /// Sets the mark of a slot whose code has these entries.
    pub(crate) fn set_code<const THUMB: bool>(&mut self, slot: usize, mark: u32, entries: Entries) {
        self.icache.set_code::<THUMB>(slot, mark, entries);
    }

    /// The words of a slot.
    pub(crate) fn slot_words(&self, slot: usize, thumb: bool) -> [u32; 8] {
        self.icache.slot_words(slot, thumb)
    }
}

impl<B: Bus> MemoryPath<B> {
    /// Returns the units as at power-on: off and empty. `undecoded` is the operation of words that have not been
    /// executed.
    pub(crate) fn new(config: &Config, undecoded: Op<B>) -> MemoryPath<B> {
        MemoryPath {
            icache: ICache::new(config, undecoded),
            dcache: DCache::new(config),
            mmu: Mmu::new(config),
            biu: Biu::new(config.cost.bus_sync, config.core.buffers),
            watch: Watch::default(),
        }
    }

    /// Moves the units to a core on another bus.
    pub(crate) fn on_bus<C: Bus>(self, config: &Config, undecoded: Op<C>) -> MemoryPath<C> {
        let mut saved = Vec::new();
        self.icache.save(&mut saved);
        MemoryPath {
            icache: ICache::of_saved(config, undecoded, &saved),
            dcache: self.dcache,
            mmu: self.mmu,
            biu: self.biu,
            watch: self.watch,
        }
    }

    /// Latest time in the state of the units.
    pub(crate) fn latest(&self) -> u64 {
        self.biu.latest()
    }

    /// Issues the writes that got the bus by `now`.
    #[inline]
    pub(crate) fn issue_writes(&mut self, bus: &mut B, now: u64) {
        self.biu.retire(bus, now);
    }

    /// Start, end and cause of the writes that had the bus after `cycle`, newest first.
    #[inline]
    pub(crate) fn writes_since(
        &self,
        cycle: u64,
    ) -> impl Iterator<Item = (u64, u64, Cause)> + use<B> {
        self.biu.writes.since(cycle)
    }

    /// Whether accesses are privileged.
    #[inline]
    pub(crate) fn privileged(&self) -> bool {
        self.mmu.privileged()
    }

    /// Sets the privilege of the accesses that follow.
    #[inline]
    pub(crate) fn set_privileged(&mut self, privileged: bool) {
        self.mmu.set_privileged(privileged);
    }

    /// Changes the control bits and registers that translation depends on.
    pub(crate) fn set_control(&mut self, control: Control) {
        self.mmu.set_control(control);
    }

    /// Makes the next use of every translation go through the TLB, where an observer sees it.
    pub(crate) fn drop_translations(&mut self) {
        self.mmu.drop_translations();
    }

    /// Number of lines of the D-cache.
    pub(crate) fn data_lines(&self) -> usize {
        self.dcache.lines()
    }

    /// Whether a line of the D-cache holds `mva`, which translates to `pa`.
    pub(crate) fn has_data(&self, mva: Mva, pa: Pa) -> bool {
        self.dcache.find(mva, pa).is_some()
    }

    /// The words of a D-cache line that [`crate::Cpu::granted_line_for_write`] returned, for writing. Marks the line
    /// dirty.
    #[inline(always)]
    pub(crate) fn words_to_write(&mut self, line: usize, first: usize, count: u32) -> &mut [u32] {
        self.dcache.words_to_write(line, first, count)
    }

    /// Makes the next access to the line of `mva`, which translates to `pa`, take the slow path.
    pub(crate) fn revoke_grant(&mut self, mva: Mva, pa: Pa) {
        if let Some(line) = self.dcache.find(mva, pa) {
            self.mmu.grants.take(line, mva);
        }
    }

    /// Discards the words of the prefetch buffer.
    pub(crate) fn discard_prefetched(&mut self) {
        self.icache.prefetch = None;
    }
}

/// Replacement and lockdown.
impl<B: Bus> MemoryPath<B> {
    /// Victim selection of the D-cache.
    pub(crate) fn dcache_victims(&mut self) -> &mut Victim {
        &mut self.dcache.victim
    }

    /// Victim selection of the I-cache.
    pub(crate) fn icache_victims(&mut self) -> &mut Victim {
        &mut self.icache.victim
    }

    /// Makes both caches choose their victims in turn (`on`) or at random.
    pub(crate) fn set_round_robin(&mut self, on: bool) {
        self.dcache.victim.set_round_robin(on);
        self.icache.victim.set_round_robin(on);
    }

    /// Makes the D-cache line that a set/way operand names the next victim of its set.
    pub(crate) fn point_dcache_victims_at(&mut self, index: u32) {
        let line = self.dcache.line_by_index(index);
        self.dcache.victim.point_at(line);
    }

    /// Lockdown register of the TLB for this kind of access.
    pub(crate) fn tlb_lockdown(&mut self, kind: Kind) -> u32 {
        self.mmu.tlb(kind).lockdown_register()
    }

    /// Sets the lockdown register of the TLB for this kind of access.
    pub(crate) fn set_tlb_lockdown(&mut self, kind: Kind, value: u32) {
        self.mmu.tlb(kind).set_lockdown_register(value);
    }

    /// Locks the next entry that the TLB for this kind of access loads.
    pub(crate) fn begin_tlb_lock(&mut self, kind: Kind) -> Lock {
        self.mmu.tlb(kind).begin_lock()
    }

    /// Ends [`MemoryPath::begin_tlb_lock`]. `loaded` says whether an entry was loaded and stays.
    pub(crate) fn end_tlb_lock(&mut self, kind: Kind, lock: Lock, loaded: bool) {
        self.mmu.tlb(kind).end_lock(lock, loaded);
    }

    /// Unlocks all entries of the TLB for this kind of access.
    pub(crate) fn unlock_tlb(&mut self, kind: Kind) {
        self.mmu.tlb(kind).unlock();
    }
}

mod data;
pub(crate) mod debug;
mod events;
pub(crate) mod fetch;
pub(crate) mod look;
mod maintenance;
mod store_through;
mod transfer;
mod unaligned;

#[cfg(test)]
pub(crate) mod tests;
