// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who called whom: a tree of calls in the kernel, whose cycles come to those of the ledger's cells.
//!
//! What comes to a function's first instruction calls it; what comes to where a call returns to, with the stack pointer
//! that it had, returns. What does neither, as behind an exception, goes on in the innermost call of that function, or
//! else begins one.

use super::functions::Function;
use super::table::Table;
use super::{Cycles, Owner, TaskId};
use arm::Cause;
use std::collections::BTreeMap;

/// Number of a [`Call`].
pub type CallId = u32;

/// A deeper stack has lost its way, as a kernel's holds a few kilobytes, and begins anew.
const DEEPEST: usize = 256;
/// Bytes of a task's stack in the kernel, and its alignment (Linux arch/arm/include/asm/thread_info.h, THREAD_SIZE).
const STACK: u32 = 0x2000;
/// A frame of which it is not known where it returns to: no instruction is there.
const NOWHERE: u32 = 1;
/// In place of a caller's number, with that of the place: a root's.
const ROOT: u64 = 1 << 31;

/// A function called by the same chain of callers, of the same task or interrupt.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who called; none where that is not known, and of user land.
    pub caller: Option<CallId>,
    /// Whose, and the function.
    pub owner: Owner,
    /// How often it was called.
    pub count: u64,
    spent: [i64; Cause::COUNT],
}

impl Call {
    /// What its own cycles went for, without those of what it called.
    pub fn cycles(&self) -> Cycles {
        self.spent.map(|cycles| cycles.max(0) as u64)
    }
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct Frame {
    call: CallId,
    function: Function,
    back: u32,
    stack: u32,
}

/// Where execution has come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub function: Function,
    /// This is its first instruction.
    pub first: bool,
    pub pc: u32,
    pub stack: u32,
    pub link: u32,
}

/// Which of the kernel's stacks a stack pointer is in.
fn stack_of(pointer: u32) -> u32 {
    pointer.wrapping_sub(1) / STACK
}

/// Follows calls.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// By caller and function: number of the call, and 1.
    of: Table<u32>,
    /// The task or interrupt, by the ledger's number, and its like for an owner.
    place: (usize, Owner),
    frames: Vec<Frame>,
    /// Of tasks that do not run.
    stacks: BTreeMap<TaskId, Vec<Frame>>,
    /// Of what interrupts have interrupted.
    interrupted: Vec<Vec<Frame>>,
    now: CallId,
    /// The task that runs was not seen before, and still uses the stack of the one before it, which is this one.
    new_from: Option<u32>,
    /// What was charged on the way to a function that execution has not come to yet.
    ahead: Option<(Function, [i64; Cause::COUNT])>,
}

impl Calls {
    pub fn new(owner: Owner) -> Calls {
        Calls {
            calls: Vec::new(),
            of: Table::new(),
            place: (0, owner),
            frames: Vec::new(),
            stacks: BTreeMap::new(),
            interrupted: Vec::new(),
            now: 0,
            new_from: None,
            ahead: None,
        }
    }

    pub fn all(&self) -> &[Call] {
        &self.calls
    }

    /// Where execution is.
    pub fn now(&self) -> CallId {
        self.now
    }

    #[inline]
    pub fn spent(&mut self, cause: Cause, cycles: i64) {
        let spent = match &mut self.ahead {
            Some((_, spent)) => spent,
            None => &mut self.calls[self.now as usize].spent,
        };
        spent[cause as usize] += cycles;
    }

    /// Cycles are those of an instruction of this function, which is about to be executed.
    pub fn go_ahead(&mut self, function: Function) {
        self.charge_ahead();
        self.ahead = Some((function, [0; Cause::COUNT]));
    }

    /// Execution has not come there: to user land, back to one of those that called, or to what would have been called.
    fn charge_ahead(&mut self) {
        if let Some((function, spent)) = self.ahead.take() {
            let of_function = |frame: &&Frame| frame.function == function;
            let call = match self.frames.iter().rev().find(of_function) {
                Some(frame) => frame.call,
                None if function == Function::USER => self.call(0, function),
                None => self.call(self.frames.len(), function),
            };
            self.add(call, spent);
        }
    }

    fn add(&mut self, call: CallId, spent: [i64; Cause::COUNT]) {
        let sums = self.calls[call as usize].spent.iter_mut();
        sums.zip(spent).for_each(|(sum, cycles)| *sum += cycles);
    }

    /// The call of a function by the innermost of so many frames.
    fn call(&mut self, frames: usize, function: Function) -> CallId {
        let caller = frames.checked_sub(1).map(|n| self.frames[n].call);
        let from = caller.map_or(ROOT | self.place.0 as u64, u64::from);
        let slot = self.of.at(from << 32 | function.index() as u64);
        if *slot == 0 {
            *slot = self.calls.len() as u32 + 1;
            let owner = Owner {
                function,
                ..self.place.1
            };
            self.calls.push(Call {
                caller,
                owner,
                count: 0,
                spent: [0; Cause::COUNT],
            });
        }
        *slot - 1
    }

