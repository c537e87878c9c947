// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words of memory with all their writes, and the reports of a word.

/// Path of a write towards memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Loaded,
    Line,
    Buffer,
    Device,
}

/// Place of the data of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the dirty line at this MVA.
    Line(u32),
    Memory,
    /// In memory now, but still in the write buffer when memory was read.
    Buffer,
    /// Lost: the line at this MVA was invalidated in this cycle.
    Invalidated(u32, u64),
    /// Lost: the line at this MVA was written back to other memory in this cycle.
    Elsewhere(u32, u64),
    /// Lost: a write-back of the line at this MVA overwrote the data in memory in this cycle.
    Overwritten(u32, u64),
}

impl Place {
    /// Returns the short name.
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

/// Author of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Author {
    pub cycle: u64,
    pub pc: u32,
    pub mva: u32,
    pub pid: u32,
    pub ttb: u32,
    pub route: Route,
}

/// The expected contents of a report.
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
    /// Physical address that a stale translation led to.
    pub led_to: Option<u32>,
    /// Other memory that the used line holds.
    pub filled_from: Option<u32>,
}

/// Author of data that no instruction wrote.
pub const NO_INSTRUCTION: Author = Author {
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
    /// Number of the event in which the data was lost, or the first event in which it may have reached memory.
    pub left: u64,
}

/// The user of a word: instruction, process, kind of access and line.
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
    /// Value in memory once the write buffer is empty.
    pub memory: u32,
    /// Users with a report since the last write. The flag says whether the newest value was still in its line at the
    /// time of the report.
    pub reported_to: Vec<(User, bool)>,
    /// Whether the loss of the newest value by a write-back was reported.
    pub loss_reported: bool,
}

impl Word {
    pub fn loaded(value: u32) -> Word {
        let write = Write {
            author: NO_INSTRUCTION,
            mask: u32::MAX,
            value,
            place: Place::Memory,
            left: 0,
        };
        Word {
            writes: vec![write],
            memory: value,
            reported_to: Vec::new(),
            loss_reported: false,
        }
    }

    /// Returns whether a user of the stale word needs a report, and records that the user has had a report.
    pub fn needs_report(&mut self, user: User, blamed: &Write) -> bool {
        let user = (user, matches!(blamed.place, Place::Line(_)));
        let new = !self.reported_to.contains(&user);
        self.reported_to.push(user);
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

    /// Returns the position of the last write that is not by a device, or of the last write if it is the same.
    fn by_core(&self) -> usize {
        let is_by_core = |write: &Write| write.author.route != Route::Device;
        self.writes.iter().rposition(is_by_core).unwrap_or(0)
    }

    /// Returns the write to blame if these bits of the word are old. This is the last write, unless devices wrote last
    /// and wrote none of these bits.
    pub fn blamed(&self, bits: u32) -> &Write {
        let by_core = self.by_core();
        let devices = self.writes[by_core + 1..].iter();
        match devices.fold(0, |all, write| all | write.mask) & bits {
            0 => &self.writes[by_core],
            _ => self.last(),
        }
    }

    /// Returns the writes that can be blamed.
    pub fn blamable(&mut self) -> impl Iterator<Item = &mut Write> {
        let (by_core, last) = (self.by_core(), self.writes.len() - 1);
        let writes = self.writes.iter_mut().enumerate();
        writes.filter_map(move |(n, write)| (n == by_core || n == last).then_some(write))
    }
}
