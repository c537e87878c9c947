// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code of a line: a head, with what an entry at each instruction needs; then the instructions in order, and jumps to
//! calls of the interpreter. The calls lie elsewhere in the memory, because they are rare.
//!
//! `x21` and `x22` lag behind: they change only where the code leaves the line, by amounts that the plan knows. An
//! entry at a later instruction subtracts what the instructions before it would have added.

use arm::engine::{Pending, Set};
use dynasmrt::aarch64::RX;
use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{Assembler, Fields, NZCV, Stubs, TOLD, TOLD_AT};
use crate::action::{ALWAYS, Action};
use crate::format::{At, Described, Made, first, head};
use crate::plan::{Plan, Step};

/// Bytes of the code that calls the interpreter for an instruction.
const CALL: usize = 40;

/// Code of a line while it is made.
pub struct Line<'a> {
    pub ops: Assembler,
    pub f: Fields,
    pub stubs: Stubs,
    pub plan: &'a Plan,
    /// Start of each instruction, and of what follows the last.
    pub starts: Vec<DynamicLabel>,
    /// Start of each instruction behind its wait.
    pub waited: Vec<DynamicLabel>,
    /// Address of the calls of the interpreter.
    calls_at: usize,
    /// Calls of the interpreter: number of the instruction, and how it is executed.
    calls: Vec<(usize, Step)>,
    /// Jumps to calls, because a conditional branch does not reach the other part of the memory.
    jumps: Vec<(DynamicLabel, usize)>,
}

/// Makes the code of a line, for the two parts of the memory, whose next addresses are `ends`.
pub fn make(plan: &Plan, fields: &Fields, stubs: Stubs, ends: [usize; 2]) -> Made {
    let mut ops = Assembler::new(ends[0]);
    let (count, head_bytes) = (plan.steps.len(), fields.head.bytes as usize);
    ops.extend(vec![0; head_bytes]);
    let starts = (0..=count).map(|_| ops.new_dynamic_label()).collect();
    let waited = (0..count).map(|_| ops.new_dynamic_label()).collect();
    let mut line = Line {
        ops,
        f: *fields,
        stubs,
        plan,
        starts,
        waited,
        calls_at: ends[1],
        calls: Vec::new(),
        jumps: Vec::new(),
    };
    let (offsets, entries) = line.instructions();
    for (label, call) in std::mem::take(&mut line.jumps) {
        dynasm!(line.ops ; .arch aarch64 ; =>label ; b extern call);
    }
    let cold = line.calls(ends, &offsets);
    let mut hot = line.ops.finalize().expect("every label is near");
    hot[..head_bytes].copy_from_slice(&head(plan, &entries));
    Made {
        hot,
        cold,
        entries: first(&entries),
    }
}

/// Appends code to a line.
macro_rules! asm {
    ($line:ident $($tokens:tt)*) => {
        dynasmrt::dynasm!($line.ops ; .arch aarch64 $($tokens)*)
    };
}
pub(super) use asm;

