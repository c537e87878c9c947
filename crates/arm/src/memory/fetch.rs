// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruction side of the memory path: I-cache lines and the prefetch buffer (`DDI0198D 4, 7.1`).

use core::mem::offset_of;

use crate::addr::{Mva, Va};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::fcse::Relocation;
use crate::isa::Op;
use crate::mmu::{self, Fault, Kind, Resolved};
use crate::observe::{Cause, Event, Side};
use crate::psr;
use crate::state::Damaged;

/// Source of the next instructions.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct FetchState {
    /// Slot of the current line's operations.
    slot: usize,
    /// Address of the current line; [`NO_LINE`] makes the next fetch look the line up.
    line_pc: u32,
    /// 4 KB page (VA[31:12]) and translation epoch in which cacheable fetches were last allowed.
    page: u32,
    epoch: u64,
    /// Translation of the last fetch that needed one. It is the translation of the current line.
    pub(super) resolved: Resolved,
    /// Distance of the I-cache's keys from the MVAs of that page.
    key_distance: u32,
    /// Instruction set state of the running loop. A change of the state ends the loop.
    thumb: bool,
}

/// Matches no pc, because bit 0 of a pc is clear.
pub(crate) const NO_LINE: u32 = 1;
/// Address bits that are equal for all addresses of a line.
const LINE: u32 = !0x1e;

crate::state!(FetchState: line_pc, page, epoch, thumb, resolved; slot, key_distance);

impl FetchState {
    /// Offsets of the slot, of the address within the current line, of the page and of the epoch.
    pub(crate) const OFFSETS: [usize; 4] = [
        offset_of!(FetchState, slot),
        offset_of!(FetchState, line_pc),
        offset_of!(FetchState, page),
        offset_of!(FetchState, epoch),
    ];

    /// Slot of the current line's operations.
    #[inline(always)]
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// Returns the state of a core that must look up its next instruction.
    pub(crate) fn new() -> FetchState {
        FetchState {
            slot: 0,
            line_pc: NO_LINE,
            page: 0,
            epoch: u64::MAX,
            resolved: Resolved::default(),
            key_distance: 0,
            thumb: false,
        }
    }

    /// Whether the current line holds `pc`.
    #[inline(always)]
    pub(crate) fn holds(&self, pc: u32) -> bool {
        (pc ^ self.line_pc) & LINE == 0
    }

    /// Makes the next instruction look up its line.
    #[inline(always)]
    pub(crate) fn leave_line(&mut self) {
        self.line_pc = NO_LINE;
    }

    /// Makes the next instruction look up its line and its translation.
    #[inline]
    fn forget(&mut self) {
        self.line_pc = NO_LINE;
        self.epoch = u64::MAX;
    }

    /// Instruction set state of the running loop.
    #[inline(always)]
    pub(crate) fn thumb(&self) -> bool {
        self.thumb
    }

    /// Sets the instruction set state of the loop that starts.
    #[inline(always)]
    pub(crate) fn set_thumb(&mut self, thumb: bool) {
        self.thumb = thumb;
    }
}

impl<B: Bus> Cpu<B> {
    /// Makes the next instruction look up its line and its translation again.
    pub(crate) fn refetch(&mut self) {
        self.fetch.forget();
    }

    /// Operation of the current line at `pc`.
    #[inline(always)]
    pub(crate) fn current_op<const THUMB: bool>(&self, pc: u32) -> Op<B> {
        self.memory.icache.op::<THUMB>(self.fetch.slot, pc)
    }

    /// Returns an operation that does not execute. It stands for the next operation while there is no current line.
    #[inline(always)]
    pub(crate) fn any_op<const THUMB: bool>(&self) -> Op<B> {
        self.memory.icache.op::<THUMB>(0, 0)
    }

    /// Sets the operation of the current line at `pc`.
    pub(crate) fn set_current_op(&mut self, pc: u32, op: Op<B>, thumb: bool) {
        self.memory.icache.set_op(self.fetch.slot, pc, op, thumb);
    }

    /// Word of the current line at `pc`.
    pub(crate) fn current_word(&self, pc: u32, thumb: bool) -> u32 {
        self.memory.icache.word(self.fetch.slot, pc, thumb)
    }

    /// Panics unless the I-cache holds the current line at the address `pc`. Valid only for a core without shortcuts,
    /// whose slots have the numbers of the lines.
    pub(crate) fn assert_current_line(&self, pc: u32) {
        let mva = self.fcse.fetch(Va(pc));
        let line = self.memory.icache.find(mva, self.fetch.resolved.pa(mva));
        assert_eq!(line, Some(self.fetch.slot), "the current line went away");
    }

