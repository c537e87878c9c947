// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of the functions that suppressions ask for: what was called between the events of a report.

use super::calls::{Call, Calls, Node, Stack, concerns};
use arm::Mva;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Calls kept: the newest of all these functions together.
const KEPT: usize = 1 << 16;
/// Tasks that came back, kept: the newest.
const BACK: usize = 1 << 10;
/// Calls searched for the beginning of a writer's callers.
const SEARCHED: usize = 1 << 12;
/// Log2 of the slot size of FCSE, whose processes give the kernel addresses below it.
const SLOT: u32 = 25;

/// A function that is asked for with what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The function.
    pub function: Range<u32>,
    /// Only with one of these bits in an argument.
    pub bits: Option<Bits>,
}

/// Bits of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits {
    /// Which of r0 to r3.
    pub register: u8,
    /// The bits.
    pub mask: u32,
}

/// Functions by which reports are told apart, for each question that a list asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// Is it among the callers of what used or wrote the data?
    pub callers: Vec<Range<u32>>,
    /// Did the writer's callers call it next?
    pub then_called: Vec<Range<u32>>,
    /// Was the line filled while the writer's call of it ran, before the write?
    pub filled_in: Vec<Range<u32>>,
    /// Was it called with an address of the data, by the process of its use or its write, since the line was filled?
    pub called_since_fill: Vec<Given>,
    /// Was it called since the data was written?
    pub called_since: Vec<Range<u32>>,
    /// Had another task been switched away from inside it when the data was written?
    pub suspended_in: Vec<Range<u32>>,
}

impl Apart {
    /// Nobody asks for anything.
    pub fn is_empty(&self) -> bool {
        *self == Apart::default()
    }

    /// Asks for what another list asks for, too.
    pub fn extend(&mut self, other: Apart) {
        self.callers.extend(other.callers);
        self.then_called.extend(other.then_called);
        self.filled_in.extend(other.filled_in);
        self.called_since_fill.extend(other.called_since_fill);
        self.called_since.extend(other.called_since);
        self.suspended_in.extend(other.suspended_in);
    }

    /// Functions whose calls are kept: callers, too, as they say where a call of the writer's callers ends.
    fn calls(&self) -> impl Iterator<Item = &Range<u32>> {
        let lists = [
            &self.callers,
            &self.then_called,
            &self.filled_in,
            &self.called_since,
            &self.suspended_in,
        ];
        let given = self.called_since_fill.iter().map(|given| &given.function);
        lists.into_iter().flatten().chain(given)
    }
}

impl From<Vec<Range<u32>>> for Apart {
    fn from(callers: Vec<Range<u32>>) -> Apart {
        Apart {
            callers,
            ..Apart::default()
        }
    }
}

/// Functions that were called between the events of a report: addresses of their first instructions, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Between {
    /// [`Apart::then_called`].
    pub then_called: Vec<u32>,
    /// [`Apart::filled_in`].
    pub filled_in: Vec<u32>,
    /// [`Apart::called_since_fill`], with the bits that were asked for.
    pub called_since_fill: Vec<(u32, Option<Bits>)>,
    /// [`Apart::called_since`].
    pub called_since: Vec<u32>,
    /// [`Apart::suspended_in`].
    pub suspended_in: Vec<u32>,
    /// Whether the calls that are kept reach back to the write: if not, nothing is known of what was not called since.
    pub is_whole: bool,
    /// The same of the fill.
    pub is_whole_since_fill: bool,
}

/// The write and the fill that calls are placed by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Events {
    /// Cycle and place of the write.
    pub written: (u64, Node),
    /// The stack of the task that wrote.
    pub stack: Stack,
    /// Cycle of the fill of the line or TLB entry that was used.
    pub filled: Option<u64>,
    /// Modified virtual addresses of the data, that of its use and that of its write.
    pub addresses: [Mva; 2],
    /// Table bases of both.
    pub tables: [u32; 2],
}

/// The newest calls of the functions.
#[derive(Clone, Default)]
pub(super) struct CallLog {
    /// First instructions, in order, and a bit for each that one of them has.
    functions: Vec<u32>,
    filter: u64,
    calls: VecDeque<Call>,
    suspended: Suspended,
}

/// When tasks were switched away from inside of functions.
#[derive(Clone, Default)]
struct Suspended {
    /// First instructions of the functions.
    functions: Vec<u32>,
    /// Places of their calls, each with its function.
    inside: BTreeMap<Node, u32>,
    /// By the stack of a task that is away: the function, and since when.
    away: BTreeMap<u32, (u32, u64)>,
    /// The newest of those that came back: the function, since when and until when.
    back: VecDeque<(u32, u64, u64)>,
}

impl Suspended {
    fn note(&mut self, call: &Call) {
        if self.functions.contains(&call.to) {
            self.inside.insert(call.node, call.to);
        }
    }

    /// The task on one stack gives way to that on another.
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