    fn push(&mut self, function: Function, back: u32, stack: u32) {
        if self.frames.len() == DEEPEST {
            self.frames.clear();
        }
        let call = self.call(self.frames.len(), function);
        self.calls[call as usize].count += 1;
        self.frames.push(Frame {
            call,
            function,
            back,
            stack,
        });
    }

    /// The innermost call is one of that function.
    fn go_on_in(&mut self, function: Function, stack: u32) {
        if self.frames.last().map(|frame| frame.function) != Some(function) {
            self.push(function, NOWHERE, stack);
        }
        self.now = self.frames.last().map_or(0, |frame| frame.call);
    }

    /// Execution came to another function.
    pub fn arrived(&mut self, to: Arrival) {
        let ahead = (self.ahead).take_if(|(function, _)| *function == to.function);
        self.charge_ahead();
        match to.function {
            // What has no name is entered with each of its instructions.
            Function::OTHER => self.now = self.call(self.frames.len(), to.function),
            Function::USER => {
                self.frames.clear();
                self.interrupted.clear();
                self.go_on_in(to.function, u32::MAX);
            }
            _ => self.arrived_in_kernel(to),
        }
        if let Some((_, spent)) = ahead {
            self.add(self.now, spent);
        }
    }

    fn arrived_in_kernel(&mut self, to: Arrival) {
        let frames = &mut self.frames;
        let returns = |f: &Frame| f.back == to.pc && f.stack == to.stack;
        let is_here = |f: &Frame| match to.first {
            // An exception's return to it.
            true => (f.function, f.back, f.stack) == (to.function, to.link, to.stack),
            false => f.function == to.function && f.stack >= to.stack,
        };
        // While a call lasts its stack is not above where it began.
        let is_over = |f: &Frame| f.stack < to.stack && stack_of(f.stack) == stack_of(to.stack);
        while frames.last().is_some_and(is_over) {
            frames.pop();
        }
        if self
            .new_from
            .is_some_and(|stack| stack != stack_of(to.stack))
        {
            self.new_from = None;
            frames.clear();
        }
        if let Some(last) = frames.iter().rposition(returns) {
            frames.truncate(last);
            // One that ends with a jump to another returns where that does.
            while frames.last().is_some_and(returns) {
                frames.pop();
            }
            // What is between may have begun nobody knows where.
            let is_it = |f: &Frame| f.function == to.function && f.stack >= to.stack;
            if let Some(here) = frames.iter().rposition(is_it) {
                frames.truncate(here + 1);
            }
        } else if let Some(here) = frames.iter().rposition(is_here) {
            frames.truncate(here + 1);
        } else if to.first {
            self.push(to.function, to.link, to.stack);
        }
        self.go_on_in(to.function, to.stack);
    }

    /// An interrupt is taken.
    pub fn interrupt(&mut self) {
        self.charge_ahead();
        let frames = core::mem::take(&mut self.frames);
        self.interrupted.push(frames);
    }

    /// An exception comes from user land, where perhaps no instruction was executed yet.
    pub fn arrived_from_user(&mut self) {
        self.charge_ahead();
        self.frames.clear();
        self.interrupted.clear();
        self.go_on_in(Function::USER, u32::MAX);
    }

    /// It was handled; gives what was interrupted. Its way out is called by that.
    pub fn interrupt_ended(&mut self) -> Option<CallId> {
        self.charge_ahead();
        let mut frames = self.interrupted.pop().unwrap_or_default();
        let interrupted = frames.last().map(|frame| frame.call);
        frames.append(&mut self.frames);
        self.frames = frames;
        interrupted
    }

    /// The task changes, `before` for good if that has `ended`; its stack is still in use.
    pub fn switch(&mut self, (before, to): (TaskId, TaskId), ended: bool, stack: u32) {
        self.charge_ahead();
        let next = self.stacks.remove(&to);
        self.new_from = next.is_none().then(|| stack_of(stack));
        let next = next.unwrap_or_default();
        let frames = core::mem::replace(&mut self.frames, next);
        if !ended {
            self.stacks.insert(before, frames);
        }
    }

    /// Whose cycles these are has changed, in a call of that function: what has not returned goes on there.
    pub fn take_place(&mut self, place: (usize, Owner)) {
        self.charge_ahead();
        self.place = place;
        for n in 0..self.frames.len() {
            let call = self.call(n, self.frames[n].function);
            self.frames[n].call = call;
        }
        self.now = match self.frames.last() {
            Some(frame) => frame.call,
            None => self.call(0, Function::OTHER),
        };
    }

    /// After a change of place execution is still in this function.
    pub fn stay(&mut self, function: Function, stack: u32) {
        self.go_on_in(function, stack);
    }
}
