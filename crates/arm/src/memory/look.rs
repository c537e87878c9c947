// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contents of caches, TLBs and write buffer, for inspection. Inspection takes no time and has no side effects, like a
//! debugger's reads of memory.

use crate::addr::{Mva, Pa};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::observe::{Side, TlbSide};

/// A valid line of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLine {
    /// Whether the line is in the mini data cache, whose sets have separate numbers.
    pub mini: bool,
    /// Set and way.
    pub place: (u32, u32),
    /// Tag: MVA of the first byte.
    pub mva: Mva,
    /// Physical address of the fill. `None` for a claimed line, which was not filled from memory.
    pub pa: Option<Pa>,
    /// Dirty halves: bit 0 the lower 16 bytes, bit 1 the upper. Zero for instruction lines.
    pub halves: u8,
    /// Contents.
    pub words: [u32; 8],
}

/// A valid entry of a TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldEntry {
    /// Accesses that the entry translates.
    pub side: TlbSide,
    /// Number of the entry in its TLB.
    pub number: usize,
    /// First byte covered.
    pub mva: Mva,
    /// Bytes covered.
    pub bytes: u32,
    /// Physical address of the first byte.
    pub pa: Pa,
    /// Access permissions.
    pub ap: u8,
    /// Domain.
    pub domain: u8,
    /// C in bit 1, B in bit 0, XScale's X in bit 2.
    pub cb: u8,
    /// Whether the entry survives an invalidate-all.
    pub locked: bool,
}

/// A write that waits for the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingWrite {
    /// Physical address.
    pub pa: Pa,
    /// Number of bytes.
    pub bytes: u32,
    /// Data; a store of less than a word is in the low bytes.
    pub words: Vec<u32>,
    /// Whether the write is a dirty line in the victim buffer.
    pub victim: bool,
}

impl<B: Bus> Cpu<B> {
    /// Issues the writes that have begun by now, as the next access would. Call it only on a fork of the inspected
    /// machine.
    pub fn debug_settle(&mut self) {
        self.memory.biu.retire(&mut self.bus, self.cycles);
    }

    /// Valid lines of a cache, by set and way. Empty for the prefetch buffer.
    pub fn debug_lines(&self, side: Side) -> Vec<HeldLine> {
        match side {
            Side::Data => (0..self.memory.dcache.lines())
                .filter_map(|line| {
                    let (mva, halves) = self.memory.dcache.state(line)?;
                    let (mini, place) = self.memory.dcache.place_of(line);
                    Some(HeldLine {
                        mini,
                        place,
                        mva,
                        pa: (!self.memory.dcache.is_nowhere(line))
                            .then(|| self.memory.dcache.pa(line)),
                        halves,
                        words: *self.memory.dcache.line(line),
                    })
                })
                .collect(),
            Side::Instruction => (0..self.memory.icache.prefetch_line())
                .filter_map(|line| {
                    Some(HeldLine {
                        mini: false,
                        place: self.memory.icache.place_of(line),
                        mva: self.memory.icache.mva(line)?,
                        pa: Some(self.memory.icache.pa(line)),
                        halves: 0,
                        words: self.memory.icache.words(line),
                    })
                })
                .collect(),
            Side::Prefetch => Vec::new(),
        }
    }

    /// Valid entries of all TLBs, by number.
    pub fn debug_entries(&self) -> Vec<HeldEntry> {
        let all = self
            .memory
            .mmu
            .tlbs
            .iter()
            .enumerate()
            .flat_map(|(n, tlb)| {
                let side = self.memory.mmu.side(n);
                (0..tlb.entries()).filter_map(move |number| {
                    let entry = tlb.entry(number);
                    Some(HeldEntry {
                        side,
                        number,
                        mva: entry.mva()?,
                        bytes: entry.size(),
                        pa: entry.pa,
                        ap: entry.attributes.ap,
                        domain: entry.attributes.domain,
                        cb: entry.attributes.cb,
                        locked: tlb.is_locked(number),
                    })
                })
            });
        all.collect()
    }

    /// Contents of the victim buffer and the write buffer, in the order in which they are written to memory.
    pub fn debug_waiting(&self) -> Vec<WaitingWrite> {
        self.memory.biu.waiting()
    }

    /// Word of memory, without caches and buffers. `None` if there is no memory.
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
        // The store misses and fills no line.
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
