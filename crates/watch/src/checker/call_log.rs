// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of the functions that suppressions name. For each report, the log shows which of these functions were called
//! between the events of the report.

use super::calls::{Call, Calls, Node, Stack, concerns};
use arm::{AddressSpace, Mva};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Number of calls kept, over all functions. Only the newest calls are kept.
const KEPT: usize = 1 << 16;
/// Number of resumed tasks kept. Only the newest are kept.
const BACK: usize = 1 << 10;
/// Maximum number of calls that a search for the callers of a write examines.
const SEARCHED: usize = 1 << 12;
/// Log2 of FCSE's slot size. FCSE processes pass addresses below the slot size to the kernel.
const SLOT: u32 = 25;

/// A function and a condition on one of its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The function.
    pub function: Range<u32>,
    /// Condition: at least one of these bits of the argument is set. `None` accepts every call.
    pub bits: Option<Bits>,
}

/// Bits of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits {
    /// Register of the argument: 0 to 3 for r0 to r3.
    pub register: u8,
    /// The bits.
    pub mask: u32,
}

/// Functions that distinguish reports: a list for each question that a suppression can ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distinctions {
    /// Is the function among the callers of the access or of the writer?
    pub callers: Vec<Range<u32>>,
    /// Is the function the direct caller of the access or of the writer?
    pub direct_callers: Vec<Range<u32>>,
    /// After the write, did the writer's callers call the function? Calls count until one of these callers is called
    /// again.
    pub then_called: Vec<Range<u32>>,
    /// Was the line filled before the write, when the function that led to the write was already running?
    pub filled_in: Vec<Range<u32>>,
    /// Since the line was filled, did the process that used or wrote the data call the function with an address of the
    /// data?
    pub called_since_fill: Vec<Given>,
    /// Was the function called after the data was written?
    pub called_since: Vec<Range<u32>>,
    /// When the data was written, was another task suspended inside the function?
    pub suspended_in: Vec<Range<u32>>,
}

impl Distinctions {
    /// Returns whether all lists are empty.
    pub fn is_empty(&self) -> bool {
        *self == Distinctions::default()
    }

    /// Adds the functions of `other`.
    pub fn extend(&mut self, other: Distinctions) {
        self.callers.extend(other.callers);
        self.direct_callers.extend(other.direct_callers);
        self.then_called.extend(other.then_called);
        self.filled_in.extend(other.filled_in);
        self.called_since_fill.extend(other.called_since_fill);
        self.called_since.extend(other.called_since);
        self.suspended_in.extend(other.suspended_in);
    }

    /// Returns the functions whose calls are kept. They include `callers`, because the search for `then_called` ends
    /// when a caller of the writer is called again.
    fn calls(&self) -> impl Iterator<Item = &Range<u32>> {
        let lists = [
            &self.callers,
            &self.then_called,
            &self.filled_in,
            &self.called_since,
            &self.suspended_in,
        ];
        let with_condition = self.called_since_fill.iter().map(|given| &given.function);
        lists.into_iter().flatten().chain(with_condition)
    }
}

impl From<Vec<Range<u32>>> for Distinctions {
    fn from(callers: Vec<Range<u32>>) -> Distinctions {
        Distinctions {
            callers,
            ..Distinctions::default()
        }
    }
}

/// Functions called between the events of a report. Each function appears once, as the address of its first
/// instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Between {
    /// [`Distinctions::then_called`].
    pub then_called: Vec<u32>,
    /// [`Distinctions::filled_in`].
    pub filled_in: Vec<u32>,
    /// [`Distinctions::called_since_fill`]. Each function has the bits of its condition.
    pub called_since_fill: Vec<(u32, Option<Bits>)>,
    /// [`Distinctions::called_since`].
    pub called_since: Vec<u32>,
    /// [`Distinctions::suspended_in`].
    pub suspended_in: Vec<u32>,
    /// Whether the kept calls reach back to the write. If not, more functions may have been called.
    pub is_whole: bool,
    /// Whether the kept calls reach back to the fill.
    pub is_whole_since_fill: bool,
}

/// The events of a report. The call log looks for calls between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Events {
    /// Cycle and call-tree node of the write.
    pub written: (u64, Node),
    /// Stack of the task that wrote.
    pub stack: Stack,
    /// Cycle in which the used line or TLB entry was filled.
    pub filled: Option<u64>,
    /// Modified virtual addresses of the use and of the write. An address is `None` if no instruction made the use or
    /// the write.
    pub addresses: [Option<Mva>; 2],
    /// Address spaces of the use and of the write.
    pub spaces: [AddressSpace; 2],
}

