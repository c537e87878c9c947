// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared code that calls the interpreter.

use std::mem::offset_of;

use arm::engine::Set;
use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::chain::{flags_in, flags_out};
use super::{
    Assembler, DESCRIBED, Fields, LOAD, LOAD_BLOCK, SCOREBOARD, STEP, STORE, STORE_BLOCK, TOLD,
    TOLD_AT,
};
use crate::action::Size;
use crate::format::{Described, MARGIN};

const NUMBER: u32 = offset_of!(Described, number) as u32;
const START: u32 = offset_of!(Described, start) as u32;
const NEXT_START: u32 = offset_of!(Described, next_start) as u32;
const STALL: u32 = offset_of!(Described, stall) as u32;
const BEFORE: u32 = offset_of!(Described, before) as u32;
const AFTER: u32 = offset_of!(Described, after) as u32;

/// Goes to the line at `w0` while results are pending: the interpreter executes instructions until none is.
pub fn chain_pending(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch aarch64
        ; ->pending_at:
        ; str w0, [x19, f.pc]
        ; str w4, [x19, f.r(15)]
    );
    flags_out(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; ->pending:
        ; cmp x21, x27
        ; b.hi ->end
        ; str x21, [x19, f.cycles]
        ; mov x0, x19
        ; ldr x9, [x20, STEP]
        ; blr x9
        // A fetch that faults may have taken time.
        ; ldr x21, [x19, f.cycles]
        ; tst w0, 0xff
        ; b.eq ->end
        ; add x22, x22, 1
        ; ->executed:
        ; ldr x9, [x19, f.horizon]
        ; subs x9, x9, MARGIN as u32
        ; b.lo ->end
        ; mov x27, x9
        ; ->onward:
        ; ldr x2, [x19, f.interlock]
        ; cbz x2, >none
        ; ldr w9, [x20, SCOREBOARD]
        ; cbz w9, ->pending
    );
    flags_in(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; str xzr, [x19, f.interlock]
        ; ldr w0, [x19, f.pc]
        ; ldr w4, [x19, f.r(15)]
        ; bl ->soon
        ; br x3
        ; none:
    );
    flags_in(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; ldr w0, [x19, f.pc]
        ; ldr w4, [x19, f.r(15)]
        ; bl ->chain
        ; br x3
    );
    start
}

/// Makes the number `w9` of an instruction of the current line its address.
fn address(ops: &mut Assembler, f: Fields) {
    match f.set {
        Set::A32 => dynasm!(ops ; .arch aarch64 ; add w9, w23, w9, lsl 2),
        Set::Thumb => dynasm!(ops ; .arch aarch64 ; add w9, w23, w9, lsl 1),
    }
}

/// Puts the core into the interpreter's state before an instruction. `x1` has the address of its [`Described`].
fn before_step(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch aarch64
        ; ldrb w9, [x1, START]
        ; add x21, x21, x9
        // The interpreter counts the wait itself.
        ; ldrb w9, [x1, STALL]
        ; ldr x10, [x19, f.interlock_cycles]
        ; sub x10, x10, x9
        ; str x10, [x19, f.interlock_cycles]
        ; str x21, [x19, f.cycles]
        ; ldr x9, [x1, BEFORE]
        ; str x9, [x19, f.interlock]
        ; ldrb w9, [x1, NUMBER]
    );
    address(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; str w9, [x19, f.pc]
        ; str x1, [x20, DESCRIBED]
    );
    told(ops, f);
    flags_out(ops, f);
}

/// If the entry of the line was for the instruction that `x1` describes, replaces the planned results by those that are
/// pending. The entry took back the planned wait.
fn told(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch aarch64
        ; ldrb w9, [x1, NUMBER]
        ; add x9, x22, x9
        ; ldr x10, [x20, TOLD_AT]
        ; cmp x9, x10
        ; b.ne >planned
        ; ldrb w9, [x1, STALL]
        ; ldr x10, [x19, f.interlock_cycles]
        ; add x10, x10, x9
        ; str x10, [x19, f.interlock_cycles]
        ; add x21, x21, x9
        ; str x21, [x19, f.cycles]
        ; ldr x9, [x20, TOLD]
        ; str x9, [x19, f.interlock]
        ; planned:
    );
}

