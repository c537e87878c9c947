// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pieces of a line's code. `w0` is the target.

use arm::engine::{Pending, Set};
use dynasmrt::aarch64::RX;
use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{Assembler, Fields, NZCV, Stubs, TOLD, TOLD_AT};
use crate::action::{ALWAYS, Action, Index};
use crate::format::Described;
use crate::line::{Access, Chain, Host};
use crate::plan::Step;

/// Code for AArch64.
pub enum A64 {}

/// Code of a line while it is made.
pub type Line<'a> = crate::line::Line<'a, A64>;

/// Appends code to a line.
macro_rules! asm {
    ($line:ident $($tokens:tt)*) => {
        dynasmrt::dynasm!($line.ops ; .arch aarch64 $($tokens)*)
    };
}
pub(super) use asm;

impl Host for A64 {
    type Relocation = dynasmrt::aarch64::Aarch64Relocation;
    type Fields = Fields;
    type Stubs = Stubs;
    type Slow = DynamicLabel;
    const CALL: usize = 40;
    const ACCESS: usize = 56;

    fn count(line: &mut Line, cycles: u8) {
        asm!(line ; add x21, x21, u32::from(cycles));
    }

    /// Changes `w9`.
    fn count_wait(line: &mut Line, cycles: u8) {
        asm!(line
            ; ldr x9, [x19, line.f.interlock_cycles]
            ; add x9, x9, u32::from(cycles)
            ; str x9, [x19, line.f.interlock_cycles]
        );
    }

    fn take_wait_back(line: &mut Line, cycles: u8) {
        let cycles = u32::from(cycles);
        asm!(line
            ; sub x21, x21, cycles
            ; ldr x9, [x19, line.f.interlock_cycles]
            ; sub x9, x9, cycles
            ; str x9, [x19, line.f.interlock_cycles]
        );
    }

    fn tell(line: &mut Line, number: usize, pending: Pending) {
        constant_of_64_bits(&mut line.ops, RX::X9, pending.bits());
        asm!(line
            ; str x9, [x20, TOLD]
            ; add x9, x22, number as u32
            ; str x9, [x20, TOLD_AT]
        );
    }

    fn condition(line: &mut Line, condition: u32, fails: DynamicLabel) {
        let flag = [30, 29, 31, 28][condition as usize / 2 % 4];
        match condition {
            ALWAYS.. => return,
            0 | 2 | 4 | 6 => return asm!(line ; tbz w24, flag, =>fails),
            1 | 3 | 5 | 7 => return asm!(line ; tbnz w24, flag, =>fails),
            _ => asm!(line ; msr NZCV, x24),
        }
        match condition {
            8 => asm!(line ; b.ls =>fails),
            9 => asm!(line ; b.hi =>fails),
            10 => asm!(line ; b.lt =>fails),
            11 => asm!(line ; b.ge =>fails),
            12 => asm!(line ; b.le =>fails),
            _ => asm!(line ; b.gt =>fails),
        }
    }

    fn jump(line: &mut Line, to: DynamicLabel) {
        asm!(line ; b =>to);
    }

    fn jump_out(line: &mut Line, to: usize) {
        asm!(line ; b extern to);
    }

    /// The way leads over a jump, because a conditional branch does not reach the other part of the memory.
    fn slow(line: &mut Line, call: usize) -> DynamicLabel {
        let label = line.ops.new_dynamic_label();
        line.jumps.push((label, call));
        label
    }

    fn target_instruction(line: &mut Line, number: usize) {
        asm!(line ; add w0, w23, line.distance(number));
    }

    fn target_distance(line: &mut Line, distance: i32) {
        line.add(RX::X0, RX::X23, distance);
    }

    fn target_register(line: &mut Line, register: usize) {
        asm!(line ; ldr w0, [x19, line.r(register)]);
    }

    fn add_to_target(line: &mut Line, offset: u32) {
        line.add(RX::X0, RX::X0, offset as i32);
    }

    fn leave_set(line: &mut Line, slow: DynamicLabel) {
        match line.f.set {
            Set::A32 => asm!(line ; tbnz w0, 0, =>slow),
            Set::Thumb => asm!(line ; tbz w0, 0, =>slow),
        }
    }