/// The newest calls of the functions in [`Distinctions`].
#[derive(Clone, Default)]
pub(super) struct CallLog {
    /// Sorted addresses of the functions' first instructions, and a Bloom filter of these addresses.
    functions: Vec<u32>,
    filter: u64,
    calls: VecDeque<Call>,
    suspended: Suspended,
}

/// Tasks that were switched out inside certain functions.
#[derive(Clone, Default)]
struct Suspended {
    /// First instructions of the functions.
    functions: Vec<u32>,
    /// Call-tree nodes of these functions. The value is the function.
    inside: BTreeMap<Node, u32>,
    /// Suspended tasks by their stack. Each has the function, and the cycle of the switch.
    away: BTreeMap<u32, (u32, u64)>,
    /// The newest resumed tasks. Each has the function, and the cycles of suspension and resumption.
    back: VecDeque<(u32, u64, u64)>,
}

impl Suspended {
    fn note(&mut self, call: &Call) {
        if self.functions.contains(&call.to) {
            self.inside.insert(call.node, call.to);
        }
    }

    /// Records a switch from the task on stack `from`, with these frames, to the task on stack `to`.
    fn switched(&mut self, from: u32, mut frames: impl Iterator<Item = Node>, to: u32, cycle: u64) {
        if let Some(function) = frames.find_map(|node| self.inside.get(&node)) {
            self.away.insert(from, (*function, cycle));
        }
        if let Some((function, since)) = self.away.remove(&to) {
            if self.back.len() == BACK {
                self.back.pop_front();
            }
            self.back.push_back((function, since, cycle));
        }
    }

