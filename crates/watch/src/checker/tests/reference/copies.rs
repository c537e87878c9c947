// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model's caches. They hold the contents of lines, and decide what happens to a write when its line leaves the
//! cache.

use super::model::{Model, half, lane};
use super::words::{Author, Finding, Place, Route, Write};
use arm::{Context, Side, Width};

/// A line of the D-cache. A clean line may have been replaced without an event. A replaced line is filled again before
/// its next use.
#[derive(Clone)]
pub struct Line {
    pub pa: u32,
    pub data: [u32; 8],
    /// Number of the event in which each half became dirty.
    pub dirty: [Option<u64>; 2],
}

/// A line of the I-cache: its memory, and the number of the event that filled it.
#[derive(Clone, Copy)]
pub struct Code {
    pub pa: u32,
    pub at: u64,
}

impl Model {
    pub fn stored(
        &mut self,
        context: &Context,
        (mva, pa): (u32, u32),
        width: Width,
        value: u32,
        cached: bool,
    ) {
        let (shift, mask) = lane(pa, width);
        let through = !cached && context.sctlr & 4 != 0 && self.is_cacheable(mva);
        if let Some(line) = self.lines.get_mut(&(mva & !31)) {
            if cached || through {
                let word = &mut line.data[(mva >> 2 & 7) as usize];
                *word = *word & !mask | value << shift & mask;
            }
            if cached {
                line.dirty[half(mva)].get_or_insert(self.now);
            }
        } else if cached {
            self.contradict(format!(
                "store at {mva:#x} into a line that the model does not have"
            ));
        }
        let Context {
            cycle,
            pc,
            pid,
            ttb,
            ..
        } = *context;
        let (route, place) = if cached {
            (Route::Line, Place::Line(mva & !31))
        } else {
            (Route::Buffer, Place::Memory)
        };
        let author = Author {
            cycle,
            pc,
            mva,
            pid,
            ttb,
            route,
        };
        self.write(pa, width, value, author, place);
    }

    pub fn filled(&mut self, side: Side, mva: u32, pa: u32) {
        let code = Code { pa, at: self.now };
        match side {
            Side::Data => {}
            Side::Prefetch => {
                self.prefetched = Some(code);
                return;
            }
            Side::Instruction => {
                self.code.insert(mva, code);
                return;
            }
        }
        let word = |n: u32| self.memory(pa + 4 * n).unwrap_or(0);
        let data = [0, 1, 2, 3, 4, 5, 6, 7].map(word);
        let dirty = [None; 2];
        self.lines.insert(mva, Line { pa, data, dirty });
    }

    pub fn wrote_back(&mut self, cycle: u64, mva: u32, pa: u32, halves: u8, data: &[u32; 8]) {
        let known = self.lines.get(&mva).map(|line| (line.pa, line.data));
        if known != Some((pa, *data)) {
            self.contradict(format!(
                "line at {mva:#x} is written back as {pa:#x} {data:x?}, not {known:x?}"
            ));
        }
        let dirty = self.lines.get(&mva).map_or([None; 2], |line| line.dirty);
        for (n, value) in (0u32..).zip(data) {
            let at = pa + 4 * n;
            if halves >> half(at) & 1 == 0 {
                continue;
            }
            self.wrote_word((mva, at), *value, cycle, dirty[half(at)]);
        }
        self.left_line(mva, halves, |word| {
            if word & !31 == pa {
                Place::Memory
            } else {
                Place::Elsewhere(mva, cycle)
            }
        });
        if let Some(line) = self.lines.get_mut(&mva) {
            line.dirty = [None; 2];
        }
    }

    /// Writes a word of a line to memory.
    pub fn wrote_word(
        &mut self,
        (mva, at): (u32, u32),
        value: u32,
        cycle: u64,
        dirty: Option<u64>,
    ) {
        let now = self.now;
        let Some(word) = self.word(at) else {
            return;
        };
        let newest = word.newest();
        word.memory = value;
        // This write-back loses nothing if the newest value is in another line or already lost. If the newest value was
        // stored into this line but the line now holds another value, a store for other memory has replaced the newest
        // value.
        if newest == value {
            // This write-back restores the newest value, even if it was lost.
            word.loss_reported = false;
            let is_lost =
                |write: &&mut Write| !matches!(write.place, Place::Line(_) | Place::Memory);
            for write in word.blamable().filter(is_lost) {
                (write.place, write.left) = (Place::Memory, now);
            }
            return;
        }
        let Write {
            author,
            place,
            left,
            ..
        } = *word.blamed(newest ^ value);
        let overwritten = Place::Overwritten(mva, cycle);
        let is_here = |place| place == Place::Memory || place == Place::Line(mva);
        for write in word.blamable().filter(|write| is_here(write.place)) {
            write.place = overwritten;
        }
        if !is_here(place) || word.loss_reported {
            return;
        }
        word.loss_reported = true;
        // Both lines were dirty if this half became dirty before the newest value left its line.
        let both = author.route == Route::Line
            && place == Place::Memory
            && dirty.is_some_and(|since| since < left);
        self.findings.push(Finding {
            kind: if both {
                "two-dirty-aliases"
            } else {
                "old-over-newer"
            },
            mva: mva + (at & 31),
            pa: at,
            width: 4,
            got: value,
            newest,
            author,
            place: overwritten,
            led_to: None,
            filled_from: None,
        });
    }

    /// Moves the data in dirty halves of a line to another place.
    pub fn left_line(&mut self, mva: u32, halves: u8, to: impl Fn(u32) -> Place) {
        for (at, word) in &mut self.words {
            let in_line = |write: &&mut Write| write.place == Place::Line(mva);
            let moved = halves >> half(*at) & 1 != 0;
            for write in word.blamable().filter(in_line).filter(|_| moved) {
                write.place = to(*at);
                write.left = self.now;
            }
        }
    }

    pub fn invalidated(&mut self, cycle: u64, side: Side, mva: u32, halves: u8) {
        if side == Side::Instruction {
            self.code.remove(&mva);
            return;
        }
        let line = self.lines.remove(&mva);
        let dirty = line.map_or([None; 2], |line| line.dirty);
        if [0, 1].map(|n| dirty[n].is_some()) != [0, 1].map(|n| halves >> n & 1 != 0) {
            self.contradict(format!(
                "line at {mva:#x} is invalidated with dirty halves {halves:b}, not {dirty:?}"
            ));
        }
        self.left_line(mva, halves, |_| Place::Invalidated(mva, cycle));
    }
}
