// SPDX-License-Identifier: MIT OR Apache-2.0
//! The second opinion: which value an access may see, from a list of all writes and where each of
//! them is now. Small and slow; of the checker it shares the events only.
//!
//! Every write to a word of memory is kept, with who made it and where its data is: in a dirty
//! line, in memory (or on its way there), or lost. Lines hold words. What a line, the memory or
//! the tables then give is compared with the newest value, byte by byte, and the place of the
//! newest write says which kind of report `docs/use/COHERENCE.md` has for it.

use super::copies::{Code, Line};
use super::entries::Entry;
use super::entries::Number;
use super::tables::Read;
use super::words::{Author, Finding, NOBODY, Place, Route, User, Word, Write};
use arm::{Context, Event, Kind, Side, Width};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

#[derive(Clone)]
pub struct Model {
    /// At the start.
    pub(super) ram: Arc<Vec<u32>>,
    /// What was accessed since.
    pub(super) words: BTreeMap<u32, Word>,
    pub(super) lines: BTreeMap<u32, Line>,
    pub(super) code: BTreeMap<u32, Code>,
    /// What the prefetch buffer was filled from.
    pub(super) prefetched: Option<Code>,
    pub(super) tlb: HashMap<Number, Entry>,
    /// Entry that translated each 4 KB last.
    pub(super) used: BTreeMap<u32, Number>,
    /// Descriptors of the walk that is going on.
    pub(super) walked: Read,
    pub(super) now: u64,
    /// Of the event that is looked at: the instruction and its process.
    pub(super) pc: u32,
    pub(super) process: (u32, u32),
    /// The instruction that it is of.
    pub instruction: u32,
    pub(super) findings: Vec<Finding>,
    /// The core did what this model cannot explain.
    pub puzzled: Option<String>,
}

pub fn half(address: u32) -> usize {
    (address >> 4 & 1) as usize
}

pub fn lane(pa: u32, width: Width) -> (u32, u32) {
    let shift = 8 * (pa & 3);
    (shift, width.mask() << shift)
}

impl Model {
    /// With these words in memory, from address 0.
    pub fn new(ram: Arc<Vec<u32>>) -> Model {
        Model {
            ram,
            words: BTreeMap::new(),
            lines: BTreeMap::new(),
            code: BTreeMap::new(),
            prefetched: None,
            tlb: HashMap::new(),
            used: BTreeMap::new(),
            walked: Read::new(),
            now: 0,
            pc: 0,
            process: (0, 0),
            instruction: 0,
            findings: Vec::new(),
            puzzled: None,
        }
    }

    /// What was there at the start.
    pub(super) fn loaded_at(&self, at: u32) -> Option<u32> {
        self.ram.get(at as usize / 4).copied()
    }

    pub(super) fn word(&mut self, at: u32) -> Option<&mut Word> {
        let value = self.loaded_at(at)?;
        Some(self.words.entry(at).or_insert_with(|| Word::loaded(value)))
    }

    pub(super) fn newest(&self, at: u32) -> Option<u32> {
        let word = self.words.get(&at).map(Word::newest);
        word.or_else(|| self.loaded_at(at))
    }

    pub(super) fn memory(&self, at: u32) -> Option<u32> {
        let word = self.words.get(&at).map(|word| word.memory);
        word.or_else(|| self.loaded_at(at))
    }

