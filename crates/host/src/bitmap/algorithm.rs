// SPDX-License-Identifier: MIT OR Apache-2.0
//! The algorithms. Each is what a kernel does at a switch, at the return to user land, at ioperm(),
//! at fork(), at a task's end and at the fault of an access: told in our own words from Molnar's
//! mail of 2004 and from the documentation and history of Linux.

use std::ops::Range;

use super::memory::{Area, BYTES, Bitmap, Lines};

/// A task's number.
pub type Task = usize;

/// A kernel's way with the bitmap, on one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Linux 2.6.8.1: a switch copies all 8 KB of a task that has a bitmap.
    CopyAll,
    /// The patch of 2004: up to the highest port of the two tasks that switch; the base is always valid.
    CopyUsed,
    /// Its later variant (2.6.9 to 5.4): a switch only puts the base out of the limit; the first access
    /// faults, and the fault copies, unless the TSS still holds this task's bitmap.
    Lazy,
    /// Since 5.5: a switch puts the base out of the limit; the return to user land puts it back, and copies
    /// when the number of the bitmap's contents is another than that in the TSS. fork() shares.
    Sequence,
}

/// All of them, in the order of the kernels.
pub const WAYS: [Way; 4] = [Way::CopyAll, Way::CopyUsed, Way::Lazy, Way::Sequence];

impl Way {
    /// For tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Way::CopyAll => "copy-all",
            Way::CopyUsed => "copy-used",
            Way::Lazy => "lazy",
            Way::Sequence => "sequence",
        }
    }

    /// In words.
    pub fn what(self) -> &'static str {
        match self {
            Way::CopyAll => "Linux 2.6.8.1: a switch copies all 8 KB",
            Way::CopyUsed => "the patch of 2004: a switch copies up to the highest port",
            Way::Lazy => "Linux 2.6.9 to 5.4: the first access faults, and the fault copies",
            Way::Sequence => "Linux since 5.5: the return to user land copies what has changed",
        }
    }
}

/// Where the base of the TSS leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// To the bitmap.
    Valid,
    /// Beyond the limit: every access faults.
    Invalid,
}

/// The TSS of the processor, and what kernels keep beside it.
struct Tss {
    bitmap: Bitmap,
    base: Base,
    /// Whose bitmap it holds (lazy).
    owner: Option<Task>,
    /// Bytes of it that may permit something (lazy, sequence).
    used: usize,
    /// Number of its contents (sequence); 0 is nobody's.
    sequence: u64,
}

/// A task's bitmap; with sequence numbers several tasks may have the same.
struct Held {
    bitmap: Bitmap,
    used: usize,
    sequence: u64,
    tasks: usize,
}

/// A processor, its kernel and its tasks.
pub struct Machine<L> {
    way: Way,
    tss: Tss,
    /// Bitmaps by number; a free number has `None`.
    held: Vec<Option<Held>>,
    /// Number of each task's bitmap; `None` for a task without a bitmap.
    tasks: Vec<Option<usize>>,
    current: Task,
    last_sequence: u64,
    /// Number of faults at which the kernel copied the task's bitmap into the TSS.
    pub faults: u64,
    /// Receives every access to memory that the kernel would make.
    pub lines: L,
}

impl<L: Lines> Machine<L> {
    /// With so many tasks, none of which may access a port; task 0 runs.
    pub fn new(way: Way, tasks: usize, lines: L) -> Machine<L> {
        let base = match way {
            Way::CopyUsed => Base::Valid,
            _ => Base::Invalid,
        };
        Machine {
            way,
            tss: Tss {
                bitmap: Bitmap::new(),
                base,
                owner: None,
                used: 0,
                sequence: 0,
            },
            held: Vec::new(),
            tasks: vec![None; tasks],
            current: 0,
            last_sequence: 0,
            faults: 0,
            lines,
        }
    }

    fn touch_tss(&mut self, bytes: usize) {
        self.lines.touch(Area::TssHead, 0..16);
        self.lines.touch(Area::TssBitmap, 0..bytes);
    }

    /// The bitmap of a task, after a look into the task's structure.
    fn of(&mut self, task: Task) -> Option<usize> {
        self.lines.touch(Area::Task(task), 0..16);
        self.tasks[task]
    }

    fn used(&mut self, task: Task) -> usize {
        match self.tasks[task] {
            None => 0,
            Some(number) => {
                self.lines.touch(Area::Bitmap(number), BYTES..BYTES + 16);
                self.held[number].as_ref().map_or(0, |held| held.used)
            }
        }
    }

    /// The TSS gets the first bytes of a bitmap.
    fn copy(&mut self, number: usize, bytes: usize) {
        self.lines.touch(Area::Bitmap(number), 0..bytes);
        self.touch_tss(bytes);
        if let Some(held) = &self.held[number] {
            self.tss.bitmap.copy(&held.bitmap, bytes);
        }
    }

    fn set_base(&mut self, base: Base) {
        self.lines.touch(Area::TssHead, 0..16);
        self.tss.base = base;
    }

    /// Another task runs, or the same one: as far as the kernel's switch goes.
    pub fn switch(&mut self, next: Task) {
        let before = self.current;
        self.current = next;
        let (from, to) = (self.of(before), self.of(next));
        if before == next || from.is_none() && to.is_none() {
            return;
        }
        match self.way {
            Way::CopyAll => {
                if let Some(number) = to {
                    self.copy(number, BYTES);
                }
                let base = to.map_or(Base::Invalid, |_| Base::Valid);
                self.set_base(base);
            }
            Way::CopyUsed => {
                let left = self.used(before);
                match to {
                    Some(number) => {
                        let bytes = left.max(self.used(next));
                        self.copy(number, bytes);
                    }
                    None => {
                        self.touch_tss(left);
                        self.tss.bitmap.forbid(0..left);
                    }
                }
            }
            Way::Lazy => {
                let still = to.is_some() && self.tss.owner == Some(next);
                self.set_base(if still { Base::Valid } else { Base::Invalid });
            }
            Way::Sequence => {
                if from.is_some() {
                    self.set_base(Base::Invalid);
                }
            }
        }
    }

