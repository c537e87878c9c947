// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of words, and the bus transactions that they become.

use super::{Biu, Pa, Width};
use crate::bus::{BurstTime, Bus, BusError};

/// No transaction crosses a multiple of this many bytes (S3C2410A p. 4-8, AMBA 2 3.6).
pub(super) const BOUNDARY: u32 = 1024;

/// Which bursts a core's bus has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bursts {
    /// AHB: eight words, four, or one, from any word on (`DDI0198D 6.2.2`, table 6-1).
    Sizes,
    /// ASB: a first word and any number of sequential ones (S3C2410A p. 4-8).
    Sequential,
}

impl Bursts {
    /// Words of the next transaction of a run that has `left` words from `pa` on.
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

/// Makes one transaction of words that lie behind each other.
fn write_burst<B: Bus>(bus: &mut B, now: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError> {
    match words {
        [word] => bus.write(now, pa, Width::Word, *word),
        _ => bus.write_words(now, pa, words),
    }
}

/// Writes a run of words. Returns how long the bus is busy.
pub(super) fn write_run<B: Bus>(
    bus: &mut B,
    bursts: Bursts,
    start: u64,
    pa: Pa,
    words: &[u32],
) -> u64 {
    let mut now = start;
    for (pa, burst) in bursts.cut(pa, words) {
        // The bus records an error response to a buffered write; the core does not see it.
        now += u64::from(write_burst(bus, now, pa, burst).unwrap_or(1));
    }
    now - start
}

impl Biu {
    /// Whether loads past the cache are bursts, too (S3C2410A p. 4-8). AHB reads are single (`DDI0198D` table 6-1).
    #[inline]
    pub fn reads_bursts(&self) -> bool {
        self.buffers.bursts == Bursts::Sequential
    }

    /// Queues a store that joins no other. Returns when the core can go on.
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

    /// Queues a run of words. Returns when the core can go on.
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
                // Where words had no room the run keeps its address.
                if !self.merge(pa, *word) {
                    self.push(pa, (1, 0), now, *word);
                }
            }
            pa = pa.plus(4);
        }
        now
    }

    /// Writes a run that the core waits for. Returns when that is done, and how many words the bus took: behind an
    /// error response no more are written.
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

    /// Reads words in one burst, which may not cross 1 KB. Returns when the last one is in the core.
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

    /// How many words from `pa` on one burst may read.
    pub fn readable(&self, pa: Pa, left: usize) -> usize {
        self.buffers.bursts.next(pa, left)
    }
}
