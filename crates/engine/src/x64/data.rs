// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data processing and multiplications.

use arm::model::Multiplier;
use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::chain::flags_out;
use super::line::{Line, asm};
use super::{EAX, ECX, EDX, FLAGS};
use crate::action::{Action, Operand, Shift};
use crate::plan::MOST_MULTIPLIER;

/// Bits of the frame's flags: C and V.
const C: i32 = 0x100;
const V: i32 = 1;

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
                ; mov ecx, 63
                ; bsr eax, [BYTE rbx + self.r(m)]
                ; cmovz eax, ecx
                ; xor eax, 31
                ; mov [BYTE rbx + self.r(d)], eax
            ),
            Action::Status { d } => {
                flags_out(&mut self.ops, self.f);
                asm!(self
                    ; or eax, [BYTE rbx + self.f.control as i8]
                    ; mov [BYTE rbx + self.r(d)], eax
                );
            }
            _ => unreachable!("no other action only computes"),
        }
    }

    /// Puts the second operand into `ecx`. With `carry`, puts V and the shifter's carry into `esi`, as in the frame's
    /// flags.
    fn operand(&mut self, number: usize, operand: Operand, carry: bool) {
        match operand {
            Operand::Constant(value, rotated) => {
                asm!(self ; mov ecx, DWORD value as i32);
                self.old_carry(carry, rotated.is_none());
                if carry && rotated == Some(true) {
                    asm!(self ; or esi, C);
                }
            }
            Operand::Register(m) => {
                self.get(ECX, number, m);
                self.old_carry(carry, true);
            }
            Operand::Shifted(shift, m, amount) => {
                self.get(ECX, number, m);
                if carry {
                    self.old_carry(true, false);
                    asm!(self ; xor eax, eax);
                }
                self.shift(shift, amount);
                if carry {
                    asm!(self ; adc eax, eax ; shl eax, 8 ; or esi, eax);
                }
            }
            Operand::ByRegister(shift, m, s) => {
                self.get(EAX, number, m);
                self.get(ECX, number, s);
                asm!(self ; movzx ecx, cl);
                if carry {
                    self.shift_by_register_with_carry(shift);
                } else {
                    self.shift_by_register(shift);
                }
            }
        }
    }

    /// Puts V, and perhaps C, into `esi`.
    fn old_carry(&mut self, wanted: bool, carry: bool) {
        if wanted {
            asm!(self
                ; movzx esi, WORD [BYTE rbp + FLAGS]
                ; and esi, if carry { V | C } else { V }
            );
        }
    }

    /// Shifts `ecx` by a constant. The carry of the host is the shifter's, unless the shift is by zero.
    pub fn shift(&mut self, shift: Shift, amount: u32) {
        let by = amount as i8;
        match (shift, amount) {
            (Shift::Left, 0) => {}
            (Shift::Left, _) => asm!(self ; shl ecx, by),
            (Shift::Right, 32) => asm!(self ; bt ecx, 31 ; mov ecx, 0),
            (Shift::Arithmetic, 32) => asm!(self ; sar ecx, 31 ; bt ecx, 0),
            (Shift::Right, _) => asm!(self ; shr ecx, by),
            (Shift::Arithmetic, _) => asm!(self ; sar ecx, by),
            (Shift::Rotate, 0) => asm!(self ; bt DWORD [BYTE rbp + FLAGS], 8 ; rcr ecx, 1),
            (Shift::Rotate, _) => asm!(self ; ror ecx, by),
        }
    }

    /// Shifts `eax` by `ecx`, which is less than 256. Puts the result into `ecx`, and V and the carry into `esi`.
    fn shift_by_register_with_carry(&mut self, shift: Shift) {
        self.old_carry(true, true);
        asm!(self ; test ecx, ecx ; jz >zero);
        if shift != Shift::Rotate {
            asm!(self ; mov edx, 63 ; cmp ecx, edx ; cmova ecx, edx);
        }
        // The carry is the bit above or below the result.
        match shift {
            Shift::Left => asm!(self ; shl rax, cl ; bt rax, 32),
            Shift::Right => asm!(self ; add rax, rax ; shr rax, cl ; shr rax, 1),
            Shift::Arithmetic => {
                asm!(self ; movsxd rax, eax ; add rax, rax ; sar rax, cl ; sar rax, 1);
            }
            Shift::Rotate => asm!(self ; ror eax, cl ; bt eax, 31),
        }
        asm!(self
            ; sbb edx, edx
            ; and edx, C
            ; and esi, V
            ; or esi, edx
            ; zero:
            ; mov ecx, eax
        );
    }

    /// Shifts `eax` by `ecx`, which is less than 256. Puts the result into `ecx`.
    fn shift_by_register(&mut self, shift: Shift) {
        match shift {
            Shift::Left => asm!(self ; shl eax, cl ; cmp ecx, 32 ; sbb ecx, ecx ; and ecx, eax),
            Shift::Right => asm!(self ; shr eax, cl ; cmp ecx, 32 ; sbb ecx, ecx ; and ecx, eax),
            Shift::Arithmetic => asm!(self
                ; mov edx, 31
                ; cmp ecx, edx
                ; cmova ecx, edx
                ; sar eax, cl
                ; mov ecx, eax
            ),
            Shift::Rotate => asm!(self ; ror eax, cl ; mov ecx, eax),
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
        // The first operand in edx; the result, too.
        if !matches!(opcode, 13 | 15) {
            self.get(EDX, number, n);
        }
        match opcode {
            0 | 8 => asm!(self ; and edx, ecx),
            1 | 9 => asm!(self ; xor edx, ecx),
            2 | 10 => asm!(self ; sub edx, ecx),
            3 => asm!(self ; sub ecx, edx ; mov edx, ecx),
            4 | 11 => asm!(self ; add edx, ecx),
            5 => asm!(self ; bt DWORD [BYTE rbp + FLAGS], 8 ; adc edx, ecx),
            6 => asm!(self ; bt DWORD [BYTE rbp + FLAGS], 8 ; cmc ; sbb edx, ecx),
            7 => asm!(self ; bt DWORD [BYTE rbp + FLAGS], 8 ; cmc ; sbb ecx, edx ; mov edx, ecx),
            12 => asm!(self ; or edx, ecx),
            13 => asm!(self ; mov edx, ecx),
            14 => asm!(self ; not ecx ; and edx, ecx),
            _ => asm!(self ; mov edx, ecx ; not edx),
        }
        if flags {
            match (is_logical, opcode) {
                (true, _) => self.logical_flags(),
                // The carry of a subtraction is the complement of the borrow.
                (false, 2 | 3 | 6 | 7 | 10) => {
                    asm!(self ; cmc);
                    self.arithmetic_flags();
                }
                _ => self.arithmetic_flags(),
            }
        }
        if !matches!(opcode, 8..=11) {
            asm!(self ; mov [BYTE rbx + self.r(d)], edx);
        }
    }

    /// Sets the flags to those of the host.
    fn arithmetic_flags(&mut self) {
        asm!(self ; lahf ; seto al ; mov [BYTE rbp + FLAGS], ax);
    }

    /// Sets N and Z from `edx`, and C and V from `esi`.
    fn logical_flags(&mut self) {
        asm!(self
            ; test edx, edx
            ; lahf
            ; and eax, 0xc000
            ; or eax, esi
            ; mov [BYTE rbp + FLAGS], ax
        );
    }

    /// Adds the cycles that the multiplier takes for the significant bits of a factor.
    fn multiplier(&mut self, s: usize, signed: bool) {
        if self.plan.multiplier != Multiplier::Bits {
            return;
        }
        asm!(self ; mov ecx, [BYTE rbx + self.r(s)]);
        if signed {
            asm!(self ; mov eax, ecx ; sar eax, 31 ; xor ecx, eax);
        }
        asm!(self
            ; add r12, BYTE MOST_MULTIPLIER as i8
            ; cmp ecx, 1 << 15
            ; sbb r12, BYTE 0
            ; cmp ecx, 1 << 27
            ; sbb r12, BYTE 0
        );
    }

    fn multiply(&mut self, flags: bool, (m, s): (usize, usize), add: Option<usize>, d: usize) {
        self.multiplier(s, true);
        asm!(self
            ; mov edx, [BYTE rbx + self.r(m)]
            ; imul edx, [BYTE rbx + self.r(s)]
        );
        if let Some(add) = add {
            asm!(self ; add edx, [BYTE rbx + self.r(add)]);
        }
        asm!(self ; mov [BYTE rbx + self.r(d)], edx);
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
        asm!(self ; mov eax, [BYTE rbx + self.r(m)]);
        if signed {
            asm!(self ; imul DWORD [BYTE rbx + self.r(s)]);
        } else {
            asm!(self ; mul DWORD [BYTE rbx + self.r(s)]);
        }
        if add {
            asm!(self
                ; add eax, [BYTE rbx + self.r(low)]
                ; adc edx, [BYTE rbx + self.r(high)]
            );
        }
        asm!(self
            ; mov [BYTE rbx + self.r(low)], eax
            ; mov [BYTE rbx + self.r(high)], edx
        );
    }
}
