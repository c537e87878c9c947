// SPDX-License-Identifier: MIT OR Apache-2.0
//! The newest value of every word of RAM, and who wrote it.

use arm9::Width;

/// Which way a value went towards memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Path {
    /// It was there when the board was switched on.
    #[default]
    Loaded,
    /// Into a D-cache line, which became dirty.
    Line,
    /// Into the write buffer.
    Buffer,
    /// Written by another bus master.
    Dma,
}

/// Who wrote a word last, wholly or in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Writer {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Virtual address of the instruction.
    pub pc: u32,
    /// Through which modified virtual address.
    pub mva: u32,
    /// FCSE PID register.
    pub pid: u32,
    /// Translation table base.
    pub ttb: u32,
    /// Which way it went.
    pub path: Path,
}

/// Words in a page of writers.
const PAGE: usize = 1024;

/// A bit per word.
#[derive(Clone)]
struct Bits(Vec<u64>);

impl Bits {
    fn get(&self, n: usize) -> bool {
        self.0[n / 64] >> (n % 64) & 1 != 0
    }

    fn set(&mut self, n: usize, value: bool) {
        let mask = 1 << (n % 64);
        if value {
            self.0[n / 64] |= mask
        } else {
            self.0[n / 64] &= !mask
        }
    }
}

/// What RAM would hold if there were no caches.
#[derive(Clone)]
pub(super) struct Shadow {
    base: u32,
    words: Vec<u32>,
    writers: Vec<Option<Box<[Writer; PAGE]>>>,
    /// Words whose staleness has been reported since they were last written.
    reported: Bits,
    /// Words a table walk has read.
    watched: Bits,
}

impl Shadow {
    pub fn new(words: Vec<u32>, base: u32) -> Shadow {
        let bits = Bits(vec![0; words.len().div_ceil(64)]);
        Shadow {
            base,
            writers: vec![None; words.len().div_ceil(PAGE)],
            words,
            reported: bits.clone(),
            watched: bits,
        }
    }

    #[inline(always)]
    fn index(&self, pa: u32) -> Option<usize> {
        let n = (pa.wrapping_sub(self.base) / 4) as usize;
        (n < self.words.len()).then_some(n)
    }

    /// The newest value at `pa`; `None` where there is no RAM.
    #[inline(always)]
    pub fn newest(&self, pa: u32, width: Width) -> Option<u32> {
        let word = self.words[self.index(pa)?];
        Some(word >> (8 * (pa & 3)) & width.mask())
    }

    /// Takes note of a write. True when a table walk has read the word before.
    #[inline]
    pub fn store(&mut self, pa: u32, width: Width, value: u32, writer: Writer) -> bool {
        let Some(n) = self.index(pa) else {
            return false;
        };
        let shift = 8 * (pa & 3);
        let mask = width.mask() << shift;
        self.words[n] = self.words[n] & !mask | value << shift & mask;
        let page = &mut self.writers[n / PAGE];
        let page = page.get_or_insert_with(|| Box::new([Writer::default(); PAGE]));
        page[n % PAGE] = writer;
        self.reported.set(n, false);
        self.watched.get(n)
    }

    /// Who wrote the word at `pa` last.
    pub fn writer(&self, pa: u32) -> Writer {
        let page = self
            .index(pa)
            .and_then(|n| Some((self.writers[n / PAGE].as_ref()?, n)));
        page.map_or(Writer::default(), |(page, n)| page[n % PAGE])
    }

    /// Whether the word has been reported since it was last written; from now on it has.
    pub fn take_reported(&mut self, pa: u32) -> bool {
        let Some(n) = self.index(pa) else { return true };
        let reported = self.reported.get(n);
        self.reported.set(n, true);
        reported
    }

    /// Makes [`Shadow::store`] tell of writes to the word.
    pub fn watch(&mut self, pa: u32) {
        if let Some(n) = self.index(pa) {
            self.watched.set(n, true);
        }
    }
}
