// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code of a line: a head, with what an entry at each instruction needs; then the instructions in order. The calls
//! of the interpreter lie elsewhere in the memory, because they are rare.
//!
//! `r12` and `r13` lag behind: they change only where the code leaves the line, by amounts that the plan knows. An
//! entry at a later instruction subtracts what the instructions before it would have added.

use arm::engine::{Pending, Set};
use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::interpret::Timed;
use super::{Assembler, FLAGS, Fields, Stubs, TOLD, TOLD_AT};
use crate::action::{ALWAYS, Action, Index};
use crate::format::{Described, Head, Made, first, head};
use crate::plan::{Plan, Step};

/// Bytes of the code that calls the interpreter for an instruction.
const CALL: usize = 48;

/// Code of a line while it is made.
pub struct Line<'a> {
    pub ops: Assembler,
    pub f: Fields,
    pub stubs: Stubs,
    pub plan: &'a Plan,
    /// Address of the code.
    at: usize,
    /// Start of each instruction, and of what follows the last.
    starts: Vec<DynamicLabel>,
    /// Start of each instruction behind its wait.
    pub waited: Vec<DynamicLabel>,
    /// Address of the calls of the interpreter.
    calls_at: usize,
    /// Calls of the interpreter.
    calls: Vec<Call>,
    /// Their bytes.
    calls_bytes: usize,
}

/// Makes the code of a line, for the two parts of the memory, whose next addresses are `ends`.
pub fn make(plan: &Plan, fields: &Fields, stubs: Stubs, ends: [usize; 2]) -> Made {
    let mut ops = Assembler::new(ends[0]);
    let count = plan.steps.len();
    let head_bytes = Head::of(plan.set).bytes as usize;
    ops.extend(vec![0; head_bytes]);
    let starts = (0..=count).map(|_| ops.new_dynamic_label()).collect();
    let waited = (0..count).map(|_| ops.new_dynamic_label()).collect();
    let mut line = Line {
        ops,
        f: *fields,
        stubs,
        plan,
        at: ends[0],
        starts,
        waited,
        calls_at: ends[1],
        calls: Vec::new(),
        calls_bytes: 0,
    };
    let mut offsets = Vec::with_capacity(count + 1);
    let mut entries = Vec::with_capacity(count);
    for (number, step) in plan.steps.iter().enumerate() {
        let start = line.starts[number];
        offsets.push(line.ops.offset().0);
        dynasm!(line.ops ; .arch x64 ; =>start);
        // The instruction waits for something in its place, but an entry from elsewhere does not.
        if step.stall > 0 {
            asm!(line ; add QWORD [rbx + line.f.interlock_cycles], step.stall as i32);
        }
        let waited = line.waited[number];
        asm!(line ; =>waited);
        entries.push((line.offset(), step.start + step.stall));
        line.step(number, step);
    }
    offsets.push(line.ops.offset().0);
    line.end();
    for (number, step) in plan.steps.iter().enumerate() {
        // The instruction waits for something in its place, but an entry from elsewhere does not.
        if !step.is_entry() {
            entries[number] = (line.offset(), step.start);
            line.enter_fresh(number, step);
        }
    }
    let calls = line.calls(ends, &offsets);
    let mut code = line.ops.finalize().expect("every label has an address");
    code[..head_bytes].copy_from_slice(&head(plan, &entries));
    Made {
        hot: code,
        cold: calls,
        entries: first(&entries),
    }
}

/// A call of the interpreter for an instruction.
struct Call {
    number: usize,
    step: Step,
    /// Whether the code has the address of a transfer, and only the access is missing.
    accesses: bool,
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

    /// Distance of the next code from the start of the line's code.
    fn offset(&self) -> u16 {
        u16::try_from(self.ops.offset().0).expect("a line has less than 64 KB of code")
    }

    /// The value of r15 in an instruction, as a distance from the start of the line.
    fn pc(&self, number: usize) -> i8 {
        (self.width() * (number + 2)) as i8
    }

