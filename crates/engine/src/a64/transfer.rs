// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and stores.

use arm::engine::Set;
use dynasmrt::aarch64::RX;
use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi};

use super::line::{Line, asm};
use crate::action::{Action, Address, Index, Offset, Operand, Size};
use crate::plan::Step;

impl Line<'_> {
    /// Executes an instruction that accesses memory, or jumps to `slow`.
    pub fn access_memory(&mut self, number: usize, step: &Step, slow: DynamicLabel) {
        match step.action {
            Action::Pair {
                load,
                whole,
                address,
                d,
            } => {
                self.address(number, address);
                if whole {
                    asm!(self ; tst w0, 7 ; b.ne =>slow);
                }
                if load {
                    self.load_block(3 << d, slow);
                } else {
                    self.store_block(3 << d, slow);
                }
                self.write_back(address);
            }
            Action::Transfer {
                load,
                size,
                address,
                d,
            } => {
                self.address(number, address);
                if load {
                    self.access(self.stubs.load[size as usize], slow);
                    self.write_back(address);
                    asm!(self ; str w1, [x19, self.r(d)]);
                } else {
                    asm!(self ; ldr w1, [x19, self.r(d)]);
                    self.access(self.stubs.store[size as usize], slow);
                    self.write_back(address);
                }
            }
            Action::LoadPc { address } => {
                self.address(number, address);
                self.access(self.stubs.load[Size::Word as usize], slow);
                asm!(self ; tst w1, 3 ; b.ne =>slow);
                self.write_back(address);
                asm!(self ; mov w0, w1);
                self.leave(number, step);
            }
            Action::Block { .. } => self.block(number, step, slow),
            Action::Mask(operand) => {
                match operand {
                    Operand::Register(m) => self.get(RX::X0, number, m),
                    Operand::Constant(value, _) => self.constant(RX::X0, value),
                    _ => unreachable!("the operand of MSR is not shifted"),
                }
                self.access(self.stubs.mask, slow);
            }
            _ => unreachable!("no other action accesses memory"),
        }
    }

    /// Loads or stores several registers.
    fn block(&mut self, number: usize, step: &Step, slow: DynamicLabel) {
        let Action::Block {
            load,
            list,
            base,
            start,
            moves,
        } = step.action
        else {
            unreachable!("no other action has a list");
        };
        asm!(self ; ldr w0, [x19, self.r(base)]);
        if let Some(moves) = moves {
            self.add(RX::X5, RX::X0, moves);
        }
        self.add(RX::X0, RX::X0, start);
        if load {
            self.load_block(list, slow);
        } else {
            self.store_block(list, slow);
        }
        if moves.is_some() {
            asm!(self ; str w5, [x19, self.r(base)]);
        }
        if list >> 15 != 0 {
            asm!(self ; mov w0, w6);
            self.leave(number, step);
        }
    }

    /// Puts the address of a transfer into `w0`, and the moved base into `w5` if it is written back.
    fn address(&mut self, number: usize, address: Address) {
        let Address {
            base,
            offset,
            index,
        } = address;
        self.get(RX::X0, number, base);
        // The register that the offset is added to.
        let sum = if index == Index::Post { RX::X5 } else { RX::X0 };
        match offset {
            Offset::Constant(offset) => self.add(sum, RX::X0, offset),
            Offset::Register(m, shift, amount, up) => {
                asm!(self ; ldr w1, [x19, self.r(m)]);
                self.shift(shift, amount);
                match up {
                    true => asm!(self ; add W(sum), w0, w1),
                    false => asm!(self ; sub W(sum), w0, w1),
                }
            }
        }
        if index == Index::Pre {
            asm!(self ; mov w5, w0);
        }
    }

    fn write_back(&mut self, address: Address) {
        if address.index != Index::Offset {
            asm!(self ; str w5, [x19, self.r(address.base)]);
        }
    }

    /// Loads registers. Leaves the pc, if the list has it, in `w6`.
    fn load_block(&mut self, list: u32, slow: DynamicLabel) {
        let count = list.count_ones();
        asm!(self ; movz w1, 4 * count - 4);
        self.access(self.stubs.load_block, slow);
        if list >> 15 != 0 {
            asm!(self ; ldr w6, [x2, 4 * (count - 1)]);
            // The interpreter changes the instruction set. In Thumb state, bit 0 is set in any case.
            match self.f.set {
                Set::A32 => asm!(self ; tst w6, 3 ; b.ne =>slow),
                Set::Thumb => asm!(self ; tbz w6, 0, =>slow ; sub w6, w6, 1),
            }
        }
        for (at, register) in registers(list & 0x7fff) {
            asm!(self
                ; ldr w1, [x2, at]
                ; str w1, [x19, self.r(register)]
            );
        }
    }

    fn store_block(&mut self, list: u32, slow: DynamicLabel) {
        asm!(self ; movz w1, 4 * list.count_ones() - 4);
        self.access(self.stubs.store_block, slow);
        for (at, register) in registers(list) {
            asm!(self
                ; ldr w1, [x19, self.r(register)]
                ; str w1, [x2, at]
            );
        }
        if list.count_ones() > 1 {
            asm!(self ; bl extern self.stubs.end_block);
        }
    }
}

/// The registers of a list, each with the distance of its word from the first one.
fn registers(list: u32) -> impl Iterator<Item = (u32, usize)> {
    let registers = (0..16).filter(move |n| list >> n & 1 != 0);
    (0..).step_by(4).zip(registers)
}
