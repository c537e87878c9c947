// SPDX-License-Identifier: MIT OR Apache-2.0
//! The algorithms. Each algorithm does a kernel's work for the bitmap: at a switch, at the return to user land, at
//! ioperm(), at fork(), at a task's end, and at the fault of an access. The algorithms follow Molnar's mail of 2004,
//! Linux's documentation and Linux's history.

use std::ops::Range;

use super::memory::{Area, BYTES, Bitmap, Lines};

/// Number of a task.
pub type Task = usize;

/// A kernel's algorithm for the bitmap, on one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Linux 2.6.8.1: a switch copies all 8 KB of a task that has a bitmap.
    CopyAll,
    /// The patch of 2004: a switch copies up to the highest port of the two tasks. The base is always valid.
    CopyUsed,
    /// Linux 2.6.9 to 5.4: a switch only moves the base beyond the limit. The first access faults, and the fault
    /// handler copies the bitmap unless the TSS still holds it.
    Lazy,
    /// Linux since 5.5: a switch moves the base beyond the limit. The return to user land moves the base back. If the
    /// sequence numbers of the task's bitmap and the TSS differ, it also copies the bitmap. fork() shares the bitmap.
    Sequence,
}

/// All algorithms, from the oldest kernel to the newest.
pub const WAYS: [Way; 4] = [Way::CopyAll, Way::CopyUsed, Way::Lazy, Way::Sequence];

impl Way {
    /// Returns the name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Way::CopyAll => "copy-all",
            Way::CopyUsed => "copy-used",
            Way::Lazy => "lazy",
            Way::Sequence => "sequence",
        }
    }

    /// Describes the algorithm in words.
    pub fn what(self) -> &'static str {
        match self {
            Way::CopyAll => "Linux 2.6.8.1: a switch copies all 8 KB",
            Way::CopyUsed => "the patch of 2004: a switch copies up to the highest port",
            Way::Lazy => "Linux 2.6.9 to 5.4: the first access faults, and the fault copies",
            Way::Sequence => "Linux since 5.5: the return to user land copies a changed bitmap",
        }
    }
}

/// Base of the bitmap in the TSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// Points to the bitmap.
    Valid,
    /// Lies beyond the limit, so every access faults.
    Invalid,
}

/// The TSS of the processor, and the kernel's data about it.
struct Tss {
    bitmap: Bitmap,
    base: Base,
    /// Task whose bitmap the TSS holds. Only [`Way::Lazy`] uses it.
    owner: Option<Task>,
    /// Number of bytes up to the last one that may permit a port. Only [`Way::Lazy`] and [`Way::Sequence`] use it.
    used: usize,
    /// Sequence number of the bitmap in the TSS. No bitmap has number 0. Only [`Way::Sequence`] uses it.
    sequence: u64,
}

/// A bitmap. Under [`Way::Sequence`], several tasks may share a bitmap.
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
    /// Bitmaps by number. An unused number has `None`.
    held: Vec<Option<Held>>,
    /// Number of each task's bitmap. `None` for a task without a bitmap.
    tasks: Vec<Option<usize>>,
    current: Task,
    last_sequence: u64,
    /// Number of faults at which the kernel copied the task's bitmap into the TSS.
    pub faults: u64,
    /// Receives every access to memory that the kernel would make.
    pub lines: L,
}

impl<L: Lines> Machine<L> {
    /// Makes a machine with this number of tasks. No task may access a port, and task 0 runs.
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

    /// Returns the number of a task's bitmap, and counts the access to the task's structure.
    fn bitmap_of(&mut self, task: Task) -> Option<usize> {
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

    /// Copies the first bytes of a bitmap into the TSS.
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

    /// Does the work of a kernel's switch to the task `next`, which may be the running task.
    pub fn switch(&mut self, next: Task) {
        let before = self.current;
        self.current = next;
        let (from, to) = (self.bitmap_of(before), self.bitmap_of(next));
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
                let old = self.used(before);
                match to {
                    Some(number) => {
                        let bytes = old.max(self.used(next));
                        self.copy(number, bytes);
                    }
                    None => {
                        self.touch_tss(old);
                        self.tss.bitmap.forbid(0..old);
                    }
                }
            }
            Way::Lazy => {
                let is_loaded = to.is_some() && self.tss.owner == Some(next);
                self.set_base(if is_loaded {
                    Base::Valid
                } else {
                    Base::Invalid
                });
            }
            Way::Sequence => {
                if from.is_some() {
                    self.set_base(Base::Invalid);
                }
            }
        }
    }

    /// Returns from the kernel to the running program.
    pub fn return_to_user(&mut self) {
        if self.way != Way::Sequence {
            return;
        }
        let Some(number) = self.bitmap_of(self.current) else {
            return;
        };
        self.lines.touch(Area::Bitmap(number), BYTES..BYTES + 16);
        self.lines.touch(Area::TssHead, 0..32);
        let Some(held) = &self.held[number] else {
            return;
        };
        let (used, sequence) = (held.used, held.sequence);
        if self.tss.sequence != sequence {
            // The copy also overwrites bytes in which only the previous bitmap permitted ports.
            self.copy(number, used.max(self.tss.used));
            (self.tss.used, self.tss.sequence) = (used, sequence);
        }
        self.tss.base = Base::Valid;
    }

    /// Executes an `in` or `out` of the running program. Returns whether the instruction succeeds.
    pub fn access(&mut self, port: usize) -> bool {
        if self.permitted(port) {
            return true;
        }
        if self.way != Way::Lazy || self.tss.base == Base::Valid {
            return false;
        }
        let task = self.current;
        let Some(number) = self.bitmap_of(task) else {
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

    /// Returns whether the processor permits the port, according to the TSS.
    fn permitted(&mut self, port: usize) -> bool {
        self.lines.touch(Area::TssHead, 0..16);
        if self.tss.base == Base::Invalid {
            return false;
        }
        self.lines.touch(Area::TssBitmap, port / 8..port / 8 + 1);
        self.tss.bitmap.permits(port)
    }

    /// Executes ioperm() of the running task.
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
            // The first access copies the bitmap.
            Way::Lazy => {
                self.tss.owner = None;
                self.set_base(Base::Invalid);
            }
            Way::Sequence => {
                // A bitmap that permits no port is freed.
                if used == 0 {
                    self.set_base(Base::Invalid);
                    self.release(task);
                }
                self.return_to_user();
            }
        }
    }

    /// Returns the number of a bitmap that only this task has. If the task has no such bitmap, makes one first: a copy
    /// of its shared bitmap, or a new bitmap.
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

    /// Executes fork(): the child, which is not running, gets the running task's permissions.
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

    /// Ends a task that is not running. Its number may be used again.
    fn end_of(&mut self, task: Task) {
        self.release(task);
        if self.tss.owner == Some(task) {
            self.tss.owner = None;
        }
    }

    /// Drops the permissions of the running task, as when a task ends.
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