    fn align_target(line: &mut Line) {
        match line.f.set {
            Set::A32 => asm!(line ; and w0, w0, !3),
            Set::Thumb => asm!(line ; and w0, w0, !1),
        }
    }

    fn link(line: &mut Line, number: usize) {
        let thumb = u32::from(line.f.set == Set::Thumb);
        asm!(line
            ; add w1, w23, line.distance(number + 1) + thumb
            ; str w1, [x19, line.r(14)]
        );
    }

    fn go(line: &mut Line, cycles: u8, instructions: usize, pending: Pending) {
        asm!(line
            ; add x21, x21, u32::from(cycles)
            ; add x22, x22, instructions as u32
            ; add w4, w23, line.distance(instructions + 1)
        );
        let chain = match line.chain(pending) {
            Chain::Free => line.stubs.chain,
            Chain::Soon(results) => {
                constant_of_64_bits(&mut line.ops, RX::X2, results);
                line.stubs.chain_soon
            }
            Chain::Words(words) => {
                asm!(line ; movz w2, u32::from(words));
                line.stubs.chain_word
            }
            Chain::Late(results) => {
                asm!(line ; movz w2, u32::from(results));
                line.stubs.chain_late
            }
            Chain::Pending(results) => {
                constant_of_64_bits(&mut line.ops, RX::X9, results);
                asm!(line ; str x9, [x19, line.f.interlock]);
                return asm!(line ; b extern line.stubs.chain_pending);
            }
        };
        // Each line has a jump of its own, because the host remembers the target of each jump.
        asm!(line ; bl extern chain ; br x3);
    }

    fn go_on(line: &mut Line) {
        let plan = line.plan;
        asm!(line
            ; add x21, x21, u32::from(plan.cycles)
            ; add x22, x22, plan.steps.len() as u32
            ; bl extern line.stubs.chain_next
            ; br x3
        );
    }

    fn branch_within(line: &mut Line, number: usize, step: &Step, to: usize) {
        let cycles = step.start + step.stall + step.leaving;
        let start = line.waited[to];
        let to_cycles = line.plan.steps[to].start + line.plan.steps[to].stall;
        asm!(line
            ; add x9, x21, u32::from(cycles)
            ; cmp x9, x27
            ; b.hi >far
            ; sub x21, x9, u32::from(to_cycles)
            ; add x22, x22, number as u32 + 1
            ; sub x22, x22, to as u32
            ; b =>start
            ; far:
        );
    }

    fn taken(line: &mut Line, number: usize, wrong: Option<DynamicLabel>) {
        asm!(line ; add w0, w23, line.distance(number) + 1 ; bl extern line.stubs.taken);
        if let Some(wrong) = wrong {
            asm!(line ; b.ne =>wrong);
        }
    }

    fn not_taken(line: &mut Line, number: usize, right: Option<DynamicLabel>) {
        asm!(line ; add w0, w23, line.distance(number) + 1 ; bl extern line.stubs.not_taken);
        if let Some(right) = right {
            asm!(line ; b.eq =>right);
        }
    }

    fn compute(line: &mut Line, number: usize, action: Action) {
        line.compute(number, action);
    }

    fn access(line: &mut Line, number: usize, step: &Step, slow: DynamicLabel) {
        line.access_memory(number, step, slow);
    }

    fn access_by_core(line: &Line, calls: &mut Assembler, access: &Access) {
        match access.step.action {
            Action::Transfer { .. } => line.transfer_by_core(calls, access),
            _ => line.block_by_core(calls, access),
        }
        dynasm!(calls ; .arch aarch64 ; b.lo >near ; b extern access.resume ; near:);
        constant_of_64_bits(calls, RX::X9, access.step.passed.bits());
        dynasm!(calls ; .arch aarch64 ; b extern line.stubs.near);
    }

    fn call(line: &Line, calls: &mut Assembler, described: &Described, resume: usize) {
        dynasm!(calls
            ; .arch aarch64
            ; adr x1, >described
            ; b extern line.stubs.step
            ; described:
            ; .u8 described.number, described.start, described.next_start, described.stall
            ; .u32 0
            ; .u64 described.before, described.after
            ; b extern resume
            ; .u32 0
        );
    }
}

