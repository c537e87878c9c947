// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bus interface unit: the main write buffer (16 words at 4 addresses), the victim buffer (one line), and the
//! bus that they share with reads (`DDI0198D 4.2, 6.2`).
//!
//! Only [`runs`] cuts runs of words into bursts.
//!
//! Entries hold their data and reach memory when the bus is free. Until then, memory holds old data. A data read that
//! overlaps a pending write waits for the write. Table walks and instruction fetches do not check the buffer: software
//! must drain it (`DDI0198D 2.3.8, 9.2.2`). Linux does.
//!
//! Pending writes are issued lazily: each call first issues the writes that have begun by the time of the call.

use crate::addr::Pa;
use crate::bus::{BurstTime, Bus, BusError, Width};
use crate::state::Damaged;
use runs::{BOUNDARY, Bursts, write_run};
use writes::Writes;

/// Maximum number of address slots of a main write buffer.
const ADDRESSES: usize = 8;
/// Maximum number of data words of an entry.
const WORDS: usize = 16;

/// Structure of a main write buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    addresses: usize,
    /// Number of data words, for all entries together.
    words: usize,
    /// Size of the aligned block that an entry must not leave, in bytes.
    block: u32,
    /// Bursts of the bus.
    bursts: Bursts,
}

impl Buffers {
    /// Four addresses, and 16 words at any of them (`DDI0198D 4.2`).
    pub const ARM926EJS: Buffers = Buffers {
        addresses: 4,
        words: WORDS,
        block: BOUNDARY,
        bursts: Bursts::Sizes,
    };

    /// Four addresses and 16 words, like [`Buffers::ARM926EJS`], but on ASB (`DDI0151C 4.5`).
    pub const ARM920T: Buffers = Buffers {
        bursts: Bursts::Sequential,
        ..Buffers::ARM926EJS
    };

    /// Eight entries of 16 bytes (IXP42X p. 72).
    pub const XSCALE: Buffers = Buffers {
        addresses: 8,
        words: 32,
        block: 16,
        bursts: Bursts::Sizes,
    };
}

#[derive(Clone, Copy, Default)]
struct Pending {
    pa: Pa,
    /// Number of words; zero for a byte or half-word store.
    words: u8,
    /// Number of bytes of a sub-word store.
    bytes: u8,
    ready: u64,
    data: [u32; WORDS],
}

crate::state!(Pending: pa, words, bytes, ready, data);

impl Pending {
    #[inline]
    fn span(&self) -> (u32, u32) {
        let bytes = if self.words > 0 {
            u32::from(self.words) * 4
        } else {
            u32::from(self.bytes)
        };
        (self.pa.0, bytes)
    }

    #[inline]
    fn data_words(&self) -> usize {
        usize::from(self.words.max(1))
    }
}

#[derive(Clone, Copy, Default)]
struct Victim {
    pa: Pa,
    halves: u8,
    ready: u64,
    data: [u32; 8],
}

crate::state!(Victim: pa, halves, ready, data);

/// The bus interface unit of a core.
#[derive(Clone)]
pub struct Biu {
    free_at: u64,
    queue: [Pending; ADDRESSES],
    head: usize,
    len: usize,
    words: usize,
    victim: Option<Victim>,
    sync: u32,
    buffers: Buffers,
    /// Whether the bus has refused a buffered write since [`Biu::take_failure`].
    failed: bool,
    pub(crate) writes: Writes,
}

crate::state!(Biu: free_at, queue, head, len, words, victim, failed; sync, buffers, writes => check);

/// Whether `[a, a + n)` and `[b, b + m)` share a byte.
#[inline]
fn overlap((a, n): (u32, u32), (b, m): (u32, u32)) -> bool {
    a.wrapping_sub(b) < m || b.wrapping_sub(a) < n
}

