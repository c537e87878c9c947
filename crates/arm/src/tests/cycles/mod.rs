// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cycle tables of the core's manuals, as tests (docs/understand/TIMING.md).
//!
//! Expectations were written from the manuals before the tests were run. Each expectation names its source. [`read`]
//! means that the author had the text, [`recalled`] that the author wrote from recollection. Memory times are computed
//! from the parameters of the configuration and of the bus.
//!
//! [`read`]: Source::Read
//!
//! [`recalled`]: Source::Recalled

mod aborts;
mod alone;
mod blocks;
mod buffers;
mod bursts;
mod fills;
mod memory;
mod multiplies;
mod pairs;
mod products;
mod thumb;
mod walks;

use core::fmt;

use crate::addr::Mva;
use crate::bus::Width;
use crate::cpu::Cpu;
use crate::isa::disassemble;
use crate::psr::Mode;
use crate::tests::bus::TestBus;
use crate::tests::core::{mapped, steps};

/// Source of an expectation.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// The author had the text.
    Read(&'static str),
    /// The author did not have the text and recalled it.
    Recalled(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Read(where_) => write!(f, "read: {where_}"),
            Source::Recalled(where_) => write!(f, "recalled: {where_}"),
        }
    }
}

/// ARM9EJ-S, "Instruction cycle count summary". The stored page ends within LDM.
pub(super) const TABLE: Source = Source::Read("DDI0222B 8.1, table 8.2");
/// The rows of that table after LDM, and the table's text.
pub(super) const TABLE_REST: Source = Source::Recalled("DDI0222B 8.1, table 8.2");
/// The Thumb counterpart of the table.
pub(super) const TABLE_THUMB: Source = Source::Recalled("DDI0222B 8.1, table 8.3");
/// ARM7EJ-S, which has the same multiplier: multiplications, QADD and similar instructions.
pub(super) const MULTIPLIER: Source = Source::Read("DDI0214B 9.9.1");
/// QADD, QSUB, QDADD, QDSUB.
pub(super) const SATURATING: Source = Source::Read("DDI0214B 9.10.1");
/// The compiler's pipeline description, which was written from the ARM926EJ-S's manual.
pub(super) const COMPILER: Source = Source::Read("GCC arm926ejs.md");

/// An instruction, and its cycles when it executes alone.
pub(super) type Row = (u32, &'static str, u64, Source);

/// Address of code, at the start of lines that are in the cache.
pub(super) const CODE: u32 = 0x2_0000;
/// Address of cached data, and value of r1.
pub(super) const DATA: u32 = 0x3_0000;
/// Value of all data words. It is also the address of cached code and data.
const VALUE: u32 = 0x40;
/// End of the code and data, from address 0, that are in the caches.
const LOW: u32 = 0x100;

/// A core whose code, data and translations are in its caches and its TLB.
pub(super) struct Warm {
    pub cpu: Cpu<TestBus>,
}

impl Warm {
    pub fn new() -> Warm {
        let mut cpu = mapped();
        for at in (DATA - 0x20..DATA + 0x140).step_by(4) {
            cpu.bus.put(at, &[VALUE]);
        }
        cpu.bus.put(DATA + 0x14, &[VALUE << 8]);
        // A fill draws a random victim, which may be one of these lines.
        let data = (0..LOW).chain(DATA - 0x20..DATA + 0x140);
        let data: Vec<u32> = data.chain(CODE..CODE + 0x20).step_by(32).collect();
        while data.iter().any(|at| cpu.data_line(Mva(*at)).is_none()) {
            for at in &data {
                assert!(cpu.load(*at, Width::Word).is_ok());
            }
        }
        Warm { cpu }
    }

    /// Sets the registers, flags (Z) and mode with which every case starts.
    fn ready(&mut self) {
        let cpu = &mut self.cpu;
        cpu.set_cpsr(0x4000_0000 | Mode::Supervisor as u32);
        cpu.set_spsr(0x4000_0000 | Mode::Supervisor as u32);
        cpu.r[..15].copy_from_slice(&[
            DATA,
            DATA,
            4,
            1,
            0,
            8,
            8,
            0,
            0x3c,
            0x50,
            0,
            DATA,
            DATA,
            DATA + 0x80,
            LOW - 0x20,
        ]);
        cpu.forget_results();
    }

    /// Cycles of these instructions, from the first to the last.
    pub fn cycles(&mut self, code: &[u32]) -> u64 {
        self.cpu.bus.put(CODE, code);
        self.warm_code(code.len() as u32 * 4);
        self.ready();
        self.cpu.set_pc(CODE);
        self.run(code.len())
    }

    /// Fills the I-cache from memory.
    pub fn warm_code(&mut self, bytes: u32) {
        self.cpu.cp15_write(0, 7, 5, 0, 0);
        let lines = (0..LOW).chain(CODE..CODE + bytes).step_by(32);
        let lines: Vec<Mva> = lines.map(Mva).collect();
        while lines
            .iter()
            .any(|at| self.cpu.instruction_line(*at).is_none())
        {
            for at in &lines {
                assert_eq!(self.cpu.prefetch_icache_line(*at), Ok(()));
            }
        }
        self.cpu.drain_write_buffer();
    }

    /// Cycles of `instructions` instructions, starting at the current pc.
    pub fn run(&mut self, instructions: usize) -> u64 {
        let before = self.cpu.cycles();
        steps(&mut self.cpu, instructions);
        let taken = self.cpu.cycles() - before;
        assert_eq!(self.cpu.counters.exceptions, 0, "an exception was taken");
        taken
    }
}

/// Collects unexpected cycle counts, to report all of them at once.
#[derive(Default)]
pub(super) struct Differences(Vec<String>);

impl Differences {
    pub fn compare(&mut self, what: &str, taken: u64, expected: u64, source: Source) {
        if taken != expected {
            let line = format!("{what}: {taken} cycles, not {expected}; {source}");
            self.0.push(line);
        }
    }

    pub fn none(self) {
        assert!(
            self.0.is_empty(),
            "{} of them:\n{}",
            self.0.len(),
            self.0.join("\n")
        );
    }
}

/// Checks that the word disassembles to the text.
pub(super) fn is_the_text(word: u32, text: &str) {
    let printed = disassemble(word, CODE);
    assert_eq!(printed, text, "{word:#010x}");
}

/// The same instruction with condition NE, which fails. Returns `None` for an instruction without a condition.
pub(super) fn failing(word: u32) -> Option<u32> {
    (word >> 28 == 14).then_some(word & 0x0fff_ffff | 0x1000_0000)
}