    /// Functions that a task had been switched away from inside at that time.
    fn at(&self, cycle: u64) -> Vec<u32> {
        let away = self
            .away
            .values()
            .map(|(function, since)| (*function, *since, u64::MAX));
        let all = self.back.iter().copied().chain(away);
        let then = all.filter(|(_, since, until)| (*since..*until).contains(&cycle));
        let mut found: Vec<u32> = then.map(|(function, ..)| function).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn bit(pc: u32) -> u64 {
    1 << (pc >> 2 & 63)
}

impl CallLog {
    /// Keeps calls of these from now on.
    pub fn set(&mut self, apart: &Apart) {
        self.functions = apart.calls().map(|function| function.start).collect();
        self.functions.sort_unstable();
        self.functions.dedup();
        self.suspended.functions = apart.suspended_in.iter().map(|f| f.start).collect();
        self.filter = self.functions.iter().fold(0, |bits, pc| bits | bit(*pc));
    }

    /// Takes note of a call.
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

    /// The task on one stack, with these places, gives way to that on another.
    pub fn switched(&mut self, from: u32, frames: impl Iterator<Item = Node>, to: u32, cycle: u64) {
        self.suspended.switched(from, frames, to, cycle);
    }

    /// Calls from `cycle` on, oldest first.
    fn since(&self, cycle: u64) -> impl Iterator<Item = &Call> {
        let from = self.calls.partition_point(|call| call.cycle < cycle);
        self.calls.range(from..)
    }

    /// Calls before `cycle`, newest first.
    fn before(&self, cycle: u64) -> impl Iterator<Item = &Call> {
        let until = self.calls.partition_point(|call| call.cycle < cycle);
        self.calls.range(..until).rev()
    }

    fn reaches(&self, cycle: u64) -> bool {
        let oldest = self.calls.front();
        self.calls.len() < KEPT || oldest.is_some_and(|call| call.cycle < cycle)
    }
}

/// The functions of `all` among those that were called, each once, in order.
fn of<'a>(all: &[Range<u32>], called: impl Iterator<Item = &'a Call>) -> Vec<u32> {
    let is = |call: &&Call| all.iter().any(|function| function.start == call.to);
    let mut found: Vec<u32> = called.filter(is).map(|call| call.to).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The same of functions that are asked for with what they were given.
fn given<'a>(all: &[Given], called: impl Iterator<Item = &'a Call>) -> Vec<(u32, Option<Bits>)> {
    let has = |call: &Call, bits: Bits| {
        let argument = call.arguments.get(usize::from(bits.register));
        argument.is_some_and(|value| value & bits.mask != 0)
    };
    let is = |given: &&Given, call: &Call| {
        given.function.start == call.to && given.bits.is_none_or(|bits| has(call, bits))
    };
    let of = |call: &'a Call| all.iter().filter(move |given| is(given, call));
    let each = called.flat_map(of);
    let mut found: Vec<_> = each
        .map(|given| (given.function.start, given.bits))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The address that the kernel was given for a modified virtual one, where FCSE moved it.
fn unmoved(mva: u32) -> u32 {
    mva & ((1 << SLOT) - 1)
}

impl Calls {
    /// Which functions were called between the events of a report.
    pub(super) fn between(&self, apart: &Apart, events: Events) -> Between {
        let written = events.written.0;
        let filled_at = events.filled.unwrap_or(u64::MAX);
        let is_theirs = |call: &&Call| {
            let is_given = |at: u32| concerns(&call.arguments, at);
            let mut all = events.addresses.iter();
            // Other processes have other pages at these addresses.
            events.tables.contains(&call.ttb)
                && all.any(|at| is_given(at.0) || is_given(unmoved(at.0)))
        };
        let all = &self.asked;
        let asks_of_fill = !apart.called_since_fill.is_empty();
        let theirs = |filled| all.since(filled).filter(is_theirs);
        Between {
            then_called: match !apart.then_called.is_empty() && all.reaches(written) {
                true => of(&apart.then_called, self.next_by_callers(&events)),
                false => Vec::new(),
            },
            filled_in: match filled_at < written && !apart.filled_in.is_empty() {
                true => self.began_before(&apart.filled_in, filled_at, &events),
                false => Vec::new(),
            },
            called_since_fill: match events.filled {
                Some(filled) => given(&apart.called_since_fill, theirs(filled)),
                None => Vec::new(),
            },
            called_since: of(&apart.called_since, all.since(written + 1)),
            suspended_in: all.suspended.at(written),
            is_whole: !apart.called_since.is_empty() && all.reaches(written),
            is_whole_since_fill: asks_of_fill && events.filled.is_some_and(|at| all.reaches(at)),
        }
    }

    /// Calls behind a write by its callers, until one of those is called anew.
    fn next_by_callers(&self, events: &Events) -> impl Iterator<Item = &Call> {
        let ((cycle, node), stack) = (events.written, events.stack);
        let callers = self.ancestors(self.parent(node));
        let by = callers.clone();
        let is_anew = move |call: &&Call| !callers.contains(&call.node);
        let its = move |call: &&Call| call.stack == stack;
        let behind = self.asked.since(cycle + 1).filter(its).take_while(is_anew);
        behind.filter(move |call| by.contains(&self.parent(call.node)))
    }

    /// A place and those that it was called from, without the one outside of all calls.
    fn ancestors(&self, mut node: Node) -> Vec<Node> {
        let mut all = Vec::new();
        while node != 0 {
            all.push(node);
            node = self.parent(node);
        }
        all
    }

    /// Of the writer's callers those that had been called before `cycle`, for the call that wrote.
    fn began_before(&self, functions: &[Range<u32>], cycle: u64, events: &Events) -> Vec<u32> {
        let ((written, node), stack) = (events.written, events.stack);
        let callers = self.ancestors(node);
        let its = |call: &&Call| call.stack == stack;
        let calls = || self.asked.before(written + 1).take(SEARCHED).filter(its);
        let last = |place: &Node| calls().find(|call| call.node == *place);
        let began = callers.iter().filter_map(last);
        of(functions, began.filter(|call| call.cycle <= cycle))
    }
}

#[cfg(test)]
#[path = "call_log_tests.rs"]
mod tests;
