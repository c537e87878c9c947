// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared code that loads and stores by grants. It uses `x7` to `x14` besides its operands.

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::{Assembler, COPIED, COPY, Fields};
use crate::action::Size;

/// Address bits that must be clear.
fn misaligned(size: Size) -> u32 {
    match size {
        Size::Word => 3,
        Size::Half | Size::SignedHalf => 1,
        Size::Byte | Size::SignedByte => 0,
    }
}

/// Finds the grant for the address in `w0`, which becomes the MVA. Puts the D-cache line into `w11`, or jumps to the next
/// label `slow` with the host's Z clear.
fn grant(ops: &mut Assembler, f: Fields, key: u32, misaligned: u32) {
    dynasm!(ops
        ; .arch aarch64
        ; ldr w9, [x19, f.data_pid]
        ; tst w0, 0xfe00_0000
        ; csel w9, w9, wzr, eq
        ; orr w0, w0, w9
        ; ldr w10, [x19, f.grant_context]
        ; and w9, w0, !31 | misaligned
        ; orr w9, w9, w10
        ; ubfx w11, w0, 5, 9
        ; add x11, x19, x11, lsl 4
        ; ldr w10, [x11, key]
        ; cmp w9, w10
        ; b.ne >slow
        ; ldr w11, [x11, f.grant_line]
    );
}

/// Returns to code that tests Z.
fn slow(ops: &mut Assembler) {
    dynasm!(ops ; .arch aarch64 ; slow: ; ret);
}

/// Makes [`super::Stubs::load`].
pub fn load(ops: &mut Assembler, f: Fields, size: Size) -> usize {
    dynasm!(ops ; .arch aarch64 ; .align 16);
    let start = ops.offset().0;
    grant(ops, f, f.grant_read, misaligned(size));
    dynasm!(ops
        ; .arch aarch64
        ; add x11, x25, x11, lsl 5
        ; and w0, w0, 31
    );
    match size {
        Size::Word => dynasm!(ops ; .arch aarch64 ; ldr w1, [x11, x0]),
        Size::Half => dynasm!(ops ; .arch aarch64 ; ldrh w1, [x11, x0]),
        Size::Byte => dynasm!(ops ; .arch aarch64 ; ldrb w1, [x11, x0]),
        Size::SignedHalf => dynasm!(ops ; .arch aarch64 ; ldrsh w1, [x11, x0]),
        Size::SignedByte => dynasm!(ops ; .arch aarch64 ; ldrsb w1, [x11, x0]),
    }
    dynasm!(ops ; .arch aarch64 ; ret);
    slow(ops);
    start
}

/// Sets the bits `w9` in the tag of the line `w11` or `w14`.
macro_rules! mark {
    ($ops:ident, $line:tt) => {
        dynasm!($ops
            ; .arch aarch64
            ; ldr w10, [x26, $line, lsl 2]
            ; orr w10, w10, w9
            ; str w10, [x26, $line, lsl 2]
        )
    };
}

/// Makes [`super::Stubs::store`].
pub fn store(ops: &mut Assembler, f: Fields, size: Size) -> usize {
    dynasm!(ops ; .arch aarch64 ; .align 16);
    let start = ops.offset().0;
    grant(ops, f, f.grant_write, misaligned(size));
    // Marks the half of the line dirty.
    dynasm!(ops
        ; .arch aarch64
        ; ubfx w10, w0, 4, 1
        ; mov w9, 2
        ; lsl w9, w9, w10
    );
    mark!(ops, x11);
    dynasm!(ops
        ; .arch aarch64
        ; add x11, x25, x11, lsl 5
        ; and w0, w0, 31
    );
    match size {
        Size::Word => dynasm!(ops ; .arch aarch64 ; str w1, [x11, x0]),
        Size::Half | Size::SignedHalf => dynasm!(ops ; .arch aarch64 ; strh w1, [x11, x0]),
        Size::Byte | Size::SignedByte => dynasm!(ops ; .arch aarch64 ; strb w1, [x11, x0]),
    }
    dynasm!(ops ; .arch aarch64 ; ret);
    slow(ops);
    start
}