impl Biu {
    /// Checks a restored state.
    fn check(&self) -> Result<(), Damaged> {
        let fits = |entry: &Pending| {
            let aligned = entry.words == 0 || entry.pa.0.is_multiple_of(4);
            aligned && entry.data_words() <= WORDS && entry.bytes <= 4
        };
        let line = |victim: &Victim| victim.pa == victim.pa.line();
        let within = self.head < ADDRESSES && self.len <= self.buffers.addresses;
        let waiting = (0..self.len.min(ADDRESSES))
            .map(|n| &self.queue[(self.head % ADDRESSES + n) % ADDRESSES]);
        let words: usize = waiting.map(Pending::data_words).sum();
        match within
            && self.queue.iter().all(fits)
            && self.victim.iter().all(line)
            && words == self.words
            && words <= self.buffers.words
        {
            true => Ok(()),
            false => Err(Damaged("an entry of the write buffer is invalid")),
        }
    }

    /// Returns an idle unit with empty buffers. `sync` core cycles are added to each transaction.
    pub fn new(sync: u32, buffers: Buffers) -> Biu {
        Biu {
            free_at: 0,
            queue: [Pending::default(); ADDRESSES],
            head: 0,
            len: 0,
            words: 0,
            victim: None,
            sync,
            buffers,
            failed: false,
            writes: Writes::none(),
        }
    }

