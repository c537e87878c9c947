// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and stores.

use arm::engine::Set;
use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::EAX;
use super::line::{Line, asm};
use crate::action::{Action, Address, Index, Offset, Operand, Size};
use crate::plan::Step;

impl Line<'_> {
    /// Executes an instruction that accesses memory, or jumps to `slow`.
    pub fn access_memory(&mut self, number: usize, step: &Step, slow: usize) {
        match step.action {
            Action::Pair {
                load,
                whole,
                address,
                d,
            } => {
                self.pair(number, address, (load, whole, d), slow);
            }
            Action::Transfer {
                load,
                size,
                address,
                d,
            } => {
                self.address(number, address);
                if load {
                    self.load(size, slow);
                    self.write_back(address);
                    asm!(self ; mov [BYTE rbx + self.r(d)], ecx);
                } else {
                    self.store(size, d, slow);
                    self.write_back(address);
                }
            }
            Action::LoadPc { address } => {
                self.address(number, address);
                self.load(Size::Word, slow);
                asm!(self ; test cl, 3 ; jnz extern slow);
                self.write_back(address);
                asm!(self ; mov eax, ecx);
                self.leave(number, step);
            }
            Action::Block {
                load,
                list,
                base,
                start,
                moves,
            } => {
                self.block_address(base, start, moves);
                if load {
                    self.load_block(list, slow);
                } else {
                    self.store_block(list, slow);
                }
                if moves.is_some() {
                    asm!(self ; mov [BYTE rbx + self.r(base)], r8d);
                }
                if list >> 15 != 0 {
                    asm!(self ; mov eax, r9d);
                    self.leave(number, step);
                }
            }
            Action::Mask(operand) => self.mask(number, operand, slow),
            _ => unreachable!("no other action accesses memory"),
        }
    }

    /// Writes the control byte of the CPSR.
    fn mask(&mut self, number: usize, operand: Operand, slow: usize) {
        match operand {
            Operand::Register(m) => self.get(EAX, number, m),
            Operand::Constant(value, _) => asm!(self ; mov eax, DWORD value as i32),
            _ => unreachable!("the operand of MSR is not shifted"),
        }
        self.access(self.stubs.mask, slow);
    }

    /// Transfers a pair of registers.
    fn pair(&mut self, number: usize, address: Address, what: (bool, bool, usize), slow: usize) {
        let (load, whole, d) = what;
        self.address(number, address);
        if whole {
            asm!(self ; test al, 7 ; jnz extern slow);
        }
        if load {
            self.load_block(3 << d, slow);
        } else {
            self.store_block(3 << d, slow);
        }
        self.write_back(address);
    }

    /// Puts the address of a transfer into `eax`, and the moved base into `r8d` if it is written back.
    fn address(&mut self, number: usize, address: Address) {
        let Address {
            base,
            offset,
            index,
        } = address;
        self.get(EAX, number, base);
        if index == Index::Post {
            asm!(self ; mov r8d, eax);
        }
        match (offset, index) {
            (Offset::Constant(0), _) => {}
            (Offset::Constant(offset), Index::Post) => asm!(self ; add r8d, offset),
            (Offset::Constant(offset), _) => asm!(self ; add eax, offset),
            (Offset::Register(m, shift, amount, up), _) => {
                asm!(self ; mov ecx, [BYTE rbx + self.r(m)]);
                self.shift(shift, amount);
                match (up, index) {
                    (true, Index::Post) => asm!(self ; add r8d, ecx),
                    (false, Index::Post) => asm!(self ; sub r8d, ecx),
                    (true, _) => asm!(self ; add eax, ecx),
                    (false, _) => asm!(self ; sub eax, ecx),
                }
            }
        }
        if index == Index::Pre {
            asm!(self ; mov r8d, eax);
        }
    }

    fn write_back(&mut self, address: Address) {
        if address.index != Index::Offset {
            asm!(self ; mov [BYTE rbx + self.r(address.base)], r8d);
        }
    }

    /// Loads from the address in `eax` into `ecx`.
    fn load(&mut self, size: Size, slow: usize) {
        self.access(self.stubs.load[size as usize], slow);
    }

    /// Stores a register to the address in `eax`.
    fn store(&mut self, size: Size, d: usize, slow: usize) {
        asm!(self ; mov edi, [BYTE rbx + self.r(d)]);
        self.access(self.stubs.store[size as usize], slow);
    }

    /// Puts the lowest address of a block into `eax`, and the moved base into `r8d`.
    fn block_address(&mut self, base: usize, start: i32, moves: Option<i32>) {
        asm!(self ; mov eax, [BYTE rbx + self.r(base)]);
        if let Some(moves) = moves {
            asm!(self ; lea r8d, [BYTE rax + moves as i8]);
        }
        if start != 0 {
            asm!(self ; add eax, start);
        }
    }

    /// Loads registers. Leaves the pc, if the list has it, in `r9d`.
    fn load_block(&mut self, list: u32, slow: usize) {
        let count = list.count_ones();
        asm!(self ; mov edi, DWORD 4 * count as i32 - 4);
        self.access(self.stubs.load_block, slow);
        if list >> 15 != 0 {
            let last = 4 * (count as i8 - 1);
            asm!(self ; mov r9d, [BYTE rdx + last]);
            // The interpreter changes the instruction set. In Thumb state, bit 0 is set in any case.
            match self.f.set {
                Set::A32 => asm!(self ; test r9b, 3 ; jnz extern slow),
                Set::Thumb => asm!(self ; test r9b, 1 ; jz extern slow ; dec r9d),
            }
        }
        for (n, register) in registers(list & 0x7fff).enumerate() {
            asm!(self
                ; mov ecx, [BYTE rdx + 4 * n as i8]
                ; mov [BYTE rbx + self.r(register)], ecx
            );
        }
    }

    fn store_block(&mut self, list: u32, slow: usize) {
        asm!(self ; mov edi, DWORD 4 * list.count_ones() as i32 - 4);
        self.access(self.stubs.store_block, slow);
        for (n, register) in registers(list).enumerate() {
            asm!(self
                ; mov ecx, [BYTE rbx + self.r(register)]
                ; mov [BYTE rdx + 4 * n as i8], ecx
            );
        }
        if list.count_ones() > 1 {
            asm!(self ; call extern self.stubs.end_block);
        }
    }
}

fn registers(list: u32) -> impl Iterator<Item = usize> {
    (0..16).filter(move |n| list >> n & 1 != 0)
}