    /// Makes the line that holds `pc` the current one if its page is known and a hint has its slot. Otherwise, returns
    /// false and does nothing.
    #[inline(always)]
    pub(crate) fn enter_hinted_line<const THUMB: bool>(&mut self, pc: u32) -> bool {
        if self.is_page_known(pc) {
            let mva = self.fcse.fetch(Va(pc));
            let distance = self.fetch.key_distance;
            if let Some(slot) = self.memory.icache.hint(mva, distance, THUMB) {
                debug_assert!(self.memory.icache.prefetch.is_none());
                self.fetch.line_pc = pc & LINE;
                self.fetch.slot = slot;
                return true;
            }
        }
        false
    }

    /// Whether [`FetchState::resolved`] translates `pc`, allows the fetch, and is cacheable. If so, the prefetch buffer
    /// is empty. An uncached fetch, which can fill the buffer, makes the core forget the page. The lookup that finds
    /// the page again empties the buffer.
    #[inline(always)]
    fn is_page_known(&self, pc: u32) -> bool {
        B::SHORTCUTS && pc >> 12 == self.fetch.page && self.fetch.epoch == self.memory.mmu.epoch()
    }

    /// Makes the line current by translation and cache lookup. An uncached fetch uses the prefetch buffer instead and
    /// makes no line current, so the next fetch calls this function again.
    #[inline(never)]
    pub(crate) fn enter_line_anew(&mut self, pc: u32, thumb: bool) -> Result<(), Fault> {
        let before = self.cycles;
        let mva = self.fcse.fetch(Va(pc));
        if !self.is_page_known(pc) && !self.is_page_cached(pc, mva)? {
            let line = self.prefetch(mva, self.fetch.resolved, thumb)?;
            self.wait_for_instruction(self.cycles - before);
            self.fetch.slot = self.memory.icache.enter(line, thumb);
            self.fetch.line_pc = NO_LINE;
            return Ok(());
        }
        let distance = self.fetch.key_distance;
        // A cacheable fetch discards the prefetch buffer.
        self.memory.icache.prefetch = None;
        self.fetch.slot = match self.memory.icache.hint(mva, distance, thumb) {
            Some(slot) => slot,
            None => self.find_or_fill(pc, mva, thumb)?,
        };
        self.wait_for_instruction(self.cycles - before);
        self.fetch.line_pc = pc & LINE;
        Ok(())
    }

    /// Finds the slot of the current line's operations. The line is in the I-cache: an eviction or invalidation would
    /// have ended the current line.
    pub(crate) fn find_slot(&mut self) -> Result<(), Damaged> {
        let FetchState {
            line_pc,
            thumb,
            page,
            resolved,
            ..
        } = self.fetch;
        let known = self.fcse.fetch(Va(page << 12));
        self.fetch.key_distance = self.memory.icache.key_distance(known, resolved.pa(known));
        if line_pc != NO_LINE {
            // A change of the instruction set state ends the line.
            if thumb != (self.control & psr::T != 0) {
                return Err(Damaged(
                    "the current line is in another instruction set state",
                ));
            }
            let mva = self.fcse.fetch(Va(line_pc));
            let line = self.memory.icache.find(mva, resolved.pa(mva));
            let line = line.ok_or(Damaged("the current line is not in the I-cache"))?;
            self.fetch.slot = self.memory.icache.enter(line, thumb);
        }
        Ok(())
    }

    /// Advances the pipeline. The instruction at `from` has executed, and the second instruction after it was fetched
    /// with the relocation `third`.
    pub(crate) fn advance_fetches(&mut self, from: u32, third: Relocation) {
        let size = if self.control & psr::T != 0 { 2 } else { 4 };
        if self.pc != from.wrapping_add(size) {
            self.refill_pipeline();
        } else if self.fcse.advance() {
            self.refetch();
        }
        self.fcse.set_following(third);
    }

    /// Flushes the pipeline. The next instructions are fetched under the current PID.
    #[cold]
    pub(crate) fn refill_pipeline(&mut self) {
        self.memory.icache.prefetch = None;
        if self.fcse.refill() {
            self.refetch();
        }
    }

