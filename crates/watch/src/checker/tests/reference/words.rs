// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words of memory with all their writes, and what is to be said of one.

/// Which way a write went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Loaded,
    Line,
    Buffer,
    Device,
}

/// Where the data of a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the dirty line at this MVA.
    Line(u32),
    Memory,
    /// The same, but it had not arrived yet when memory was read.
    Buffer,
    /// Lost: the line at this MVA was invalidated, at this cycle.
    Invalidated(u32, u64),
    /// Lost: the line went to other memory.
    Elsewhere(u32, u64),
    /// Lost: the line was written over it in memory.
    Overwritten(u32, u64),
}

impl Place {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Place::Line(_) => "/line",
            Place::Memory => "/memory",
            Place::Buffer => "/buffer",
            Place::Invalidated(..) => "/invalidated",
            Place::Elsewhere(..) => "/elsewhere",
            Place::Overwritten(..) => "/overwritten",
        }
    }
}

/// Who wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Author {
    pub cycle: u64,
    pub pc: u32,
    pub mva: u32,
    pub pid: u32,
    pub ttb: u32,
    pub route: Route,
}

/// What a report has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: &'static str,
    pub mva: u32,
    pub pa: u32,
    pub width: u32,
    pub got: u32,
    pub newest: u32,
    pub author: Author,
    pub place: Place,
    /// Where a stale translation led.
    pub led_to: Option<u32>,
    /// Other memory that the line is of.
    pub filled_from: Option<u32>,
}

pub const NOBODY: Author = Author {
    cycle: 0,
    pc: 0,
    mva: 0,
    pid: 0,
    ttb: 0,
    route: Route::Loaded,
};

#[derive(Clone)]
pub struct Write {
    pub author: Author,
    pub mask: u32,
    pub value: u32,
    pub place: Place,
    /// When it was in memory at the earliest, or lost. In events.
    pub left: u64,
}

/// Who uses a word: an instruction, of which process, how and by which line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct User {
    pub pc: u32,
    pub ttb: u32,
    pub pid: u32,
    pub how: &'static str,
    pub line: u32,
}

#[derive(Clone)]
pub struct Word {
    pub writes: Vec<Write>,
    /// What memory holds once the write buffer is empty.
    pub memory: u32,
    /// Who used it and was told since the last write, and whether the newest was still in its line then.
    pub told: Vec<(User, bool)>,
    /// It was told that a line was written over it.
    pub told_lost: bool,
}

impl Word {
    pub fn loaded(value: u32) -> Word {
        let write = Write {
            author: NOBODY,
            mask: u32::MAX,
            value,
            place: Place::Memory,
            left: 0,
        };
        Word {
            writes: vec![write],
            memory: value,
            told: Vec::new(),
            told_lost: false,
        }
    }

    /// Whether an instruction that uses it is to be told now.
    pub fn tell(&mut self, user: User) -> bool {
        let user = (user, matches!(self.last().place, Place::Line(_)));
        let new = !self.told.contains(&user);
        self.told.push(user);
        new
    }

    pub fn newest(&self) -> u32 {
        let mut value = 0;
        let mut known = 0;
        for write in self.writes.iter().rev() {
            value |= write.value & write.mask & !known;
            known |= write.mask;
            if known == u32::MAX {
                break;
            }
        }
        value
    }

    pub fn last(&self) -> &Write {
        &self.writes[self.writes.len() - 1]
    }

    pub fn last_mut(&mut self) -> &mut Write {
        let last = self.writes.len() - 1;
        &mut self.writes[last]
    }
}