impl Line<'_> {
    pub fn r(&self, n: usize) -> u32 {
        self.f.r(n)
    }

    /// Distance of the next code from the start of the line's code.
    fn offset(&self) -> u16 {
        u16::try_from(self.ops.offset().0).expect("a line has less than 64 KB of code")
    }

    /// Distance of an instruction from the start of the line, in bytes.
    pub fn distance(&self, number: usize) -> u32 {
        (self.f.set.width() * number) as u32
    }

    /// The instructions, and what follows them. Returns the place of each, and the entries.
    fn instructions(&mut self) -> (Vec<usize>, Vec<At>) {
        let plan = self.plan;
        let (mut offsets, mut entries) = (Vec::new(), Vec::new());
        for (number, step) in plan.steps.iter().enumerate() {
            offsets.push(self.ops.offset().0);
            let (start, waited) = (self.starts[number], self.waited[number]);
            asm!(self ; =>start);
            // The instruction waits for something in its place, but an entry from elsewhere does not.
            self.wait(step.stall);
            asm!(self ; =>waited);
            entries.push((self.offset(), step.start + step.stall));
            self.step(number, step);
        }
        offsets.push(self.ops.offset().0);
        self.end();
        for (number, step) in plan.steps.iter().enumerate() {
            if !step.is_entry() {
                entries[number] = (self.offset(), step.start);
                self.enter_fresh(number, step);
            }
        }
        (offsets, entries)
    }

    /// Counts a wait. Changes `w9`.
    pub fn wait(&mut self, stall: u8) {
        if stall > 0 {
            asm!(self
                ; ldr x9, [x19, self.f.interlock_cycles]
                ; add x9, x9, u32::from(stall)
                ; str x9, [x19, self.f.interlock_cycles]
            );
        }
    }

    /// The entry at an instruction for which the plan has pending results, while nothing is pending.
    fn enter_fresh(&mut self, number: usize, step: &Step) {
        let Some(fresh) = self.plan.fresh(number) else {
            let before = Pending::NONE;
            let step = Step {
                before,
                stall: 0,
                ..*step
            };
            return self.interpret(number, step);
        };
        if fresh.stall > 0 {
            let stall = u32::from(fresh.stall);
            asm!(self
                ; sub x21, x21, stall
                ; ldr x9, [x19, self.f.interlock_cycles]
                ; sub x9, x9, stall
                ; str x9, [x19, self.f.interlock_cycles]
            );
        }
        if let Some(told) = fresh.told {
            self.tell(told, Pending::NONE);
        }
        let start = self.starts[number];
        asm!(self ; b =>start);
    }

    /// Makes the interpreter know what is pending, instead of the plan, if it executes an instruction. Changes `x9`.
    pub fn tell(&mut self, number: usize, pending: Pending) {
        self.constant_of_64_bits(RX::X9, pending.bits());
        asm!(self
            ; str x9, [x20, TOLD]
            ; add x9, x22, number as u32
            ; str x9, [x20, TOLD_AT]
        );
    }

    /// Goes on after the last instruction.
    fn end(&mut self) {
        let plan = self.plan;
        let count = plan.steps.len();
        let start = self.starts[count];
        asm!(self ; =>start);
        if plan.after == Pending::NONE {
            let (cycles, chain) = (u32::from(plan.cycles), self.stubs.chain_next);
            asm!(self
                ; add x21, x21, cycles
                ; add x22, x22, count as u32
                ; bl extern chain
                ; br x3
            );
        } else {
            asm!(self ; add w0, w23, 32);
            self.go(plan.cycles, count, plan.after.bits());
        }
    }

    /// Goes to the line at `w0`, after instructions that took some cycles.
    pub fn go(&mut self, cycles: u8, instructions: usize, pending: u64) {
        asm!(self
            ; add x21, x21, u32::from(cycles)
            ; add x22, x22, instructions as u32
            ; add w4, w23, self.distance(instructions + 1)
        );
        if self.plan.beside && pending != 0 {
            self.constant_of_64_bits(RX::X2, pending);
            return asm!(self ; bl extern self.stubs.chain_soon ; br x3);
        }
        let words = pending >> 32 & 0xffff;
        let chain = match pending {
            0 => self.stubs.chain,
            _ if pending == words << 32 => self.stubs.chain_word,
            _ if pending == words << 32 | words << 48 => self.stubs.chain_late,
            _ => {
                self.constant_of_64_bits(RX::X9, pending);
                asm!(self ; str x9, [x19, self.f.interlock]);
                return self.jump(self.stubs.chain_pending);
            }
        };
        if pending != 0 {
            asm!(self ; movz w2, words as u32);
        }
        // Each line has a jump of its own, because the host remembers the target of each jump.
        asm!(self ; bl extern chain ; br x3);
    }

    fn jump(&mut self, address: usize) {
        asm!(self ; b extern address);
    }

    /// Calls shared code that accesses memory. Jumps to `slow` if it cannot.
    pub fn access(&mut self, stub: usize, slow: DynamicLabel) {
        asm!(self ; bl extern stub ; b.ne =>slow);
    }

    /// Address of a call of the interpreter for an instruction.
    fn call(&mut self, number: usize, step: Step) -> usize {
        self.calls.push((number, step));
        self.calls_at + CALL * (self.calls.len() - 1)
    }

    /// Executes an instruction by the interpreter.
    fn interpret(&mut self, number: usize, step: Step) {
        let call = self.call(number, step);
        self.jump(call);
    }

    /// The calls of the interpreter. `offsets` has the place of each instruction.
    fn calls(&mut self, ends: [usize; 2], offsets: &[usize]) -> Vec<u8> {
        let mut calls = Assembler::new(ends[1]);
        let bytes = CALL * self.calls.len();
        for (number, step) in self.calls.drain(..) {
            let described = Described {
                number: number as u8,
                start: step.start,
                next_start: self.plan.start(number + 1),
                stall: step.stall,
                unused: [0; 4],
                before: step.before.bits(),
                after: self.plan.pending(number + 1).bits(),
            };
            let resume = ends[0] + offsets[number + 1];
            dynasm!(calls
                ; .arch aarch64
                ; adr x1, >described
                ; b extern self.stubs.step
                ; described:
                ; .u8 described.number, described.start, described.next_start, described.stall
                ; .u32 0
                ; .u64 described.before, described.after
                ; b extern resume
                ; .u32 0
            );
        }
        assert_eq!(calls.offset().0, bytes, "each call has {CALL} bytes");
        calls.finalize().expect("every label is near")
    }

    /// A place that calls the interpreter for an instruction.
    fn slow(&mut self, number: usize, step: &Step) -> DynamicLabel {
        let (label, call) = (self.ops.new_dynamic_label(), self.call(number, *step));
        self.jumps.push((label, call));
        label
    }

    fn step(&mut self, number: usize, step: &Step) {
        if step.action == Action::Interpret {
            return self.interpret(number, *step);
        }
        if let (Action::Branch { distance, link }, Some(pending)) = (step.action, step.predicted) {
            return self.predicted_branch(number, step, (distance, link), pending);
        }
        let over = self.starts[number + 1];
        self.condition(step.condition, over);
        match step.action {
            Action::Branch { distance, link } => self.branch(number, step, distance, link),
            Action::Jump {
                register,
                exchange,
                link,
            } => {
                asm!(self ; ldr w0, [x19, self.r(register)]);
                if exchange {
                    // The interpreter changes the instruction set.
                    let slow = self.slow(number, step);
                    match self.f.set {
                        Set::A32 => asm!(self ; tbnz w0, 0, =>slow),
                        Set::Thumb => asm!(self ; tbz w0, 0, =>slow),
                    }
                }
                self.jump_to(number, step, link);
            }
            Action::Call { offset } => {
                asm!(self ; ldr w0, [x19, self.r(14)]);
                self.add(RX::X0, RX::X0, offset as i32);
                self.jump_to(number, step, true);
            }
            Action::Transfer { .. }
            | Action::Pair { .. }
            | Action::LoadPc { .. }
            | Action::Block { .. }
            | Action::Mask(_) => {
                let slow = self.slow(number, step);
                self.access_memory(number, step, slow);
            }
            Action::Interpret | Action::Nothing => {}
            Action::Data { .. }
            | Action::Multiply { .. }
            | Action::MultiplyLong { .. }
            | Action::CountZeros { .. }
            | Action::Status { .. } => self.compute(number, step.action),
        }
        if let Some(pending) = step.apart {
            return self.go_on_apart(number, step, pending);
        }
        if step.leaving == 0 && step.condition != ALWAYS && step.cycles > 1 {
            asm!(self ; add x21, x21, u32::from(step.cycles) - 1);
        }
    }

    /// Jumps if a condition fails.
    pub fn condition(&mut self, condition: u32, fails: DynamicLabel) {
        let flag = [30, 29, 31, 28][condition as usize / 2 % 4];
        match condition {
            ALWAYS.. => return,
            0 | 2 | 4 | 6 => return asm!(self ; tbz w24, flag, =>fails),
            1 | 3 | 5 | 7 => return asm!(self ; tbnz w24, flag, =>fails),
            _ => asm!(self ; msr NZCV, x24),
        }
        match condition {
            8 => asm!(self ; b.ls =>fails),
            9 => asm!(self ; b.hi =>fails),
            10 => asm!(self ; b.lt =>fails),
            11 => asm!(self ; b.ge =>fails),
            12 => asm!(self ; b.le =>fails),
            _ => asm!(self ; b.gt =>fails),
        }
    }

    /// Loads a register into a register of the host.
    pub fn get(&mut self, host: RX, number: usize, register: usize) {
        if register == 15 {
            asm!(self ; add WSP(host), w23, self.distance(number + 2));
        } else {
            asm!(self ; ldr W(host), [x19, self.r(register)]);
        }
    }

    /// Puts a constant into a register of the host.
    pub fn constant(&mut self, host: RX, value: u32) {
        let (low, high) = (value & 0xffff, value >> 16);
        match (low, high) {
            (_, 0) => asm!(self ; movz W(host), low),
            (_, 0xffff) => asm!(self ; movn W(host), low ^ 0xffff),
            (0, _) => asm!(self ; movz W(host), high, lsl 16),
            _ => asm!(self ; movz W(host), low ; movk W(host), high, lsl 16),
        }
    }

    /// Puts a constant of 64 bits into a register of the host.
    fn constant_of_64_bits(&mut self, host: RX, value: u64) {
        let parts = [0, 16, 32, 48].map(|at| (value >> at & 0xffff) as u32);
        asm!(self
            ; movz X(host), parts[0]
            ; movk X(host), parts[1], lsl 16
            ; movk X(host), parts[2], lsl 32
            ; movk X(host), parts[3], lsl 48
        );
    }

    /// Adds a constant to a register of the host. The sum may be in another one. Changes `w9`.
    pub fn add(&mut self, sum: RX, host: RX, value: i32) {
        let size = value.unsigned_abs();
        match (size, value < 0) {
            (..0x1000, false) => asm!(self ; add WSP(sum), WSP(host), size),
            (..0x1000, true) => asm!(self ; sub WSP(sum), WSP(host), size),
            _ => {
                self.constant(RX::X9, value as u32);
                asm!(self ; add W(sum), W(host), w9);
            }
        }
    }
}