impl Line<'_> {
    pub fn r(&self, n: usize) -> u32 {
        self.f.r(n)
    }

    /// Distance of an instruction from the start of the line, in bytes.
    fn distance(&self, number: usize) -> u32 {
        (self.width() * number) as u32
    }

    /// Calls shared code that accesses memory. Jumps to `slow` if it cannot.
    pub fn access(&mut self, stub: usize, slow: DynamicLabel) {
        asm!(self ; bl extern stub ; b.ne =>slow);
    }

    /// Transfers a register to or from the address in `w0`. An address that is not a multiple of the size goes on to the
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
        match size.bytes() {
            4 => dynasm!(calls ; .arch aarch64 ; tst w0, 3 ; b.ne =>access.interpreted),
            2 => dynasm!(calls ; .arch aarch64 ; tbnz w0, 0, =>access.interpreted),
            _ => {}
        }
        constant(calls, RX::X4, access.timed.bits() as u32);
        dynasm!(calls ; .arch aarch64 ; bl extern stubs[size as usize]);
        if address.index != Index::Offset {
            dynasm!(calls ; .arch aarch64 ; str w5, [x19, self.r(address.base)]);
        }
        if load {
            dynasm!(calls ; .arch aarch64 ; str w1, [x19, self.r(d)]);
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
        dynasm!(calls ; .arch aarch64 ; ldr w0, [x19, self.r(base)]);
        match start.unsigned_abs() {
            size if start < 0 => dynasm!(calls ; .arch aarch64 ; sub w0, w0, size),
            size => dynasm!(calls ; .arch aarch64 ; add w0, w0, size),
        }
        dynasm!(calls ; .arch aarch64 ; movz w2, list);
        constant(calls, RX::X4, access.timed.bits() as u32);
        dynasm!(calls ; .arch aarch64 ; bl extern stub);
        if moves.is_some() {
            dynasm!(calls ; .arch aarch64 ; str w5, [x19, self.r(base)]);
        }
    }

    /// Loads a register into a register of the host.
    pub fn get(&mut self, host: RX, number: usize, register: usize) {
        if register == 15 {
            // The value of r15 is the address of the second instruction after this one.
            asm!(self ; add WSP(host), w23, self.distance(number + 2));
        } else {
            asm!(self ; ldr W(host), [x19, self.r(register)]);
        }
    }

    /// Puts a constant into a register of the host.
    pub fn constant(&mut self, host: RX, value: u32) {
        constant(&mut self.ops, host, value);
    }

    /// Adds a constant to a register of the host. The sum may be in another one. Changes `w9`.
    pub fn add(&mut self, sum: RX, host: RX, value: i32) {
        let size = value.unsigned_abs();
        match (size, value < 0) {
            (..0x1000, false) => asm!(self ; add WSP(sum), WSP(host), size),
            (..0x1000, true) => asm!(self ; sub WSP(sum), WSP(host), size),
            _ => {
                self.constant(RX::X9, value as u32);
                asm!(self ; add W(sum), W(host), w9);
            }
        }
    }
}

/// Puts a constant into a register of the host.
fn constant(ops: &mut Assembler, host: RX, value: u32) {
    let (low, high) = (value & 0xffff, value >> 16);
    match (low, high) {
        (_, 0) => dynasm!(ops ; .arch aarch64 ; movz W(host), low),
        (_, 0xffff) => dynasm!(ops ; .arch aarch64 ; movn W(host), low ^ 0xffff),
        (0, _) => dynasm!(ops ; .arch aarch64 ; movz W(host), high, lsl 16),
        _ => dynasm!(ops ; .arch aarch64 ; movz W(host), low ; movk W(host), high, lsl 16),
    }
}

/// Puts a constant of 64 bits into a register of the host.
fn constant_of_64_bits(ops: &mut Assembler, host: RX, value: u64) {
    let parts = [0, 16, 32, 48].map(|at| (value >> at & 0xffff) as u32);
    dynasm!(ops
        ; .arch aarch64
        ; movz X(host), parts[0]
        ; movk X(host), parts[1], lsl 16
        ; movk X(host), parts[2], lsl 32
        ; movk X(host), parts[3], lsl 48
    );
}