/// Executes one instruction by the interpreter. `x1` has the address of a [`Described`].
pub fn step(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    before_step(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; mov x0, x19
        ; ldr x9, [x20, STEP]
        ; blr x9
        ; ldr x1, [x20, DESCRIBED]
        ; ldrb w10, [x1, NUMBER]
        ; ldr x21, [x19, f.cycles]
        ; ldr x9, [x19, f.horizon]
        ; subs x9, x9, MARGIN as u32
        ; b.lo >near
        ; mov x27, x9
        ; cmp x21, x9
        ; b.hi >near
        // Goes on in the line if the interpreter did what was planned.
        ; ldr x9, [x19, f.interlock]
        ; ldr x11, [x1, AFTER]
        ; cmp x9, x11
        ; b.ne >elsewhere
        ; add w9, w10, 1
    );
    address(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; ldr w11, [x19, f.pc]
        ; cmp w9, w11
        ; b.ne >elsewhere
        ; ldr w9, [x19, f.line_pc]
        ; eor w9, w9, w23
        ; tst w9, !0x1e
        ; b.ne >elsewhere
        ; str xzr, [x19, f.interlock]
        ; ldrb w9, [x1, NEXT_START]
        ; sub x21, x21, x9
    );
    flags_in(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; add x1, x1, size_of::<Described>() as u32
        ; br x1
        ; elsewhere:
        ; add x22, x22, x10
        ; add x22, x22, 1
        ; b ->onward
        ; near:
        ; add x22, x22, x10
        ; add x22, x22, 1
        ; b ->end
    );
    start
}

/// Loads from the MVA in `w0` into `w1`. `w4` has the bits of a [`crate::format::Timed`]. Keeps `w4` and `w5`. Returns with
/// the host's carry clear if the code must leave after the instruction. Does not return if the core takes a data abort.
pub fn load(ops: &mut Assembler, f: Fields, size: Size) -> usize {
    let start = ops.offset().0;
    before_access(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; mov w1, w0
        ; mov w2, size.bytes() as u32
    );
    call(ops, f, LOAD);
    match size {
        Size::Word | Size::Half | Size::Byte => dynasm!(ops ; .arch aarch64 ; mov w1, w0),
        Size::SignedHalf => dynasm!(ops ; .arch aarch64 ; sxth w1, w0),
        Size::SignedByte => dynasm!(ops ; .arch aarch64 ; sxtb w1, w0),
    }
    return_from_access(ops, f);
    start
}

/// Stores `w1` to the MVA in `w0`. Otherwise as [`load`].
pub fn store(ops: &mut Assembler, f: Fields, size: Size) -> usize {
    let start = ops.offset().0;
    before_access(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; mov w3, w1
        ; mov w1, w0
        ; mov w2, size.bytes() as u32
    );
    call(ops, f, STORE);
    return_from_access(ops, f);
    start
}

/// Loads or stores the registers in `w2`, a set, from the VA in `w0` on. Otherwise as [`load`].
pub fn block(ops: &mut Assembler, f: Fields, write: bool) -> usize {
    let start = ops.offset().0;
    before_access(ops, f);
    dynasm!(ops ; .arch aarch64 ; mov w1, w0);
    call(ops, f, if write { STORE_BLOCK } else { LOAD_BLOCK });
    return_from_access(ops, f);
    start
}

/// Brings the core up to date for an access. Keeps `w0` to `w3`.
fn before_access(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch aarch64
        ; stp x30, x4, [sp, -32]!
        ; str x5, [sp, 16]
        ; and w9, w4, 0xff
        ; add x21, x21, x9
        ; str x21, [x19, f.cycles]
        ; ubfx w9, w4, 8, 8
        ; add w9, w9, 1
    );
    address(ops, f);
    dynasm!(ops
        ; .arch aarch64
        ; str w9, [x19, f.pc]
        ; add w9, w9, f.set.width() as u32
        ; str w9, [x19, f.r(15)]
    );
    flags_out(ops, f);
}

/// Calls a function of the core. Goes to the handler of the data abort if the core took one.
fn call(ops: &mut Assembler, f: Fields, function: u32) {
    dynasm!(ops
        ; .arch aarch64
        ; mov x0, x19
        ; ldr x9, [x20, function]
        ; blr x9
        ; ldr x5, [sp, 16]
        ; ldp x30, x4, [sp], 32
        ; tbz x0, 63, >done
        ; ldr x21, [x19, f.cycles]
        ; ubfx w9, w4, 8, 8
        ; add x22, x22, x9
        ; add x22, x22, 1
        ; b ->executed
        ; done:
    );
}

/// Returns with the host's carry clear if the horizon is near.
fn return_from_access(ops: &mut Assembler, f: Fields) {
    dynasm!(ops
        ; .arch aarch64
        ; ldr x9, [x19, f.cycles]
        ; sbfx x10, x4, 16, 8
        ; add x21, x9, x10
        ; ldr x10, [x19, f.horizon]
        ; subs x10, x10, MARGIN as u32
        ; b.lo >near
        ; mov x27, x10
        ; cmp x10, x9
        ; near:
        ; ret
    );
}

/// Makes [`super::Stubs::near`].
pub fn near(ops: &mut Assembler, f: Fields) -> usize {
    let start = ops.offset().0;
    dynasm!(ops
        ; .arch aarch64
        ; str x9, [x19, f.interlock]
        ; ldr x21, [x19, f.cycles]
        ; ubfx w10, w4, 8, 8
        ; add x22, x22, x10
        ; add x22, x22, 1
        ; b ->end
    );
    start
}
