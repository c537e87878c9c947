// SPDX-License-Identifier: MIT OR Apache-2.0
//! The call tree of privileged code, derived from the order of instructions.
//!
//! A BL, or a BLX of a register, is a call if the core executes its target next. So is a jump through a register or
//! memory while LR holds the address after the jump: ARMv4T has no BLX and calls by MOV LR, PC and such a jump. A call's
//! frame ends when execution reaches the return address with an equal stack pointer, or when the stack pointer rises
//! above this value. A stack is identified by its 8 KB block, because Linux aligns stacks to 8 KB.
//!
//! The tree has three limits. A tail call leaves no frame, as in any backtrace. An inlined function appears as its
//! caller. A call is missed if an interrupt comes between the call and the first instruction of its function.

use super::call_log::CallLog;
use super::shadow::Writer;
use arm::{AddressSpace, Context, Mva, Width};
use std::collections::BTreeMap;

/// Node of the call tree, which stands for a chain of frames. Node 0 is outside all calls.
pub(crate) type Node = u32;

/// A task's stack, as the low bits of its number, which keep [`Writer`] small. Stacks that are 512 MB apart have equal
/// values.
pub(super) type Stack = u16;

/// Returns the stack for the top bits of a stack pointer.
pub(super) fn stack(top: u32) -> Stack {
    top as Stack
}

/// A call and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Virtual address of the calling instruction.
    pub from: u32,
    /// Virtual address of the function.
    pub to: u32,
    pub(super) node: Node,
    /// Stack on which the call was made.
    pub(super) stack: Stack,
    /// Address space.
    pub(super) space: AddressSpace,
    /// r0 to r3.
    pub(super) arguments: [u32; 4],
}

/// A change of the address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Virtual address of the instruction that changed the address space.
    pub pc: u32,
    /// Virtual addresses of the calls that led to that instruction, innermost first.
    pub callers: Vec<u32>,
}

