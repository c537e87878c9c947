// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pieces of a line's code. `eax` is the target.

use arm::engine::{Pending, Set};
use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{Assembler, FLAGS, Fields, LIMIT, Stubs, TOLD, TOLD_AT};
use crate::action::{ALWAYS, Action, Index};
use crate::format::Described;
use crate::line::{Access, Chain, Host};
use crate::plan::Step;

/// Code for x86-64.
pub enum X64 {}

/// Code of a line while it is made.
pub type Line<'a> = crate::line::Line<'a, X64>;

/// Appends code to a line.
macro_rules! asm {
    ($line:ident $($tokens:tt)*) => {
        dynasmrt::dynasm!($line.ops ; .arch x64 $($tokens)*)
    };
}
pub(super) use asm;

impl Host for X64 {
    type Relocation = dynasmrt::x64::X64Relocation;
    type Fields = Fields;
    type Stubs = Stubs;
    type Slow = usize;
    const CALL: usize = 48;
    const ACCESS: usize = 48;

    fn count(line: &mut Line, cycles: u8) {
        asm!(line ; add r12, BYTE cycles as i8);
    }

    fn count_wait(line: &mut Line, cycles: u8) {
        asm!(line ; add QWORD [rbx + line.f.interlock_cycles], cycles as i32);
    }

    fn take_wait_back(line: &mut Line, cycles: u8) {
        asm!(line
            ; sub r12, BYTE cycles as i8
            ; sub QWORD [rbx + line.f.interlock_cycles], cycles as i32
        );
    }

    fn tell(line: &mut Line, number: usize, pending: Pending) {
        asm!(line
            ; mov rax, QWORD pending.bits() as i64
            ; mov [rbp + TOLD], rax
            ; lea rax, [BYTE r13 + number as i8]
            ; mov [rbp + TOLD_AT], rax
        );
    }

    fn condition(line: &mut Line, condition: u32, fails: DynamicLabel) {
        let (at, flag) = [(1, 0x40), (1, 1), (1, 0x80u8), (0, 1)][condition as usize / 2 % 4];
        match condition {
            ALWAYS.. => return,
            0 | 2 | 4 | 6 => {
                return asm!(line ; test BYTE [BYTE rbp + FLAGS + at], flag as i8 ; jz =>fails);
            }
            1 | 3 | 5 | 7 => {
                return asm!(line ; test BYTE [BYTE rbp + FLAGS + at], flag as i8 ; jnz =>fails);
            }
            // The sum overflows if V is set.
            _ => asm!(line ; movzx eax, WORD [BYTE rbp + FLAGS] ; add al, 127 ; sahf),
        }
        match condition {
            8 => asm!(line ; cmc ; jbe =>fails),
            9 => asm!(line ; cmc ; ja =>fails),
            10 => asm!(line ; jl =>fails),
            11 => asm!(line ; jge =>fails),
            12 => asm!(line ; jle =>fails),
            _ => asm!(line ; jg =>fails),
        }
    }

    fn jump(line: &mut Line, to: DynamicLabel) {
        asm!(line ; jmp =>to);
    }

    fn jump_out(line: &mut Line, to: usize) {
        asm!(line ; jmp extern to);
    }

    fn slow(_: &mut Line, call: usize) -> usize {
        call
    }

    fn target_instruction(line: &mut Line, number: usize) {
        let distance = (line.width() * number) as i8;
        asm!(line ; lea eax, [BYTE r14 + distance]);
    }

    fn target_distance(line: &mut Line, distance: i32) {
        asm!(line ; lea eax, [r14 + distance]);
    }

    fn target_register(line: &mut Line, register: usize) {
        asm!(line ; mov eax, [BYTE rbx + line.r(register)]);
    }

    fn add_to_target(line: &mut Line, offset: u32) {
        asm!(line ; add eax, offset as i32);
    }

    fn leave_set(line: &mut Line, slow: usize) {
        match line.f.set {
            Set::A32 => asm!(line ; test al, 1 ; jnz extern slow),
            Set::Thumb => asm!(line ; test al, 1 ; jz extern slow),
        }
    }

    fn align_target(line: &mut Line) {
        asm!(line ; and eax, BYTE -(line.width() as i8));
    }

    fn link(line: &mut Line, number: usize) {
        let thumb = i8::from(line.f.set == Set::Thumb);
        let next = (line.width() * (number + 1)) as i8 + thumb;
        asm!(line
            ; lea ecx, [BYTE r14 + next]
            ; mov [BYTE rbx + line.r(14)], ecx
        );
    }

    fn go(line: &mut Line, cycles: u8, instructions: usize, pending: Pending) {
        let counts = instructions as i32 * 0x100 + i32::from(cycles);
        asm!(line ; mov esi, DWORD counts);
        let chain = match line.chain(pending) {
            Chain::Free => line.stubs.chain,
            Chain::Soon(results) => {
                asm!(line ; mov r9, QWORD results as i64);
                line.stubs.chain_soon
            }
            Chain::Words(words) => {
                asm!(line ; mov r9d, DWORD i32::from(words));
                line.stubs.chain_word
            }
            Chain::Late(results) => {
                asm!(line ; mov r9d, DWORD i32::from(results));
                line.stubs.chain_late
            }
            Chain::Pending(results) => {
                return asm!(line
                    ; mov rcx, QWORD results as i64
                    ; mov [BYTE rbx + line.f.interlock as i8], rcx
                    ; jmp extern line.stubs.chain_pending
                );
            }
        };
        // Each line has a jump of its own, because the host remembers the target of each jump.
        asm!(line ; call extern chain ; jmp rdi);
    }

