// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data processing and multiplications.

use arm::model::Multiplier;
use dynasmrt::aarch64::RX;
use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::NZCV;
use super::chain::flags_out;
use super::line::{Line, asm};
use crate::action::{Action, Operand, Shift};
use crate::plan::MOST_MULTIPLIER;

impl Line<'_> {
    /// Executes an instruction that accesses no memory and does not branch.
    pub fn compute(&mut self, number: usize, action: Action) {
        match action {
            Action::Nothing => {}
            Action::Data {
                opcode,
                flags,
                operand,
                n,
                d,
            } => self.data(number, opcode, flags, operand, (n, d)),
            Action::Multiply {
                flags,
                m,
                s,
                add,
                d,
            } => self.multiply(flags, (m, s), add, d),
            Action::MultiplyLong {
                signed,
                add,
                m,
                s,
                low,
                high,
            } => self.multiply_long(signed, add, (m, s), (low, high)),
            Action::CountZeros { m, d } => asm!(self
                ; ldr w0, [x19, self.r(m)]
                ; clz w0, w0
                ; str w0, [x19, self.r(d)]
            ),
            Action::Status { d } => {
                flags_out(&mut self.ops, self.f);
                asm!(self
                    ; ldr w0, [x19, self.f.control]
                    ; orr w0, w0, w9
                    ; str w0, [x19, self.r(d)]
                );
            }
            _ => unreachable!("no other action only computes"),
        }
    }

    /// Puts the second operand into `w1`. With `carry`, puts V and the shifter's carry into `w2`, as in the flags.
    fn operand(&mut self, number: usize, operand: Operand, carry: bool) {
        match operand {
            Operand::Constant(value, rotated) => {
                self.constant(RX::X1, value);
                self.old_carry(carry, rotated.is_none());
                if carry && rotated == Some(true) {
                    asm!(self ; orr w2, w2, 1 << 29);
                }
            }
            Operand::Register(m) => {
                self.get(RX::X1, number, m);
                self.old_carry(carry, true);
            }
            Operand::Shifted(shift, m, amount) => {
                self.get(RX::X1, number, m);
                if carry {
                    // The number of the bit that leaves last.
                    let bit = match (shift, amount) {
                        (Shift::Left, _) => 32 - amount,
                        (Shift::Rotate, 0) => 0,
                        _ => amount - 1,
                    };
                    self.old_carry(true, false);
                    asm!(self ; lsr w3, w1, bit ; bfi w2, w3, 29, 1);
                }
                self.shift(shift, amount);
            }
            Operand::ByRegister(shift, m, s) => {
                self.get(RX::X1, number, m);
                self.get(RX::X3, number, s);
                asm!(self ; and w3, w3, 0xff);
                if carry {
                    self.shift_by_register_with_carry(shift);
                } else {
                    self.shift_by_register(shift);
                }
            }
        }
    }

    /// Puts V, and perhaps C, into `w2`.
    fn old_carry(&mut self, wanted: bool, carry: bool) {
        match (wanted, carry) {
            (false, _) => {}
            (true, false) => asm!(self ; and w2, w24, 1 << 28),
            (true, true) => asm!(self ; and w2, w24, 3 << 28),
        }
    }

    /// Shifts `w1` by a constant.
    pub fn shift(&mut self, shift: Shift, amount: u32) {
        match (shift, amount) {
            (Shift::Left, 0) => {}
            (Shift::Left, _) => asm!(self ; lsl w1, w1, amount),
            (Shift::Right, 32) => asm!(self ; mov w1, wzr),
            (Shift::Arithmetic, 32) => asm!(self ; asr w1, w1, 31),
            (Shift::Right, _) => asm!(self ; lsr w1, w1, amount),
            (Shift::Arithmetic, _) => asm!(self ; asr w1, w1, amount),
            (Shift::Rotate, 0) => asm!(self ; lsr w3, w24, 29 ; extr w1, w3, w1, 1),
            (Shift::Rotate, _) => asm!(self ; ror w1, w1, amount),
        }
    }

    /// Shifts `w1` by `w3`, which is less than 256. Puts V and the carry into `w2`.
    fn shift_by_register_with_carry(&mut self, shift: Shift) {
        self.old_carry(true, true);
        asm!(self ; cbz w3, >zero ; and w2, w2, 1 << 28);
        if shift != Shift::Rotate {
            asm!(self ; mov w4, 63 ; cmp w3, w4 ; csel w3, w3, w4, lo);
        }
        // The carry is the bit above or below the result.
        match shift {
            Shift::Left => asm!(self
                ; lsl x1, x1, x3
                ; lsr x4, x1, 32
                ; bfi w2, w4, 29, 1
            ),
            Shift::Right => asm!(self
                ; lsl x1, x1, 1
                ; lsr x1, x1, x3
                ; bfi w2, w1, 29, 1
                ; lsr x1, x1, 1
            ),
            Shift::Arithmetic => asm!(self
                ; sxtw x1, w1
                ; lsl x1, x1, 1
                ; asr x1, x1, x3
                ; bfi w2, w1, 29, 1
                ; asr x1, x1, 1
            ),
            Shift::Rotate => asm!(self
                ; ror w1, w1, w3
                ; lsr w4, w1, 31
                ; bfi w2, w4, 29, 1
            ),
        }
        asm!(self ; zero:);
    }

    /// Shifts `w1` by `w3`, which is less than 256.
    fn shift_by_register(&mut self, shift: Shift) {
        match shift {
            Shift::Left => asm!(self ; lsl w1, w1, w3 ; cmp w3, 32 ; csel w1, w1, wzr, lo),
            Shift::Right => asm!(self ; lsr w1, w1, w3 ; cmp w3, 32 ; csel w1, w1, wzr, lo),
            Shift::Arithmetic => asm!(self
                ; mov w4, 31
                ; cmp w3, w4
                ; csel w3, w3, w4, lo
                ; asr w1, w1, w3
            ),
            Shift::Rotate => asm!(self ; ror w1, w1, w3),
        }
    }

    fn data(
        &mut self,
        number: usize,
        opcode: u32,
        flags: bool,
        operand: Operand,
        (n, d): (usize, usize),
    ) {
        let is_logical = matches!(opcode, 0 | 1 | 8 | 9 | 12..=15);
        self.operand(number, operand, flags && is_logical);
        // The first operand and the result in w0.
        if !matches!(opcode, 13 | 15) {
            self.get(RX::X0, number, n);
        }
        if is_logical {
            self.logical(opcode, flags);
        } else {
            self.arithmetic(opcode, flags);
        }
        if !matches!(opcode, 8..=11) {
            asm!(self ; str w0, [x19, self.r(d)]);
        }
    }

    /// Logic on `w0` and `w1`. The flags take C and V from `w2`.
    fn logical(&mut self, opcode: u32, flags: bool) {
        match opcode {
            0 | 8 => asm!(self ; and w0, w0, w1),
            1 | 9 => asm!(self ; eor w0, w0, w1),
            12 => asm!(self ; orr w0, w0, w1),
            13 => asm!(self ; mov w0, w1),
            14 => asm!(self ; bic w0, w0, w1),
            _ => asm!(self ; mvn w0, w1),
        }
        if flags {
            self.logical_flags();
        }
    }

    /// Sets N and Z from `w0`, and C and V from `w2`.
    fn logical_flags(&mut self) {
        asm!(self ; tst w0, w0 ; mrs x24, NZCV ; orr w24, w24, w2);
    }

    /// Arithmetic on `w0` and `w1`. The flags of the guest are those of the host.
    fn arithmetic(&mut self, opcode: u32, flags: bool) {
        if matches!(opcode, 5..=7) {
            asm!(self ; msr NZCV, x24);
        }
        match (opcode, flags) {
            (2 | 10, true) => asm!(self ; subs w0, w0, w1),
            (2 | 10, false) => asm!(self ; sub w0, w0, w1),
            (3, true) => asm!(self ; subs w0, w1, w0),
            (3, false) => asm!(self ; sub w0, w1, w0),
            (4 | 11, true) => asm!(self ; adds w0, w0, w1),
            (4 | 11, false) => asm!(self ; add w0, w0, w1),
            (5, true) => asm!(self ; adcs w0, w0, w1),
            (5, false) => asm!(self ; adc w0, w0, w1),
            (6, true) => asm!(self ; sbcs w0, w0, w1),
            (6, false) => asm!(self ; sbc w0, w0, w1),
            (_, true) => asm!(self ; sbcs w0, w1, w0),
            (_, false) => asm!(self ; sbc w0, w1, w0),
        }
        if flags {
            asm!(self ; mrs x24, NZCV);
        }
    }

    /// Adds the cycles that the multiplier takes for the significant bits of a factor.
    fn multiplier(&mut self, s: usize, signed: bool) {
        if self.plan.multiplier != Multiplier::Bits {
            return;
        }
        asm!(self ; ldr w1, [x19, self.r(s)]);
        if signed {
            asm!(self ; eor w1, w1, w1, asr 31);
        }
        asm!(self
            ; add x21, x21, u32::from(MOST_MULTIPLIER)
            ; tst w1, 0xffff_8000
            ; cset x2, eq
            ; sub x21, x21, x2
            ; tst w1, 0xf800_0000
            ; cset x2, eq
            ; sub x21, x21, x2
        );
    }

    fn multiply(&mut self, flags: bool, (m, s): (usize, usize), add: Option<usize>, d: usize) {
        self.multiplier(s, true);
        asm!(self
            ; ldr w0, [x19, self.r(m)]
            ; ldr w1, [x19, self.r(s)]
        );
        match add {
            Some(add) => asm!(self ; ldr w2, [x19, self.r(add)] ; madd w0, w0, w1, w2),
            None => asm!(self ; mul w0, w0, w1),
        }
        asm!(self ; str w0, [x19, self.r(d)]);
        if flags {
            self.old_carry(true, true);
            self.logical_flags();
        }
    }

    fn multiply_long(
        &mut self,
        signed: bool,
        add: bool,
        (m, s): (usize, usize),
        (low, high): (usize, usize),
    ) {
        self.multiplier(s, signed);
        asm!(self
            ; ldr w0, [x19, self.r(m)]
            ; ldr w1, [x19, self.r(s)]
            ; mov x2, xzr
        );
        if add {
            asm!(self
                ; ldr w2, [x19, self.r(low)]
                ; ldr w3, [x19, self.r(high)]
                ; orr x2, x2, x3, lsl 32
            );
        }
        if signed {
            asm!(self ; smaddl x0, w0, w1, x2);
        } else {
            asm!(self ; umaddl x0, w0, w1, x2);
        }
        asm!(self
            ; str w0, [x19, self.r(low)]
            ; lsr x0, x0, 32
            ; str w0, [x19, self.r(high)]
        );
    }
}
