// SPDX-License-Identifier: MIT OR Apache-2.0
//! What caches, TLBs and write buffer hold, for whoever looks at them: read as a debugger reads memory, without time
//! and without side effects.

use crate::addr::{Mva, Pa};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::observe::{Side, TlbSide};

/// A valid line of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLine {
    /// Whether it is one of the mini data cache, whose sets are counted apart.
    pub mini: bool,
    /// Set and way.
    pub place: (u32, u32),
    /// What it is found by: the address of its first byte.
    pub mva: Mva,
    /// Where it was filled from; `None` of a line that came to be without memory.
    pub pa: Option<Pa>,
    /// Dirty halves: bit 0 the lower 16 bytes, bit 1 the upper. None of an instruction's.
    pub halves: u8,
    /// What it holds.
    pub words: [u32; 8],
}

/// A valid entry of a TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldEntry {
    /// Whose accesses it translates.
    pub side: TlbSide,
    /// Its number in this TLB.
    pub number: usize,
    /// First byte covered.
    pub mva: Mva,
    /// Bytes covered.
    pub bytes: u32,
    /// Where they are.
    pub pa: Pa,
    /// Access permissions.
    pub ap: u8,
    /// Domain.
    pub domain: u8,
    /// C in bit 1, B in bit 0; XScale's X in bit 2.
    pub cb: u8,
    /// Whether it stays when all are invalidated.
    pub locked: bool,
}

/// A write that waits for the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingWrite {
    /// Where it goes.
    pub pa: Pa,
    /// Bytes.
    pub bytes: u32,
    /// What is written; of a store of less than a word the low bytes.
    pub words: Vec<u32>,
    /// Whether it is a dirty line in the victim buffer.
    pub victim: bool,
}

impl<B: Bus> Cpu<B> {
    /// Lets out the writes that have begun by now, as the next access would. For a fork that is looked at.
    pub fn debug_settle(&mut self) {
        self.biu.retire(&mut self.bus, self.cycles);
    }

    /// The valid lines of a cache, by set and way. The prefetch buffer has none.
    pub fn debug_lines(&self, side: Side) -> Vec<HeldLine> {
        match side {
            Side::Data => (0..self.dcache.lines())
                .filter_map(|line| {
                    let (mva, halves) = self.dcache.state(line)?;
                    let (mini, place) = self.dcache.place_of(line);
                    Some(HeldLine {
                        mini,
                        place,
                        mva,
                        pa: (!self.dcache.is_nowhere(line)).then(|| self.dcache.pa(line)),
                        halves,
                        words: *self.dcache.line(line),
                    })
                })
                .collect(),
            Side::Instruction => (0..self.icache.prefetch_line())
                .filter_map(|line| {
                    Some(HeldLine {
                        mini: false,
                        place: self.icache.place_of(line),
                        mva: self.icache.mva(line)?,
                        pa: Some(self.icache.pa(line)),
                        halves: 0,
                        words: self.icache.words(line),
                    })
                })
                .collect(),
            Side::Prefetch => Vec::new(),
        }
    }

    /// The valid entries of all TLBs, by number.
    pub fn debug_entries(&self) -> Vec<HeldEntry> {
        let all = self.mmu.tlbs.iter().enumerate().flat_map(|(n, tlb)| {
            let side = self.mmu.side(n);
            (0..tlb.entries()).filter_map(move |number| {
                let entry = tlb.entry(number);
                Some(HeldEntry {
                    side,
                    number,
                    mva: entry.mva()?,
                    bytes: entry.size(),
                    pa: entry.pa,
                    ap: entry.ap,
                    domain: entry.domain,
                    cb: entry.cb,
                    locked: tlb.is_locked(number),
                })
            })
        });
        all.collect()
    }

    /// What waits in the victim buffer and in the write buffer, in the order in which it goes out.
    pub fn debug_waiting(&self) -> Vec<WaitingWrite> {
        self.biu.waiting()
    }

    /// A word of memory itself, past caches and buffers. `None` where there is no memory.
    pub fn debug_memory(&self, pa: Pa) -> Option<u32> {
        let [a, b, c, d] = [0, 1, 2, 3].map(|n| self.bus.peek(pa.plus(n)));
        Some(u32::from_le_bytes([a?, b?, c?, d?]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::Width;
    use crate::tests::core::mapped;

    #[test]
    fn a_line_an_entry_and_a_waiting_store_are_seen_and_looking_changes_nothing() {
        let (mut cpu, mva) = (mapped(), Mva(0x2_0014));
        assert_eq!(cpu.load(mva.0, Width::Word), Ok(0));
        assert_eq!(cpu.store(mva.0, Width::Word, 7), Ok(()));
        let before = (cpu.cycles, cpu.counters);
        let lines = cpu.debug_lines(Side::Data);
        let [line] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert_eq!((line.mva, line.halves), (Mva(0x2_0000), 0b10));
        assert_eq!(line.words, [0, 0, 0, 0, 0, 7, 0, 0]);
        let pa = line.pa.unwrap();
        assert_eq!(cpu.debug_memory(pa.plus(0x14)), Some(0), "memory is old");
        let entries = cpu.debug_entries();
        let covers = |e: &&HeldEntry| mva.0.wrapping_sub(e.mva.0) < e.bytes;
        assert_eq!(entries.iter().filter(covers).count(), 1);
        // It misses, and fills no line.
        assert_eq!(cpu.store(mva.0 + 64, Width::Half, 9), Ok(()));
        let waiting = cpu.debug_waiting();
        assert_eq!(
            waiting
                .last()
                .map(|w| (w.pa, w.bytes, w.words[0], w.victim)),
            Some((pa.plus(0x54), 2, 9, false))
        );
        assert!(before.0 <= cpu.cycles);
        cpu.cycles += 1000;
        cpu.debug_settle();
        assert_eq!(cpu.debug_waiting(), []);
        assert_eq!(cpu.debug_memory(pa.plus(0x54)), Some(9));
        assert_eq!(cpu.debug_lines(Side::Data), lines);
        assert_eq!(cpu.debug_lines(Side::Prefetch), []);
    }
}
