// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program: the operations of the core and of a device, in order. Programs can be printed and parsed.

use core::fmt;

/// Instructions that use r0 (an address or a value) and r1 (data). Wider stores also take data from r2 to r9.
pub const INSTRUCTIONS: [(&str, u32); 50] = [
    ("ldr", 0xe590_2000),
    ("ldrb", 0xe5d0_2000),
    ("ldrh", 0xe1d0_20b0),
    ("ldrsb", 0xe1d0_20d0),
    ("ldrsh", 0xe1d0_20f0),
    ("ldrd", 0xe1c0_20d0),
    ("ldm4", 0xe890_003c),
    ("ldm8", 0xe890_03fc),
    ("ldrt", 0xe4b0_2000),
    ("ldrbt", 0xe4f0_2000),
    ("swp", 0xe100_2091),
    ("swpb", 0xe140_2091),
    ("str", 0xe580_1000),
    ("strb", 0xe5c0_1000),
    ("strh", 0xe1c0_10b0),
    ("strd", 0xe1c0_20f0),
    ("stm4", 0xe880_003c),
    ("stm8", 0xe880_03fc),
    ("strt", 0xe4a0_1000),
    ("strbt", 0xe4e0_1000),
    ("control", mcr(0, 1, 0, 0)),
    ("table-base", mcr(0, 2, 0, 0)),
    ("domains", mcr(0, 3, 0, 0)),
    ("pid", mcr(0, 13, 0, 0)),
    ("tlb-lockdown", mcr(0, 10, 0, 0)),
    ("debug", mcr(7, 15, 0, 0)),
    ("d-lockdown", mcr(0, 9, 0, 0)),
    ("i-lockdown", mcr(0, 9, 0, 1)),
    ("i-invalidate-all", mcr(0, 7, 5, 0)),
    ("i-invalidate", mcr(0, 7, 5, 1)),
    ("i-invalidate-index", mcr(0, 7, 5, 2)),
    ("i-prefetch", mcr(0, 7, 13, 1)),
    ("d-invalidate-all", mcr(0, 7, 6, 0)),
    ("d-invalidate", mcr(0, 7, 6, 1)),
    ("d-invalidate-index", mcr(0, 7, 6, 2)),
    ("invalidate-all", mcr(0, 7, 7, 0)),
    ("d-clean", mcr(0, 7, 10, 1)),
    ("d-clean-index", mcr(0, 7, 10, 2)),
    ("drain", mcr(0, 7, 10, 4)),
    ("d-clean-invalidate", mcr(0, 7, 14, 1)),
    ("d-clean-invalidate-index", mcr(0, 7, 14, 2)),
    ("test-clean", 0xee17_ff7a),
    ("test-clean-invalidate", 0xee17_ff7e),
    ("tlb-all", mcr(0, 8, 7, 0)),
    ("itlb-all", mcr(0, 8, 5, 0)),
    ("dtlb-all", mcr(0, 8, 6, 0)),
    ("tlb-entry", mcr(0, 8, 7, 1)),
    ("itlb-entry", mcr(0, 8, 5, 1)),
    ("dtlb-entry", mcr(0, 8, 6, 1)),
    ("nop", 0xe1a0_0000),
];

const fn mcr(opc1: u32, crn: u32, crm: u32, opc2: u32) -> u32 {
    0xee00_0f10 | opc1 << 21 | crn << 16 | opc2 << 5 | crm
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Executes an instruction: its index, r0, r1, and whether it runs in user mode.
    Do(usize, u32, u32, bool),
    /// Executes the instruction at a virtual address: the address, whether it is Thumb, and whether it runs in user
    /// mode.
    Execute(u32, bool, bool),
    /// A device writes: physical address, number of bytes, value.
    Device(u32, u32, u32),
}

impl Op {
    /// Returns the operation for a named instruction.
    pub fn named(name: &str, r0: u32, r1: u32) -> Op {
        let slot = INSTRUCTIONS.iter().position(|(n, _)| *n == name);
        Op::Do(slot.unwrap_or_else(|| panic!("{name}")), r0, r1, false)
    }
}

/// A whole program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Seed of the random victims.
    pub seed: u32,
    /// Whether victims are late.
    pub late: bool,
    /// Whether an instruction has the same address each time it runs, so that the checker can recognise a repeated
    /// report. Otherwise, each event has an invented address, so no report hides a later report.
    pub alike: bool,
    pub ops: Vec<Op>,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = |user: &bool| if *user { " user" } else { "" };
        match self {
            Op::Do(slot, r0, r1, user) => {
                write!(f, "{} {r0:x} {r1:x}{}", INSTRUCTIONS[*slot].0, mode(user))
            }
            Op::Execute(va, thumb, user) => {
                let name = if *thumb { "execute-thumb" } else { "execute" };
                write!(f, "{name} {va:x}{}", mode(user))
            }
            Op::Device(pa, bytes, value) => write!(f, "device {pa:x} {bytes:x} {value:x}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "victims {:x} {:x}", self.seed, u32::from(self.late))?;
        if self.alike {
            writeln!(f, "alike")?;
        }
        self.ops.iter().try_for_each(|op| writeln!(f, "{op}"))
    }
}

impl Program {
    /// Parses the output of [`fmt::Display`]. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Program> {
        let mut program = Program {
            seed: 0,
            late: false,
            alike: false,
            ops: Vec::new(),
        };
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut words: Vec<&str> = line.split_whitespace().collect();
            let user = words.last() == Some(&"user");
            words.truncate(words.len() - usize::from(user));
            let (name, rest) = words.split_first()?;
            let number = |text: &&str| u32::from_str_radix(text, 16).ok();
            let numbers: Vec<u32> = rest.iter().map(number).collect::<Option<_>>()?;
            let slot = INSTRUCTIONS.iter().position(|(n, _)| n == name);
            program.ops.push(match (*name, numbers.as_slice(), slot) {
                ("victims", &[seed, late], _) => {
                    (program.seed, program.late) = (seed, late != 0);
                    continue;
                }
                ("alike", &[], _) => {
                    program.alike = true;
                    continue;
                }
                ("execute", &[va], _) => Op::Execute(va, false, user),
                ("execute-thumb", &[va], _) => Op::Execute(va, true, user),
                ("device", &[pa, bytes, value], _) => Op::Device(pa, bytes, value),
                (_, &[r0, r1], Some(slot)) => Op::Do(slot, r0, r1, user),
                _ => return None,
            });
        }
        Some(program)
    }
}
