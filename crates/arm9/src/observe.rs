// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens inside the core, told to whoever wants to know.
//!
//! A bus with [`crate::Bus::OBSERVED`] set is told of every access and every movement of a line.
//! Observing changes no result and no cycle. For other buses nothing of this is compiled in.

use crate::addr::{Mva, Pa};
use crate::bus::{Bus, Width};
use crate::cpu::Cpu;
use crate::dcache::Dirty;
use crate::mmu::{self, Fault, Kind, Resolved};
use crate::psr;

/// Under what circumstances an event happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Virtual address of the instruction.
    pub pc: u32,
    /// FCSE PID register, bits 31:25.
    pub pid: u32,
    /// Translation table base: tells address spaces apart.
    pub ttb: u32,
    /// Mode bits of the CPSR.
    pub mode: u32,
    /// Control register.
    pub sctlr: u32,
    /// Domain access control register.
    pub dacr: u32,
}

/// Which of the two caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Instruction cache.
    Instruction,
    /// Prefetch buffer of uncached instruction fetches, which it is only filled for.
    Prefetch,
    /// Data cache.
    Data,
}

/// Which TLB, or TLBs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlbSide {
    /// The one that a core has for both, or both that it has.
    Both,
    /// That of instructions.
    Instruction,
    /// That of data.
    Data,
}

/// Something that happened. Addresses of lines are those of their first byte. Accesses have the
/// physical address their translation gives, lines that of their tag: when a mapping changes under
/// a line, a hit in it is not an access to the line's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the variants' documentation says what the fields are"
)]
pub enum Event<'a> {
    /// A load took `value` (zero-extended, not rotated), from a D-cache line or from the bus.
    Load {
        mva: Mva,
        pa: Pa,
        width: Width,
        value: u32,
        cached: bool,
    },
    /// A store put `value` into a D-cache line that becomes dirty, or into the write buffer.
    Store {
        mva: Mva,
        pa: Pa,
        width: Width,
        value: u32,
        cached: bool,
    },
    /// An instruction is about to be executed: the word or (Thumb) half-word it was decoded from,
    /// from an I-cache line or the prefetch buffer, and the registers that it finds.
    Fetch {
        mva: Mva,
        pa: Pa,
        width: Width,
        value: u32,
        cached: bool,
        registers: &'a [u32; 16],
    },
    /// A table walk for `mva` read a descriptor.
    Walk {
        mva: Mva,
        descriptor: Pa,
        value: u32,
    },
    /// A line was filled from memory.
    Fill { side: Side, mva: Mva, pa: Pa },
    /// Dirty halves of a line left for memory: because the line was a victim, or by an operation.
    WriteBack {
        mva: Mva,
        pa: Pa,
        halves: u8,
        data: &'a [u32; 8],
        victim: bool,
    },
    /// A line was discarded; `halves` were dirty and are lost.
    Invalidate {
        side: Side,
        mva: Mva,
        pa: Pa,
        halves: u8,
    },
    /// Everything in a cache was discarded; dirty lines have been told one by one before.
    InvalidateAll { side: Side },
    /// Entry `entry` of a TLB was loaded for `mva` and covers `bytes` around it. One that is `locked`
    /// stays when all are invalidated.
    TlbFill {
        side: TlbSide,
        entry: usize,
        mva: Mva,
        bytes: u32,
        locked: bool,
    },
    /// TLB entry `entry` translated `mva` to `pa` for an access that it allows. Told when the
    /// translation is first used and again after [`Reaction::DropTranslations`] and after a new
    /// translation table base.
    TlbUse {
        side: TlbSide,
        entry: usize,
        mva: Mva,
        pa: Pa,
        kind: Kind,
        privileged: bool,
    },
    /// TLB entry `entry` was invalidated.
    TlbInvalidate { side: TlbSide, entry: usize },
    /// All entries of a TLB but the locked ones were invalidated.
    TlbInvalidateAll { side: TlbSide },
}

/// What the observer asks for in return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing.
    Continue,
    /// Tell of the next use of every TLB entry again.
    DropTranslations,
    /// Let [`crate::Cpu::run`] come back after this instruction ([`crate::Signals::attention`]).
    Stop,
}

impl<B: Bus> Cpu<B> {
    /// Tells the bus, if it wants to know.
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
            sctlr: self.cp15.sctlr,
            dacr: self.cp15.dacr,
        }
    }

    /// Does what an observer asks for who was told of something by others than the core.
    pub fn react(&mut self, reaction: Reaction) {
        match reaction {
            Reaction::Continue => {}
            Reaction::DropTranslations => self.mmu.drop_translations(),
            Reaction::Stop => self.horizon = 0,
        }
    }

    /// Tells of a load that hit a line.
    #[inline(always)]
    pub(crate) fn tell_hit(&mut self, page: Resolved, mva: Mva, width: Width, value: u32) {
        if B::OBSERVED {
            let pa = page.pa(mva);
            self.tell(Event::Load {
                mva,
                pa,
                width,
                value,
                cached: true,
            });
        }
    }

    /// Tells of a store: into a line, which becomes dirty, or (not `cached`) to the write buffer.
    #[inline(always)]
    pub(crate) fn tell_store(
        &mut self,
        page: Resolved,
        mva: Mva,
        width: Width,
        value: u32,
        cached: bool,
    ) {
        if B::OBSERVED {
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

    /// Tells of an I-cache line, or the prefetch buffer, filled for the instruction at `pc`.
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

    /// Tells what a translation in the slow path read and used.
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

    /// Address of the instruction that is executing.
    fn instruction(&self) -> u32 {
        let size = if self.control & psr::T != 0 { 2 } else { 4 };
        self.r[15].wrapping_sub(2 * size)
    }

    /// Tells of the instruction at `pc` in the current line, about to be executed.
    pub(crate) fn tell_fetch(&mut self, pc: u32) {
        let mva = self.fetch_relocation.apply(crate::addr::Va(pc));
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

    /// Tells of halves that go to memory.
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

    /// Tells of the lines an invalidation of the whole D-cache loses, and of it.
    pub(crate) fn tell_dcache_invalidate_all(&mut self) {
        if B::OBSERVED {
            for line in 0..self.dcache.lines() {
                self.tell_dcache_invalidate(line);
            }
            self.tell(Event::InvalidateAll { side: Side::Data });
        }
    }

    /// Tells of a D-cache line that is about to be discarded.
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
