// SPDX-License-Identifier: MIT OR Apache-2.0
//! Undefined instructions, and which of them belong to a later architecture version than the core's.

use super::{Encoding, Op, Version, best, disassemble, disassemble_thumb, rows_of_state};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::cpu::exception::Exception;
use crate::psr::T;

/// An instruction of a later architecture version than the core's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Later {
    /// Address of the instruction.
    pub pc: u32,
    /// The instruction, disassembled.
    pub text: String,
    /// First version that has the instruction.
    pub version: Version,
}

/// The first architecture version that has an instruction, if there is one.
fn version_of(insn: u32, thumb: bool) -> Option<Version> {
    let row: &Encoding = best(rows_of_state(insn, thumb), insn)?;
    Some(row.version)
}

impl<B: Bus> Cpu<B> {
    /// Takes the exception of an undefined instruction. Remembers the first one that a later version has.
    #[cold]
    pub(super) fn undefined(&mut self, op: Op<B>) {
        if self.first_later.is_none() {
            let thumb = self.control & T != 0;
            let mask = if thumb { 0xffff } else { u32::MAX };
            let insn = op.insn() & mask;
            if version_of(insn, thumb).is_some_and(|version| version > self.config().core.version) {
                let pc = self.pc.wrapping_sub(self.instruction_bytes());
                self.first_later = Some((pc | u32::from(thumb), insn));
            }
        }
        self.take_exception(Exception::Undefined);
    }

    /// Returns the first undefined instruction that belongs to a later architecture version than the core's.
    pub fn later_instruction(&self) -> Option<Later> {
        let (at, insn) = self.first_later?;
        let (pc, thumb) = (at & !1, at & 1 != 0);
        Some(Later {
            pc,
            text: match thumb {
                true => disassemble_thumb(insn as u16, pc),
                false => disassemble(insn, pc),
            },
            version: version_of(insn, thumb)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ARM920T, ARM926EJS, ARM1136_R0P4};
    use crate::tests::bus::TestBus;
    use crate::tests::core::{HERE, arm, on, thumb};

    #[test]
    fn the_first_instruction_of_a_later_version_is_remembered() {
        let mut cpu = on(&ARM926EJS, TestBus::new(0x1_0000));
        arm(&mut cpu, 0xe7f0_00f0); // undefined in every version
        assert_eq!(cpu.later_instruction(), None);
        arm(&mut cpu, 0xe191_0f9f);
        let ldrex = Later {
            pc: HERE,
            text: "ldrex r0, [r1]".into(),
            version: Version::V6,
        };
        assert_eq!(cpu.later_instruction(), Some(ldrex.clone()));
        thumb(&mut cpu, 0xb2ca);
        assert_eq!(cpu.later_instruction(), Some(ldrex));
    }

    #[test]
    fn thumb_and_other_versions_are_named_too() {
        let mut cpu = on(&ARM926EJS, TestBus::new(0x1_0000));
        thumb(&mut cpu, 0xb2ca);
        let later = cpu.later_instruction().expect("an instruction of ARMv6");
        assert_eq!(
            (later.text.as_str(), later.version.name()),
            ("uxtb r2, r1", "ARMv6")
        );
        let mut cpu = on(&ARM920T, TestBus::new(0x1_0000));
        arm(&mut cpu, 0xe16f_0f11); // clz r0, r1
        let later = cpu.later_instruction().expect("an instruction of ARMv5");
        assert_eq!(later.version.name(), "ARMv5T");
        let mut cpu = on(&ARM1136_R0P4, TestBus::new(0x1_0000));
        arm(&mut cpu, 0xf57f_f01f); // clrex
        let later = cpu.later_instruction().expect("an instruction of ARMv6K");
        assert_eq!(later.version, Version::V6K);
    }
}
