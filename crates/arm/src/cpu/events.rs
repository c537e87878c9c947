// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports of the core to its observer ([`crate::observe`]).

use super::Cpu;
use crate::addr::{Mva, Pa};
use crate::bus::{Bus, Width};
use crate::dcache::Dirty;
use crate::mmu::{self, Fault, Kind, Resolved};
use crate::observe::{Context, Event, Reaction, Side};
use crate::psr;

impl<B: Bus> Cpu<B> {
    /// Reports an event of the executing instruction, if the bus is observed.
    #[inline(always)]
    pub(crate) fn tell(&mut self, event: Event<'_>) {
        if B::OBSERVED {
            self.tell_at(self.instruction(), event);
        }
    }

    #[inline(never)]
    pub(crate) fn tell_at(&mut self, pc: u32, event: Event<'_>) {
        let reaction = self.bus.observe(&self.context(pc), event);
        self.react(reaction);
    }

    fn context(&self, pc: u32) -> Context {
        Context {
            cycle: self.cycles,
            pc,
            pid: self.cp15.pid,
            ttb: self.cp15.ttb,
            mode: self.control & psr::MODE,
            masked: self.control & psr::I != 0,
            sctlr: self.cp15.sctlr,
            dacr: self.cp15.dacr,
            descriptors: self.config.core.descriptors,
        }
    }

    /// Carries out an observer's request, also for events that units outside the core report.
    pub fn react(&mut self, reaction: Reaction) {
        match reaction {
            Reaction::Continue => {}
            Reaction::DropTranslations => self.mmu.drop_translations(),
            Reaction::Stop => {
                self.mmu.drop_translations();
                self.horizon = 0;
            }
        }
    }

    /// Reports a load from a line or, if not `cached`, from the bus.
    #[inline(always)]
    pub(crate) fn tell_load(
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

    /// Reports a store into a line, which becomes dirty, or, if not `cached`, to the write buffer.
    #[inline(always)]
    pub(crate) fn tell_store(
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
    pub(crate) fn tell_ifill(&mut self, side: Side, pc: u32, mva: Mva, page: Resolved) {
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
    pub(crate) fn tell_translation(
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
        let Some(used) = self.mmu.last_entry() else {
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

    /// Address of the executing instruction.
    fn instruction(&self) -> u32 {
        let size = if self.control & psr::T != 0 { 2 } else { 4 };
        self.r[15].wrapping_sub(2 * size)
    }

    /// Reports the instruction at `pc` in the current line, which is about to execute.
    pub(crate) fn tell_fetch(&mut self, pc: u32) {
        let mva = self.fcse.fetch(crate::addr::Va(pc));
        let thumb = self.control & psr::T != 0;
        let word = self.icache.word(self.fetch.slot, pc, thumb);
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
            && let Some((mva, _)) = self.dcache.state(line)
        {
            self.tell(Event::FillAwaited { mva });
        }
    }

    /// Reports a D-cache line that was allocated without a read of memory.
    pub(crate) fn tell_claim(&mut self, mva: Mva) {
        self.tell(Event::Claim { mva });
    }

    /// Reports the write-back of dirty halves.
    pub(crate) fn tell_write_back(&mut self, mva: Mva, dirty: &Dirty, victim: bool) {
        if B::OBSERVED {
            let Dirty { pa, halves, data } = dirty;
            let pa = *pa;
            self.tell(Event::WriteBack {
                mva,
                pa,
                halves: *halves,
                data,
                victim,
            });
        }
    }

    /// Reports each line that an invalidation of the whole D-cache loses, and then the invalidation.
    pub(crate) fn tell_dcache_invalidate_all(&mut self) {
        if B::OBSERVED {
            for line in 0..self.dcache.lines() {
                if !self.dcache.holds(line) {
                    self.tell_dcache_invalidate(line);
                }
            }
            self.tell(Event::InvalidateAll { side: Side::Data });
        }
    }

    /// Reports a D-cache line that is about to be invalidated.
    pub(crate) fn tell_dcache_invalidate(&mut self, line: usize) {
        if B::OBSERVED
            && let Some((mva, halves)) = self.dcache.state(line)
        {
            let pa = self.dcache.pa(line);
            self.tell(Event::Invalidate {
                side: Side::Data,
                mva,
                pa,
                halves,
            });
        }
    }
}
