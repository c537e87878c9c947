// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared code that enters and leaves code, and that goes from line to line.

use arm::engine::Set;
use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::{Assembler, CODE, CORE, ENTER, Fields, HEADS, HINTS, LINES, SCOREBOARD, TAGS};
use crate::format::MARGIN;

/// Enters code, as a function of the host: see [`super::enter`].
pub fn enter(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch aarch64
        ; stp x29, x30, [sp, -96]!
        ; mov x29, sp
        ; stp x19, x20, [sp, 16]
        ; stp x21, x22, [sp, 32]
        ; stp x23, x24, [sp, 48]
        ; stp x25, x26, [sp, 64]
        ; stp x27, x28, [sp, 80]
        // Instructions that the host fetched before another thread made code are fetched again: see `memory.rs`.
        ; isb
        ; mov x20, x0
        ; mov w3, w1
        ; ldr x19, [x20, CORE]
        ; ldr x25, [x20, LINES]
        ; ldr x26, [x20, TAGS]
        ; ldr x28, [x20, HINTS]
        ; ldr x21, [x19, f.cycles]
        ; mov x22, xzr
        ; ldr x27, [x19, f.horizon]
        ; sub x27, x27, MARGIN as u32
    );
    flags_in(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; ldr x2, [x19, f.interlock]
        ; str xzr, [x19, f.interlock]
        ; bl ->place
        ; br x3
    );
    start
}

/// Goes to the line at `w0` while loaded words, the registers in `w2`, are pending.
pub fn chain_word(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    find_line(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; ->begin_word:
    );
    begin_line(ops, f);
    let uses = f.head.uses as u32;
    dynasm!(ops
        ; .arch aarch64
        ; add x11, x3, x10, lsl 1
        ; ldrh w12, [x11, uses]
    );
    find_entry(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; tst w12, w2
        ; b.ne >wait
        ; ret
        // An instruction that uses the word waits for one cycle.
        ; wait:
        ; ldr x9, [x19, f.interlock_cycles]
        ; add x21, x21, 1
        ; add x9, x9, 1
        ; str x9, [x19, f.interlock_cycles]
        ; ret
        ; out:
        ; lsl x2, x2, 32
        ; b ->look_up
    );
    start
}

/// Goes to the line after the current one.
pub fn chain_next(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch aarch64
        ; add w0, w23, 32
        ; add w4, w23, 32 + f.set.width() as u32
    );
    find_line(ops, f);
    dynasm!(ops
        ; .arch aarch64
        // Nothing is pending at the first instruction, so its code has a fixed place.
        ; ldr x10, [x20, CODE]
        ; add x3, x10, x3, lsl 4
        ; mov w23, w9
        ; add x3, x3, f.head.bytes as u32
        ; ret
        ; out:
        ; mov x2, xzr
        ; b ->look_up
    );
    start
}

/// Goes to the line at `w0`.
pub fn chain(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    dynasm!(ops ; .arch aarch64 ; ->chain:);
    find_line(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; ->begin:
    );
    begin_line(ops, f);
    find_entry(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; ret
        ; out:
        ; mov x2, xzr
    );
    look_up(ops, f);
    start
}

/// Looks up the line at `w0`, or leaves, while the results in `x2` are pending.
fn look_up(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch aarch64
        ; ->look_up:
        ; str w0, [x19, f.pc]
        ; str w4, [x19, f.r(15)]
        ; str x2, [x19, f.interlock]
    );
    flags_out(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; cmp x21, x27
        ; b.hi ->end
        ; str x21, [x19, f.cycles]
        ; str x30, [sp, -16]!
        ; mov x0, x19
        ; ldr x9, [x20, ENTER]
        ; blr x9
        ; ldr x30, [sp], 16
        ; ldr x21, [x19, f.cycles]
        ; tbnz w0, 31, >none
        ; mov w3, w0
        ; ldr x9, [x19, f.horizon]
        ; sub x27, x9, MARGIN as u32
        ; ldr x2, [x19, f.interlock]
        ; str xzr, [x19, f.interlock]
        // Puts the address of the code w3 of the current line, at the instruction at the pc, into x3. The results in x2
        // are pending.
        ; ->place:
        ; ldr x13, [x19, f.slot]
        ; ldr x9, [x20, HEADS]
        ; add x13, x9, x13, lsl 6
        ; ldr w0, [x19, f.pc]
        ; and w9, w0, !31
        ; cbz x2, ->begin
        ; ldr w4, [x19, f.r(15)]
        ; ldr w10, [x20, SCOREBOARD]
        ; cbnz w10, ->begin_soon
        // Without a scoreboard, late results never are pending here.
        ; lsr x2, x2, 32
        ; b ->begin_word
        ; none:
        ; mvn w0, w0
        ; add x22, x22, x0
    );
    leave(ops, f);
}

/// Leaves the code.
fn leave(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch aarch64
        ; ->end:
        ; str x21, [x19, f.cycles]
        ; mov x0, x22
        ; ldp x19, x20, [sp, 16]
        ; ldp x21, x22, [sp, 32]
        ; ldp x23, x24, [sp, 48]
        ; ldp x25, x26, [sp, 64]
        ; ldp x27, x28, [sp, 80]
        ; ldp x29, x30, [sp], 96
        ; ret
    );
}

