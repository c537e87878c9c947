// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared code that loads and stores by grants.

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::{Assembler, COPIED, COPIED_SECOND, COPY, Fields, TAGS};
use crate::action::Size;

/// Finds the grant for the address in `eax`, which becomes the MVA. Puts the D-cache line into `edx`, or jumps to the
/// next label `slow`.
fn grant(ops: &mut Assembler, f: Fields, key: i32, misaligned: i32) {
    dynasm!(ops
        ; .arch x64
        ; test eax, 0xfe00_0000_u32 as i32
        ; jnz >high
        ; or eax, [rbx + f.data_pid]
        ; high:
        ; mov ecx, eax
        ; and ecx, !31 | misaligned
        ; or ecx, [rbx + f.grant_context]
        ; mov edx, eax
        ; shr edx, 1
        ; and edx, 0x1ff0
        ; cmp ecx, [rbx + rdx + key]
        ; jne >slow
        ; mov edx, [rbx + rdx + f.grant_line]
    );
}

/// Returns to the slow path with the MVA in `eax`. The return address is that of an instruction whose operand is the distance of the path
/// from there.
fn slow(ops: &mut Assembler) {
    dynasm!(ops
        ; .arch x64
        ; slow:
        ; mov rdx, [rsp]
        ; movsxd rcx, DWORD [rdx + 1]
        ; add [rsp], rcx
        ; ret
    );
}

/// Makes [`super::Stubs::load`].
pub fn load(ops: &mut Assembler, f: Fields, size: Size) -> usize {
    dynasm!(ops ; .arch x64 ; .align 16);
    let start = ops.offset().0;
    grant(ops, f, f.grant_read, size.bytes() - 1);
    dynasm!(ops
        ; .arch x64
        ; shl edx, 5
        ; and eax, 31
        ; add rdx, r15
    );
    match size {
        Size::Word => dynasm!(ops ; .arch x64 ; mov ecx, [rdx + rax]),
        Size::Half => dynasm!(ops ; .arch x64 ; movzx ecx, WORD [rdx + rax]),
        Size::Byte => dynasm!(ops ; .arch x64 ; movzx ecx, BYTE [rdx + rax]),
        Size::SignedHalf => dynasm!(ops ; .arch x64 ; movsx ecx, WORD [rdx + rax]),
        Size::SignedByte => dynasm!(ops ; .arch x64 ; movsx ecx, BYTE [rdx + rax]),
    }
    dynasm!(ops ; .arch x64 ; ret);
    slow(ops);
    start
}

/// Makes [`super::Stubs::store`].
pub fn store(ops: &mut Assembler, f: Fields, size: Size) -> usize {
    dynasm!(ops ; .arch x64 ; .align 16);
    let start = ops.offset().0;
    grant(ops, f, f.grant_write, size.bytes() - 1);
    // Marks the half of the line dirty.
    dynasm!(ops
        ; .arch x64
        ; mov ecx, eax
        ; shr ecx, 3
        ; and ecx, 2
        ; add ecx, 2
        ; mov rsi, [BYTE rbp + TAGS]
        ; or [rsi + rdx * 4], ecx
        ; shl edx, 5
        ; and eax, 31
        ; add rdx, r15
    );
    match size {
        Size::Word => dynasm!(ops ; .arch x64 ; mov [rdx + rax], edi),
        Size::Half | Size::SignedHalf => dynasm!(ops ; .arch x64 ; mov [rdx + rax], di),
        Size::Byte | Size::SignedByte => dynasm!(ops ; .arch x64 ; mov [rdx + rax], dil),
    }
    dynasm!(ops ; .arch x64 ; ret);
    slow(ops);
    start
}

/// Makes [`super::Stubs::load_block`] or [`super::Stubs::store_block`].
pub fn block(ops: &mut Assembler, f: Fields, write: bool) -> usize {
    dynasm!(ops ; .arch x64 ; .align 16);
    let start = ops.offset().0;
    let key = if write { f.grant_write } else { f.grant_read };
    dynasm!(ops
        ; .arch x64
        ; mov esi, eax
        ; and esi, 28
        ; add edi, esi
        ; cmp edi, 28
        ; ja >two
    );
    grant(ops, f, key, 3);
    if write {
        // The lower half becomes dirty if the first word is in it, and the upper one if the last word is.
        dynasm!(ops
            ; .arch x64
            ; xor eax, eax
            ; xor ecx, ecx
            ; cmp esi, 16
            ; setb al
            ; cmp edi, 16
            ; setae cl
            ; lea eax, [rax + rcx * 2]
            ; add eax, eax
            ; mov rcx, [BYTE rbp + TAGS]
            ; or [rcx + rdx * 4], eax
            ; mov QWORD [rbp + COPIED], 0
        );
    }
    dynasm!(ops
        ; .arch x64
        ; shl edx, 5
        ; add rdx, r15
        ; add rdx, rsi
        ; ret
        ; two:
    );
    block_of_two_lines(ops, f, write);
    slow(ops);
    start
}

