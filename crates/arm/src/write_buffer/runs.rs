// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of words, and the bus transactions that carry them.

use super::{Biu, Pa, Width};
use crate::bus::{BurstTime, Bus, BusError};

/// No transaction crosses a multiple of this many bytes (S3C2410A p. 4-8, AMBA 2 3.6).
pub(super) const BOUNDARY: u32 = 1024;

/// Bursts of a core's bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bursts {
    /// AHB: bursts of eight, four, or one word, starting at any word (`DDI0198D 6.2.2`, table 6-1).
    Sizes,
    /// ASB: a first word and any number of sequential words (S3C2410A p. 4-8).
    Sequential,
}

impl Bursts {
    /// Number of words in the next transaction of a run with `left` words that starts at `pa`.
    #[inline]
    fn next(self, pa: Pa, left: usize) -> usize {
        let within = left.min((BOUNDARY - pa.0 % BOUNDARY) as usize / 4);
        match self {
            Bursts::Sequential => within,
            Bursts::Sizes => match within {
                8.. => 8,
                4..=7 => 4,
                _ => 1,
            },
        }
    }

    /// Cuts a run into transactions.
    fn cut(self, mut pa: Pa, mut words: &[u32]) -> impl Iterator<Item = (Pa, &[u32])> {
        core::iter::from_fn(move || {
            if words.is_empty() {
                return None;
            }
            let (burst, rest) = words.split_at(self.next(pa, words.len()));
            let at = pa;
            pa = pa.plus(4 * burst.len() as u32);
            words = rest;
            Some((at, burst))
        })
    }
}

/// Writes consecutive words in one transaction.
fn write_burst<B: Bus>(bus: &mut B, now: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError> {
    match words {
        [word] => bus.write(now, pa, Width::Word, *word),
        _ => bus.write_words(now, pa, words),
    }
}

/// Writes a run of words. Returns the number of cycles for which the bus is busy, and whether it refused a burst.
pub(super) fn write_run<B: Bus>(
    bus: &mut B,
    bursts: Bursts,
    start: u64,
    pa: Pa,
    words: &[u32],
) -> (u64, bool) {
    let (mut now, mut failed) = (start, false);
    for (pa, burst) in bursts.cut(pa, words) {
        // The bus records an error response to a buffered write. Cores before ARMv6 do not see it.
        let answer = write_burst(bus, now, pa, burst);
        now += u64::from(answer.unwrap_or(1));
        failed |= answer.is_err();
    }
    (now - start, failed)
}

impl Biu {
    /// Whether uncached loads use bursts (S3C2410A p. 4-8). On AHB they are single reads (`DDI0198D` table
    /// 6-1).
    #[inline]
    pub fn reads_bursts(&self) -> bool {
        self.buffers.bursts == Bursts::Sequential
    }

    /// Queues a store that no other store joins. Returns the cycle at which the core can continue.
    pub fn store_alone<B: Bus>(
        &mut self,
        bus: &mut B,
        now: u64,
        pa: Pa,
        width: Width,
        value: u32,
    ) -> u64 {
        self.retire(bus, now);
        let now = self.make_room(bus, now);
        self.push_single(now, pa, width, value);
        now
    }

    /// Queues a run of words. Returns the cycle at which the core can continue.
    pub fn store_words<B: Bus>(
        &mut self,
        bus: &mut B,
        mut now: u64,
        mut pa: Pa,
        words: &[u32],
    ) -> u64 {
        self.retire(bus, now);
        for word in words {
            if !self.merge(pa, *word) {
                now = self.make_room(bus, now);
                // If the buffer had a free address but no free data word, the word now joins the entry of its run.
                if !self.merge(pa, *word) {
                    self.push(pa, (1, 0), now, *word);
                }
            }
            pa = pa.plus(4);
        }
        now
    }

    /// Makes the unbuffered stores of a run. Returns the cycle at which they are complete, and the number of words that
    /// the bus took. An error response ends the run.
    pub fn store_words_unbuffered<B: Bus>(
        &mut self,
        bus: &mut B,
        now: u64,
        pa: Pa,
        words: &[u32],
    ) -> (u64, usize) {
        self.free_at = self.drain(bus, now);
        let mut written = 0;
        for (pa, burst) in self.buffers.bursts.cut(pa, words) {
            let answer = write_burst(bus, self.free_at, pa, burst);
            self.free_at += u64::from(answer.unwrap_or(1));
            if answer.is_err() {
                break;
            }
            written += burst.len();
        }
        (self.free_at, written)
    }

    /// Reads words in one burst, which must not cross 1 KB. Returns the cycle at which the last word is in the core.
    pub fn read_words<B: Bus>(
        &mut self,
        bus: &mut B,
        now: u64,
        pa: Pa,
        words: &mut [u32],
    ) -> Result<u64, BusError> {
        let bytes = 4 * words.len() as u32;
        let start = self.grant(bus, now, pa, bytes) + u64::from(self.sync);
        let BurstTime { last, .. } = bus.read_words(start, pa, words)?;
        self.free_at = start + u64::from(last);
        Ok(self.free_at)
    }

    /// Maximum number of words that one burst from `pa` can read.
    pub fn readable(&self, pa: Pa, left: usize) -> usize {
        self.buffers.bursts.next(pa, left)
    }
}
