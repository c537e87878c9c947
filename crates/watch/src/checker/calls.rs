// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who called whom in privileged code, followed by the order of instructions.
//!
//! A call is a BL, or a BLX of a register, that got where it leads; its frame is gone when
//! execution comes to its return address with its stack pointer, or when the stack pointer is
//! above. Stacks are told apart by their 8 KB, as Linux aligns them. Calls in tail position leave no
//! frame, as in any backtrace, and one that an interrupt separates from its function is missed.
//! Functions that inlining has swallowed are their callers.

use super::call_log::CallLog;
use super::shadow::Writer;
use arm::{Context, Mva, Width};
use std::collections::BTreeMap;

/// A place in the tree of calls: all frames there were, as one number. 0 is outside.
pub(crate) type Node = u32;

/// A task's stack: the low bits of its number. Stacks 512 MB apart share one, so that a word's writer stays small.
pub(super) type Stack = u16;

/// The stack of a stack pointer's top bits.
pub(super) fn stack(top: u32) -> Stack {
    top as Stack
}

/// A call, and what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Virtual address of the calling instruction.
    pub from: u32,
    /// Virtual address of the function.
    pub to: u32,
    pub(super) node: Node,
    /// The stack that it is on.
    pub(super) stack: Stack,
    /// Table base.
    pub(super) ttb: u32,
    /// r0 to r3.
    pub(super) arguments: [u32; 4],
}

/// A new translation table base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Virtual address of the instruction that wrote it.
    pub pc: u32,
    /// Its callers: virtual addresses of their calls, innermost first.
    pub callers: Vec<u32>,
}

/// Log2 of a stack's size: Linux's THREAD_SIZE.
const STACK: u32 = 13;
/// Calls kept: the newest million.
const KEPT: usize = 1 << 20;
/// Places in the tree; calls from beyond are those of their callers.
const NODES: usize = 1 << 22;
/// Slots of the table in front of the tree.
const RECENT: usize = 1 << 14;
/// Frames of a stack; more are a mistake of ours.
const DEPTH: usize = 256;
/// Vectors: no call leads there.
const VECTORS: u32 = 0xffff_0000;
/// Bytes of the longest range that two arguments are taken for.
const RANGE: u32 = 1 << 20;
/// Calls looked at behind a write for what its callers did next.
const NEXT: usize = 200;

#[derive(Clone, Copy)]
struct Frame {
    sp: u32,
    back: u32,
    node: Node,
    /// Core cycle of the call.
    since: u64,
}

/// The calls of a run.
#[derive(Clone)]
pub(crate) struct Calls {
    /// Caller and return address of each place.
    nodes: Vec<(Node, u32)>,
    children: BTreeMap<(Node, u32), Node>,
    recent: Vec<(Node, u32, Node)>,
    /// Stacks but the current one, by the top bits of their addresses.
    stacks: BTreeMap<u32, Vec<Frame>>,
    stack: u32,
    frames: Vec<Frame>,
    /// The instruction before, where the next one in order is, and the table base.
    word: u32,
    next: u32,
    ttb: u32,
    switch: (u64, u32, Node),
    ring: Vec<Call>,
    at: usize,
    /// Calls of functions that a list of suppressions asks for.
    pub(super) asked: CallLog,
    /// Instructions that are counted; a bit of the first for each that one of them has.
    counted: Vec<u32>,
    filter: u64,
    count: u64,
}

impl Calls {
    pub fn new() -> Calls {
        Calls {
            nodes: vec![(0, 0)],
            children: BTreeMap::new(),
            recent: vec![(0, 0, 0); RECENT],
            stacks: BTreeMap::new(),
            stack: 0,
            frames: Vec::new(),
            word: 0,
            next: 0,
            ttb: 0,
            switch: (0, 0, 0),
            ring: Vec::new(),
            at: 0,
            asked: CallLog::default(),
            counted: Vec::new(),
            filter: 0,
            count: 0,
        }
    }

    /// Counts executions of these instructions of privileged code from now on.
    pub fn set_counted(&mut self, pcs: &[u32]) {
        self.counted = pcs.to_vec();
        self.filter = pcs.iter().fold(0, |bits, pc| bits | 1 << (pc >> 2 & 63));
        self.count = 0;
    }

