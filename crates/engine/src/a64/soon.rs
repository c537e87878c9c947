// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared code for cores with a scoreboard, and for branch prediction.

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::chain::{find_line, number};
use super::{Assembler, BRANCHES, CODE, Fields, TOLD, TOLD_AT};
use crate::plan::{Late, MISPREDICTED};

/// Goes to the line at `w0` while the results in `x2` are pending: see [`crate::beside`].
pub fn chain_soon(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    let (uses, late) = (f.head.uses as u32, f.head.late as u32);
    dynasm!(ops ; .arch aarch64 ; ->soon:);
    find_line(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; ->begin_soon:
        ; ldr x10, [x20, CODE]
        ; add x3, x10, x3, lsl 4
    );
    number(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; mov w5, wzr
        ; add x11, x3, x10, lsl 1
        ; ldrh w12, [x11, uses]
        ; lsr x14, x2, 32
        ; tst w12, w14
        ; b.ne >used
        ; lsr w14, w14, 16
        ; cbz w14, >enter
        ; add x6, x3, x10
        ; ldrb w6, [x6, late]
        ; cmp w6, Late::Over as u32
        ; b.eq >told
        ; cbz w6, >unknown
        ; ldrh w12, [x11, uses + 2]
        ; tst w12, w14
        ; b.eq >told
        ; cmp w6, Late::Waits as u32
        ; b.ne >unknown
        ; mov w5, 1
        ; b >enter
        ; used:
        ; mov w5, 1
        ; lsr w14, w14, 16
        ; tst w12, w14
        ; b.eq >enter
        ; mov w5, 2
        ; b >enter
    );
    enter(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; unknown:
        ; str x2, [x19, f.interlock]
        ; b ->pending_at
        ; out:
        ; b ->look_up
    );
    start
}

/// Enters the code `x3` at the instruction `x10`, after a wait of `x5` cycles. `x11` has the address of the instruction's
/// distance. At the label `told`, the interpreter gets to know what is pending.
fn enter(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch aarch64
        ; told:
        ; str x2, [x20, TOLD]
        ; str x22, [x20, TOLD_AT]
        ; enter:
        ; ldr x12, [x19, f.interlock_cycles]
        ; add x21, x21, x5
        ; add x12, x12, x5
        ; str x12, [x19, f.interlock_cycles]
        ; mov w23, w9
        ; add x12, x3, x10
        ; ldrb w12, [x12, f.head.starts as u32]
        ; sub x21, x21, x12
        ; sub x22, x22, x10
        ; ldrh w11, [x11]
        ; add x3, x3, x11
        ; ret
    );
}

/// Records in the branch target buffer that the branch at `w0`, with bit 0 set, is taken. Clears the host's Z and counts
/// the other cycles if the prediction was wrong. Sets Z if it was right.
pub fn taken(ops: &mut Assembler, f: Fields) -> usize {
    dynasm!(ops ; .arch aarch64 ; .align 16);
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch aarch64
        ; ldr w10, [x19, f.sctlr]
        ; tbz w10, 11, >wrong
    );
    entry(ops);
    dynasm!(ops
        ; .arch aarch64
        ; b.ne >new
        ; ldrb w10, [x11, 4]
        ; cmp w10, 2
        ; b.lo >weak
        ; mov w10, 3
        ; strb w10, [x11, 4]
        ; cmp w0, w0
        ; ret
        ; new:
        ; str w0, [x11]
        ; mov w10, 2
        ; strb w10, [x11, 4]
        ; b >wrong
        ; weak:
        ; add w10, w10, 1
        ; strb w10, [x11, 4]
        ; wrong:
        ; add x21, x21, u32::from(MISPREDICTED)
        ; tst w0, 1
        ; ret
    );
    start
}

/// As [`taken`], for a branch that is not taken.
pub fn not_taken(ops: &mut Assembler, f: Fields) -> usize {
    dynasm!(ops ; .arch aarch64 ; .align 16);
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch aarch64
        ; ldr w10, [x19, f.sctlr]
        ; tbz w10, 11, >right
    );
    entry(ops);
    dynasm!(ops
        ; .arch aarch64
        ; b.ne >right
        ; ldrb w10, [x11, 4]
        ; cmp w10, 2
        ; b.hs >wrong
        ; strb wzr, [x11, 4]
        ; right:
        ; cmp w0, w0
        ; ret
        ; wrong:
        ; sub w10, w10, 1
        ; strb w10, [x11, 4]
        ; add x21, x21, u32::from(MISPREDICTED)
        ; tst w0, 1
        ; ret
    );
    start
}

/// Puts the address of the entry of the branch at `w0` into `x11`, and compares the entry with `w0`.
fn entry(ops: &mut Assembler) {
    dynasm!(ops
        ; .arch aarch64
        ; ldr x11, [x20, BRANCHES]
        ; ubfx w10, w0, 2, 7
        ; add x11, x11, x10, lsl 3
        ; ldr w10, [x11]
        ; cmp w10, w0
    );
}