    /// Bytes of an instruction.
    pub fn width(&self) -> usize {
        self.f.set.width()
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
            asm!(self
                ; sub r12, BYTE fresh.stall as i8
                ; sub QWORD [rbx + self.f.interlock_cycles], fresh.stall as i32
            );
        }
        if let Some(told) = fresh.told {
            self.tell(told, Pending::NONE);
        }
        let start = self.starts[number];
        asm!(self ; jmp =>start);
    }

    /// Makes the interpreter know what is pending, instead of the plan, if it executes an instruction.
    pub fn tell(&mut self, number: usize, pending: Pending) {
        asm!(self
            ; mov rax, QWORD pending.bits() as i64
            ; mov [rbp + TOLD], rax
            ; lea rax, [BYTE r13 + number as i8]
            ; mov [rbp + TOLD_AT], rax
        );
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
    pub fn go(&mut self, cycles: u8, instructions: usize, pending: u64) {
        let counts = instructions as i32 * 0x100 + i32::from(cycles);
        asm!(self ; mov esi, DWORD counts);
        if self.plan.beside && pending != 0 {
            let chain = self.stubs.chain_soon;
            asm!(self ; mov r9, QWORD pending as i64 ; call extern chain ; jmp rdi);
            return;
        }
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
    fn call(&mut self, number: usize, step: Step, accesses: bool) -> usize {
        let address = self.calls_at + self.calls_bytes;
        self.calls_bytes += if accesses { 2 * CALL } else { CALL };
        self.calls.push(Call {
            number,
            step,
            accesses,
        });
        address
    }

    /// Executes an instruction by the interpreter.
    fn interpret(&mut self, number: usize, step: Step) {
        let call = self.call(number, step, false);
        self.jump(call);
    }

    /// The calls of the interpreter. `offsets` has the place of each instruction.
    fn calls(&mut self, ends: [usize; 2], offsets: &[usize]) -> Vec<u8> {
        let mut calls = Assembler::new(ends[1]);
        for call in core::mem::take(&mut self.calls) {
            let Call { number, step, .. } = call;
            let resume = ends[0] + offsets[number + 1];
            if call.accesses {
                self.access_by_core(&mut calls, number, &step, resume);
            }
            let described = Described {
                number: number as u8,
                start: step.start,
                next_start: self.plan.start(number + 1),
                stall: step.stall,
                unused: [0; 4],
                before: step.before.bits(),
                after: self.plan.pending(number + 1).bits(),
            };
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
        let bytes = self.calls_bytes;
        assert_eq!(calls.offset().0, bytes, "calls have {CALL} bytes each");
        calls.finalize().expect("every label has an address")
    }

    /// An access without a grant, within the bytes of a call.
    fn access_by_core(&self, calls: &mut Assembler, number: usize, step: &Step, resume: usize) {
        let timed = Timed {
            number: number as u8,
            before: step.start + step.stall + step.cycles,
            next_start: self.plan.start(number + 1),
        };
        let start = calls.offset().0;
        match step.action {
            Action::Transfer { .. } => self.transfer_by_core(calls, step.action, timed),
            _ => self.block_by_core(calls, step.action, timed),
        }
        dynasm!(calls
            ; .arch x64
            ; jnc extern resume
            ; mov rax, QWORD step.passed.bits() as i64
            ; jmp extern self.stubs.near
        );
        let rest = CALL - (calls.offset().0 - start);
        calls.extend(core::iter::repeat_n(0xcc, rest));
        dynasm!(calls ; .arch x64 ; step:);
    }

    /// Transfers a register to or from the address in `eax`. An address that is not a multiple of the size goes on to the
    /// next call, because the result of such a load is late.
    fn transfer_by_core(&self, calls: &mut Assembler, action: Action, timed: Timed) {
        let Action::Transfer {
            load,
            size,
            address,
            d,
        } = action
        else {
            return;
        };
        let stubs = match load {
            true => self.stubs.slow_load,
            false => self.stubs.slow_store,
        };
        let misaligned = size.bytes() as i8 - 1;
        if misaligned != 0 {
            dynasm!(calls ; .arch x64 ; test al, misaligned ; jnz >step);
        }
        dynasm!(calls ; .arch x64 ; mov esi, timed.bits() ; call extern stubs[size as usize]);
        if address.index != Index::Offset {
            dynasm!(calls ; .arch x64 ; mov [BYTE rbx + self.r(address.base)], r8d);
        }
        if load {
            dynasm!(calls ; .arch x64 ; mov [BYTE rbx + self.r(d)], ecx);
        }
    }

    /// Transfers several registers.
    fn block_by_core(&self, calls: &mut Assembler, action: Action, timed: Timed) {
        let Action::Block {
            load,
            list,
            base,
            start,
            moves,
        } = action
        else {
            return;
        };
        let stub = match load {
            true => self.stubs.slow_load_block,
            false => self.stubs.slow_store_block,
        };
        dynasm!(calls ; .arch x64 ; mov eax, [BYTE rbx + self.r(base)]);
        if start != 0 {
            dynasm!(calls ; .arch x64 ; lea eax, [BYTE rax + start as i8]);
        }
        dynasm!(calls
            ; .arch x64
            ; mov r9d, DWORD list as i32
            ; mov esi, timed.bits()
            ; call extern stub
        );
        if moves.is_some() {
            dynasm!(calls ; .arch x64 ; mov [BYTE rbx + self.r(base)], r8d);
        }
    }

    fn step(&mut self, number: usize, step: &Step) {
        if step.action == Action::Interpret {
            return self.interpret(number, *step);
        }
        let slow = self.slow_path(number, step);
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
            action => match slow {
                0 => self.compute(number, action),
                _ => self.access_memory(number, step, slow),
            },
        }
        if let Some(pending) = step.apart {
            return self.go_on_apart(number, step, pending);
        }
        if step.leaving == 0 && step.condition != ALWAYS && step.cycles > 1 {
            asm!(self ; add r12, BYTE step.cycles as i8 - 1);
        }
    }

    /// Address of the call for an instruction that code does not always execute itself, or zero.
    fn slow_path(&mut self, number: usize, step: &Step) -> usize {
        if !step.action.may_call() {
            return 0;
        }
        let is_access = match step.action {
            Action::Transfer { .. } => true,
            Action::Block { list, .. } => list >> 15 == 0,
            _ => false,
        };
        // On a core with a scoreboard, other results may be pending at an entry than the plan has.
        let accesses = is_access && step.alone && !self.plan.beside;
        self.call(number, *step, accesses)
    }

    /// Jumps if a condition fails.
    pub fn condition(&mut self, condition: u32, fails: DynamicLabel) {
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