    /// How often any of them was executed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// An instruction is about to be executed.
    #[inline]
    pub fn fetched(&mut self, context: &Context, width: Width, word: u32, registers: &[u32; 16]) {
        if is_user(context) {
            // Whoever is back in user land has returned from everything.
            self.next = 0;
            self.frames.clear();
            return;
        }
        if self.filter >> (context.pc >> 2 & 63) & 1 != 0 && self.counted.contains(&context.pc) {
            self.count += 1;
        }
        if context.pc != self.next {
            self.jumped(context, registers);
        }
        if context.ttb != self.ttb {
            self.switched(context);
        }
        self.next = context.pc.wrapping_add(width.bytes());
        self.word = word;
    }

    /// Where the current instruction was called from.
    #[inline]
    pub fn now(&self, context: &Context) -> Node {
        match self.frames.last() {
            Some(frame) if !is_user(context) => frame.node,
            _ => 0,
        }
    }

    /// The stack of the current instruction.
    #[inline]
    pub fn stack(&self) -> Stack {
        stack(self.stack)
    }

    /// Since when the outermost of the functions runs that have led here: the task's system call, as a rule.
    pub fn began(&self, context: &Context) -> Option<u64> {
        let outermost = self.frames.first().filter(|_| !is_user(context));
        outermost.map(|frame| frame.since)
    }

    #[inline(never)]
    fn jumped(&mut self, context: &Context, registers: &[u32; 16]) {
        let (pc, sp) = (context.pc, registers[13]);
        if sp >> STACK != self.stack {
            let other = self.stacks.remove(&(sp >> STACK)).unwrap_or_default();
            let left = core::mem::replace(&mut self.frames, other);
            let places = left.iter().map(|frame| frame.node);
            self.asked
                .switched(self.stack, places, sp >> STACK, context.cycle);
            self.stacks.insert(self.stack, left);
            self.stack = sp >> STACK;
        }
        while self.frames.last().is_some_and(|f| f.sp < sp) {
            self.frames.pop();
        }
        let (back, from) = (self.next, self.next.wrapping_sub(4));
        if self.next != 0 && pc < VECTORS && leads(self.word, from, pc) {
            let caller = self.frames.last().map_or(0, |f| f.node);
            let node = self.child(caller, back);
            if self.frames.len() < DEPTH {
                self.frames.push(Frame {
                    sp,
                    back,
                    node,
                    since: context.cycle,
                });
            }
            let arguments = [registers[0], registers[1], registers[2], registers[3]];
            self.note(Call {
                cycle: context.cycle,
                from,
                to: pc,
                node,
                stack: stack(self.stack),
                ttb: context.ttb,
                arguments,
            });
        } else if self
            .frames
            .last()
            .is_some_and(|f| (f.sp, f.back) == (sp, pc))
        {
            self.frames.pop();
        }
    }

    fn switched(&mut self, context: &Context) {
        self.ttb = context.ttb;
        // The instruction before wrote it.
        self.switch = (context.cycle, self.next.wrapping_sub(4), self.now(context));
    }

    fn child(&mut self, caller: Node, back: u32) -> Node {
        let slot = (caller.wrapping_mul(0x9e37_79b1) ^ back >> 2) as usize % RECENT;
        let (c, b, node) = self.recent[slot];
        if (c, b) == (caller, back) && node != 0 {
            return node;
        }
        let next = self.nodes.len() as Node;
        let node = *self.children.entry((caller, back)).or_insert(next);
        if node == next {
            if self.nodes.len() == NODES {
                self.children.remove(&(caller, back));
                return caller;
            }
            self.nodes.push((caller, back));
        }
        self.recent[slot] = (caller, back, node);
        node
    }

    fn note(&mut self, call: Call) {
        self.asked.note(&call);
        if self.ring.len() < KEPT {
            self.ring.push(call);
        } else {
            self.ring[self.at] = call;
            self.at = (self.at + 1) % KEPT;
        }
    }

    /// The place of the function that a call came from.
    pub fn parent(&self, node: Node) -> Node {
        self.nodes[node as usize].0
    }

    /// Virtual addresses of the calls that led to a place, innermost first.
    pub fn callers(&self, mut node: Node) -> Vec<u32> {
        let mut callers = Vec::new();
        while node != 0 {
            let (caller, back) = self.nodes[node as usize];
            callers.push(back.wrapping_sub(4));
            node = caller;
        }
        callers
    }

