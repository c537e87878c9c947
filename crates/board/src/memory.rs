// SPDX-License-Identifier: MIT OR Apache-2.0
//! RAM, and the time that accesses to the SDRAM take.
//!
//! Modelled: one open row per bank, row hits and misses, burst length, write set-up, and refresh. A refresh closes
//! every row and occupies the SDRAM for tRC. An access computes the refreshes before it from its cycle stamp. Banks
//! interleave by row, and a burst stays within one row. While another bus master uses the memory, the core waits. Not
//! modelled: power-down and the controller's own queues. All costs are converted to core cycles when the board is made.

use crate::spec::SdramSpec;
use arm::{BurstTime, Width};

/// Longest burst of the core, in words.
const BURST: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Timing {
    /// Core cycles to the critical word when the row is open.
    hit: u32,
    /// Additional core cycles when the row is not open.
    miss_extra: u32,
    write_setup: u32,
    /// Core cycles that n words take on the bus.
    words: [u32; BURST + 1],
    row_shift: u32,
    bank_mask: u32,
    refresh_interval: u64,
    refresh_busy: u64,
}

/// Words in a line of the host's cache.
const PADDING: usize = 16;

/// Longest wait of one access for another bus master, in core cycles. No transfer takes this long, but a damaged
/// snapshot may contain a longer wait.
const LONGEST_WAIT: u64 = 1 << 31;

/// Stands for the row number while no row is open in the bank.
const CLOSED: u32 = u32::MAX;

/// The RAM of a board. Offsets are bytes from its start.
#[derive(Clone, Debug)]
pub struct Sdram {
    /// The contents follow `padding` words, which align them with the host's cache lines.
    store: Vec<u32>,
    padding: usize,
    timing: Timing,
    open_row: [u32; 8],
    next_refresh: u64,
    refresh_until: u64,
    /// Cycle until which a bus master other than the core uses the memory.
    held_until: u64,
    /// The later of `refresh_until` and `held_until`. Accesses before this cycle wait.
    blocked_until: u64,
}