    /// Returns the functions inside which a task was suspended at `cycle`.
    fn at(&self, cycle: u64) -> Vec<u32> {
        let away = self
            .away
            .values()
            .map(|(function, since)| (*function, *since, u64::MAX));
        let all = self.back.iter().copied().chain(away);
        let suspended = all.filter(|(_, since, until)| (*since..*until).contains(&cycle));
        let mut found: Vec<u32> = suspended.map(|(function, ..)| function).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn bit(pc: u32) -> u64 {
    1 << (pc >> 2 & 63)
}

impl CallLog {
    /// Keeps calls of these functions from now on.
    pub fn set(&mut self, distinctions: &Distinctions) {
        self.functions = distinctions
            .calls()
            .map(|function| function.start)
            .collect();
        self.functions.sort_unstable();
        self.functions.dedup();
        self.suspended.functions = distinctions.suspended_in.iter().map(|f| f.start).collect();
        self.filter = self.functions.iter().fold(0, |bits, pc| bits | bit(*pc));
    }

    /// Keeps a call if the log keeps calls of its function.
    #[inline]
    pub fn note(&mut self, call: &Call) {
        if self.filter & bit(call.to) != 0 && self.functions.binary_search(&call.to).is_ok() {
            if self.calls.len() == KEPT {
                self.calls.pop_front();
            }
            self.calls.push_back(*call);
            self.suspended.note(call);
        }
    }

    /// Records a switch from the task on stack `from`, whose frames have these nodes, to the task on stack `to`.
    pub fn switched(&mut self, from: u32, frames: impl Iterator<Item = Node>, to: u32, cycle: u64) {
        self.suspended.switched(from, frames, to, cycle);
    }

    /// Returns the calls from `cycle` on, oldest first.
    fn since(&self, cycle: u64) -> impl Iterator<Item = &Call> {
        let from = self.calls.partition_point(|call| call.cycle < cycle);
        self.calls.range(from..)
    }

    /// Returns the calls before `cycle`, newest first.
    fn before(&self, cycle: u64) -> impl Iterator<Item = &Call> {
        let until = self.calls.partition_point(|call| call.cycle < cycle);
        self.calls.range(..until).rev()
    }

    /// Returns whether the kept calls reach back to `cycle`.
    fn reaches(&self, cycle: u64) -> bool {
        let oldest = self.calls.front();
        self.calls.len() < KEPT || oldest.is_some_and(|call| call.cycle < cycle)
    }
}

/// Returns the functions in `all` that were called, sorted, without duplicates.
fn called_of<'a>(all: &[Range<u32>], called: impl Iterator<Item = &'a Call>) -> Vec<u32> {
    let is = |call: &&Call| all.iter().any(|function| function.start == call.to);
    let mut found: Vec<u32> = called.filter(is).map(|call| call.to).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the functions in `all` that were called with an argument that meets their condition, sorted, without
/// duplicates.
fn called_with<'a>(
    all: &[Given],
    called: impl Iterator<Item = &'a Call>,
) -> Vec<(u32, Option<Bits>)> {
    let has = |call: &Call, bits: Bits| {
        let argument = call.arguments.get(usize::from(bits.register));
        argument.is_some_and(|value| value & bits.mask != 0)
    };
    let is = |given: &&Given, call: &Call| {
        given.function.start == call.to && given.bits.is_none_or(|bits| has(call, bits))
    };
    let met = |call: &'a Call| all.iter().filter(move |given| is(given, call));
    let each = called.flat_map(met);
    let mut found: Vec<_> = each
        .map(|given| (given.function.start, given.bits))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the address that an FCSE process passes to the kernel for an MVA.
fn unrelocated(mva: u32) -> u32 {
    mva & ((1 << SLOT) - 1)
}

impl Calls {
    /// Returns the functions called between the events of a report.
    pub(super) fn between(&self, distinctions: &Distinctions, events: Events) -> Between {
        let written = events.written.0;
        let filled_at = events.filled.unwrap_or(u64::MAX);
        let is_of_process = |call: &&Call| {
            let is_given = |at: u32| concerns(&call.arguments, at);
            let mut all = events.addresses.iter().flatten();
            // In another process, an equal address leads to another page, so calls by other processes do not count.
            events.spaces.contains(&call.space)
                && all.any(|at| is_given(at.0) || is_given(unrelocated(at.0)))
        };
        let all = &self.call_log;
        let asks_of_fill = !distinctions.called_since_fill.is_empty();
        let calls_of_process = |filled| all.since(filled).filter(is_of_process);
        Between {
            then_called: match !distinctions.then_called.is_empty() && all.reaches(written) {
                true => called_of(&distinctions.then_called, self.next_by_callers(&events)),
                false => Vec::new(),
            },
            filled_in: match filled_at < written && !distinctions.filled_in.is_empty() {
                true => self.began_before(&distinctions.filled_in, filled_at, &events),
                false => Vec::new(),
            },
            called_since_fill: match events.filled {
                Some(filled) => {
                    called_with(&distinctions.called_since_fill, calls_of_process(filled))
                }
                None => Vec::new(),
            },
            called_since: called_of(&distinctions.called_since, all.since(written + 1)),
            suspended_in: all.suspended.at(written),
            is_whole: !distinctions.called_since.is_empty() && all.reaches(written),
            is_whole_since_fill: asks_of_fill && events.filled.is_some_and(|at| all.reaches(at)),
        }
    }

    /// Returns the calls that the writer's callers made after the write, until one of these callers was called again.
    fn next_by_callers(&self, events: &Events) -> impl Iterator<Item = &Call> {
        let ((cycle, node), stack) = (events.written, events.stack);
        let callers = self.ancestors(self.parent(node));
        let by = callers.clone();
        let is_not_repeated = move |call: &&Call| !callers.contains(&call.node);
        let is_on_stack = move |call: &&Call| call.stack == stack;
        let later = self.call_log.since(cycle + 1).filter(is_on_stack);
        let until_repeated = later.take_while(is_not_repeated);
        until_repeated.filter(move |call| by.contains(&self.parent(call.node)))
    }

    /// Returns a node and its ancestors, without the root.
    fn ancestors(&self, mut node: Node) -> Vec<Node> {
        let mut all = Vec::new();
        while node != 0 {
            all.push(node);
            node = self.parent(node);
        }
        all
    }

    /// Returns which of `functions` had been called by `cycle`, in the chain of calls that led to the write.
    fn began_before(&self, functions: &[Range<u32>], cycle: u64, events: &Events) -> Vec<u32> {
        let ((written, node), stack) = (events.written, events.stack);
        let callers = self.ancestors(node);
        let is_on_stack = |call: &&Call| call.stack == stack;
        let before = || self.call_log.before(written + 1).take(SEARCHED);
        let calls = || before().filter(is_on_stack);
        let last = |node: &Node| calls().find(|call| call.node == *node);
        let began = callers.iter().filter_map(last);
        called_of(functions, began.filter(|call| call.cycle <= cycle))
    }
}

#[cfg(test)]
#[path = "call_log_tests.rs"]
mod tests;