/// Log2 of a stack's size: Linux's THREAD_SIZE.
const STACK: u32 = 13;
/// Number of calls kept: the newest million.
const KEPT: usize = 1 << 20;
/// Maximum number of nodes of the tree. When the tree is full, a new call gets the node of its caller.
const NODES: usize = 1 << 22;
/// Slots of the cache in front of the tree.
const RECENT: usize = 1 << 14;
/// Maximum number of frames of a stack. If a stack is deeper, this module has missed returns.
const DEPTH: usize = 256;
/// Start of the exception vectors. No call leads to a vector.
const VECTORS: u32 = 0xffff_0000;
/// Longest range that two arguments can describe, in bytes.
const RANGE: u32 = 1 << 20;
/// Number of calls after a write among which the checker searches for calls by the writer's callers.
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
    /// Parent and return address of each node.
    nodes: Vec<(Node, u32)>,
    children: BTreeMap<(Node, u32), Node>,
    recent: Vec<(Node, u32, Node)>,
    /// Frames of all stacks except the current stack. The key is the top bits of the stack pointer.
    stacks: BTreeMap<u32, Vec<Frame>>,
    stack: u32,
    frames: Vec<Frame>,
    /// The previous instruction, the address of the instruction after it, and the address space.
    word: u32,
    next: u32,
    space: AddressSpace,
    switch: (u64, u32, Node),
    ring: Vec<Call>,
    at: usize,
    /// Calls of the functions that a suppression list names.
    pub(super) call_log: CallLog,
    /// Instructions to count, and a Bloom filter of their addresses.
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
            space: AddressSpace::default(),
            switch: (0, 0, 0),
            ring: Vec::new(),
            at: 0,
            call_log: CallLog::default(),
            counted: Vec::new(),
            filter: 0,
            count: 0,
        }
    }

    /// Starts to count executions of these privileged instructions, from 0.
    pub fn set_counted(&mut self, pcs: &[u32]) {
        self.counted = pcs.to_vec();
        self.filter = pcs.iter().fold(0, |bits, pc| bits | 1 << (pc >> 2 & 63));
        self.count = 0;
    }

    /// Returns how often these instructions were executed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Follows an instruction that is about to be executed.
    #[inline]
    pub fn fetched(&mut self, context: &Context, width: Width, word: u32, registers: &[u32; 16]) {
        if is_user(context) {
            // When a task reaches user land, all its calls have returned.
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
        if context.space() != self.space {
            self.switched(context);
        }
        self.next = context.pc.wrapping_add(width.bytes());
        self.word = word;
    }

    /// Returns the node of the current instruction.
    #[inline]
    pub fn now(&self, context: &Context) -> Node {
        match self.frames.last() {
            Some(frame) if !is_user(context) => frame.node,
            _ => 0,
        }
    }

    /// Returns the stack of the current instruction.
    #[inline]
    pub fn stack(&self) -> Stack {
        stack(self.stack)
    }

    /// Returns the cycle of the outermost call that has not returned. This call is usually the task's system call.
    pub fn began(&self, context: &Context) -> Option<u64> {
        let outermost = self.frames.first().filter(|_| !is_user(context));
        outermost.map(|frame| frame.since)
    }

    #[inline(never)]
    fn jumped(&mut self, context: &Context, registers: &[u32; 16]) {
        let (pc, sp) = (context.pc, registers[13]);
        if sp >> STACK != self.stack {
            let next = self.stacks.remove(&(sp >> STACK)).unwrap_or_default();
            let previous = core::mem::replace(&mut self.frames, next);
            let nodes = previous.iter().map(|frame| frame.node);
            self.call_log
                .switched(self.stack, nodes, sp >> STACK, context.cycle);
            self.stacks.insert(self.stack, previous);
            self.stack = sp >> STACK;
        }
        while self.frames.last().is_some_and(|f| f.sp < sp) {
            self.frames.pop();
        }
        let (back, from) = (self.next, self.next.wrapping_sub(4));
        let is_call = leads(self.word, from, pc) || jumps(self.word) && registers[14] == back;
        if self.next != 0 && pc < VECTORS && is_call {
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
                space: context.space(),
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
        self.space = context.space();
        // The previous instruction wrote the table base or the ASID.
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
        self.call_log.note(&call);
        if self.ring.len() < KEPT {
            self.ring.push(call);
        } else {
            self.ring[self.at] = call;
            self.at = (self.at + 1) % KEPT;
        }
    }

    /// Returns the node of the function that made a call.
    pub fn parent(&self, node: Node) -> Node {
        self.nodes[node as usize].0
    }

    /// Returns the virtual address of the last call that led to a node.
    pub fn caller(&self, node: Node) -> Option<u32> {
        let (_, back) = self.nodes.get(node as usize).filter(|_| node != 0)?;
        Some(back.wrapping_sub(4))
    }

    /// Returns the virtual addresses of the calls that led to a node, innermost first.
    pub fn callers(&self, mut node: Node) -> Vec<u32> {
        let mut callers = Vec::new();
        while node != 0 {
            let (caller, back) = self.nodes[node as usize];
            callers.push(back.wrapping_sub(4));
            node = caller;
        }
        callers
    }

    /// Returns the callers of a writer that have not returned. Ignores calls that began after the write, and calls by
    /// other tasks.
    pub fn running(&self, writer: &Writer) -> Vec<u32> {
        let (mut node, cycle) = (writer.node, writer.cycle);
        let all = || self.stacks.iter().map(|(top, frames)| (*top, frames));
        let is_on_stack = |(top, _): &(u32, _)| stack(*top) == writer.stack;
        let stacks = || {
            all()
                .chain([(self.stack, &self.frames)])
                .filter(is_on_stack)
        };
        let is = |f: &Frame, n: Node| f.node == n && f.since <= cycle;
        let lives = |n: Node| stacks().any(|(_, s)| s.iter().any(|f| is(f, n)));
        let mut callers = self.callers(node);
        // An address in `callers` lies in the calling function, whose frame belongs to the parent node.
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

    /// Returns the newest change of the address space, if it came after `cycle`.
    pub fn switch_since(&self, cycle: u64) -> Option<Switch> {
        let (at, pc, node) = self.switch;
        (at > cycle).then(|| Switch {
            cycle: at,
            pc,
            callers: self.callers(node),
        })
    }

    /// Returns the calls from `cycle` on, oldest first.
    fn since(&self, cycle: u64) -> impl DoubleEndedIterator<Item = &Call> {
        let (newer, older) = self.ring.split_at(self.at);
        let (older, newer) = (
            &older[older.partition_point(|c| c.cycle < cycle)..],
            &newer[newer.partition_point(|c| c.cycle < cycle)..],
        );
        older.iter().chain(newer)
    }

    /// Returns the calls since `cycle` whose arguments point into the page of one of these addresses, or describe a
    /// range around an address. For each pair of calling instruction and function, the result has only the first and
    /// the last call. The oldest call comes first.
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

    /// Returns the next calls by the callers of a write. `cycle` and `node` are the write's cycle and call-tree node.
    pub fn next(&self, cycle: u64, node: Node, most: usize) -> Vec<Call> {
        let mut callers = Vec::new();
        let mut at = node;
        while at != 0 {
            at = self.nodes[at as usize].0;
            callers.push(at);
        }
        // Node 0 is outside all calls, so its next calls have nothing to do with the write.
        callers.retain(|n| *n != 0);
        let after = self.since(cycle + 1).take(NEXT);
        let by_them = |c: &&Call| callers.contains(&self.nodes[c.node as usize].0);
        distinct(after.filter(by_them), most)
    }
}

fn is_user(context: &Context) -> bool {
    context.mode & 0x1f == 0x10
}

/// Returns whether the instruction `word` at `from` can be a call of `to`. A BLX can call any function, because it does
/// not contain its target.
fn leads(word: u32, from: u32, to: u32) -> bool {
    if word >> 28 == 15 {
        return false;
    }
    // Sign-extends the 24-bit offset.
    let words = (word & 0x00ff_ffff ^ 0x0080_0000).wrapping_sub(0x0080_0000);
    let target = from.wrapping_add(8).wrapping_add(words << 2);
    let bl = word & 0x0f00_0000 == 0x0b00_0000;
    bl && target == to || word & 0x0fff_fff0 == 0x012f_ff30
}

/// Returns whether the instruction can jump to any address: BX of a register, MOV PC or LDR PC.
fn jumps(word: u32) -> bool {
    let bx = word & 0x0fff_fff0 == 0x012f_ff10;
    let mov = word & 0x0fff_fff0 == 0x01a0_f000;
    let ldr = word & 0x0c10_f000 == 0x0410_f000;
    word >> 28 != 15 && (bx || mov || ldr)
}

/// Returns whether the arguments point into the page of an address, or describe a range around the address. A range is
/// a start followed by an end or by a number of bytes.
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

/// Returns the first call for each pair of calling instruction and function. Stops after `most` calls.
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
