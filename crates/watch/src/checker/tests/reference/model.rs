// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference model. It derives the value that an access may see from a list of all writes and the present place of
//! each write. The model is small and slow, and shares only the events with the checker.
//!
//! The model keeps every write to a word of memory, with its author and the place of its data. The data is in a dirty
//! line, in memory (or in the write buffer), or lost. The model compares every value from a line, from memory or from
//! the tables with the newest value, byte by byte. The place of the newest write determines the kind of report, as in
//! the table in `docs/use/COHERENCE.md`.

use super::copies::{Code, Line};
use super::entries::Entry;
use super::entries::Number;
use super::tables::Read;
use super::words::{Author, Finding, NO_INSTRUCTION, Place, Route, User, Word, Write};
use arm::{Context, Event, Kind, Side, Width};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

#[derive(Clone)]
pub struct Model {
    /// Memory at the start.
    pub(super) ram: Arc<Vec<u32>>,
    /// Words accessed after the start.
    pub(super) words: BTreeMap<u32, Word>,
    pub(super) lines: BTreeMap<u32, Line>,
    pub(super) code: BTreeMap<u32, Code>,
    /// Memory that the prefetch buffer was filled from.
    pub(super) prefetched: Option<Code>,
    pub(super) tlb: HashMap<Number, Entry>,
    /// For each 4 KB of addresses, the last TLB entry that translated an address in it.
    pub(super) used: BTreeMap<u32, Number>,
    /// Descriptors read by the current walk.
    pub(super) walked: Read,
    pub(super) now: u64,
    /// Instruction and process of the current event.
    pub(super) pc: u32,
    pub(super) process: (u32, u32),
    /// Address of the instruction that caused the event. This address differs from `pc` if events have invented
    /// addresses.
    pub instruction: u32,
    pub(super) findings: Vec<Finding>,
    /// Behaviour of the core that this model cannot explain.
    pub contradiction: Option<String>,
}

pub fn half(address: u32) -> usize {
    (address >> 4 & 1) as usize
}

pub fn lane(pa: u32, width: Width) -> (u32, u32) {
    let shift = 8 * (pa & 3);
    (shift, width.mask() << shift)
}

impl Model {
    /// Returns a model with these words in memory, from address 0.
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
            contradiction: None,
        }
    }

    /// Returns the word that was in memory at address `at` at the start.
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

    /// Follows an event and returns the expected reports.
    pub fn observe(&mut self, context: &Context, event: Event<'_>) -> Vec<Finding> {
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

    /// Follows an event of a line or a TLB entry.
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

    /// Follows a byte that a device writes.
    pub fn device_wrote(&mut self, cycle: u64, pa: u32, value: u8) {
        self.now += 1;
        let route = Route::Device;
        let author = Author {
            cycle,
            route,
            ..NO_INSTRUCTION
        };
        self.write(pa, Width::Byte, u32::from(value), author, Place::Memory);
    }

    /// Compares memory with the model after all write buffers are empty, and describes the first difference.
    pub fn memory_difference(&self, memory: impl Fn(u32) -> Option<u8>) -> Option<String> {
        for (at, word) in &self.words {
            let bytes = [0, 1, 2, 3].map(|n| memory(at + n).unwrap_or(0));
            let actual = u32::from_le_bytes(bytes);
            if actual != word.memory {
                let expected = word.memory;
                return Some(format!(
                    "memory at {at:#x} is {actual:#x}, not {expected:#x}"
                ));
            }
        }
        None
    }

    pub(super) fn contradict(&mut self, what: String) {
        self.contradiction.get_or_insert(what);
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
        word.reported_to.clear();
        word.loss_reported = false;
        if place == Place::Memory {
            word.memory = word.memory & !mask | value;
        }
        for entry in self.tlb.values_mut() {
            entry.written(pa & !3);
        }
    }

    /// Compares a value with the newest value. Returns a finding if they differ and this user has had no report.
    pub(super) fn stale(
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
        // A reported write-back destroyed the newest value, and the access got the value that the write-back left in
        // memory.
        let is_loss_known = word.loss_reported && (word.memory & mask) >> shift == got;
        let blamed = word.blamed((newest ^ got) << shift).clone();
        if newest == got || is_loss_known || !word.needs_report(user, &blamed) {
            return None;
        }
        let kind = match blamed.place {
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
            author: blamed.author,
            place: blamed.place,
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
            self.contradict(format!(
                "load at {mva:#x} got {value:#x}, but the model has {word:x?}"
            ));
        }
        let how = if cached { "load" } else { "uncached load" };
        let Some(mut found) = self.stale(how, at, width, value) else {
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
        let Some(mut found) = self.stale(how, at, width, value) else {
            return;
        };
        found.filled_from = code.map(|code| code.pa).filter(|pa| *pa != at.1 & !31);
        let old = (found.newest ^ found.got) << lane(at.1, width).0;
        let left = self.words[&(at.1 & !3)].blamed(old).left;
        let read_after = code.is_some_and(|code| code.at > left);
        if found.place == Place::Memory && read_after && found.filled_from.is_none() {
            found.place = Place::Buffer;
        }
        if found.kind.is_empty() || found.filled_from.is_some() {
            found.kind = "stale-instruction";
        }
        self.findings.push(found);
    }

    pub(super) fn read_descriptor(&mut self, mva: u32, descriptor: u32, value: u32) {
        let Some(mut found) = self.stale("walk", (mva, descriptor), Width::Word, value) else {
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