impl Sdram {
    /// Makes RAM of zeros. The ratio of `cpu_hz` to `bus_hz` converts bus clocks to core cycles.
    pub fn new(bytes: u32, spec: &SdramSpec, cpu_hz: u64, bus_hz: u64) -> Sdram {
        let cycles = |bus: f64| (bus * cpu_hz as f64 / bus_hz as f64).ceil() as u32;
        let hit = cycles(f64::from(spec.first_word_row_hit_bus));
        let interval = u64::from(spec.refresh_interval_ns) * cpu_hz / 1_000_000_000;
        let timing = Timing {
            hit,
            miss_extra: cycles(f64::from(spec.first_word_row_miss_bus)) - hit,
            write_setup: cycles(f64::from(spec.write_setup_bus)),
            words: std::array::from_fn(|n| cycles(n as f64 * spec.clk_per_word_bus)),
            row_shift: spec.row_bytes.trailing_zeros(),
            bank_mask: spec.banks - 1,
            refresh_interval: interval.max(1),
            refresh_busy: u64::from(cycles(f64::from(spec.refresh_busy_bus))),
        };
        let next_refresh = timing.refresh_interval;
        let store = vec![0; bytes as usize / 4 + PADDING];
        let padding = store.as_ptr().align_offset(PADDING * 4).min(PADDING);
        Sdram {
            store,
            padding,
            timing,
            open_row: [CLOSED; 8],
            next_refresh,
            refresh_until: 0,
            held_until: 0,
            blocked_until: 0,
        }
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u32 {
        ((self.store.len() - PADDING) * 4) as u32
    }

    /// Returns the contents.
    pub fn words(&self) -> &[u32] {
        &self.store[self.padding..][..self.store.len() - PADDING]
    }

    fn words_mut(&mut self) -> &mut [u32] {
        let words = self.store.len() - PADDING;
        &mut self.store[self.padding..][..words]
    }

    /// Opens the row of `offset` at `now`. Returns the core cycles beyond those of a row hit.
    #[inline]
    fn row_extra(&mut self, now: u64, offset: u32) -> u32 {
        if now >= self.next_refresh {
            self.refresh(now);
        }
        let row = offset >> self.timing.row_shift;
        let open = &mut self.open_row[(row & self.timing.bank_mask) as usize & 7];
        let mut extra = 0;
        if *open != row {
            *open = row;
            extra = self.timing.miss_extra;
        }
        if now < self.blocked_until {
            let refresh = self.refresh_until.saturating_sub(now);
            let held = self.held_until.saturating_sub(now).min(LONGEST_WAIT);
            extra += refresh.min(self.timing.refresh_busy).max(held) as u32;
        }
        extra
    }

    #[cold]
    fn refresh(&mut self, now: u64) {
        let missed = (now - self.next_refresh) / self.timing.refresh_interval;
        let last = self.next_refresh + missed * self.timing.refresh_interval;
        self.refresh_until = last + self.timing.refresh_busy;
        self.blocked_until = self.refresh_until.max(self.held_until);
        self.next_refresh = last + self.timing.refresh_interval;
        self.open_row = [CLOSED; 8];
    }

    /// Gives the memory to another bus master until this cycle. Accesses of the core before this cycle wait.
    pub(crate) fn hold(&mut self, until: u64) {
        self.held_until = self.held_until.max(until);
        self.blocked_until = self.refresh_until.max(self.held_until);
    }

    /// Returns the cycle until which another bus master uses the memory.
    pub(crate) fn held_until(&self) -> u64 {
        self.held_until
    }

    /// Reads a value. Returns the value, in the low bits, and the core cycles.
    #[inline]
    pub fn read(&mut self, now: u64, offset: u32, width: Width) -> (u32, u32) {
        let cost = self.timing.hit + self.row_extra(now, offset);
        let word = self.store[self.padding + offset as usize / 4];
        let value = match width {
            Width::Word => word,
            Width::Half => (word >> ((offset & 2) * 8)) & 0xffff,
            Width::Byte => (word >> ((offset & 3) * 8)) & 0xff,
        };
        (value, cost)
    }

    /// Writes a value. Returns the core cycles.
    #[inline]
    pub fn write(&mut self, now: u64, offset: u32, width: Width, value: u32) -> u32 {
        let cost = self.timing.write_setup + self.timing.words[1] + self.row_extra(now, offset);
        let (shift, mask) = match width {
            Width::Word => (0, u32::MAX),
            Width::Half => ((offset & 2) * 8, 0xffff),
            Width::Byte => ((offset & 3) * 8, 0xff),
        };
        let word = &mut self.store[self.padding + offset as usize / 4];
        *word = *word & !(mask << shift) | (value & mask) << shift;
        cost
    }

    /// Reads the 32-byte line that holds `offset`.
    #[inline]
    pub fn read_line(&mut self, now: u64, offset: u32, line: &mut [u32; 8]) -> BurstTime {
        let first = self.timing.hit + self.row_extra(now, offset);
        let start = self.padding + ((offset as usize / 4) & !7);
        line.copy_from_slice(&self.store[start..start + 8]);
        BurstTime {
            first,
            last: first + self.timing.words[7],
        }
    }

    /// Reads consecutive words, all of them within the RAM.
    pub fn read_words(&mut self, now: u64, offset: u32, words: &mut [u32]) -> BurstTime {
        let first = self.timing.hit + self.row_extra(now, offset);
        let start = self.padding + offset as usize / 4;
        words.copy_from_slice(&self.store[start..start + words.len()]);
        let behind = words.len().saturating_sub(1).min(BURST);
        BurstTime {
            first,
            last: first + self.timing.words[behind],
        }
    }

    /// Writes a burst of words, all of them within the RAM. Returns the core cycles.
    #[inline]
    pub fn write_words(&mut self, now: u64, offset: u32, words: &[u32]) -> u32 {
        let cost = self.timing.write_setup
            + self.timing.words[words.len().min(BURST)]
            + self.row_extra(now, offset);
        let to = &mut self.words_mut()[offset as usize / 4..][..words.len()];
        // Most bursts have four or eight words, which are too few for a call of memcpy.
        let (fours, rest) = words.as_chunks::<4>();
        let (to_fours, to_rest) = to.as_chunks_mut::<4>();
        for (to, four) in to_fours.iter_mut().zip(fours) {
            *to = *four;
        }
        to_rest.copy_from_slice(rest);
        cost
    }

    /// Reads a burst of bytes, all of them within the RAM. Returns the core cycles. The burst takes as long as a burst of
    /// the words that hold the bytes.
    pub(crate) fn read_bytes(&mut self, now: u64, offset: u32, bytes: &mut [u8]) -> u32 {
        let behind = beats(offset, bytes.len()).saturating_sub(1);
        let cost = self.timing.hit + self.timing.words[behind] + self.row_extra(now, offset);
        for (byte, at) in bytes.iter_mut().zip(offset as usize..) {
            *byte = (self.store[self.padding + at / 4] >> ((at & 3) * 8)) as u8;
        }
        cost
    }

    /// Writes a burst of bytes, all of them within the RAM. Returns the core cycles, as [`Sdram::read_bytes`] does.
    pub(crate) fn write_bytes(&mut self, now: u64, offset: u32, bytes: &[u8]) -> u32 {
        let cost = self.timing.write_setup
            + self.timing.words[beats(offset, bytes.len())]
            + self.row_extra(now, offset);
        for (&byte, at) in bytes.iter().zip(offset as usize..) {
            let shift = (at & 3) * 8;
            let word = &mut self.store[self.padding + at / 4];
            *word = *word & !(0xff << shift) | u32::from(byte) << shift;
        }
        cost
    }

    /// Returns a byte. Takes no board time.
    pub fn peek(&self, offset: u32) -> Option<u8> {
        self.words()
            .get(offset as usize / 4)
            .map(|w| (w >> ((offset & 3) * 8)) as u8)
    }

    /// Sets a byte. Takes no board time. Returns false beyond the end.
    pub fn poke(&mut self, offset: u32, value: u8) -> bool {
        let Some(word) = self.words_mut().get_mut(offset as usize / 4) else {
            return false;
        };
        let shift = (offset & 3) * 8;
        *word = *word & !(0xff << shift) | u32::from(value) << shift;
        true
    }

    /// Puts bytes into RAM. Takes no board time. Returns false when they do not fit.
    pub fn load(&mut self, offset: u32, bytes: &[u8]) -> bool {
        if u64::from(offset) + bytes.len() as u64 > u64::from(self.bytes()) {
            return false;
        }
        if !offset.is_multiple_of(4) {
            return bytes.iter().zip(offset..).all(|(&b, at)| self.poke(at, b));
        }
        let whole = bytes.chunks_exact(4);
        let tail = whole.remainder();
        let tail_at = offset + (bytes.len() - tail.len()) as u32;
        for (word, b) in self.words_mut()[offset as usize / 4..]
            .iter_mut()
            .zip(whole)
        {
            *word = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        }
        tail.iter().zip(tail_at..).all(|(&b, at)| self.poke(at, b))
    }
}

/// Returns how many words hold the bytes, at most the longest burst.
fn beats(offset: u32, bytes: usize) -> usize {
    ((offset & 3) as usize + bytes).div_ceil(4).min(BURST)
}

mod state;

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> SdramSpec {
        SdramSpec {
            first_word_row_hit_bus: 7,
            first_word_row_miss_bus: 12,
            clk_per_word_bus: 1.0,
            write_setup_bus: 5,
            banks: 4,
            row_bytes: 1024,
            refresh_interval_ns: 10_000,
            refresh_busy_bus: 8,
        }
    }