    /// Translates the address of the instruction at `pc`. Returns whether its fetch is cacheable. Remembers the page
    /// only if the fetch is cacheable and the page is at least 4 KB.
    #[inline(always)]
    fn is_page_cached(&mut self, pc: u32, mva: Mva) -> Result<bool, Fault> {
        let page = self.translate(mva, Kind::Fetch, self.memory.mmu.privileged())?;
        self.fetch.resolved = page;
        self.fetch.key_distance = self.memory.icache.key_distance(mva, page.pa(mva));
        self.fetch.epoch = u64::MAX;
        let cached = page.has(mmu::ICACHE);
        if cached && page.holds_for_4_kb() {
            self.fetch.page = pc >> 12;
            self.fetch.epoch = self.memory.mmu.epoch();
        }
        Ok(cached)
    }

    /// Returns the slot of the I-cache line with the instruction at `pc`, using the last translation.
    #[inline(always)]
    fn find_or_fill(&mut self, pc: u32, mva: Mva, thumb: bool) -> Result<usize, Fault> {
        let slot = match self.memory.icache.find(mva, self.fetch.resolved.pa(mva)) {
            Some(line) => self.memory.icache.enter(line, thumb),
            // The compiler makes a copy of the function for each state.
            None if thumb => self.fill_icache(pc, mva, self.fetch.resolved, true)?,
            None => self.fill_icache(pc, mva, self.fetch.resolved, false)?,
        };
        if B::SHORTCUTS {
            let distance = self.fetch.key_distance;
            self.memory.icache.give_hint(mva, distance, thumb, slot);
        }
        Ok(slot)
    }

    /// Prefetches an I-cache line (CP15 c7,c13,1): fills the line that holds `mva` if it is cacheable and
    /// missing. The line of the current instruction may be the victim.
    pub(crate) fn prefetch_icache_line(&mut self, mva: Mva) -> Result<(), Fault> {
        self.refetch();
        let page = self.translate(mva, Kind::Fetch, self.memory.mmu.privileged())?;
        let missing = self.memory.icache.find(mva, page.pa(mva)).is_none();
        if page.has(mmu::ICACHE) && missing {
            let thumb = self.control & psr::T != 0;
            self.fill_icache(self.pc, mva, page, thumb)?;
        }
        Ok(())
    }

    /// Fills the I-cache line that holds `mva`, for the instruction at `pc`. Returns its slot.
    #[inline(always)]
    fn fill_icache(
        &mut self,
        pc: u32,
        mva: Mva,
        page: Resolved,
        thumb: bool,
    ) -> Result<usize, Fault> {
        let before = self.cycles;
        let pa = page.pa(mva);
        let mut data = [0; 8];
        let filled = self
            .memory
            .biu
            .fetch_line(&mut self.bus, before, pa, &mut data);
        self.bus_used();
        let (start, time) = filled.map_err(|_| self.memory.mmu.external_abort(page))?;
        let (line, replaced) = self.memory.icache.allocate(mva);
        if B::OBSERVED
            && let Some(mva) = replaced
        {
            let side = Side::Instruction;
            self.tell_at(pc, Event::Replaced { side, mva });
        }
        let slot = self.memory.icache.fill(line, mva, pa, &data, thumb);
        self.tell_ifill(Side::Instruction, pc, mva, page);
        let resume = start + self.exposed(time);
        self.wait_until(Cause::InstructionMiss, resume);
        self.counters.icache_fills += 1;
        self.counters.icache_fill_cycles += self.cycles - before;
        Ok(slot)
    }

    /// Fetches from an uncached page through the four-word prefetch buffer.
    #[inline(never)]
    fn prefetch(&mut self, mva: Mva, page: Resolved, thumb: bool) -> Result<usize, Fault> {
        let line = self.memory.icache.prefetch_line();
        let next = Mva(mva.0.wrapping_add(if thumb { 2 } else { 4 }));
        if let Some((chunk, expected)) = self.memory.icache.prefetch
            && expected == mva
            && mva.0 & !15 == chunk.0
        {
            self.memory.icache.prefetch = Some((chunk, next));
            return Ok(line);
        }
        let before = self.cycles;
        let mut data = [0; 8];
        let read = self
            .memory
            .biu
            .fetch_line(&mut self.bus, before, page.pa(mva), &mut data);
        self.bus_used();
        let (start, time) = read.map_err(|_| self.memory.mmu.external_abort(page))?;
        self.memory
            .icache
            .fill(line, mva, page.pa(mva), &data, thumb);
        self.memory.icache.prefetch = Some((Mva(mva.0 & !15), next));
        self.tell_ifill(Side::Prefetch, self.pc, mva, page);
        self.wait_until(Cause::Uncached, start + u64::from(time.first));
        self.counters.uncached_fetches += 1;
        self.counters.uncached_fetch_cycles += self.cycles - before;
        Ok(line)
    }
}