    /// What has to be reported of an event.
    pub fn saw(&mut self, context: &Context, event: Event<'_>) -> Vec<Finding> {
        self.now += 1;
        self.pc = context.pc;
        self.process = (context.ttb, context.pid);
        if !matches!(event, Event::Walk { .. } | Event::TlbFill { .. }) {
            self.walked.clear();
        }
        match event {
            Event::Load {
                mva,
                pa,
                width,
                value,
                cached,
            } => {
                self.translated(context, mva.0, pa.0, Kind::Read);
                self.loaded((mva.0, pa.0), width, value, cached);
            }
            Event::Store {
                mva,
                pa,
                width,
                value,
                cached,
            } => {
                self.translated(context, mva.0, pa.0, Kind::Write);
                self.stored(context, (mva.0, pa.0), width, value, cached);
            }
            Event::Fetch {
                mva,
                pa,
                width,
                value,
                cached,
                ..
            } => {
                self.translated(context, mva.0, pa.0, Kind::Fetch);
                self.executed((mva.0, pa.0), width, value, cached);
            }
            Event::Walk {
                mva,
                descriptor,
                value,
            } => {
                if descriptor.0 == (context.ttb & 0xffff_c000) + 4 * (mva.0 >> 20) {
                    self.walked.clear();
                }
                self.walked.push((descriptor.0, value));
                self.read_descriptor(mva.0, descriptor.0, value);
            }
            other => self.moved(context, other),
        }
        core::mem::take(&mut self.findings)
    }

    /// A line or a TLB entry came, went or was used.
    fn moved(&mut self, context: &Context, event: Event<'_>) {
        match event {
            Event::Claim { .. } | Event::Replaced { .. } => {}
            Event::StoreMissed { .. } | Event::FillAwaited { .. } => {}
            Event::Fill { side, mva, pa } => self.filled(side, mva.0, pa.0),
            Event::WriteBack {
                mva,
                pa,
                halves,
                data,
                ..
            } => {
                self.wrote_back(context.cycle, mva.0, pa.0, halves, data);
            }
            Event::Invalidate {
                side, mva, halves, ..
            } => {
                self.invalidated(context.cycle, side, mva.0, halves);
            }
            Event::InvalidateAll { side: Side::Data } => self.lines.clear(),
            Event::InvalidateAll { .. } => self.code.clear(),
            Event::TlbFill {
                side,
                entry,
                locked,
                ..
            } => self.tlb_filled(context.ttb, (side, entry), locked),
            Event::TlbUse {
                side,
                entry,
                mva,
                pa,
                kind,
                privileged,
            } => {
                self.used.insert(mva.0 >> 12, (side, entry));
                self.used_entry(context, (side, entry), (mva.0, pa.0), kind, privileged);
            }
            Event::TlbInvalidate { side, entry } => {
                self.tlb.remove(&(side, entry));
            }
            Event::TlbInvalidateAll { side } => {
                self.tlb.retain(|n, entry| n.0 != side || entry.locked);
            }
            Event::TlbUnlock { side } => {
                let of_side = self.tlb.iter_mut().filter(|(n, _)| n.0 == side);
                of_side.for_each(|(_, entry)| entry.locked = false);
            }
            _ => {}
        }
    }

    /// A device wrote a byte.
    pub fn device_wrote(&mut self, cycle: u64, pa: u32, value: u8) {
        self.now += 1;
        let route = Route::Device;
        let author = Author {
            cycle,
            route,
            ..NOBODY
        };
        self.write(pa, Width::Byte, u32::from(value), author, Place::Memory);
    }

    /// A byte of memory that is another than it should be, everything being written.
    pub fn unlike(&self, memory: impl Fn(u32) -> Option<u8>) -> Option<String> {
        for (at, word) in &self.words {
            let bytes = [0, 1, 2, 3].map(|n| memory(at + n).unwrap_or(0));
            let there = u32::from_le_bytes(bytes);
            if there != word.memory {
                let known = word.memory;
                return Some(format!("memory at {at:#x} is {there:#x}, not {known:#x}"));
            }
        }
        None
    }

    pub(super) fn puzzle(&mut self, what: String) {
        self.puzzled.get_or_insert(what);
    }

    pub(super) fn write(
        &mut self,
        pa: u32,
        width: Width,
        value: u32,
        author: Author,
        place: Place,
    ) {
        let now = self.now;
        let Some(word) = self.word(pa & !3) else {
            return;
        };
        let (shift, mask) = lane(pa, width);
        let value = value << shift & mask;
        word.writes.push(Write {
            author,
            mask,
            value,
            place,
            left: now,
        });
        word.told.clear();
        word.told_lost = false;
        if place == Place::Memory {
            word.memory = word.memory & !mask | value;
        }
        for entry in self.tlb.values_mut() {
            entry.written(pa & !3);
        }
    }

