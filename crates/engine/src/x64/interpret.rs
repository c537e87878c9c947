// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared code that calls the interpreter.

use std::mem::offset_of;

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::chain::{address, count, flags_in, flags_out};
use super::{
    Assembler, DESCRIBED, EAX, ECX, EDX, ESI, Fields, LIMIT, LOAD, LOAD_BLOCK, MOVED, R14,
    SCOREBOARD, STEP, STORE, STORE_BLOCK, TIMED, TOLD, TOLD_AT,
};
use crate::action::Size;
use crate::format::{Described, MARGIN};

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
        // A fetch that faults may have taken time.
        ; mov r12, [rbx + f.cycles]
        ; test al, al
        ; jz ->end
        ; inc r13
        ; ->executed:
        ; mov r12, [rbx + f.cycles]
        ; mov rax, [rbx + f.horizon]
        ; sub rax, MARGIN
        ; jb ->end
        ; mov [BYTE rbp + LIMIT], rax
        ; ->onward:
        ; mov r9, [rbx + f.interlock]
        ; test r9, r9
        ; jz >none
        ; cmp DWORD [rbp + SCOREBOARD], 0
        ; je ->pending
    );
    flags_in(ops, f);
    dynasm!(ops
        ; .arch x64
        ; mov QWORD [rbx + f.interlock], 0
        ; mov eax, [rbx + f.pc]
        ; mov edx, [BYTE rbx + f.r(15)]
        ; call ->soon
        ; jmp rdi
        ; none:
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
    );
    told(ops, f);
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

/// Sets the pc. If the entry of the line was for this instruction, replaces the planned results by those that are pending.
/// The entry took back the planned wait.
fn told(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch x64
        ; movzx eax, BYTE [BYTE rdx + NUMBER]
        ; lea rcx, [r13 + rax]
    );
    address(ops, f, EAX, (R14, EAX), 0);
    dynasm!(ops
        ; .arch x64
        ; mov [rbx + f.pc], eax
        ; mov [BYTE rbp + DESCRIBED], rdx
        ; cmp rcx, [rbp + TOLD_AT]
        ; jne >planned
        ; movzx eax, BYTE [BYTE rdx + STALL]
        ; add r12, rax
        ; add [rbx + f.interlock_cycles], rax
        ; mov [rbx + f.cycles], r12
        ; mov rax, [rbp + TOLD]
        ; mov [rbx + f.interlock], rax
        ; planned:
    );
}

/// Loads from the MVA in `eax` into `ecx`. `esi` has the bits of a [`crate::format::Timed`]. Keeps `r8d`. Returns with the host's carry
/// set if the code must leave after the instruction. Does not return if the core takes a data abort.
pub fn load(ops: &mut Assembler, f: Fields, size: Size) -> usize {
    let start = ops.offset().0;
    before_access(ops, f);
    dynasm!(ops
        ; .arch x64
        ; mov edx, size.bytes()
        ; call QWORD [BYTE rbp + LOAD]
    );
    after_access(ops, f);
    match size {
        Size::Word | Size::Half | Size::Byte => dynasm!(ops ; .arch x64 ; mov ecx, eax),
        Size::SignedHalf => dynasm!(ops ; .arch x64 ; movsx ecx, ax),
        Size::SignedByte => dynasm!(ops ; .arch x64 ; movsx ecx, al),
    }
    return_from_access(ops, f);
    start
}

/// Stores `edi` to the MVA in `eax`. Otherwise as [`load`].
pub fn store(ops: &mut Assembler, f: Fields, size: Size) -> usize {
    let start = ops.offset().0;
    dynasm!(ops ; .arch x64 ; mov r9d, edi);
    before_access(ops, f);
    dynasm!(ops
        ; .arch x64
        ; mov edx, size.bytes()
        ; mov ecx, r9d
        ; call QWORD [BYTE rbp + STORE]
    );
    after_access(ops, f);
    return_from_access(ops, f);
    start
}

/// Loads or stores the registers in `r9d`, a set, from the VA in `eax` on. Otherwise as [`load`].
pub fn block(ops: &mut Assembler, f: Fields, write: bool) -> usize {
    let start = ops.offset().0;
    let call = if write { STORE_BLOCK } else { LOAD_BLOCK };
    before_access(ops, f);
    dynasm!(ops
        ; .arch x64
        ; mov edx, r9d
        ; call QWORD [rbp + call]
    );
    after_access(ops, f);
    return_from_access(ops, f);
    start
}

/// Brings the core up to date for an access to the address in `eax`, and puts the first two arguments of the call into their
/// registers.
fn before_access(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch x64
        ; mov [BYTE rbp + MOVED], r8d
        ; mov [BYTE rbp + TIMED], esi
        ; movzx ecx, sil
        ; add r12, rcx
        ; mov [rbx + f.cycles], r12
        ; shr esi, 8
        ; movzx ecx, sil
    );
    address(ops, f, EDX, (R14, ECX), 1);
    dynasm!(ops
        ; .arch x64
        ; mov [rbx + f.pc], edx
        ; add edx, f.set.width() as i32
        ; mov [BYTE rbx + f.r(15)], edx
        ; mov esi, eax
    );
    flags_out(ops, f);
    dynasm!(ops ; .arch x64 ; mov rdi, rbx ; sub rsp, 8);
}

/// Goes to the handler of the data abort if the core took one.
fn after_access(ops: &mut Assembler, _: Fields) {
    dynasm!(ops
        ; .arch x64
        ; add rsp, 8
        ; test rax, rax
        ; jns >done
        ; movzx ecx, BYTE [BYTE rbp + TIMED + 1]
        ; lea r13, [r13 + rcx + 1]
        ; add rsp, 8
        ; jmp ->executed
        ; done:
    );
}

fn return_from_access(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch x64
        ; mov r8d, [BYTE rbp + MOVED]
        ; movsx rdx, BYTE [BYTE rbp + TIMED + 2]
        ; mov rax, [rbx + f.cycles]
        ; lea r12, [rax + rdx]
        ; mov rdx, [rbx + f.horizon]
        ; sub rdx, MARGIN
        ; jb >near
        ; mov [BYTE rbp + LIMIT], rdx
        ; cmp rdx, rax
        ; near:
        ; ret
    );
}

/// Makes [`super::Stubs::near`].
pub fn near(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch x64
        ; mov [rbx + f.interlock], rax
        ; mov r12, [rbx + f.cycles]
        ; movzx ecx, BYTE [BYTE rbp + TIMED + 1]
        ; lea r13, [r13 + rcx + 1]
        ; jmp ->end
    );
    start
}
