// SPDX-License-Identifier: MIT OR Apache-2.0
//! The call tree of the kernel. The sum of cycles over its calls equals the sum over the ledger's cells.
//!
//! When execution reaches a function's first instruction, this is a call. When execution reaches the return address of
//! a call, with the stack pointer of that call, this is a return. In all other cases, for instance after an exception,
//! execution continues in the function's innermost call. If the function has no call, a call begins.

use super::functions::Function;
use super::table::Table;
use super::{Cycles, Owner, TaskId};
use arm::Cause;
use std::collections::BTreeMap;

/// Number of a [`Call`].
pub type CallId = u32;

/// Maximum number of frames of a stack. A kernel stack holds a few kilobytes, so a deeper stack is wrong and is
/// cleared.
const DEEPEST: usize = 256;
/// Size and alignment of a task's kernel stack, in bytes (Linux arch/arm/include/asm/thread_info.h, THREAD_SIZE).
const STACK: u32 = 0x2000;
/// Stands for an unknown return address of a frame. No instruction has an odd address.
const NOWHERE: u32 = 1;
/// Bit that marks a root in the key of a call. In the key of a root, the number of the place replaces the caller.
const ROOT: u64 = 1 << 31;

/// All calls of a function by one chain of callers, in one task or interrupt.
#[derive(Clone, Debug)]
pub struct Call {
    /// The caller. `None` for user land, or if the caller is unknown.
    pub caller: Option<CallId>,
    /// The owner, including the function.
    pub owner: Owner,
    /// Number of calls.
    pub count: u64,
    spent: [i64; Cause::COUNT],
}

impl Call {
    /// Returns the cycles of the call by cause. The cycles of its callees are not included.
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

/// A transfer of execution to another function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub function: Function,
    /// Whether `pc` is the function's first instruction.
    pub first: bool,
    pub pc: u32,
    pub stack: u32,
    pub link: u32,
}

/// Returns the number of the kernel stack that contains a stack pointer.
fn stack_of(pointer: u32) -> u32 {
    pointer.wrapping_sub(1) / STACK
}

/// Follows calls.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// For each caller and function: the number of the call plus 1, or 0 if there is no call.
    of: Table<u32>,
    /// The current place: its number in the ledger, and an owner in it.
    place: (usize, Owner),
    frames: Vec<Frame>,
    /// Frames of the tasks that are not running.
    stacks: BTreeMap<TaskId, Vec<Frame>>,
    /// Frames of interrupted code, the outermost first.
    interrupted: Vec<Vec<Frame>>,
    now: CallId,
    /// Stack of the previous task. Kept while a new task still uses this stack.
    new_from: Option<u32>,
    /// Charges for fetching an instruction of a function that execution has not reached yet.
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

    /// Returns the current call.
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

    /// Charges the next cycles to this function, because one of its instructions is being fetched.
    pub fn go_ahead(&mut self, function: Function) {
        self.charge_ahead();
        self.ahead = Some((function, [0; Cause::COUNT]));
    }

    /// Charges the fetch of an instruction that was not executed. The charge goes to user land, to the caller to which
    /// execution would have returned, or to the function that would have been called.
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

    /// Returns the call of a function whose caller is frame number `frames`, counted from 1.
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

    /// Continues in the innermost frame if that frame belongs to `function`. Otherwise, pushes a frame for `function`.
    fn go_on_in(&mut self, function: Function, stack: u32) {
        if self.frames.last().map(|frame| frame.function) != Some(function) {
            self.push(function, NOWHERE, stack);
        }
        self.now = self.frames.last().map_or(0, |frame| frame.call);
    }

    /// Follows a transfer of execution to another function.
    pub fn arrived(&mut self, to: Arrival) {
        let ahead = (self.ahead).take_if(|(function, _)| *function == to.function);
        self.charge_ahead();
        match to.function {
            // In code without a known function, every instruction is an arrival.
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
            // An exception may return to the function's first instruction. This return is not a new call. The signs of
            // such a return are an equal function, return address and stack pointer.
            true => (f.function, f.back, f.stack) == (to.function, to.link, to.stack),
            false => f.function == to.function && f.stack >= to.stack,
        };
        // During a call, the stack pointer is never above its value at the start of the call.
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
            // When a callee returns, a function that ended with a tail call to it returns too.
            while frames.last().is_some_and(returns) {
                frames.pop();
            }
            // Frames above this frame may belong to calls that began in the middle of their function.
            let is_it = |f: &Frame| f.function == to.function && f.stack >= to.stack;
            if let Some(same) = frames.iter().rposition(is_it) {
                frames.truncate(same + 1);
            }
        } else if let Some(here) = frames.iter().rposition(is_here) {
            frames.truncate(here + 1);
        } else if to.first {
            self.push(to.function, to.link, to.stack);
        }
        self.go_on_in(to.function, to.stack);
    }

    /// Begins an interrupt.
    pub fn interrupt(&mut self) {
        self.charge_ahead();
        let frames = core::mem::take(&mut self.frames);
        self.interrupted.push(frames);
    }

    /// Follows an exception from user land, possibly before its first instruction.
    pub fn arrived_from_user(&mut self) {
        self.charge_ahead();
        self.frames.clear();
        self.interrupted.clear();
        self.go_on_in(Function::USER, u32::MAX);
    }

    /// Ends an interrupt, and returns the interrupted call. The interrupt's exit code counts as a callee of the
    /// interrupted call.
    pub fn interrupt_ended(&mut self) -> Option<CallId> {
        self.charge_ahead();
        let mut frames = self.interrupted.pop().unwrap_or_default();
        let interrupted = frames.last().map(|frame| frame.call);
        frames.append(&mut self.frames);
        self.frames = frames;
        interrupted
    }

    /// Switches tasks. Drops the frames of `before` if this task has `ended`. A new task still uses the stack of
    /// `before` for a moment.
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

    /// Changes the owner of cycles. From now on, the open frames count as calls of the new place.
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

    /// Stays in this function after a change of place.
    pub fn stay(&mut self, function: Function, stack: u32) {
        self.go_on_in(function, stack);
    }
}
