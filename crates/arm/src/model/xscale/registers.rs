// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that XScale has in addition to those of an ARM9, and their operations. "IXP42X" is the IXP42X
//! Developer's Manual (252480-006), by section; "XSC" is the Intel XScale core's manual (January 2004).

use crate::addr::{Mva, Va};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::cpu::cp15::CP14;
use crate::mmu::{self, Fault, Kind};
use crate::observe::{Event, TlbSide};
use crate::state::Damaged;

/// Core cycles for which a line allocation waits for all pending memory operations, in addition to the cycles of its
/// MCR. This is an estimate (E): the loop that cleans the cache takes 8 cycles for each line, including the MCR and an
/// ADD.
const ALLOCATION: u64 = 5;

/// Mask of the accumulator's bits.
const ACCUMULATOR: u64 = (1 << 40) - 1;

/// Contents of an allocated line, which was not filled from memory. The manual calls the contents unpredictable. This
/// value is neither zero nor a likely old value, so software that reads the line goes visibly wrong.
const UNFILLED: [u32; 8] = [0xa110_ca7e; 8];

/// Registers that only XScale has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Auxiliary control register (CP15 c1,c0,1): K, P, MD.
    pub(crate) auxiliary: u32,
    /// Coprocessor access register (CP15 c15,c1,0).
    pub(crate) access: u32,
    /// Accumulator acc0, 40 bits.
    accumulator: u64,
    pub(crate) clock: ClockCounter,
    /// Event counters (CP14 c0 to c3,c2,0). They count nothing.
    pub(crate) events: [u32; 4],
}

crate::state!(Registers: auxiliary, access, accumulator, clock, events);

impl Registers {
    /// Field MD of the auxiliary control register: write policy of the mini data cache.
    pub(crate) fn mini(&self) -> u8 {
        (self.auxiliary >> 4 & 3) as u8
    }

    /// Latest time in the registers.
    pub(crate) fn latest(&self) -> u64 {
        self.clock.since
    }

    /// Whether code may use coprocessor 0.
    pub(crate) fn may_accumulate(&self) -> bool {
        self.access & 1 != 0
    }

    /// Adds to acc0, which wraps.
    pub(crate) fn accumulate(&mut self, value: i64) {
        self.accumulator = self.accumulator.wrapping_add(value as u64) & ACCUMULATOR;
    }

    /// acc0, sign-extended, low word first.
    pub(crate) fn accumulator(&self) -> [u32; 2] {
        let value = ((self.accumulator << 24) as i64 >> 24) as u64;
        [value as u32, (value >> 32) as u32]
    }

    pub(crate) fn set_accumulator(&mut self, [low, high]: [u32; 2]) {
        self.accumulator = (u64::from(high) << 32 | u64::from(low)) & ACCUMULATOR;
    }
}

/// The clock counter of the performance monitoring unit (IXP42X 3.7.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockCounter {
    /// PMNC: D in bit 3, E in bit 0.
    control: u32,
    /// Count at core cycle `since`. Bits above bit 31 count overflows.
    counted: u64,
    since: u64,
    /// Cycles up to `since` that the prescaler holds: 0 to 63.
    prescaled: u64,
}

crate::state!(ClockCounter: control, counted, since, prescaled; => check);

impl ClockCounter {
    /// Checks a restored state.
    fn check(&self) -> Result<(), Damaged> {
        match self.counted < 1 << 62 && self.prescaled < 64 {
            true => Ok(()),
            false => Err(Damaged("the clock counter is out of range")),
        }
    }

    fn total(&self, now: u64) -> u64 {
        let cycles = now.saturating_sub(self.since);
        match self.control & 9 {
            9 => self.counted + (self.prescaled + cycles) / 64,
            1 => self.counted + cycles,
            _ => self.counted,
        }
    }

    /// Updates the count and the prescaler to `now`.
    fn settle(&mut self, now: u64) {
        let counted = self.total(now);
        if self.control == 9 {
            self.prescaled = (self.prescaled + now.saturating_sub(self.since)) % 64;
        }
        (self.counted, self.since) = (counted, now);
    }

    /// Reads CCNT.
    pub(crate) fn read(&self, now: u64) -> u32 {
        self.total(now) as u32
    }

    /// Writes CCNT.
    pub(crate) fn write(&mut self, now: u64, value: u32) {
        self.settle(now);
        self.counted = self.counted >> 32 << 32 | u64::from(value);
    }

    /// The clock counter's bit in FLAG.
    pub(crate) fn overflowed(&self, now: u64) -> u32 {
        u32::from(self.total(now) >> 32 != 0)
    }

    /// Clears the clock counter's bit in FLAG.
    pub(crate) fn clear_overflow(&mut self, now: u64) {
        self.settle(now);
        self.counted &= u64::from(u32::MAX);
    }

    /// Reads PMNC.
    pub(crate) fn control(&self) -> u32 {
        self.control
    }

    /// Writes PMNC. Bit C clears the counter.
    pub(crate) fn set_control(&mut self, now: u64, value: u32) {
        self.settle(now);
        self.control = value & 9;
        if value & 4 != 0 {
            self.write(now, 0);
            self.prescaled = 0;
        }
    }
}

impl<B: Bus> Cpu<B> {
    /// Writes the auxiliary control register. An MD field of 3 is unpredictable, and bit P is not implemented (IXP42X
    /// 3.5.1, 3.8.3.2).
    pub(crate) fn write_auxiliary(&mut self, value: u32) {
        if value >> 4 & 3 == 3 {
            self.unmodelled_cp15(0, 1, 0, 1);
        }
        self.cp15.xscale_mut().auxiliary = value & 0x31;
        self.control_changed();
    }

