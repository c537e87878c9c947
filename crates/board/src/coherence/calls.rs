// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who called whom in privileged code, followed by the order of instructions.
//!
//! A call is a BL, or a BLX of a register, that got where it leads; its frame is gone when
//! execution comes to its return address with its stack pointer, or when the stack pointer is
//! above. Stacks are told apart by their 8 KB, as Linux aligns them. Calls in tail position leave no
//! frame, as in any backtrace, and one that an interrupt separates from its function is missed.
//! Functions that inlining has swallowed are their callers.

use arm9::{Context, Mva, Width};
use std::collections::BTreeMap;

/// A place in the tree of calls: all frames there were, as one number. 0 is outside.
pub(crate) type Node = u32;

/// A call, and what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Virtual address of the calling instruction.
    pub from: u32,
    /// Virtual address of the function.
    pub to: u32,
    node: Node,
    /// r0 to r3.
    arguments: [u32; 4],
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

    #[inline(never)]
    fn jumped(&mut self, context: &Context, registers: &[u32; 16]) {
        let (pc, sp) = (context.pc, registers[13]);
        if sp >> STACK != self.stack {
            let other = self.stacks.remove(&(sp >> STACK)).unwrap_or_default();
            let left = core::mem::replace(&mut self.frames, other);
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
                self.frames.push(Frame { sp, back, node });
            }
            let arguments = [registers[0], registers[1], registers[2], registers[3]];
            self.note(Call {
                cycle: context.cycle,
                from,
                to: pc,
                node,
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
        if self.ring.len() < KEPT {
            self.ring.push(call);
        } else {
            self.ring[self.at] = call;
            self.at = (self.at + 1) % KEPT;
        }
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

    /// Of the callers of a place those whose functions have not returned.
    pub fn running(&self, mut node: Node) -> Vec<u32> {
        let stacks = || self.stacks.values().chain([&self.frames]);
        let lives = |n: Node| stacks().any(|s| s.iter().any(|f| f.node == n));
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
fn concerns(arguments: &[u32; 4], address: u32) -> bool {
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
mod tests {
    use super::*;

    const SP: u32 = 0xc100_1f00;

    fn bl(from: u32, to: u32) -> u32 {
        0xeb00_0000 | (to.wrapping_sub(from + 8) >> 2) & 0xff_ffff
    }

    /// Executes at `pc` with a stack pointer; gives the callers.
    fn at(calls: &mut Calls, pc: u32, sp: u32, word: u32) -> Vec<u32> {
        let mut registers = [0; 16];
        registers[0] = pc;
        registers[13] = sp;
        let context = Context {
            cycle: calls.ring.len() as u64,
            pc,
            mode: if pc < 0x8000_0000 { 0x10 } else { 0x13 },
            ..Context::default()
        };
        calls.fetched(&context, Width::Word, word, &registers);
        calls.callers(calls.now(&context))
    }

    const F: u32 = 0xc000_1000;
    const G: u32 = 0xc000_2000;
    const H: u32 = 0xc000_3000;

    /// F calls G, which calls H.
    fn in_h() -> Calls {
        let mut calls = Calls::new();
        assert_eq!(at(&mut calls, F, SP, bl(F, G)), [0; 0]);
        assert_eq!(at(&mut calls, G, SP, 0), [F]);
        // BLX of a register.
        assert_eq!(at(&mut calls, G + 4, SP - 8, 0xe12f_ff33), [F]);
        assert_eq!(at(&mut calls, H, SP - 8, 0), [G + 4, F]);
        calls
    }

    #[test]
    fn callers_are_known_from_calls_to_returns() {
        let mut calls = in_h();
        assert_eq!(at(&mut calls, G + 8, SP - 8, 0), [F]);
        assert_eq!(at(&mut calls, F + 4, SP, 0), [0; 0]);
    }

    #[test]
    fn a_branch_is_no_call_and_no_return() {
        let mut calls = in_h();
        assert_eq!(at(&mut calls, H + 0x40, SP - 16, 0), [G + 4, F]);
        // In tail position: the one who returns is another.
        assert_eq!(at(&mut calls, F + 0x800, SP - 8, 0), [G + 4, F]);
        assert_eq!(at(&mut calls, G + 8, SP - 8, 0), [F]);
        // A conditional call that is not taken.
        assert_eq!(
            at(&mut calls, G + 12, SP - 8, bl(G + 12, H) & !0xe000_0000),
            [F]
        );
        assert_eq!(at(&mut calls, G + 16, SP - 8, 0), [F]);
    }

    #[test]
    fn user_land_has_no_callers_and_the_kernel_begins_anew_behind_it() {
        let mut calls = in_h();
        assert_eq!(
            at(&mut calls, 0x1_0000, 0x7fff_0000, bl(0x1_0000, F)),
            [0; 0]
        );
        assert_eq!(at(&mut calls, 0xffff_0008, SP + 0x80, 0), [0; 0]);
        assert_eq!(at(&mut calls, F, SP, 0), [0; 0]);
    }

    #[test]
    fn every_stack_has_its_own_calls() {
        let mut calls = in_h();
        let other = SP + (1 << STACK);
        assert_eq!(at(&mut calls, F, other, bl(F, H)), [0; 0]);
        assert_eq!(at(&mut calls, H, other, 0), [F]);
        assert_eq!(at(&mut calls, H + 0x20, SP - 8, 0), [G + 4, F]);
    }

    #[test]
    fn functions_run_until_they_return_also_while_another_stack_is_in_use() {
        let mut calls = in_h();
        // As F was called, it has a frame.
        let in_g = calls.nodes[calls.frames.last().unwrap().node as usize].0;
        let other = SP + (1 << STACK);
        let in_h = calls.frames.last().unwrap().node;
        assert_eq!(calls.running(in_h), [G + 4, F]);
        at(&mut calls, F + 0x80, other, 0);
        at(&mut calls, 0x1_0000, other, 0);
        assert_eq!(calls.running(in_h), [G + 4, F]);
        at(&mut calls, G + 8, SP - 8, 0);
        at(&mut calls, F + 4, SP, 0);
        assert_eq!(calls.running(in_h), [0; 0]);
        assert_eq!(calls.running(in_g), [0; 0]);
    }

    #[test]
    fn instructions_are_counted() {
        let mut calls = Calls::new();
        calls.set_counted(&[F, H]);
        for pc in [F, G, H, F + 0x100, F] {
            at(&mut calls, pc, SP, 0);
        }
        assert_eq!(calls.count(), 3);
    }

    #[test]
    fn what_the_callers_of_a_write_call_next_is_known() {
        let mut calls = in_h();
        let in_h = calls.frames.last().unwrap().node;
        let written = calls.ring.len() as u64;
        at(&mut calls, G + 8, SP - 8, bl(G + 8, F + 0x100));
        at(&mut calls, F + 0x100, SP - 8, bl(F + 0x100, H));
        at(&mut calls, H, SP - 16, 0);
        let next = calls.next(written - 1, in_h, 9);
        let places: Vec<_> = next.iter().map(|c| (c.from, c.to)).collect();
        assert_eq!(places, [(G + 8, F + 0x100)]);
    }

    #[test]
    fn arguments_name_a_page_or_a_range() {
        assert!(concerns(&[0, 0, 0, 0xb600_1000], 0xb600_1ffc));
        assert!(concerns(&[9, 0xb600_0000, 0xb600_3000, 0], 0xb600_1ffc));
        assert!(concerns(&[0xb600_0000, 0x2000, 0, 0], 0xb600_1ffc));
        assert!(!concerns(&[0xb600_0000, 0x1000, 0, 0], 0xb600_1ffc));
        assert!(!concerns(&[0, 0xc000_0000, 0, 0], 0xb600_1ffc));
        let calls = in_h();
        assert_eq!(calls.given(0, &[Mva(G + 0x20)], 9)[0].to, G);
    }

    #[test]
    fn a_new_table_base_is_known_with_who_wrote_it() {
        let mut calls = in_h();
        let context = Context {
            cycle: 77,
            pc: H + 4,
            ttb: 0x4000,
            mode: 0x13,
            ..Context::default()
        };
        let mut registers = [0; 16];
        registers[13] = SP - 8;
        calls.fetched(&context, Width::Word, 0, &registers);
        let switch = calls.switch_since(76).unwrap();
        assert_eq!((switch.pc, switch.callers), (H, vec![G + 4, F]));
        assert_eq!(calls.switch_since(77), None);
    }
}
