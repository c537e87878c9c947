// SPDX-License-Identifier: MIT OR Apache-2.0
//! The newest value of every word of RAM, and its writer.

use std::collections::{BTreeMap, BTreeSet};

use super::causes::Among;
use arm::{AddressSpace, Mva, Width};

/// Path of a value towards memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Path {
    /// In memory when the board was switched on.
    #[default]
    Loaded,
    /// Into a D-cache line, which became dirty.
    Line,
    /// Into the write buffer.
    Buffer,
    /// Written by another bus master.
    Dma,
    /// No value. The writer of a report about a DMA buffer is the call that mapped or unmapped the buffer.
    Call,
}

/// The last writer of a word or of a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Writer {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Virtual address of the instruction.
    pub pc: u32,
    /// Modified virtual address of the store.
    pub mva: u32,
    /// FCSE PID register. Means nothing if a bus master wrote the value, see [`Writer::master`].
    pub pid: u32,
    /// Address space.
    pub space: AddressSpace,
    /// Path of the value.
    pub path: Path,
    /// Whether the whole word was written.
    pub whole: bool,
    /// Node of the checker's call tree.
    pub node: u32,
    /// Stack of the calls: the low 16 bits of its number.
    pub stack: u16,
}

impl Writer {
    /// Returns the modified virtual address of the store. Returns `None` if no instruction wrote the value.
    pub fn address(&self) -> Option<Mva> {
        match self.path {
            Path::Loaded | Path::Dma | Path::Call => None,
            Path::Line | Path::Buffer => Some(Mva(self.mva)),
        }
    }
}

/// Number of words in one page of writers.
const PAGE: usize = 1024;

/// Returns a page without writers. The function needs 32 KB of stack. If it were inlined, every caller would have to
/// probe 32 KB of stack.
#[cold]
#[inline(never)]
fn unwritten() -> Box<[Writer; PAGE]> {
    Box::new([Writer::default(); PAGE])
}

/// One bit for each word.
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

/// The user of a stale word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct User {
    /// Virtual address of the instruction.
    pub pc: u32,
    /// Process: address space and PID register.
    pub process: (AddressSpace, u32),
    /// Kind of access and line.
    pub access: (u8, u32),
    /// Callers and circumstances, as a hash.
    pub among: Among,
    /// Whether the newest value is still in the dirty line that it was stored into. A use after the line has left the
    /// cache is another bug.
    pub in_line: bool,
}

/// Reports of a stale word since the last write to it.
#[derive(Clone, Default)]
struct Reports {
    users: BTreeSet<User>,
    /// Value in memory, if a reported write-back destroyed the newest value.
    lost_to: Option<u32>,
}

