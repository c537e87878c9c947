// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared code that calls the interpreter.

use std::mem::offset_of;

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::chain::{address, count, flags_in, flags_out};
use super::{Assembler, DESCRIBED, EAX, ECX, ESI, Fields, LIMIT, MARGIN, R14, STEP};

/// Description of an instruction that the interpreter executes. It lies behind the code that calls the interpreter. The
/// code that goes on lies behind the description.
#[repr(C)]
pub struct Described {
    /// Number of the instruction within its line.
    pub number: u8,
    /// Cycles of the line before the instruction.
    pub start: u8,
    /// Cycles of the line, as the code that follows counts them, before the next instruction.
    pub next_start: u8,
    /// Wait that the code has counted already.
    pub stall: u8,
    pub unused: [u8; 4],
    /// Pending before and after the instruction.
    pub before: u64,
    pub after: u64,
}

const NUMBER: i8 = offset_of!(Described, number) as i8;
const START: i8 = offset_of!(Described, start) as i8;
const NEXT_START: i8 = offset_of!(Described, next_start) as i8;
const STALL: i8 = offset_of!(Described, stall) as i8;
const BEFORE: i8 = offset_of!(Described, before) as i8;
const AFTER: i8 = offset_of!(Described, after) as i8;

/// Goes to the line at `eax` while results are pending: the interpreter executes instructions until none is.
pub fn chain_pending(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    count(ops, f);
    dynasm!(ops
        ; .arch x64
        ; ->pending_at:
        ; mov [rbx + f.pc], eax
        ; mov [BYTE rbx + f.r(15)], edx
    );
    flags_out(ops, f);
    dynasm!(ops
        ; .arch x64
        ; ->pending:
        ; cmp r12, [BYTE rbp + LIMIT]
        ; ja ->end
        ; mov [rbx + f.cycles], r12
        ; mov rdi, rbx
        ; call QWORD [BYTE rbp + STEP]
        ; test al, al
        ; jz ->end
        ; inc r13
        ; mov r12, [rbx + f.cycles]
        ; mov rax, [rbx + f.horizon]
        ; sub rax, MARGIN
        ; jb ->end
        ; mov [BYTE rbp + LIMIT], rax
        ; ->onward:
        ; cmp QWORD [rbx + f.interlock], 0
        ; jne ->pending
    );
    flags_in(ops, f);
    dynasm!(ops
        ; .arch x64
        ; mov eax, [rbx + f.pc]
        ; mov edx, [BYTE rbx + f.r(15)]
        ; call ->chain
        ; jmp rdi
    );
    start
}

/// Puts the state of the instruction that `rdx` describes into the core.
fn describe(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch x64
        ; movzx eax, BYTE [BYTE rdx + START]
        ; add r12, rax
        // The interpreter counts the wait itself.
        ; movzx eax, BYTE [BYTE rdx + STALL]
        ; sub [rbx + f.interlock_cycles], rax
        ; mov [rbx + f.cycles], r12
        ; mov rax, [BYTE rdx + BEFORE]
        ; mov [rbx + f.interlock], rax
        ; movzx eax, BYTE [BYTE rdx + NUMBER]
    );
    address(ops, f, EAX, (R14, EAX), 0);
    dynasm!(ops
        ; .arch x64
        ; mov [rbx + f.pc], eax
        ; mov [BYTE rbp + DESCRIBED], rdx
    );
    flags_out(ops, f);
}

/// Executes one instruction by the interpreter. `rdx` has the address of a [`Described`].
pub fn step(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    describe(ops, f);
    dynasm!(ops
        ; .arch x64
        ; mov rdi, rbx
        ; call QWORD [BYTE rbp + STEP]
        ; mov rdx, [BYTE rbp + DESCRIBED]
        ; movzx ecx, BYTE [BYTE rdx + NUMBER]
        ; mov r12, [rbx + f.cycles]
        ; mov rax, [rbx + f.horizon]
        ; sub rax, MARGIN
        ; jb >near
        ; mov [BYTE rbp + LIMIT], rax
        ; cmp r12, rax
        ; ja >near
        // Goes on in the line if the interpreter did what was planned.
        ; mov rax, [rbx + f.interlock]
        ; cmp rax, [BYTE rdx + AFTER]
        ; jne >elsewhere
    );
    address(ops, f, ESI, (R14, ECX), 1);
    dynasm!(ops
        ; .arch x64
        ; cmp esi, [rbx + f.pc]
        ; jne >elsewhere
        ; mov esi, [rbx + f.line_pc]
        ; xor esi, r14d
        ; test esi, !0x1e
        ; jnz >elsewhere
        ; mov QWORD [rbx + f.interlock], 0
        ; movzx eax, BYTE [BYTE rdx + NEXT_START]
        ; sub r12, rax
    );
    flags_in(ops, f);
    dynasm!(ops
        ; .arch x64
        ; add rdx, size_of::<Described>() as i32
        ; jmp rdx
        ; elsewhere:
        ; lea r13, [r13 + rcx + 1]
        ; jmp ->onward
        ; near:
        ; lea r13, [r13 + rcx + 1]
        ; jmp ->end
    );
    start
}
