// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports of the memory path to the core's observer ([`crate::observe`]).

use crate::addr::{Mva, Pa, Va};
use crate::bus::{Bus, Width};
use crate::cpu::Cpu;
use crate::dcache::Dirty;
use crate::mmu::{self, Fault, Kind, Resolved};
use crate::observe::{Event, Side};
use crate::psr;

impl<B: Bus> Cpu<B> {
    /// Reports a load from a line or, if not `cached`, from the bus.
    #[inline(always)]
    pub(super) fn tell_load(
        &mut self,
        page: Resolved,
        mva: Mva,
        width: Width,
        value: u32,
        cached: bool,
    ) {
        if B::ACCESSES_OBSERVED {
            let pa = page.pa(mva);
            self.tell(Event::Load {
                mva,
                pa,
                width,
                value,
                cached,
            });
        }
    }

    /// Reports a store into a line, which becomes dirty. If not `cached`, the store goes to the write buffer instead.
    #[inline(always)]
    pub(super) fn tell_store(
        &mut self,
        page: Resolved,
        mva: Mva,
        width: Width,
        value: u32,
        cached: bool,
    ) {
        if B::ACCESSES_OBSERVED {
            let pa = page.pa(mva);
            self.tell(Event::Store {
                mva,
                pa,
                width,
                value,
                cached,
            });
        }
    }

    /// Reports the fill of an I-cache line or of the prefetch buffer, for the instruction at `pc`.
    #[inline(always)]
    pub(super) fn tell_ifill(&mut self, side: Side, pc: u32, mva: Mva, page: Resolved) {
        if B::OBSERVED {
            let at = Mva(mva.0 & !31);
            self.tell_at(
                pc,
                Event::Fill {
                    side,
                    mva: at,
                    pa: page.pa(mva).line(),
                },
            );
        }
    }

    /// Reports the descriptors and the TLB entry of a slow-path translation.
    pub(super) fn tell_translation(
        &mut self,
        mva: Mva,
        (kind, privileged): (Kind, bool),
        read: &[(Pa, u32)],
        result: Result<Resolved, Fault>,
    ) {
        let pc = if kind == Kind::Fetch {
            self.pc
        } else {
            self.instruction()
        };
        for (descriptor, value) in read {
            let (descriptor, value) = (*descriptor, *value);
            self.tell_at(
                pc,
                Event::Walk {
                    mva,
                    descriptor,
                    value,
                },
            );
        }
        let Some(used) = self.memory.mmu.last_entry() else {
            return;
        };
        if !read.is_empty() {
            self.tell_at(
                pc,
                Event::TlbFill {
                    side: used.side,
                    entry: used.entry,
                    mva,
                    bytes: used.bytes,
                    locked: used.locked,
                },
            );
        }
        if let Ok(page) = result {
            self.tell_at(
                pc,
                Event::TlbUse {
                    side: used.side,
                    entry: used.entry,
                    mva,
                    pa: page.pa(mva),
                    kind,
                    privileged,
                },
            );
        }
    }

    /// Reports that the instruction at `pc`, in the current line, is about to execute.
    pub(crate) fn tell_fetch(&mut self, pc: u32) {
        let mva = self.fcse.fetch(Va(pc));
        let thumb = self.control & psr::T != 0;
        let word = self.current_word(pc, thumb);
        let pa = self.fetch.resolved.pa(mva);
        let (width, value) = match thumb {
            true => (Width::Half, word >> (8 * (pc & 2)) & 0xffff),
            false => (Width::Word, word),
        };
        let event = Event::Fetch {
            mva,
            pa,
            width,
            value,
            cached: self.fetch.resolved.has(mmu::ICACHE),
            registers: &self.r,
        };
        let reaction = self.bus.observe(&self.context(pc), event);
        self.react(reaction);
    }

    /// Reports a wait for a D-cache line that is being filled.
    pub(crate) fn tell_awaited(&mut self, line: usize) {
        if B::OBSERVED
            && let Some((mva, _)) = self.memory.dcache.state(line)
        {
            self.tell(Event::FillAwaited { mva });
        }
    }

    /// Reports the write-back of dirty halves.
    pub(super) fn tell_write_back(&mut self, mva: Mva, dirty: &Dirty, victim: bool) {
        if B::OBSERVED {
            let Dirty { line, pa, halves } = *dirty;
            let data = *self.memory.dcache.line(line);
            self.tell(Event::WriteBack {
                mva,
                pa,
                halves,
                data: &data,
                victim,
            });
        }
    }

    /// Reports an invalidation of the whole D-cache. Before it, reports each line that it invalidates.
    pub(super) fn tell_dcache_invalidate_all(&mut self) {
        if B::OBSERVED {
            for line in 0..self.memory.dcache.lines() {
                if !self.memory.dcache.holds(line) {
                    self.tell_dcache_invalidate(line);
                }
            }
            self.tell(Event::InvalidateAll { side: Side::Data });
        }
    }

    /// Reports a D-cache line that is about to be invalidated.
    pub(super) fn tell_dcache_invalidate(&mut self, line: usize) {
        if B::OBSERVED
            && let Some((mva, halves)) = self.memory.dcache.state(line)
        {
            let pa = self.memory.dcache.pa(line);
            self.tell(Event::Invalidate {
                side: Side::Data,
                mva,
                pa,
                halves,
            });
        }
    }
}