/// The contents that RAM would have without caches.
#[derive(Clone)]
pub(super) struct Shadow {
    base: u32,
    words: Vec<u32>,
    writers: Vec<Option<Box<[Writer; PAGE]>>>,
    /// Words with a report since the last write to them.
    reported: Bits,
    /// Reports of these words. Every instruction that uses such a word gets its own report.
    reports: BTreeMap<usize, Reports>,
    /// Words that a table walk has read.
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
            reports: BTreeMap::new(),
            watched: bits,
        }
    }

    /// Returns the physical address of the first word.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Returns the size of RAM in bytes.
    pub fn bytes(&self) -> u32 {
        u32::try_from(4 * self.words.len()).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn index(&self, pa: u32) -> Option<usize> {
        let n = (pa.wrapping_sub(self.base) / 4) as usize;
        (n < self.words.len()).then_some(n)
    }

    /// Returns the newest value at `pa`. Returns `None` outside RAM.
    #[inline(always)]
    pub fn newest(&self, pa: u32, width: Width) -> Option<u32> {
        let word = self.words[self.index(pa)?];
        Some(word >> (8 * (pa & 3)) & width.mask())
    }

    /// Records a write. Returns the previous writer if a table walk has read the word.
    #[inline]
    pub fn store(&mut self, pa: u32, width: Width, value: u32, writer: Writer) -> Option<Writer> {
        let n = self.index(pa)?;
        let shift = 8 * (pa & 3);
        let mask = width.mask() << shift;
        self.words[n] = self.words[n] & !mask | value << shift & mask;
        let page = &mut self.writers[n / PAGE];
        let page = page.get_or_insert_with(unwritten);
        let before = core::mem::replace(&mut page[n % PAGE], writer);
        self.reported.set(n, false);
        self.watched.get(n).then_some(before)
    }

    /// Returns the last writer of the word at `pa`.
    pub fn writer(&self, pa: u32) -> Writer {
        let page = self
            .index(pa)
            .and_then(|n| Some((self.writers[n / PAGE].as_ref()?, n)));
        page.map_or(Writer::default(), |(page, n)| page[n % PAGE])
    }

    /// Returns the reports of a word since the last write to it.
    fn reports_of(&mut self, n: usize) -> &mut Reports {
        let reports = self.reports.entry(n).or_default();
        if !self.reported.get(n) {
            *reports = Reports::default();
            self.reported.set(n, true);
        }
        reports
    }

    /// Returns whether `user`, who got a stale value, needs a report. Records that this user has had a report. After a
    /// write-back has destroyed the newest value, readers of the value in memory need no report, because no operation
    /// of theirs could have saved the newest value.
    pub fn needs_report(&mut self, pa: u32, width: Width, got: u32, user: User) -> bool {
        let Some(n) = self.index(pa) else {
            return false;
        };
        let reports = self.reports_of(n);
        let is_lost = |memory: u32| memory >> (8 * (pa & 3)) & width.mask() == got;
        !reports.lost_to.is_some_and(is_lost) && reports.users.insert(user)
    }

    /// Records a write-back of the word. Returns true if the loss of the newest value has been reported, and this
    /// write-back does not restore it.
    #[inline]
    pub fn written_back(&mut self, pa: u32, word: u32) -> bool {
        let n = self.index(pa).filter(|n| self.reported.get(*n));
        let Some((n, reports)) = n.and_then(|n| Some((n, self.reports.get_mut(&n)?))) else {
            return false;
        };
        reports.lost_to = reports
            .lost_to
            .map(|_| word)
            .filter(|_| self.words[n] != word);
        reports.lost_to.is_some()
    }

    /// Records a report that the newest value is lost and memory holds `memory`.
    pub fn lose(&mut self, pa: u32, memory: u32) {
        if let Some(n) = self.index(pa) {
            self.reports_of(n).lost_to = Some(memory);
        }
    }

    /// Makes [`Shadow::store`] return the previous writer when the word is written.
    pub fn watch(&mut self, pa: u32) {
        if let Some(n) = self.index(pa) {
            self.watched.set(n, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shadow() -> Shadow {
        Shadow::new(vec![0x4433_2211, 0], 0x1000)
    }

    fn at(pc: u32) -> Writer {
        Writer {
            pc,
            path: Path::Line,
            ..Writer::default()
        }
    }

    #[test]
    fn narrow_stores_change_their_bytes_only() {
        let mut shadow = shadow();
        shadow.store(0x1001, Width::Byte, 0xffff_ffaa, at(8));
        shadow.store(0x1002, Width::Half, 0xbbcc, at(12));
        assert_eq!(shadow.newest(0x1000, Width::Word), Some(0xbbcc_aa11));
        assert_eq!(shadow.newest(0x1002, Width::Half), Some(0xbbcc));
        assert_eq!(shadow.newest(0x1003, Width::Byte), Some(0xbb));
    }

    #[test]
    fn the_writer_of_a_word_is_the_loader_until_a_store() {
        let mut shadow = shadow();
        assert_eq!(shadow.writer(0x1000).path, Path::Loaded);
        shadow.store(0x1003, Width::Byte, 1, at(8));
        assert_eq!(shadow.writer(0x1000), at(8));
        assert_eq!(shadow.writer(0x1004).path, Path::Loaded);
    }

    #[test]
    fn words_outside_ram_have_no_value_and_no_writer() {
        let mut shadow = shadow();
        for pa in [0, 0xffc, 0x1008, u32::MAX] {
            assert_eq!(shadow.store(pa, Width::Word, 7, at(8)), None);
            assert_eq!(shadow.newest(pa, Width::Word), None);
            assert_eq!(shadow.writer(pa), Writer::default());
            shadow.watch(pa);
        }
    }

    fn user(pc: u32, among: Among) -> User {
        User {
            pc,
            process: (AddressSpace::default(), 0),
            access: (0, 0),
            among,
            in_line: true,
        }
    }

    #[test]
    fn each_user_of_a_stale_word_gets_one_report_until_the_word_is_written_again() {
        let mut shadow = shadow();
        let needs_report =
            |shadow: &mut Shadow, user| shadow.needs_report(0x1000, Width::Word, 1, user);
        for new in [user(4, 0), user(4, 1), user(8, 0)] {
            assert!(needs_report(&mut shadow, new) && !needs_report(&mut shadow, new));
        }
        let in_line = false;
        let left = User {
            in_line,
            ..user(4, 0)
        };
        assert!(needs_report(&mut shadow, left) && !needs_report(&mut shadow, user(4, 0)));
        let process = (AddressSpace::default(), 0x0200_0000);
        let access = (1, 32);
        for other in [
            User {
                process,
                ..user(4, 0)
            },
            User {
                access,
                ..user(4, 0)
            },
        ] {
            assert!(needs_report(&mut shadow, other) && !needs_report(&mut shadow, other));
        }
        assert!(shadow.needs_report(0x1004, Width::Word, 1, user(4, 0)));
        shadow.store(0x1002, Width::Byte, 0, at(8));
        assert!(needs_report(&mut shadow, user(4, 0)));
    }

    #[test]
    fn a_reader_of_the_value_that_destroyed_a_word_gets_no_report() {
        let mut shadow = shadow();
        assert!(!shadow.written_back(0x1000, 0x0101));
        shadow.lose(0x1000, 0x0201);
        assert!(!shadow.needs_report(0x1000, Width::Word, 0x0201, user(4, 0)));
        assert!(!shadow.needs_report(0x1001, Width::Byte, 0x02, user(4, 0)));
        assert!(shadow.needs_report(0x1001, Width::Byte, 0x01, user(4, 0)));
        assert!(shadow.written_back(0x1000, 0x0303));
        assert!(!shadow.needs_report(0x1000, Width::Word, 0x0303, user(8, 0)));
        assert!(shadow.needs_report(0x1000, Width::Word, 0x0201, user(8, 0)));
        assert!(!shadow.written_back(0x1000, 0x4433_2211));
        assert!(!shadow.written_back(0x1000, 0x0303));
        shadow.lose(0x1000, 0x0303);
        shadow.store(0x1000, Width::Word, 0, at(8));
        assert!(!shadow.written_back(0x1000, 0x0303));
        assert!(shadow.needs_report(0x1000, Width::Word, 0x0303, user(8, 0)));
    }

    #[test]
    fn stores_to_watched_words_return_the_previous_writer() {
        let mut shadow = shadow();
        assert_eq!(shadow.store(0x1004, Width::Word, 1, at(8)), None);
        shadow.watch(0x1004);
        let before = shadow.store(0x1006, Width::Byte, 1, at(12));
        assert_eq!(before, Some(at(8)));
        assert_eq!(shadow.store(0x1000, Width::Word, 1, at(8)), None);
    }
}
