// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bus for tests: flat RAM from address 0, fixed times, a log of transactions.

use crate::addr::Pa;
use crate::bus::{BurstTime, Bus, BusError, Signals, Width};
use crate::observe::{Cause, Context, Event, Reaction};

/// One bus transaction, with its start address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    /// Single read.
    Read(u32, Width),
    /// Single write of a value.
    Write(u32, Width, u32),
    /// Line fill.
    ReadLine(u32),
    /// Burst read of this many words.
    ReadWords(u32, usize),
    /// Burst write of this many words.
    WriteWords(u32, usize),
}

/// Flat RAM from address 0. Addresses above it answer with an error.
#[derive(Clone)]
pub(crate) struct TestBus {
    /// Contents of the RAM.
    pub ram: Vec<u8>,
    /// Transactions of the core, in order.
    pub log: Vec<Transaction>,
    /// Signals into the core.
    pub signals: Signals,
    /// Cycle of the next event; `u64::MAX` for none.
    pub event: u64,
    /// Core cycles of a single transfer, and of each word of a burst write.
    pub single: u32,
    /// Core cycles of a line fill.
    pub line: BurstTime,
    /// Single writes to this address and above are answered with an error.
    pub read_only_from: u32,
    /// Cycles charged to each cause, if the core is observed.
    pub spent: [i64; Cause::COUNT],
}

impl TestBus {
    /// Returns a bus with `bytes` bytes of RAM, all zero.
    pub fn new(bytes: usize) -> TestBus {
        TestBus {
            ram: vec![0; bytes],
            log: Vec::new(),
            signals: Signals::default(),
            event: u64::MAX,
            single: 4,
            line: BurstTime { first: 8, last: 15 },
            read_only_from: u32::MAX,
            spent: [0; Cause::COUNT],
        }
    }

    /// Writes words to RAM, without a log entry.
    pub fn put(&mut self, address: u32, words: &[u32]) {
        for (n, word) in words.iter().enumerate() {
            let at = address as usize + 4 * n;
            self.ram[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Reads a word from RAM, without a log entry.
    pub fn word(&self, address: u32) -> u32 {
        let at = address as usize;
        u32::from_le_bytes(self.ram[at..at + 4].try_into().unwrap())
    }

    fn range(&self, pa: Pa, bytes: u32) -> Result<core::ops::Range<usize>, BusError> {
        let start = pa.0 as usize;
        let end = start + bytes as usize;
        if end <= self.ram.len() {
            Ok(start..end)
        } else {
            Err(BusError)
        }
    }
}

impl Bus for TestBus {
    fn read(&mut self, _now: u64, pa: Pa, width: Width) -> Result<(u32, u32), BusError> {
        self.log.push(Transaction::Read(pa.0, width));
        let range = self.range(pa, width.bytes())?;
        let value = self.ram[range]
            .iter()
            .rev()
            .fold(0, |value, &b| value << 8 | u32::from(b));
        Ok((value, self.single))
    }

    fn write(&mut self, _now: u64, pa: Pa, width: Width, value: u32) -> Result<u32, BusError> {
        self.log.push(Transaction::Write(pa.0, width, value));
        if pa.0 >= self.read_only_from {
            return Err(BusError);
        }
        let range = self.range(pa, width.bytes())?;
        let bytes = value.to_le_bytes();
        let count = range.len();
        self.ram[range].copy_from_slice(&bytes[..count]);
        Ok(self.single)
    }

    fn read_line(&mut self, _now: u64, pa: Pa, line: &mut [u32; 8]) -> Result<BurstTime, BusError> {
        self.log.push(Transaction::ReadLine(pa.0));
        let base = pa.0 & !31;
        self.range(Pa(base), 32)?;
        for (n, word) in (0..).zip(line) {
            *word = self.word(base + 4 * n);
        }
        Ok(self.line)
    }

    fn read_words(&mut self, _: u64, pa: Pa, words: &mut [u32]) -> Result<BurstTime, BusError> {
        self.log.push(Transaction::ReadWords(pa.0, words.len()));
        self.range(pa, 4 * words.len() as u32)?;
        for (n, word) in (0..).zip(words.iter_mut()) {
            *word = self.word(pa.0 + 4 * n);
        }
        let first = self.single;
        let last = first + words.len() as u32 - 1;
        Ok(BurstTime { first, last })
    }

    fn write_words(&mut self, _now: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError> {
        self.log.push(Transaction::WriteWords(pa.0, words.len()));
        self.range(pa, 4 * words.len() as u32)?;
        self.put(pa.0, words);
        Ok(self.single * words.len() as u32)
    }

    fn advance(&mut self, _now: u64) -> Signals {
        self.signals
    }

    fn next_event(&self) -> u64 {
        self.event
    }

    fn peek(&self, pa: Pa) -> Option<u8> {
        self.ram.get(pa.0 as usize).copied()
    }

    fn poke(&mut self, pa: Pa, value: u8) -> bool {
        self.ram
            .get_mut(pa.0 as usize)
            .map(|byte| *byte = value)
            .is_some()
    }
}

/// The accesses of a bus that passes them on to its [`TestBus`].
macro_rules! passes_on {
    () => {
        fn read(&mut self, now: u64, pa: Pa, width: Width) -> Result<(u32, u32), BusError> {
            self.0.read(now, pa, width)
        }

        fn write(&mut self, now: u64, pa: Pa, width: Width, value: u32) -> Result<u32, BusError> {
            self.0.write(now, pa, width, value)
        }

        fn read_line(
            &mut self,
            now: u64,
            pa: Pa,
            line: &mut [u32; 8],
        ) -> Result<BurstTime, BusError> {
            self.0.read_line(now, pa, line)
        }

        fn read_words(
            &mut self,
            now: u64,
            pa: Pa,
            words: &mut [u32],
        ) -> Result<BurstTime, BusError> {
            self.0.read_words(now, pa, words)
        }

        fn write_words(&mut self, now: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError> {
            self.0.write_words(now, pa, words)
        }

        fn advance(&mut self, now: u64) -> Signals {
            self.0.advance(now)
        }

        fn next_event(&self) -> u64 {
            self.0.next_event()
        }

        fn peek(&self, pa: Pa) -> Option<u8> {
            self.0.peek(pa)
        }

        fn poke(&mut self, pa: Pa, value: u8) -> bool {
            self.0.poke(pa, value)
        }
    };
}

/// A [`TestBus`] with an observer. At each event, the observer requests that all uses of translations are reported
/// again.
#[derive(Clone)]
pub(crate) struct ObservedBus(pub TestBus);

impl Bus for ObservedBus {
    const OBSERVED: bool = true;

    fn observe(&mut self, _: &Context, _: Event<'_>) -> Reaction {
        Reaction::DropTranslations
    }

    fn spent(&mut self, cause: Cause, cycles: i64) {
        self.0.spent[cause as usize] += cycles;
    }

    passes_on! {}
}

/// A [`TestBus`] of a core without shortcuts.
#[derive(Clone)]
pub(crate) struct PlainBus(pub TestBus);

impl Bus for PlainBus {
    const SHORTCUTS: bool = false;

    passes_on! {}
}