/// Makes [`super::Stubs::load_block`] or [`super::Stubs::store_block`].
pub fn block(ops: &mut Assembler, f: Fields, write: bool) -> usize {
    dynasm!(ops ; .arch aarch64 ; .align 16);
    let start = ops.offset().0;
    let key = if write { f.grant_write } else { f.grant_read };
    dynasm!(ops
        ; .arch aarch64
        ; and w7, w0, 28
        ; add w1, w1, w7
        ; cmp w1, 28
        ; b.hi >two
    );
    grant(ops, f, key, 3);
    if write {
        // The lower half becomes dirty if the first word is in it, and the upper one if the last word is.
        dynasm!(ops
            ; .arch aarch64
            ; cmp w7, 16
            ; cset w9, lo
            ; cmp w1, 16
            ; cset w10, hs
            ; add w9, w9, w10, lsl 1
            ; lsl w9, w9, 1
        );
        mark!(ops, x11);
        dynasm!(ops ; .arch aarch64 ; str xzr, [x20, COPIED] ; cmp w0, w0);
    }
    dynasm!(ops
        ; .arch aarch64
        ; add x2, x25, x11, lsl 5
        ; add x2, x2, x7
        ; ret
        ; two:
    );
    block_of_two_lines(ops, f, write);
    slow(ops);
    start
}

/// Marks the halves of two lines dirty: of `w14` from byte `w7` on, and of `w11` up to byte `w1`, which counts from the
/// start of the first line.
fn mark_two_lines(ops: &mut Assembler) {
    dynasm!(ops
        ; .arch aarch64
        ; mov w12, 6
        ; mov w9, 4
        ; cmp w7, 16
        ; csel w9, w12, w9, lo
    );
    mark!(ops, x14);
    dynasm!(ops
        ; .arch aarch64
        ; mov w9, 2
        ; cmp w1, 48
        ; csel w9, w9, w12, lo
    );
    mark!(ops, x11);
}

/// The words are in two lines. Jumps to the next label `slow` if they are in more.
fn block_of_two_lines(ops: &mut Assembler, f: Fields, write: bool) {
    let key = if write { f.grant_write } else { f.grant_read };
    dynasm!(ops
        ; .arch aarch64
        ; cmp w1, 60
        ; b.hi >slow
        ; add w8, w0, 32
    );
    grant(ops, f, key, 3);
    dynasm!(ops
        ; .arch aarch64
        ; mov w14, w11
        ; mov w0, w8
    );
    grant(ops, f, key, 3);
    if write {
        mark_two_lines(ops);
    }
    dynasm!(ops
        ; .arch aarch64
        ; add x14, x25, x14, lsl 5
        ; add x11, x25, x11, lsl 5
    );
    if write {
        dynasm!(ops ; .arch aarch64 ; stp x14, x11, [x20, COPIED as i32]);
    }
    dynasm!(ops
        ; .arch aarch64
        ; add x2, x20, COPY
        ; ldp q0, q1, [x14]
        ; ldp q2, q3, [x11]
        ; stp q0, q1, [x2]
        ; stp q2, q3, [x2, 32]
        ; add x2, x2, x7
        ; cmp w0, w0
        ; ret
    );
}

/// Makes [`super::Stubs::mask`]. Clears the host's Z unless the mode is privileged and only the I bit changes. That must not
/// let a pending interrupt in.
pub fn mask(ops: &mut Assembler, f: Fields) -> usize {
    dynasm!(ops ; .arch aarch64 ; .align 16);
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch aarch64
        ; ldr w10, [x19, f.control]
        ; eor w11, w0, w10
        ; mov w12, 0x5f
        ; tst w11, w12
        ; b.ne >slow
        ; and w11, w10, 0x1f
        ; cmp w11, 0x10
        ; b.eq >refused
        ; and w0, w0, 0x80
        ; cbnz w0, >change
        ; movz x11, f.irq
        ; ldrb w11, [x19, x11]
        ; cbnz w11, >refused
        ; change:
        ; and w10, w10, !0x80
        ; orr w10, w10, w0
        ; str w10, [x19, f.control]
        ; cmp w0, w0
        ; ret
        ; refused:
        ; cmp x20, xzr
    );
    slow(ops);
    start
}

/// Makes [`super::Stubs::end_block`].
pub fn end_block(ops: &mut Assembler) -> usize {
    dynasm!(ops ; .arch aarch64 ; .align 16);
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch aarch64
        ; ldp x14, x11, [x20, COPIED as i32]
        ; cbz x14, >end
        ; add x9, x20, COPY
        ; ldp q0, q1, [x9]
        ; ldp q2, q3, [x9, 32]
        ; stp q0, q1, [x14]
        ; stp q2, q3, [x11]
        ; end:
        ; ret
    );
    start
}