    /// Compares with the newest value; what is to be said if it is another, for the first time.
    pub(super) fn old(
        &mut self,
        how: &'static str,
        (mva, pa): (u32, u32),
        width: Width,
        got: u32,
    ) -> Option<Finding> {
        let user = User {
            pc: self.pc,
            ttb: self.process.0,
            pid: self.process.1,
            how,
            line: mva & !31,
        };
        let word = self.word(pa & !3)?;
        let (shift, mask) = lane(pa, width);
        let newest = (word.newest() & mask) >> shift;
        // Memory will hold nothing else, and that was told.
        let gone = word.told_lost && (word.memory & mask) >> shift == got;
        if newest == got || gone || !word.tell(user) {
            return None;
        }
        let last = word.last();
        let kind = match last.place {
            Place::Invalidated(..) => "lost-by-invalidate",
            Place::Overwritten(..) => "old-over-newer",
            _ => "",
        };
        Some(Finding {
            kind,
            mva,
            pa,
            width: width.bytes(),
            got,
            newest,
            author: last.author,
            place: last.place,
            led_to: None,
            filled_from: None,
        })
    }

    pub(super) fn loaded(&mut self, at: (u32, u32), width: Width, value: u32, cached: bool) {
        let (mva, pa) = at;
        let line = self.lines.get(&(mva & !31)).filter(|_| cached);
        let word = match line {
            Some(line) => Some(line.data[(mva >> 2 & 7) as usize]),
            None => self.memory(pa & !3),
        };
        let other = line.map(|line| line.pa).filter(|line| *line != pa & !31);
        let dirty = line.is_some_and(|line| line.dirty[half(mva)].is_some());
        let lost = cached && line.is_none();
        let (shift, mask) = lane(pa, width);
        if lost || word.is_some_and(|word| (word & mask) >> shift != value) {
            self.puzzle(format!(
                "load at {mva:#x} took {value:#x}, not of {word:x?}"
            ));
        }
        let how = if cached { "load" } else { "uncached load" };
        let Some(mut found) = self.old(how, at, width, value) else {
            return;
        };
        found.filled_from = other;
        found.kind = match (found.kind, found.place) {
            _ if other.is_some() => "stale-read",
            ("", Place::Line(newest)) if dirty && newest != mva & !31 => "two-dirty-aliases",
            ("", Place::Memory) if found.author.route == Route::Device => "stale-after-dma",
            ("", _) => "stale-read",
            (lost, _) => lost,
        };
        self.findings.push(found);
    }

    pub(super) fn executed(&mut self, at: (u32, u32), width: Width, value: u32, cached: bool) {
        let code = match cached {
            true => self.code.get(&(at.0 & !31)).copied(),
            false => self.prefetched,
        };
        let how = if cached { "fetch" } else { "uncached fetch" };
        let Some(mut found) = self.old(how, at, width, value) else {
            return;
        };
        found.filled_from = code.map(|code| code.pa).filter(|pa| *pa != at.1 & !31);
        let left = self.words[&(at.1 & !3)].last().left;
        let read_behind = code.is_some_and(|code| code.at > left);
        if found.place == Place::Memory && read_behind && found.filled_from.is_none() {
            found.place = Place::Buffer;
        }
        if found.kind.is_empty() || found.filled_from.is_some() {
            found.kind = "stale-instruction";
        }
        self.findings.push(found);
    }

    pub(super) fn read_descriptor(&mut self, mva: u32, descriptor: u32, value: u32) {
        let Some(mut found) = self.old("walk", (mva, descriptor), Width::Word, value) else {
            return;
        };
        if found.place == Place::Memory {
            found.place = Place::Buffer;
        }
        if found.kind.is_empty() {
            found.kind = "unseen-descriptor";
        }
        self.findings.push(found);
    }
}
