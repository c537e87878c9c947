// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared code that enters and leaves code, and that goes from line to line.

use arm::engine::Set;
use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::{
    Assembler, CODE, CORE, EAX, ECX, EDX, ENTER, ESI, FLAGS, Fields, HEADS, HINTS, LIMIT, LINES,
    R14, SCOREBOARD,
};
use crate::format::{Head, MARGIN};

/// Enters code, as a function of the host: see [`super::enter`].
pub fn enter(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch x64
        ; push rbx
        ; push rbp
        ; push r12
        ; push r13
        ; push r14
        ; push r15
        ; sub rsp, 8
        ; mov rbp, rdi
        ; mov edi, esi
        ; mov rbx, [BYTE rbp + CORE]
        ; mov r15, [BYTE rbp + LINES]
        ; mov r12, [rbx + f.cycles]
        ; xor r13d, r13d
        ; mov rax, [rbx + f.horizon]
        ; sub rax, MARGIN
        ; mov [BYTE rbp + LIMIT], rax
    );
    flags_in(ops, f);
    dynasm!(ops
        ; .arch x64
        ; mov r9, [rbx + f.interlock]
        ; mov QWORD [rbx + f.interlock], 0
        ; call ->place
        ; jmp rdi
    );
    start
}

/// Goes to the line at `eax` while loaded words, the registers in `r9d`, are pending.
pub fn chain_word(ops: &mut Assembler, f: Fields) -> usize {
    let (start, uses) = (ops.offset().0, Head::of(f.set).uses);
    count(ops, f);
    find_line(ops, f);
    dynasm!(ops
        ; .arch x64
        ; ->begin_word:
    );
    begin_line(ops, f);
    dynasm!(ops
        ; .arch x64
        ; movzx ecx, WORD [rdi + rax * 2 + uses]
    );
    find_entry(ops, f);
    dynasm!(ops
        ; .arch x64
        ; add rdi, rax
        ; test ecx, r9d
        ; jnz >wait
        ; ret
        // An instruction that uses the word waits for one cycle.
        ; wait:
        ; inc r12
        ; inc QWORD [rbx + f.interlock_cycles]
        ; ret
        ; out:
        ; shl r9, 32
        ; jmp ->look_up
    );
    start
}

/// Goes to the line after the current one.
pub fn chain_next(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    dynasm!(ops ; .arch x64 ; lea eax, [r14 + 32]);
    count(ops, f);
    find_line(ops, f);
    dynasm!(ops
        ; .arch x64
        // Nothing is pending at the first instruction, so its code has a fixed place.
        ; shl rdi, 4
        ; add rdi, [BYTE rbp + CODE]
        ; mov r14d, ecx
        ; add rdi, Head::of(f.set).bytes
        ; ret
        ; out:
        ; xor r9d, r9d
        ; jmp ->look_up
    );
    start
}

/// Goes to the line at `eax`.
pub fn chain(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    count(ops, f);
    dynasm!(ops ; .arch x64 ; ->chain:);
    find_line(ops, f);
    dynasm!(ops
        ; .arch x64
        ; ->begin:
    );
    begin_line(ops, f);
    dynasm!(ops
        ; .arch x64
    );
    find_entry(ops, f);
    dynasm!(ops
        ; .arch x64
        ; add rdi, rax
        ; ret
        ; out:
        ; xor r9d, r9d
    );
    look_up(ops, f);
    start
}

/// Looks up the line at `eax`, or leaves, while the results in `r9` are pending.
fn look_up(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch x64
        ; ->look_up:
        ; mov [rbx + f.pc], eax
        ; mov [BYTE rbx + f.r(15)], edx
        ; mov [rbx + f.interlock], r9
    );
    flags_out(ops, f);
    dynasm!(ops
        ; .arch x64
        ; cmp r12, [BYTE rbp + LIMIT]
        ; ja >near
        ; mov [rbx + f.cycles], r12
        ; sub rsp, 8
        ; mov rdi, rbx
        ; call QWORD [BYTE rbp + ENTER]
        ; add rsp, 8
        ; mov r12, [rbx + f.cycles]
        ; mov edi, eax
        ; test eax, eax
        ; js >none
        ; mov rcx, [rbx + f.horizon]
        ; sub rcx, MARGIN
        ; mov [BYTE rbp + LIMIT], rcx
        ; mov r9, [rbx + f.interlock]
        ; mov QWORD [rbx + f.interlock], 0
        // Puts the address of the code edi of the current line, at the instruction at the pc, into rdi. The results in r9
        // are pending.
        ; ->place:
        ; mov r8, [rbx + f.slot]
        ; shl r8, 6
        ; add r8, [BYTE rbp + HEADS]
        ; mov eax, [rbx + f.pc]
        ; mov ecx, eax
        ; and ecx, -32
        ; test r9, r9
        ; jz ->begin
        ; mov edx, [BYTE rbx + f.r(15)]
        ; cmp DWORD [rbp + SCOREBOARD], 0
        ; jne ->begin_soon
        // Without a scoreboard, late results never are pending here.
        ; shr r9, 32
        ; jmp ->begin_word
        ; near:
        ; mov eax, -1
        ; none:
        ; not eax
        ; add r13, rax
        ; add rsp, 8
    );
    leave(ops, f);
}