    /// Selects the events to count. The model accepts only the value of all ones, which selects no events, because
    /// counters must not influence a run.
    pub(crate) fn select_events(&mut self, value: u32) {
        if value != u32::MAX {
            self.unmodelled_cp15(CP14, 8, 1, 0);
        }
    }

    /// Allocates a D-cache line for `mva` (CP15 c7,c2,5). Reads nothing, not even a translation. The victim is the line
    /// at the set's pointer. Its dirty data is written back (IXP42X p. 82).
    pub(crate) fn allocate_line(&mut self, mva: Mva) {
        self.finish_writes(ALLOCATION);
        self.claim_line(mva, UNFILLED);
    }

    /// Preloads (PLD): fills the line that holds `va` in the background. Does nothing if the line cannot be
    /// read.
    pub(crate) fn preload(&mut self, va: u32) {
        let mva = self.debug_mva(Va(va & !31));
        let Ok(page) = self.translate(mva, Kind::Read, self.memory.privileged()) else {
            return;
        };
        let pa = page.pa(mva);
        let there = self.bus.peek(pa).is_some();
        if !page.has(mmu::CACHE) || !there || self.memory.has_data(mva, pa) {
            return;
        }
        self.wait_for_fill_buffer();
        let Ok((line, ready)) = self.fill_dcache(mva, page) else {
            return;
        };
        self.fills.expect(line as u32, ready);
    }

    /// Translates and locks (CP15 c10,c4,0 and c10,c8,0): loads a TLB entry and locks it.
    pub(crate) fn lock_translation(&mut self, kind: Kind, mva: Mva) {
        let walks = self.counters.tlb_walks;
        let lock = self.memory.begin_tlb_lock(kind);
        let translated = self.translate_slow(mva, kind, self.memory.privileged());
        let walked = self.counters.tlb_walks != walks;
        let keep = walked && translated.is_ok();
        self.memory.end_tlb_lock(kind, lock, keep);
        if translated.is_err() {
            // The entry that the walk loaded must not stay, because the entry does not allow the access.
            if walked {
                let fetches = kind == Kind::Fetch;
                let side = [TlbSide::Data, TlbSide::Instruction][usize::from(fetches)];
                self.invalidate_tlb_entry(side, mva);
            }
            self.data_abort(Fault::LOCK, mva);
        }
    }

    /// Unlocks all translations (CP15 c10,c4,1 and c10,c8,1).
    pub(crate) fn unlock_translations(&mut self, kind: Kind) {
        self.memory.unlock_tlb(kind);
        let side = match kind {
            Kind::Fetch => TlbSide::Instruction,
            _ => TlbSide::Data,
        };
        self.tell(Event::TlbUnlock { side });
    }

    /// Fetches and locks an I-cache line (CP15 c9,c1,0).
    pub(crate) fn lock_icache_line(&mut self, mva: Mva) {
        self.memory.icache_victims().locking = true;
        let filled = self.prefetch_icache_line(mva);
        self.memory.icache_victims().locking = false;
        if filled.is_err() {
            self.data_abort(Fault::LOCK, mva);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accumulator_has_forty_bits_and_a_sign() {
        let mut registers = Registers::default();
        registers.set_accumulator([0xffff_ffff, 0xffff_ff7f]);
        assert_eq!(registers.accumulator(), [0xffff_ffff, 0x7f]);
        registers.accumulate(1);
        assert_eq!(registers.accumulator(), [0, 0xffff_ff80]);
        registers.accumulate(-1);
        assert_eq!(registers.accumulator(), [0xffff_ffff, 0x7f]);
    }

    #[test]
    fn the_clock_counter_counts_cycles_or_each_64th_and_says_when_it_went_round() {
        let mut clock = ClockCounter::default();
        assert_eq!(clock.read(1000), 0);
        clock.set_control(1000, 1);
        assert_eq!((clock.read(1007), clock.control()), (7, 1));
        clock.write(1010, u32::MAX);
        assert_eq!([0, 1, 2].map(|n| clock.read(1010 + n)), [u32::MAX, 0, 1]);
        assert_eq!([0, 1].map(|n| clock.overflowed(1010 + n)), [0, 1]);
        clock.clear_overflow(1012);
        assert_eq!((clock.overflowed(1013), clock.read(1013)), (0, 2));
        clock.set_control(1020, 0xd);
        assert_eq!([63, 64].map(|n| clock.read(1020 + n)), [0, 1]);
    }

    /// The prescaler holds 0 to 63 cycles. Writes of PMNC, CCNT and FLAG keep them, except a write of PMNC with bit C
    /// set.
    #[test]
    fn the_prescaler_keeps_its_count_over_writes_of_pmnc_ccnt_and_flag() {
        let mut clock = ClockCounter::default();
        clock.set_control(0, 0xd);
        for n in 1..=100 {
            clock.set_control(63 * n, 9);
        }
        assert_eq!(clock.read(6300), 98);
        clock.write(6300, 5);
        clock.clear_overflow(6310);
        // 6336 is the next multiple of 64.
        assert_eq!([6335, 6336].map(|now| clock.read(now)), [5, 6]);
        clock.set_control(6350, 0xd);
        assert_eq!([6413, 6414].map(|now| clock.read(now)), [0, 1]);
    }

    #[test]
    fn a_count_that_cannot_be_is_refused() {
        use crate::state::{Saved, State};
        let restored = |counted: u64| {
            let mut bytes = Vec::new();
            let clock = ClockCounter {
                counted,
                ..ClockCounter::default()
            };
            clock.save(&mut bytes);
            ClockCounter::default().restore(&mut Saved::new(&bytes))
        };
        assert_eq!(restored(1 << 33), Ok(()));
        assert!(restored(u64::MAX).is_err());
    }
}