    fn sdram() -> Sdram {
        Sdram::new(1 << 20, &spec(), 200_000_000, 100_000_000)
    }

    #[test]
    fn a_row_stays_open_until_another_of_its_bank_is_used() {
        let mut m = sdram();
        let mut cost = |at| m.read(0, at, Width::Word).1;
        assert_eq!([cost(0), cost(512), cost(1024), cost(4)], [24, 14, 24, 14]);
        assert_eq!(cost(4096), 24, "the same bank, another row");
        assert_eq!(cost(0), 24, "which closed the first");
        assert_eq!(cost(1024), 14, "and left the other bank alone");
    }

    #[test]
    fn a_line_brings_the_critical_word_first_and_seven_more() {
        let mut m = sdram();
        m.load(0x40, &[1, 0, 0, 0, 2, 0, 0, 0]);
        let mut line = [0; 8];
        let time = m.read_line(0, 0x44, &mut line);
        assert_eq!(
            time,
            BurstTime {
                first: 24,
                last: 24 + 14
            }
        );
        assert_eq!(line[..2], [1, 2]);
    }

    #[test]
    fn words_at_half_a_clock_are_rounded_once_per_burst() {
        let spec = SdramSpec {
            clk_per_word_bus: 0.5,
            ..spec()
        };
        let mut m = Sdram::new(1 << 20, &spec, 300_000_000, 100_000_000);
        let mut line = [0; 8];
        let time = m.read_line(0, 0, &mut line);
        assert_eq!(time.last - time.first, 11, "7 * 0.5 * 3 = 10.5");
    }

    #[test]
    fn refresh_closes_rows_and_delays_accesses_during_it() {
        let mut m = sdram();
        m.read(0, 0, Width::Word);
        assert_eq!(m.read(1999, 0, Width::Word).1, 14);
        assert_eq!(m.read(2004, 0, Width::Word).1, 24 + 12);
        assert_eq!(m.read(2100, 0, Width::Word).1, 14);
        assert_eq!(
            m.read(1_000_000, 0, Width::Word).1,
            24 + 16,
            "a multiple of the interval"
        );
        assert_eq!(m.read(1_001_999, 0, Width::Word).1, 14);
        assert_eq!(
            m.read(1_002_016, 0, Width::Word).1,
            24,
            "the refresh is over"
        );
    }

    #[test]
    fn narrow_writes_touch_their_lane_only() {
        let mut m = sdram();
        m.write(0, 8, Width::Word, 0x1122_3344);
        m.write(0, 9, Width::Byte, 0xaaaa_aabb);
        m.write(0, 10, Width::Half, 0x7777_ccdd);
        assert_eq!(m.read(0, 8, Width::Word).0, 0xccdd_bb44);
        assert_eq!(m.read(0, 9, Width::Byte).0, 0xbb);
        assert_eq!(m.read(0, 10, Width::Half).0, 0xccdd);
    }

    #[test]
    fn loading_past_the_end_is_refused() {
        let mut m = sdram();
        assert!(m.load((1 << 20) - 3, &[1, 2, 3]));
        assert!(!m.load((1 << 20) - 3, &[1, 2, 3, 4]));
        assert_eq!(m.peek((1 << 20) - 1), Some(3));
        assert_eq!(m.peek(1 << 20), None);
    }
}