/// Leaves the code.
fn leave(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch x64
        ; ->end:
        ; mov [rbx + f.cycles], r12
        ; mov rax, r13
        ; add rsp, 8
        ; pop r15
        ; pop r14
        ; pop r13
        ; pop r12
        ; pop rbp
        ; pop rbx
        ; ret
    );
}

/// As [`chain_word`], for results that are available one cycle later.
pub fn chain_late(ops: &mut Assembler, f: Fields) -> usize {
    let (start, head) = (ops.offset().0, Head::of(f.set));
    count(ops, f);
    find_line(ops, f);
    dynasm!(ops
        ; .arch x64
        ; shl rdi, 4
        ; add rdi, [BYTE rbp + CODE]
    );
    number(ops, f);
    dynasm!(ops
        ; .arch x64
        ; xor esi, esi
        ; movzx r8d, WORD [rdi + rax * 2 + head.uses]
        ; test r8d, r9d
        ; jnz >used
        ; movzx r8d, BYTE [rdi + rax + head.late]
        ; cmp r8d, 3
        ; je >enter
        ; test r8d, r8d
        ; jz >unknown
        ; movzx r10d, WORD [rdi + rax * 2 + head.early_uses + 2]
        ; test r10d, r9d
        ; jz >enter
        ; cmp r8d, 1
        ; jne >unknown
        ; inc esi
        ; jmp >enter
        ; used:
        // An instruction that needs the result early waits for two cycles, others for one.
        ; movzx r8d, WORD [rdi + rax * 2 + head.early_uses]
        ; test r8d, r9d
        ; setnz sil
        ; inc esi
        ; enter:
        ; add r12, rsi
        ; add [rbx + f.interlock_cycles], rsi
        ; mov r14d, ecx
        ; movzx ecx, BYTE [rdi + rax + head.starts]
        ; sub r12, rcx
        ; sub r13, rax
        ; movzx eax, WORD [rdi + rax * 2]
        ; add rdi, rax
        ; ret
        ; unknown:
    );
    address(ops, f, EAX, (ECX, EAX), 0);
    dynasm!(ops
        ; .arch x64
        ; out:
        ; add rsp, 8
    );
    late_pending(ops, f);
    dynasm!(ops ; .arch x64 ; jmp ->pending_at);
    start
}

/// Puts the flags of the frame into the core. The product has N, Z, C and V in bits 31 to 28, without carries. Uses
/// `eax` and `ecx`.
pub fn flags_out(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch x64
        ; movzx eax, WORD [BYTE rbp + FLAGS]
        ; and eax, 0xc101
        ; imul eax, eax, 0x1021_0000
        ; and eax, 0xf000_0000_u32 as i32
        ; mov ecx, [rbx + f.flags]
        ; and ecx, 1 << 27
        ; or eax, ecx
        ; mov [rbx + f.flags], eax
    );
}

/// Puts the flags of the core into the frame. Uses `eax`.
pub fn flags_in(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch x64
        ; mov eax, [rbx + f.flags]
        ; shr eax, 28
        ; imul eax, eax, 0x1081
        ; and eax, 0xc101
        ; mov [BYTE rbp + FLAGS], ax
    );
}

/// Counts the cycles in `sil` and the instructions above them. Puts r15 of the last instruction into `edx`.
pub fn count(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch x64
        ; movzx ecx, sil
        ; add r12, rcx
        ; shr esi, 8
        ; add r13, rsi
    );
    address(ops, f, EDX, (R14, ESI), 1);
}

