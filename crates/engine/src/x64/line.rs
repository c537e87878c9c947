// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code of a line: a head, with what an entry at each instruction needs; then the instructions in order. The calls
//! of the interpreter lie elsewhere in the memory, because they are rare.
//!
//! `r12` and `r13` lag behind: they change only where the code leaves the line, by amounts that the plan knows. An
//! entry at a later instruction subtracts what the instructions before it would have added.

use arm::engine::{Pending, Set};
use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::interpret::Described;
use super::{Assembler, FLAGS, Fields, Head, LIMIT, Stubs};
use crate::action::{ALWAYS, Action};
use crate::plan::{Plan, Step};

/// Bytes of the code that calls the interpreter for an instruction.
const CALL: usize = 48;

/// Code of a line while it is made.
pub struct Line<'a> {
    pub ops: Assembler,
    pub f: Fields,
    pub stubs: Stubs,
    plan: &'a Plan,
    /// Address of the code.
    at: usize,
    /// Start of each instruction, and of what follows the last.
    starts: Vec<DynamicLabel>,
    /// Address of the calls of the interpreter.
    calls_at: usize,
    /// Calls of the interpreter: number of the instruction, and how it is executed.
    calls: Vec<(usize, Step)>,
}

/// Makes the code of a line, for the two parts of the memory, whose next addresses are `ends`.
pub fn make(plan: &Plan, fields: &Fields, stubs: Stubs, ends: [usize; 2]) -> (Vec<u8>, Vec<u8>) {
    let mut ops = Assembler::new(ends[0]);
    let count = plan.steps.len();
    let head_bytes = Head::of(plan.set).bytes as usize;
    ops.extend(vec![0; head_bytes]);
    let starts = (0..=count).map(|_| ops.new_dynamic_label()).collect();
    let mut line = Line {
        ops,
        f: *fields,
        stubs,
        plan,
        at: ends[0],
        starts,
        calls_at: ends[1],
        calls: Vec::new(),
    };
    let mut offsets = Vec::with_capacity(count + 1);
    for (number, step) in plan.steps.iter().enumerate() {
        let start = line.starts[number];
        offsets.push(line.ops.offset().0);
        dynasm!(line.ops ; .arch x64 ; =>start);
        line.step(number, step);
    }
    offsets.push(line.ops.offset().0);
    line.end();
    let mut head = Vec::with_capacity(head_bytes);
    for (number, step) in plan.steps.iter().enumerate() {
        let mut entry = offsets[number];
        if step.before != Pending::NONE {
            // The instruction waits for something in its place, but an entry from elsewhere does not.
            entry = line.ops.offset().0;
            let before = Pending::NONE;
            line.interpret(
                number,
                Step {
                    before,
                    stall: 0,
                    ..*step
                },
            );
        }
        let entry = u16::try_from(entry).expect("a line has less than 64 KB of code");
        head.extend(entry.to_le_bytes());
    }
    head.extend(plan.steps.iter().map(|step| step.start));
    head.extend((0..count).map(|n| plan.late(n) as u8));
    head.extend(plan.steps.iter().flat_map(|step| step.uses.to_le_bytes()));
    head.extend(
        plan.steps
            .iter()
            .flat_map(|step| step.early_uses.to_le_bytes()),
    );
    let calls = line.calls(ends, &offsets);
    let mut code = line.ops.finalize().expect("every label has an address");
    code[..head_bytes].copy_from_slice(&head);
    (code, calls)
}

/// Appends code to a line.
macro_rules! asm {
    ($line:ident $($tokens:tt)*) => {
        dynasmrt::dynasm!($line.ops ; .arch x64 $($tokens)*)
    };
}
pub(super) use asm;