/// Marks the halves of two lines dirty: of `r11d` from byte `esi` on, and of `edx` up to byte `edi`, which counts from the
/// start of the first line.
fn mark_two_lines(ops: &mut Assembler) {
    dynasm!(ops
        ; .arch x64
        ; mov rcx, [BYTE rbp + TAGS]
        ; mov eax, 6
        ; cmp esi, 16
        ; jb >both
        ; mov eax, 4
        ; both:
        ; or [rcx + r11 * 4], eax
        ; mov eax, 2
        ; cmp edi, 48
        ; jb >lower
        ; mov eax, 6
        ; lower:
        ; or [rcx + rdx * 4], eax
    );
}

/// The words are in two lines. Jumps to the next label `slow` if they are in more.
fn block_of_two_lines(ops: &mut Assembler, f: Fields, write: bool) {
    let key = if write { f.grant_write } else { f.grant_read };
    dynasm!(ops
        ; .arch x64
        ; cmp edi, 60
        ; ja >slow
        ; lea r10d, [rax + 32]
    );
    grant(ops, f, key, 3);
    dynasm!(ops
        ; .arch x64
        ; mov r11d, edx
        ; mov eax, r10d
    );
    grant(ops, f, key, 3);
    if write {
        mark_two_lines(ops);
    }
    dynasm!(ops
        ; .arch x64
        ; shl edx, 5
        ; add rdx, r15
        ; shl r11d, 5
        ; add r11, r15
    );
    if write {
        dynasm!(ops
            ; .arch x64
            ; mov [rbp + COPIED], r11
            ; mov [rbp + COPIED_SECOND], rdx
        );
    }
    dynasm!(ops
        ; .arch x64
        ; movups xmm0, [r11]
        ; movups xmm1, [r11 + 16]
        ; movups xmm2, [rdx]
        ; movups xmm3, [rdx + 16]
        ; movups [rbp + COPY], xmm0
        ; movups [rbp + COPY + 16], xmm1
        ; movups [rbp + COPY + 32], xmm2
        ; movups [rbp + COPY + 48], xmm3
        ; lea rdx, [rbp + rsi + COPY]
        ; ret
    );
}

/// Makes [`super::Stubs::mask`]. Returns to the slow path unless the mode is privileged and only the I bit changes. That
/// must not let a pending interrupt in.
pub fn mask(ops: &mut Assembler, f: Fields) -> usize {
    dynasm!(ops ; .arch x64 ; .align 16);
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch x64
        ; mov ecx, [BYTE rbx + f.control as i8]
        ; mov edx, eax
        ; xor edx, ecx
        ; test dl, 0x5f
        ; jnz >slow
        ; mov edx, ecx
        ; and edx, 0x1f
        ; cmp edx, 0x10
        ; je >slow
        ; and eax, 0x80
        ; jnz >change
        ; cmp BYTE [rbx + f.irq], 0
        ; jne >slow
        ; change:
        ; and ecx, !0x80
        ; or ecx, eax
        ; mov [BYTE rbx + f.control as i8], ecx
        ; ret
    );
    slow(ops);
    start
}

/// Makes [`super::Stubs::end_block`].
pub fn end_block(ops: &mut Assembler) -> usize {
    dynasm!(ops ; .arch x64 ; .align 16);
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch x64
        ; mov rdx, [rbp + COPIED]
        ; test rdx, rdx
        ; jz >end
        ; mov rcx, [rbp + COPIED_SECOND]
        ; movups xmm0, [rbp + COPY]
        ; movups xmm1, [rbp + COPY + 16]
        ; movups xmm2, [rbp + COPY + 32]
        ; movups xmm3, [rbp + COPY + 48]
        ; movups [rdx], xmm0
        ; movups [rdx + 16], xmm1
        ; movups [rcx], xmm2
        ; movups [rcx + 16], xmm3
        ; end:
        ; ret
    );
    start
}