    fn go_on(line: &mut Line) {
        let plan = line.plan;
        let counts = plan.steps.len() as i32 * 0x100 + i32::from(plan.cycles);
        let chain = line.stubs.chain_next;
        asm!(line ; mov esi, DWORD counts ; call extern chain ; jmp rdi);
    }

    fn branch_within(line: &mut Line, number: usize, step: &Step, to: usize) {
        let cycles = (step.start + step.stall + step.leaving) as i8;
        let start = line.waited[to];
        let to_cycles = line.plan.steps[to].start + line.plan.steps[to].stall;
        asm!(line
            ; lea rax, [BYTE r12 + cycles]
            ; cmp rax, [BYTE rbp + LIMIT]
            ; ja >far
            ; add r12, BYTE cycles - to_cycles as i8
            ; add r13, BYTE number as i8 + 1 - to as i8
            ; jmp =>start
            ; far:
        );
    }

    fn taken(line: &mut Line, number: usize, wrong: Option<DynamicLabel>) {
        let at = (line.width() * number) as i8 + 1;
        asm!(line ; lea eax, [BYTE r14 + at] ; call extern line.stubs.taken);
        if let Some(wrong) = wrong {
            asm!(line ; jc =>wrong);
        }
    }

    fn not_taken(line: &mut Line, number: usize, right: Option<DynamicLabel>) {
        let at = (line.width() * number) as i8 + 1;
        asm!(line ; lea eax, [BYTE r14 + at] ; call extern line.stubs.not_taken);
        if let Some(right) = right {
            asm!(line ; jnc =>right);
        }
    }

    fn compute(line: &mut Line, number: usize, action: Action) {
        line.compute(number, action);
    }

    fn access(line: &mut Line, number: usize, step: &Step, slow: usize) {
        line.access_memory(number, step, slow);
    }

    fn access_by_core(line: &Line, calls: &mut Assembler, access: &Access) {
        match access.step.action {
            Action::Transfer { .. } => line.transfer_by_core(calls, access),
            _ => line.block_by_core(calls, access),
        }
        dynasm!(calls
            ; .arch x64
            ; jnc extern access.resume
            ; mov rax, QWORD access.step.passed.bits() as i64
            ; jmp extern line.stubs.near
        );
    }

    fn call(line: &Line, calls: &mut Assembler, described: &Described, resume: usize) {
        dynasm!(calls
            ; .arch x64
            ; lea rdx, [>described]
            ; jmp extern line.stubs.step
            ; .align 16
            ; described:
            ; .u8 described.number, described.start, described.next_start, described.stall
            ; .u32 0
            ; .u64 described.before, described.after
            ; jmp extern resume
            ; .align 16
        );
    }
}

impl Line<'_> {
    pub fn r(&self, n: usize) -> i8 {
        self.f.r(n)
    }

    /// Calls shared code that accesses memory. If it cannot, it jumps to `slow`, whose distance is the operand of an
    /// instruction without effect.
    pub fn access(&mut self, stub: usize, slow: usize) {
        asm!(self ; call extern stub);
        let after = self.at[0] + self.ops.offset().0;
        asm!(self ; test eax, DWORD slow.wrapping_sub(after) as i32);
    }

    /// Transfers a register to or from the address in `eax`. An address that is not a multiple of the size goes on to the
    /// next call, because the result of such a load is late.
    fn transfer_by_core(&self, calls: &mut Assembler, access: &Access) {
        let Action::Transfer {
            load,
            size,
            address,
            d,
        } = access.step.action
        else {
            return;
        };
        let stubs = match load {
            true => self.stubs.slow_load,
            false => self.stubs.slow_store,
        };
        let misaligned = size.bytes() as i8 - 1;
        if misaligned != 0 {
            dynasm!(calls ; .arch x64 ; test al, misaligned ; jnz =>access.interpreted);
        }
        let stub = stubs[size as usize];
        dynasm!(calls ; .arch x64 ; mov esi, access.timed.bits() ; call extern stub);
        if address.index != Index::Offset {
            dynasm!(calls ; .arch x64 ; mov [BYTE rbx + self.r(address.base)], r8d);
        }
        if load {
            dynasm!(calls ; .arch x64 ; mov [BYTE rbx + self.r(d)], ecx);
        }
    }

    /// Transfers several registers.
    fn block_by_core(&self, calls: &mut Assembler, access: &Access) {
        let Action::Block {
            load,
            list,
            base,
            start,
            moves,
        } = access.step.action
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
            ; mov esi, access.timed.bits()
            ; call extern stub
        );
        if moves.is_some() {
            dynasm!(calls ; .arch x64 ; mov [BYTE rbx + self.r(base)], r8d);
        }
    }

    /// Loads a register into `eax`, `ecx` or another register of the host.
    // The assembler converts the number of a register, whatever its type is.
    #[allow(clippy::useless_conversion)]
    pub fn get(&mut self, host: u8, number: usize, register: usize) {
        if register == 15 {
            // The value of r15 is the address of the second instruction after this one.
            let distance = (self.width() * (number + 2)) as i8;
            asm!(self ; lea Rd(host), [BYTE r14 + distance]);
        } else {
            asm!(self ; mov Rd(host), [BYTE rbx + self.r(register)]);
        }
    }
}
