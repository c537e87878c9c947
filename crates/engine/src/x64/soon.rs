// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared code for cores with a scoreboard, and for branch prediction.

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::chain::{address, count, find_line, number};
use super::{Assembler, BRANCHES, CODE, EAX, ECX, Fields, TOLD, TOLD_AT};
use crate::format::Head;
use crate::plan::{Late, MISPREDICTED};

/// Goes to the line at `eax` while the results in `r9` are pending: see [`crate::beside`].
pub fn chain_soon(ops: &mut Assembler, f: Fields) -> usize {
    let (start, head) = (ops.offset().0, Head::of(f.set));
    count(ops, f);
    dynasm!(ops ; .arch x64 ; ->soon:);
    find_line(ops, f);
    dynasm!(ops
        ; .arch x64
        ; ->begin_soon:
        ; shl rdi, 4
        ; add rdi, [BYTE rbp + CODE]
    );
    number(ops, f);
    dynasm!(ops
        ; .arch x64
        ; xor esi, esi
        ; movzx r8d, WORD [rdi + rax * 2 + head.uses]
        ; mov r10, r9
        ; shr r10, 32
        ; test r8d, r10d
        ; jnz >used
        ; shr r10d, 16
        ; jz >enter
        ; movzx r11d, BYTE [rdi + rax + head.late]
        ; cmp r11d, Late::Over as i32
        ; je >told
        ; test r11d, r11d
        ; jz >unknown
        ; movzx r8d, WORD [rdi + rax * 2 + head.uses + 2]
        ; test r8d, r10d
        ; jz >told
        ; cmp r11d, Late::Waits as i32
        ; jne >unknown
        ; inc esi
        ; jmp >enter
        ; used:
        ; inc esi
        ; shr r10d, 16
        ; test r8d, r10d
        ; jz >enter
        ; inc esi
        ; jmp >enter
    );
    enter(ops, f);
    dynasm!(ops
        ; .arch x64
        ; unknown:
    );
    address(ops, f, EAX, (ECX, EAX), 0);
    dynasm!(ops
        ; .arch x64
        ; add rsp, 8
        ; mov [rbx + f.interlock], r9
        ; jmp ->pending_at
        ; out:
        ; jmp ->look_up
    );
    start
}

/// Enters the code `rdi` at the instruction `rax`, after a wait of `rsi` cycles. At the label `told`, the interpreter gets
/// to know what is pending.
fn enter(ops: &mut Assembler, f: Fields) {
    let starts = Head::of(f.set).starts;
    dynasm!(ops
        ; .arch x64
        ; told:
        ; mov [rbp + TOLD], r9
        ; mov [rbp + TOLD_AT], r13
        ; enter:
        ; add r12, rsi
        ; add [rbx + f.interlock_cycles], rsi
        ; mov r14d, ecx
        ; movzx ecx, BYTE [rdi + rax + starts]
        ; sub r12, rcx
        ; sub r13, rax
        ; movzx eax, WORD [rdi + rax * 2]
        ; add rdi, rax
        ; ret
    );
}

/// Records in the branch target buffer that the branch at `eax`, with bit 0 set, is taken. Sets the carry and counts the
/// other cycles if the prediction was wrong.
pub fn taken(ops: &mut Assembler, f: Fields) -> usize {
    dynasm!(ops ; .arch x64 ; .align 16);
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch x64
        ; bt DWORD [rbx + f.sctlr], 11
        ; jnc >wrong
    );
    entry(ops);
    dynasm!(ops
        ; .arch x64
        ; jne >new
        ; cmp BYTE [rdx + 4], 2
        ; jb >weak
        ; mov BYTE [rdx + 4], 3
        ; clc
        ; ret
        ; new:
        ; mov [rdx], eax
        ; mov BYTE [rdx + 4], 2
        ; jmp >wrong
        ; weak:
        ; inc BYTE [rdx + 4]
        ; wrong:
        ; add r12, BYTE MISPREDICTED as i8
        ; stc
        ; ret
    );
    start
}

/// As [`taken`], for a branch that is not taken.
pub fn not_taken(ops: &mut Assembler, f: Fields) -> usize {
    dynasm!(ops ; .arch x64 ; .align 16);
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch x64
        ; bt DWORD [rbx + f.sctlr], 11
        ; jnc >right
    );
    entry(ops);
    dynasm!(ops
        ; .arch x64
        ; jne >right
        ; cmp BYTE [rdx + 4], 2
        ; jae >wrong
        ; mov BYTE [rdx + 4], 0
        ; right:
        ; clc
        ; ret
        ; wrong:
        ; dec BYTE [rdx + 4]
        ; add r12, BYTE MISPREDICTED as i8
        ; stc
        ; ret
    );
    start
}

/// Puts the address of the entry of the branch at `eax` into `rdx`, and compares the entry with `eax`.
fn entry(ops: &mut Assembler) {
    dynasm!(ops
        ; .arch x64
        ; mov edx, eax
        ; shl edx, 1
        ; and edx, 0x3f8
        ; add rdx, [rbp + BRANCHES]
        ; cmp [rdx], eax
    );
}