    /// Of a writer's callers those whose functions have not returned. Calls that began after the write, and those of
    /// other tasks, are others.
    pub fn running(&self, writer: &Writer) -> Vec<u32> {
        let (mut node, cycle) = (writer.node, writer.cycle);
        let all = || self.stacks.iter().map(|(top, frames)| (*top, frames));
        let its = |(top, _): &(u32, _)| stack(*top) == writer.stack;
        let stacks = || all().chain([(self.stack, &self.frames)]).filter(its);
        let is = |f: &Frame, n: Node| f.node == n && f.since <= cycle;
        let lives = |n: Node| stacks().any(|(_, s)| s.iter().any(|f| is(f, n)));
        let mut callers = self.callers(node);
        // The function that made a call has the frame of the place that the call came from.
        let mut returned = 0;
        while node != 0 {
            node = self.nodes[node as usize].0;
            if node != 0 && lives(node) {
                break;
            }
            returned += 1;
        }
        callers.drain(..returned.min(callers.len()));
        callers
    }

    /// The newest change of the table base, if it was after `cycle`.
    pub fn switch_since(&self, cycle: u64) -> Option<Switch> {
        let (at, pc, node) = self.switch;
        (at > cycle).then(|| Switch {
            cycle: at,
            pc,
            callers: self.callers(node),
        })
    }

    /// Calls from `cycle` on, oldest first.
    fn since(&self, cycle: u64) -> impl DoubleEndedIterator<Item = &Call> {
        let (newer, older) = self.ring.split_at(self.at);
        let (older, newer) = (
            &older[older.partition_point(|c| c.cycle < cycle)..],
            &newer[newer.partition_point(|c| c.cycle < cycle)..],
        );
        older.iter().chain(newer)
    }

    /// Calls from `cycle` on that were given a page of one of these addresses, or a range that
    /// it is in: the first and the last ones of different functions and places, oldest first.
    pub fn given(&self, cycle: u64, addresses: &[Mva], most: usize) -> Vec<Call> {
        let fits = |c: &&Call| addresses.iter().any(|a| concerns(&c.arguments, a.0));
        let mut found = distinct(self.since(cycle).filter(fits), most / 2);
        let last = distinct(self.since(cycle).rev().filter(fits), most / 2);
        let between = last.iter().rev().filter(|c| !found.contains(c));
        let between: Vec<Call> = between.copied().collect();
        found.extend(between);
        found.sort_by_key(|c| c.cycle);
        found
    }

    /// What the callers of the write at `cycle`, in `node`, called next.
    pub fn next(&self, cycle: u64, node: Node, most: usize) -> Vec<Call> {
        let mut callers = Vec::new();
        let mut at = node;
        while at != 0 {
            at = self.nodes[at as usize].0;
            callers.push(at);
        }
        // Outside of all calls anything could be next.
        callers.retain(|n| *n != 0);
        let after = self.since(cycle + 1).take(NEXT);
        let by_them = |c: &&Call| callers.contains(&self.nodes[c.node as usize].0);
        distinct(after.filter(by_them), most)
    }
}

fn is_user(context: &Context) -> bool {
    context.mode & 0x1f == 0x10
}

/// Whether `word` at `from` is a call that leads to `to`, as far as it says.
fn leads(word: u32, from: u32, to: u32) -> bool {
    if word >> 28 == 15 {
        return false;
    }
    // The sign of the 24 bits is carried up.
    let words = (word & 0x00ff_ffff ^ 0x0080_0000).wrapping_sub(0x0080_0000);
    let target = from.wrapping_add(8).wrapping_add(words << 2);
    let bl = word & 0x0f00_0000 == 0x0b00_0000;
    bl && target == to || word & 0x0fff_fff0 == 0x012f_ff30
}

/// Whether arguments name the page of an address, or a range with it: a start with an end or a
/// number of bytes behind it.
pub(super) fn concerns(arguments: &[u32; 4], address: u32) -> bool {
    let page = |a: u32| a >> 12;
    arguments.iter().any(|a| page(*a) == page(address))
        || arguments.windows(2).any(|pair| {
            let [start, second] = [pair[0], pair[1]];
            let inside = address.wrapping_sub(start);
            let bytes = second.wrapping_sub(start);
            page(start) != 0
                && inside < RANGE
                && (inside < second && second <= RANGE || inside < bytes && bytes <= RANGE)
        })
}

/// The first call of each function from each place.
fn distinct<'a>(calls: impl Iterator<Item = &'a Call>, most: usize) -> Vec<Call> {
    let mut found: Vec<Call> = Vec::new();
    for call in calls {
        if found.len() == most {
            break;
        }
        if !found.iter().any(|f| (f.from, f.to) == (call.from, call.to)) {
            found.push(*call);
        }
    }
    found
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