    /// The kernel returns to the program.
    pub fn return_to_user(&mut self) {
        if self.way != Way::Sequence {
            return;
        }
        let Some(number) = self.of(self.current) else {
            return;
        };
        self.lines.touch(Area::Bitmap(number), BYTES..BYTES + 16);
        self.lines.touch(Area::TssHead, 0..32);
        let Some(held) = &self.held[number] else {
            return;
        };
        let (used, sequence) = (held.used, held.sequence);
        if self.tss.sequence != sequence {
            // What the last one permitted and this one does not is overwritten, too.
            self.copy(number, used.max(self.tss.used));
            (self.tss.used, self.tss.sequence) = (used, sequence);
        }
        self.tss.base = Base::Valid;
    }

    /// An `in` or `out` of the running program: true when it comes through.
    pub fn access(&mut self, port: usize) -> bool {
        if self.permitted(port) {
            return true;
        }
        if self.way != Way::Lazy || self.tss.base == Base::Valid {
            return false;
        }
        let task = self.current;
        let Some(number) = self.of(task) else {
            return false;
        };
        self.faults += 1;
        let used = self.used(task);
        self.copy(number, used);
        let rest = used..self.tss.used.max(used);
        self.lines.touch(Area::TssBitmap, rest.clone());
        self.tss.bitmap.forbid(rest);
        (self.tss.used, self.tss.owner) = (used, Some(task));
        self.tss.base = Base::Valid;
        self.permitted(port)
    }

    /// What the processor finds in the TSS.
    fn permitted(&mut self, port: usize) -> bool {
        self.lines.touch(Area::TssHead, 0..16);
        if self.tss.base == Base::Invalid {
            return false;
        }
        self.lines.touch(Area::TssBitmap, port / 8..port / 8 + 1);
        self.tss.bitmap.permits(port)
    }

    /// ioperm() of the running task.
    pub fn ioperm(&mut self, ports: Range<usize>, permit: bool) {
        let task = self.current;
        if self.tasks[task].is_none() && !permit {
            return;
        }
        let before = self.used(task);
        let number = self.own(task);
        self.last_sequence += 1;
        let Some(held) = &mut self.held[number] else {
            return;
        };
        held.bitmap.set(ports, permit);
        held.used = held.bitmap.used();
        held.sequence = self.last_sequence;
        let used = held.used;
        match self.way {
            Way::CopyAll => {
                self.copy(number, BYTES);
                self.tss.base = Base::Valid;
            }
            Way::CopyUsed => self.copy(number, before.max(used)),
            // Not copied before it is used.
            Way::Lazy => {
                self.tss.owner = None;
                self.set_base(Base::Invalid);
            }
            Way::Sequence => {
                // A bitmap without a port is given back.
                if used == 0 {
                    self.set_base(Base::Invalid);
                    self.release(task);
                }
                self.return_to_user();
            }
        }
    }

    /// The number of a bitmap that only this task has.
    fn own(&mut self, task: Task) -> usize {
        let old = self.tasks[task];
        if let Some(number) = old
            && self.held[number].as_ref().is_some_and(|h| h.tasks == 1)
        {
            return number;
        }
        let bitmap = old.and_then(|number| self.held[number].as_ref());
        let held = Held {
            bitmap: bitmap.map_or_else(Bitmap::new, |held| held.bitmap.clone()),
            used: bitmap.map_or(0, |held| held.used),
            sequence: 0,
            tasks: 1,
        };
        self.release(task);
        let number = self.put(held);
        self.tasks[task] = Some(number);
        number
    }

    fn put(&mut self, held: Held) -> usize {
        match self.held.iter().position(Option::is_none) {
            Some(number) => {
                self.held[number] = Some(held);
                number
            }
            None => {
                self.held.push(Some(held));
                self.held.len() - 1
            }
        }
    }

    fn release(&mut self, task: Task) {
        let Some(number) = self.tasks[task].take() else {
            return;
        };
        if let Some(held) = &mut self.held[number] {
            held.tasks -= 1;
            if held.tasks == 0 {
                self.held[number] = None;
            }
        }
    }

    /// fork(): another task, which does not run, is born with the running one's permissions.
    pub fn fork(&mut self, child: Task) {
        if child == self.current {
            return;
        }
        self.end_of(child);
        let Some(number) = self.tasks[self.current] else {
            return;
        };
        let Some(held) = &mut self.held[number] else {
            return;
        };
        if self.way == Way::Sequence {
            held.tasks += 1;
            self.tasks[child] = Some(number);
            return;
        }
        let copy = Held {
            bitmap: held.bitmap.clone(),
            used: held.used,
            sequence: held.sequence,
            tasks: 1,
        };
        let number = self.put(copy);
        self.tasks[child] = Some(number);
    }

    /// A task that does not run has ended; its number may be born again.
    fn end_of(&mut self, task: Task) {
        self.release(task);
        if self.tss.owner == Some(task) {
            self.tss.owner = None;
        }
    }

    /// The running task gives its permissions up, as at its end.
    pub fn exit(&mut self) {
        let task = self.current;
        if self.tasks[task].is_none() {
            return;
        }
        match self.way {
            Way::CopyUsed => {
                let used = self.used(task);
                self.touch_tss(used);
                self.tss.bitmap.forbid(0..used);
            }
            _ => self.set_base(Base::Invalid),
        }
        self.end_of(task);
    }
}