/// Puts an address into the register `to`: of the line in one register, the instruction with the number in another
/// register, and some instructions more.
// The assembler converts the number of a register, whatever its type is.
#[allow(clippy::useless_conversion)]
pub fn address(ops: &mut Assembler, f: Fields, to: u8, (line, number): (u8, u8), more: i32) {
    let more = more * f.set.width() as i32;
    match f.set {
        Set::A32 => dynasm!(ops ; .arch x64 ; lea Rd(to), [Rq(line) + Rq(number) * 4 + more]),
        Set::Thumb => dynasm!(ops ; .arch x64 ; lea Rd(to), [Rq(line) + Rq(number) * 2 + more]),
    }
}

/// Makes the address in `eax` the number of the instruction within its line.
pub fn number(ops: &mut Assembler, f: Fields) {
    let width = f.set.width();
    dynasm!(ops
        ; .arch x64
        ; and eax, BYTE 32 - width as i8
        ; shr eax, width.trailing_zeros() as i8
    );
}

/// Begins the code `edi` of the line at `ecx`, whose slot has the head at `r8`, at the instruction at `eax`. Leaves the
/// address of the code in `rdi` and the number of the instruction in `rax`.
fn begin_line(ops: &mut Assembler, f: Fields) {
    let starts = Head::of(f.set).starts;
    dynasm!(ops
        ; .arch x64
        ; shl rdi, 4
        ; add rdi, [BYTE rbp + CODE]
        ; mov r14d, ecx
    );
    number(ops, f);
    match f.set {
        Set::A32 => dynasm!(ops ; .arch x64 ; movzx ecx, BYTE [r8 + rax + f.entry_cycles as i32]),
        Set::Thumb => dynasm!(ops ; .arch x64 ; movzx ecx, BYTE [rdi + rax + starts]),
    }
    dynasm!(ops
        ; .arch x64
        ; sub r12, rcx
        ; sub r13, rax
    );
}

/// Puts the distance of the entry at instruction `rax` into `eax`.
fn find_entry(ops: &mut Assembler, f: Fields) {
    match f.set {
        Set::A32 => dynasm!(ops ; .arch x64 ; movzx eax, WORD [r8 + rax * 2 + f.entries as i32]),
        Set::Thumb => dynasm!(ops ; .arch x64 ; movzx eax, WORD [rdi + rax * 2]),
    }
}

/// Finds the code of the line at `eax`, and makes it the current line. Leaves the name of the code in `rdi`, the
/// address of the line in `ecx`, and the head of its slot in `r8`. Jumps to the next label `out` if there is no code, or
/// if the horizon is near. Changes neither `eax`, `edx` nor `r9`.
pub fn find_line(ops: &mut Assembler, f: Fields) {
    let tag = match f.set {
        Set::A32 => 1,
        Set::Thumb => 3,
    };
    dynasm!(ops
        ; .arch x64
        ; cmp r12, [BYTE rbp + LIMIT]
        ; ja >out
        // The page must be known.
        ; mov ecx, eax
        ; shr ecx, 12
        ; cmp ecx, [rbx + f.page]
        ; jne >out
        ; mov rcx, [rbx + f.page_epoch]
        ; cmp rcx, [rbx + f.epoch]
        ; jne >out
        // The hint of the line must match.
        ; mov ecx, eax
        ; test eax, 0xfe00_0000_u32 as i32
        ; jnz >high
        ; or ecx, [rbx + f.fetch_pid]
        ; high:
        ; mov esi, ecx
        ; shr esi, 5
        ; and esi, 2047
        ; mov rdi, [BYTE rbp + HINTS]
        ; mov rsi, [rdi + rsi * 8]
        ; and ecx, -32
        ; or ecx, BYTE tag
        ; or rcx, [rbx + f.generation]
        ; xor rcx, rsi
        ; shl rcx, 16
        ; jnz >out
        ; shr rsi, 48
        // The slot must have code.
        ; mov r8, rsi
        ; shl r8, 6
        ; add r8, [BYTE rbp + HEADS]
        ; mov edi, [BYTE r8 + f.mark]
        ; btr edi, 31
        ; jnc >out
        ; mov [rbx + f.slot], rsi
        ; mov ecx, eax
        ; and ecx, -32
        ; mov [rbx + f.line_pc], ecx
    );
}

/// Makes the results in `r9d` pending, late ones.
fn late_pending(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch x64
        ; mov r8, r9
        ; shl r9, 48
        ; shl r8, 32
        ; or r9, r8
        ; mov [rbx + f.interlock], r9
    );
}