impl Line<'_> {
    pub fn r(&self, n: usize) -> i8 {
        self.f.r(n)
    }

    /// The value of r15 in an instruction, as a distance from the start of the line.
    fn pc(&self, number: usize) -> i8 {
        (self.width() * (number + 2)) as i8
    }

    /// Bytes of an instruction.
    fn width(&self) -> usize {
        self.f.set.width()
    }

    /// Goes on after the last instruction.
    fn end(&mut self) {
        let plan = self.plan;
        let count = plan.steps.len();
        let start = self.starts[count];
        asm!(self ; =>start);
        if plan.after == Pending::NONE {
            let (cycles, chain) = (i32::from(plan.cycles), self.stubs.chain_next);
            let counts = count as i32 * 0x100 + cycles;
            asm!(self ; mov esi, DWORD counts ; call extern chain ; jmp rdi);
        } else {
            asm!(self ; lea eax, [BYTE r14 + 32]);
            self.go(plan.cycles, count, plan.after.bits());
        }
    }

    /// Goes to the line at `eax`, after instructions that took some cycles.
    fn go(&mut self, cycles: u8, instructions: usize, pending: u64) {
        let counts = instructions as i32 * 0x100 + i32::from(cycles);
        asm!(self ; mov esi, DWORD counts);
        let words = pending >> 32 & 0xffff;
        let chain = match pending {
            0 => self.stubs.chain,
            _ if pending == words << 32 => self.stubs.chain_word,
            _ if pending == words << 32 | words << 48 => self.stubs.chain_late,
            _ => {
                asm!(self
                    ; mov rcx, QWORD pending as i64
                    ; mov [BYTE rbx + self.f.interlock as i8], rcx
                );
                return self.jump(self.stubs.chain_pending);
            }
        };
        if pending != 0 {
            asm!(self ; mov r9d, DWORD words as i32);
        }
        // Each line has a jump of its own, because the host remembers the target of each jump.
        asm!(self ; call extern chain ; jmp rdi);
    }

    fn jump(&mut self, address: usize) {
        asm!(self ; jmp extern address);
    }

    /// Calls shared code that accesses memory. If it cannot, it jumps to `slow`, whose distance is the operand of an
    /// instruction without effect.
    pub fn access(&mut self, stub: usize, slow: usize) {
        asm!(self ; call extern stub);
        let after = self.at + self.ops.offset().0;
        asm!(self ; test eax, DWORD slow.wrapping_sub(after) as i32);
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
                ; .arch x64
                ; lea rdx, [>described]
                ; jmp extern self.stubs.step
                ; .align 16
                ; described:
                ; .u8 described.number, described.start, described.next_start, described.stall
                ; .u32 0
                ; .u64 described.before, described.after
                ; jmp extern resume
                ; .align 16
            );
        }
        assert_eq!(calls.offset().0, bytes, "each call has {CALL} bytes");
        calls.finalize().expect("every label has an address")
    }

    fn step(&mut self, number: usize, step: &Step) {
        if step.action == Action::Interpret {
            return self.interpret(number, *step);
        }
        let may_be_slow = match step.action {
            Action::Data { .. }
            | Action::Multiply { .. }
            | Action::MultiplyLong { .. }
            | Action::CountZeros { .. }
            | Action::Status { .. }
            | Action::Call { .. }
            | Action::Branch { .. } => false,
            Action::Jump { exchange, .. } => exchange,
            _ => true,
        };
        let slow = if may_be_slow {
            self.call(number, *step)
        } else {
            0
        };
        if step.stall > 0 {
            asm!(self ; add QWORD [rbx + self.f.interlock_cycles], step.stall as i32);
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
                asm!(self ; mov eax, [BYTE rbx + self.r(register)]);
                // The interpreter changes the instruction set.
                match self.f.set {
                    _ if !exchange => {}
                    Set::A32 => asm!(self ; test al, 1 ; jnz extern slow),
                    Set::Thumb => asm!(self ; test al, 1 ; jz extern slow),
                }
                self.jump_to(number, step, link);
            }
            Action::Call { offset } => {
                asm!(self ; mov eax, [BYTE rbx + self.r(14)] ; add eax, offset as i32);
                self.jump_to(number, step, true);
            }
            _ if may_be_slow => self.access_memory(number, step, slow),
            _ => self.compute(number, step.action),
        }
        if step.leaving == 0 && step.condition != ALWAYS && step.cycles > 1 {
            asm!(self ; add r12, BYTE step.cycles as i8 - 1);
        }
    }

    /// Leaves the line for the address in `eax`.
    pub fn leave(&mut self, number: usize, step: &Step) {
        self.go(step.start + step.stall + step.leaving, number + 1, 0);
    }

    /// Jumps to the address in `eax`, without its low bits.
    fn jump_to(&mut self, number: usize, step: &Step, link: bool) {
        asm!(self ; and eax, BYTE -(self.width() as i8));
        if link {
            self.link(number);
        }
        self.leave(number, step);
    }

    /// Puts the return address into r14. In Thumb state, its bit 0 is set.
    fn link(&mut self, number: usize) {
        let thumb = i8::from(self.f.set == Set::Thumb);
        let next = (self.width() * (number + 1)) as i8 + thumb;
        asm!(self
            ; lea ecx, [BYTE r14 + next]
            ; mov [BYTE rbx + self.r(14)], ecx
        );
    }

    fn branch(&mut self, number: usize, step: &Step, distance: i32, link: bool) {
        if link {
            self.link(number);
        }
        let to = distance as usize / self.width();
        if (0..32).contains(&distance) && self.plan.steps[to].before == Pending::NONE {
            self.branch_within(number, step, to);
        }
        asm!(self ; lea eax, [r14 + distance]);
        self.leave(number, step);
    }

    /// Branches to another instruction of the line, if the horizon is not near.
    fn branch_within(&mut self, number: usize, step: &Step, to: usize) {
        let cycles = (step.start + step.stall + step.leaving) as i8;
        let start = self.starts[to];
        asm!(self
            ; lea rax, [BYTE r12 + cycles]
            ; cmp rax, [BYTE rbp + LIMIT]
            ; ja >far
            ; add r12, BYTE cycles - self.plan.steps[to].start as i8
            ; add r13, BYTE number as i8 + 1 - to as i8
            ; jmp =>start
            ; far:
        );
    }

    /// Jumps if a condition fails.
    fn condition(&mut self, condition: u32, fails: DynamicLabel) {
        let (at, flag) = [(1, 0x40), (1, 1), (1, 0x80u8), (0, 1)][condition as usize / 2 % 4];
        match condition {
            ALWAYS.. => return,
            0 | 2 | 4 | 6 => {
                return asm!(self ; test BYTE [BYTE rbp + FLAGS + at], flag as i8 ; jz =>fails);
            }
            1 | 3 | 5 | 7 => {
                return asm!(self ; test BYTE [BYTE rbp + FLAGS + at], flag as i8 ; jnz =>fails);
            }
            // The sum overflows if V is set.
            _ => asm!(self ; movzx eax, WORD [BYTE rbp + FLAGS] ; add al, 127 ; sahf),
        }
        match condition {
            8 => asm!(self ; cmc ; jbe =>fails),
            9 => asm!(self ; cmc ; ja =>fails),
            10 => asm!(self ; jl =>fails),
            11 => asm!(self ; jge =>fails),
            12 => asm!(self ; jle =>fails),
            _ => asm!(self ; jg =>fails),
        }
    }

    /// Loads a register into `eax`, `ecx` or another register of the host.
    // The assembler converts the number of a register, whatever its type is.
    #[allow(clippy::useless_conversion)]
    pub fn get(&mut self, host: u8, number: usize, register: usize) {
        if register == 15 {
            asm!(self ; lea Rd(host), [BYTE r14 + self.pc(number)]);
        } else {
            asm!(self ; mov Rd(host), [BYTE rbx + self.r(register)]);
        }
    }
}