    /// Whether no write is pending.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0 && self.victim.is_none()
    }

    /// Issues every write that has got the bus by `now`.
    #[inline]
    pub fn retire<B: Bus>(&mut self, bus: &mut B, now: u64) {
        if self.len != 0 || self.victim.is_some() {
            while let Some(start) = self.next_start().filter(|start| *start <= now) {
                self.write_at(bus, start);
            }
        }
    }

    /// Start of the next pending write. The victim buffer goes first.
    #[inline]
    fn next_start(&self) -> Option<u64> {
        let ready = match &self.victim {
            Some(victim) => victim.ready,
            None if self.len > 0 => self.queue[self.head].ready,
            None => return None,
        };
        Some(ready.max(self.free_at))
    }

    fn write_next<B: Bus>(&mut self, bus: &mut B) {
        if let Some(start) = self.next_start() {
            self.write_at(bus, start);
        }
    }

    /// Issues the next pending write, which begins at `start`. There must be one.
    #[inline(never)]
    fn write_at<B: Bus>(&mut self, bus: &mut B, start: u64) {
        if let Some(victim) = self.victim.take() {
            let (from, to) = match victim.halves {
                1 => (0, 4),
                2 => (4, 8),
                _ => (0, 8),
            };
            let pa = victim.pa.plus(from as u32 * 4);
            let data = &victim.data[from..to];
            let (took, failed) = write_run(bus, self.buffers.bursts, start, pa, data);
            self.failed |= failed;
            self.wrote::<B>(start, took, true);
            return;
        }
        let entry = &self.queue[self.head];
        self.head = (self.head + 1) % ADDRESSES;
        self.len -= 1;
        self.words -= entry.data_words();
        let (took, failed) = if entry.words > 0 {
            write_run(
                bus,
                self.buffers.bursts,
                start,
                entry.pa,
                &entry.data[..usize::from(entry.words)],
            )
        } else {
            let width = match entry.bytes {
                1 => Width::Byte,
                2 => Width::Half,
                _ => Width::Word,
            };
            let answer = bus.write(start, entry.pa, width, entry.data[0]);
            (u64::from(answer.unwrap_or(1)), answer.is_err())
        };
        self.failed |= failed;
        self.wrote::<B>(start, took, false);
    }

    /// Returns whether the bus has refused a buffered write since the last call.
    pub fn take_failure(&mut self) -> bool {
        core::mem::take(&mut self.failed)
    }

    /// Records that a write began at `start` and has the bus for `took` cycles.
    #[inline(always)]
    fn wrote<B: Bus>(&mut self, start: u64, took: u64, was_victim: bool) {
        self.free_at = start + took;
        if B::OBSERVED {
            self.writes.note(start, self.free_at, was_victim);
        }
    }

    /// Issues all pending writes. Returns the time at which the bus is free again.
    pub fn drain<B: Bus>(&mut self, bus: &mut B, now: u64) -> u64 {
        while !self.is_empty() {
            self.write_next(bus);
        }
        now.max(self.free_at)
    }

    /// Queues one store. Returns the cycle at which the core can continue.
    #[inline]
    pub fn store<B: Bus>(
        &mut self,
        bus: &mut B,
        now: u64,
        pa: Pa,
        width: Width,
        value: u32,
    ) -> u64 {
        self.retire(bus, now);
        if width == Width::Word && self.merge(pa, value) {
            return now;
        }
        let now = self.make_room(bus, now);
        match width {
            Width::Word => self.push(pa, (1, 0), now, value),
            _ => self.push_single(now, pa, width, value),
        }
        now
    }

    /// Queues one store that no other store joins. There must be room.
    pub fn push_single(&mut self, now: u64, pa: Pa, width: Width, value: u32) {
        self.push(pa, (0, width.bytes() as u8), now, value);
    }

    /// Makes an unbuffered store. Returns the cycle at which it is complete, and the bus's response.
    pub fn store_unbuffered<B: Bus>(
        &mut self,
        bus: &mut B,
        now: u64,
        pa: Pa,
        width: Width,
        value: u32,
    ) -> (u64, Result<(), BusError>) {
        let start = self.drain(bus, now);
        let answer = bus.write(start, pa, width, value);
        self.free_at = start + u64::from(answer.unwrap_or(1));
        (self.free_at, answer.map(|_| ()))
    }

    /// Appends the word to the newest entry if it follows that entry's last word.
    #[inline]
    fn merge(&mut self, pa: Pa, word: u32) -> bool {
        let Buffers { words, block, .. } = self.buffers;
        if self.len == 0 || self.words == words || pa.0 & (block - 1) == 0 {
            return false;
        }
        let last = &mut self.queue[(self.head + self.len - 1) % ADDRESSES];
        let n = usize::from(last.words);
        if n == 0 || n == WORDS || last.pa.plus(4 * n as u32) != pa {
            return false;
        }
        last.data[n] = word;
        last.words += 1;
        self.words += 1;
        true
    }

    #[inline]
    fn make_room<B: Bus>(&mut self, bus: &mut B, now: u64) -> u64 {
        let mut now = now;
        while self.len == self.buffers.addresses || self.words == self.buffers.words {
            self.write_next(bus);
            now = now.max(self.free_at);
        }
        now
    }

    /// Appends an entry of `(words, bytes)`. Data after its first word is undefined.
    #[inline]
    fn push(&mut self, pa: Pa, (words, bytes): (u8, u8), ready: u64, first: u32) {
        let entry = &mut self.queue[(self.head + self.len) % ADDRESSES];
        (entry.pa, entry.words, entry.bytes, entry.ready) = (pa, words, bytes, ready);
        entry.data[0] = first;
        self.words += entry.data_words();
        self.len += 1;
    }

    /// Moves the dirty halves of a line to the victim buffer. Returns the cycle at which the core can continue. The
    /// core waits if the buffer still holds the previous victim, or if a pending write overlaps the line.
    pub fn evict<B: Bus>(
        &mut self,
        bus: &mut B,
        now: u64,
        pa: Pa,
        halves: u8,
        data: &[u32; 8],
    ) -> u64 {
        self.retire(bus, now);
        let mut now = now;
        if self.victim.is_some() {
            self.write_next(bus);
            now = now.max(self.free_at);
        }
        // Two writes to the same bytes stay in program order.
        if self.conflicts(pa, 32) {
            now = self.drain(bus, now);
        }
        self.victim = Some(Victim {
            pa,
            halves,
            ready: now,
            data: *data,
        });
        if B::OBSERVED {
            self.writes.evicted();
        }
        now
    }

    #[inline]
    fn conflicts(&self, pa: Pa, bytes: u32) -> bool {
        let in_queue = (0..self.len).any(|n| {
            overlap(
                self.queue[(self.head + n) % ADDRESSES].span(),
                (pa.0, bytes),
            )
        });
        in_queue
            || self
                .victim
                .is_some_and(|v| overlap((v.pa.0, 32), (pa.0, bytes)))
    }

    /// The newest pending byte for `pa`.
    pub fn pending_byte(&self, pa: Pa) -> Option<u8> {
        let byte = |words: &[u32], at: u32| (words[(at / 4) as usize] >> (8 * (at & 3))) as u8;
        for n in (0..self.len).rev() {
            let entry = &self.queue[(self.head + n) % ADDRESSES];
            let (start, bytes) = entry.span();
            let at = pa.0.wrapping_sub(start);
            if at < bytes {
                return Some(byte(&entry.data, at));
            }
        }
        let victim = self.victim.as_ref()?;
        let at = pa.0.wrapping_sub(victim.pa.0);
        (at < 32 && victim.halves >> (at / 16) & 1 != 0).then(|| byte(&victim.data, at))
    }

    /// Waits for the bus. If a pending write overlaps the read of `bytes` at `pa`, first issues all writes.
    #[inline(always)]
    fn grant<B: Bus>(&mut self, bus: &mut B, now: u64, pa: Pa, bytes: u32) -> u64 {
        if !self.is_empty() {
            self.write_before_read(bus, now, pa, bytes);
        }
        now.max(self.free_at)
    }

    #[inline(never)]
    fn write_before_read<B: Bus>(&mut self, bus: &mut B, now: u64, pa: Pa, bytes: u32) {
        self.retire(bus, now);
        if self.conflicts(pa, bytes) {
            self.drain(bus, now);
        }
    }

    /// Fills a line, critical word first. Returns the time of the bus grant, and the times of the burst after the
    /// grant.
    pub fn read_line<B: Bus>(
        &mut self,
        bus: &mut B,
        now: u64,
        pa: Pa,
        line: &mut [u32; 8],
    ) -> Result<(u64, BurstTime), BusError> {
        let granted = self.grant(bus, now, pa.line(), 32);
        self.line_from(bus, granted, pa, line)
    }

    /// Fills a line for instructions. The fill precedes pending writes and does not check them.
    #[inline(always)]
    pub fn fetch_line<B: Bus>(
        &mut self,
        bus: &mut B,
        now: u64,
        pa: Pa,
        line: &mut [u32; 8],
    ) -> Result<(u64, BurstTime), BusError> {
        self.retire(bus, now);
        self.line_from(bus, now.max(self.free_at), pa, line)
    }

    #[inline(always)]
    fn line_from<B: Bus>(
        &mut self,
        bus: &mut B,
        granted: u64,
        pa: Pa,
        line: &mut [u32; 8],
    ) -> Result<(u64, BurstTime), BusError> {
        let start = granted + u64::from(self.sync);
        let time = bus.read_line(start, Pa(pa.0 & !3), line)?;
        self.free_at = start + u64::from(time.last);
        Ok((start, time))
    }

    /// Reads one word, half-word or byte. Returns the value and the time when it is in the core.
    pub fn read<B: Bus>(
        &mut self,
        bus: &mut B,
        now: u64,
        pa: Pa,
        width: Width,
    ) -> Result<(u32, u64), BusError> {
        let start = self.grant(bus, now, pa, width.bytes()) + u64::from(self.sync);
        let (value, cycles) = bus.read(start, pa, width)?;
        self.free_at = start + u64::from(cycles);
        Ok((value, self.free_at))
    }

    /// Reads a descriptor for a table walk. The read precedes pending writes and does not check them.
    pub fn walk_read<B: Bus>(
        &mut self,
        bus: &mut B,
        now: u64,
        pa: Pa,
    ) -> Result<(u32, u64), BusError> {
        self.retire(bus, now);
        let start = now.max(self.free_at) + u64::from(self.sync);
        let (value, cycles) = bus.read(start, pa, Width::Word)?;
        self.free_at = start + u64::from(cycles);
        Ok((value, self.free_at))
    }
}

mod runs;
mod waiting;
mod writes;

#[cfg(test)]
mod tests;
