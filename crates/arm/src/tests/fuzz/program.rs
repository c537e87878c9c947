// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program: contents of memory, and operations. Programs can be printed and parsed.

use core::fmt;

use crate::isa::{disassemble, disassemble_thumb};

/// Parameters of the core and its bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Size of each cache, in bytes.
    pub icache: u32,
    pub dcache: u32,
    /// Whether the victims are [`crate::Victims::Late`].
    pub late: bool,
    /// Seed of the random victims.
    pub seed: u32,
    /// Cycles of a transfer, and of a line fill until its first and until its last word.
    pub single: u32,
    pub first: u32,
    pub last: u32,
    /// Whether the core with shortcuts also stops after each instruction.
    pub by_step: bool,
}

/// An event outside the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Irq(bool),
    Fiq(bool),
    /// Another bus master writes words.
    Write(u32, Vec<u32>),
}

/// An operation of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sets r0 to r14 of the current mode.
    Registers([u32; 15]),
    Jump {
        pc: u32,
        cpsr: u32,
    },
    /// Writes CP15 register 1, 2, 3 or 13 and refills the pipeline.
    Control(u32, u32),
    /// Lets an event happen after this number of cycles.
    Later(u32, Event),
    /// Runs for this number of cycles.
    Run(u32),
}

/// A whole program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub setup: Setup,
    /// Words of the translation tables.
    pub tables: Vec<(u32, u32)>,
    /// Lines of code and data.
    pub lines: Vec<(u32, [u32; 8])>,
    pub ops: Vec<Op>,
}

fn hex(words: &[u32]) -> String {
    words.iter().map(|word| format!(" {word:x}")).collect()
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Registers(values) => write!(f, "registers{}", hex(values)),
            Op::Jump { pc, cpsr } => write!(f, "jump {pc:x} {cpsr:x}"),
            Op::Control(register, value) => write!(f, "control {register:x} {value:x}"),
            Op::Later(after, Event::Irq(on)) => write!(f, "irq {after:x} {}", u8::from(*on)),
            Op::Later(after, Event::Fiq(on)) => write!(f, "fiq {after:x} {}", u8::from(*on)),
            Op::Later(after, Event::Write(pa, words)) => {
                write!(f, "write {after:x} {pa:x}{}", hex(words))
            }
            Op::Run(cycles) => write!(f, "run {cycles:x}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = &self.setup;
        let flags = [s.late, s.by_step].map(u32::from);
        let numbers = [s.icache, s.dcache, s.seed, s.single, s.first, s.last];
        writeln!(f, "setup{}{}", hex(&numbers), hex(&flags))?;
        for (pa, value) in &self.tables {
            writeln!(f, "table {pa:x} {value:x}")?;
        }
        for (pa, words) in &self.lines {
            writeln!(f, "line {pa:x}{}", hex(words))?;
            for (at, word) in (*pa..)
                .step_by(4)
                .zip(words)
                .filter(|(_, word)| **word != 0)
            {
                let [low, high] = [*word as u16, (*word >> 16) as u16];
                let [low, high] =
                    [(low, at), (high, at + 2)].map(|(h, at)| disassemble_thumb(h, at));
                let arm = disassemble(*word, at);
                writeln!(f, "# {at:x}: {word:08x}  {arm}  or  {low}; {high}")?;
            }
        }
        self.ops.iter().try_for_each(|op| writeln!(f, "{op}"))
    }
}

impl Program {
    /// Parses the text that [`fmt::Display`] writes. Returns `None` for other text.
    pub fn parse(text: &str) -> Option<Program> {
        let mut program = Program {
            setup: Setup {
                icache: 4096,
                dcache: 4096,
                late: false,
                seed: 0,
                single: 4,
                first: 8,
                last: 15,
                by_step: false,
            },
            tables: Vec::new(),
            lines: Vec::new(),
            ops: Vec::new(),
        };
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            program.add(line)?;
        }
        Some(program)
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let (name, rest) = line.split_once(' ')?;
        let number = |text| u32::from_str_radix(text, 16).ok();
        let n: Vec<u32> = rest.split_whitespace().map(number).collect::<Option<_>>()?;
        let op = match (name, n.as_slice()) {
            ("setup", &[icache, dcache, seed, single, first, last, late, by_step]) => {
                self.setup = Setup {
                    icache,
                    dcache,
                    late: late != 0,
                    seed,
                    single,
                    first,
                    last,
                    by_step: by_step != 0,
                };
                return Some(());
            }
            ("table", &[pa, value]) => {
                self.tables.push((pa, value));
                return Some(());
            }
            ("line", [pa, words @ ..]) => {
                self.lines.push((*pa, words.try_into().ok()?));
                return Some(());
            }
            ("registers", values) => Op::Registers(values.try_into().ok()?),
            ("jump", &[pc, cpsr]) => Op::Jump { pc, cpsr },
            ("control", &[register, value]) => Op::Control(register, value),
            ("irq", &[after, on]) => Op::Later(after, Event::Irq(on != 0)),
            ("fiq", &[after, on]) => Op::Later(after, Event::Fiq(on != 0)),
            ("write", [after, pa, words @ ..]) => {
                Op::Later(*after, Event::Write(*pa, words.to_vec()))
            }
            ("run", &[cycles]) => Op::Run(cycles),
            _ => return None,
        };
        self.ops.push(op);
        Some(())
    }
}