/// As [`chain_word`], for results that are available one cycle later.
pub fn chain_late(ops: &mut Assembler, f: Fields) -> usize {
    let (start, head) = (ops.offset().0, f.head);
    find_line(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; ldr x10, [x20, CODE]
        ; add x3, x10, x3, lsl 4
    );
    number(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; mov w5, wzr
        ; add x11, x3, x10, lsl 1
        ; ldrh w12, [x11, head.uses as u32]
        ; tst w12, w2
        ; b.ne >used
        ; add x12, x3, x10
        ; ldrb w12, [x12, head.late as u32]
        ; cmp w12, 3
        ; b.eq >enter
        ; cbz w12, >out
        ; ldrh w13, [x11, head.early_uses as u32 + 2]
        ; tst w13, w2
        ; b.eq >enter
        ; cmp w12, 1
        ; b.ne >out
        ; mov w5, 1
        ; b >enter
        ; used:
        // An instruction that needs the result early waits for two cycles, others for one.
        ; ldrh w12, [x11, head.early_uses as u32]
        ; tst w12, w2
        ; cset w5, ne
        ; add w5, w5, 1
        ; enter:
        ; ldr x12, [x19, f.interlock_cycles]
        ; add x21, x21, x5
        ; add x12, x12, x5
        ; str x12, [x19, f.interlock_cycles]
        ; mov w23, w9
        ; add x12, x3, x10
        ; ldrb w12, [x12, head.starts as u32]
        ; sub x21, x21, x12
        ; sub x22, x22, x10
        ; ldrh w11, [x11]
        ; add x3, x3, x11
        ; ret
        ; out:
        // The results in w2 are pending, late ones.
        ; lsl x9, x2, 48
        ; orr x9, x9, x2, lsl 32
        ; str x9, [x19, f.interlock]
        ; b ->pending_at
    );
    start
}

/// Puts the flags into the core. Leaves the core's flags in `w9`.
pub fn flags_out(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch aarch64
        ; ldr w9, [x19, f.flags]
        ; and w9, w9, 1 << 27
        ; orr w9, w9, w24
        ; str w9, [x19, f.flags]
    );
}

/// Gets the flags of the core.
pub fn flags_in(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch aarch64
        ; ldr w24, [x19, f.flags]
        ; and w24, w24, 0xf000_0000
    );
}

/// Puts the number of the instruction at `w0` within its line into `x10`.
pub fn number(ops: &mut Assembler, f: Fields) {
    match f.set {
        Set::A32 => dynasm!(ops ; .arch aarch64 ; ubfx w10, w0, 2, 3),
        Set::Thumb => dynasm!(ops ; .arch aarch64 ; ubfx w10, w0, 1, 4),
    }
}

/// Begins the code `w3` of the line at `w9`, whose slot has the head at `x13`, at the instruction at `w0`. Leaves the
/// address of the code in `x3` and the number of the instruction in `x10`.
fn begin_line(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch aarch64
        ; ldr x10, [x20, CODE]
        ; add x3, x10, x3, lsl 4
        ; mov w23, w9
    );
    number(ops, f);
    match f.set {
        Set::A32 => dynasm!(ops
            ; .arch aarch64
            ; add x11, x13, x10
            ; ldrb w11, [x11, f.entry_cycles]
        ),
        Set::Thumb => dynasm!(ops
            ; .arch aarch64
            ; add x11, x3, x10
            ; ldrb w11, [x11, f.head.starts as u32]
        ),
    }
    dynasm!(ops
        ; .arch aarch64
        ; sub x21, x21, x11
        ; sub x22, x22, x10
    );
}

/// Adds the distance of the entry at instruction `x10` to `x3`.
fn find_entry(ops: &mut Assembler, f: Fields) {
    match f.set {
        Set::A32 => dynasm!(ops
            ; .arch aarch64
            ; add x11, x13, x10, lsl 1
            ; ldrh w11, [x11, f.entries]
        ),
        Set::Thumb => dynasm!(ops ; .arch aarch64 ; ldrh w11, [x3, x10, lsl 1]),
    }
    dynasm!(ops ; .arch aarch64 ; add x3, x3, x11);
}

/// Finds the code of the line at `w0`, and makes it the current line. Leaves the name of the code in `x3`, the address of
/// the line in `w9`, and the head of its slot in `x13`. Jumps to the next label `out` if there is no code, or if the horizon
/// is near. Changes neither `w0`, `x2` nor `w4`.
pub fn find_line(ops: &mut Assembler, f: Fields) {
    let tag = match f.set {
        Set::A32 => 1,
        Set::Thumb => 3,
    };
    dynasm!(ops
        ; .arch aarch64
        ; cmp x21, x27
        ; b.hi >out
        // The page must be known.
        ; ldr w10, [x19, f.page]
        ; lsr w9, w0, 12
        ; cmp w9, w10
        ; b.ne >out
        ; ldr x9, [x19, f.page_epoch]
        ; ldr x10, [x19, f.epoch]
        ; cmp x9, x10
        ; b.ne >out
        // The hint of the line must match.
        ; ldr w10, [x19, f.fetch_pid]
        ; tst w0, 0xfe00_0000
        ; csel w10, w10, wzr, eq
        ; orr w10, w10, w0
        ; ubfx w11, w10, 5, 11
        ; ldr x11, [x28, x11, lsl 3]
        ; and w10, w10, !31
        ; orr w10, w10, tag
        ; ldr x12, [x19, f.generation]
        ; orr x10, x10, x12
        ; eor x10, x10, x11
        ; lsl x10, x10, 16
        ; cbnz x10, >out
        ; lsr x11, x11, 48
        // The slot must have code.
        ; ldr x12, [x20, HEADS]
        ; add x13, x12, x11, lsl 6
        ; ldr w3, [x13, f.mark]
        ; tbz w3, 31, >out
        ; and w3, w3, 0x7fff_ffff
        ; str x11, [x19, f.slot]
        ; and w9, w0, !31
        ; str w9, [x19, f.line_pc]
    );
}
