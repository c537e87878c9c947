// SPDX-License-Identifier: MIT OR Apache-2.0
//! What caches, TLB and write buffer of a board hold at one moment, read without changing any of it.

use arm::isa::{disassemble, disassemble_thumb};
use arm::{CacheGeometry, HeldEntry, HeldLine, Mva, Pa, Side, Va, WaitingWrite};
use board::Machine;

/// The T bit of the CPSR.
const THUMB: u32 = 1 << 5;

/// A board at one moment.
#[derive(Clone, Debug)]
pub struct State {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// The instruction that comes next.
    pub pc: u32,
    /// As it is printed; none where the core would not find it.
    pub instruction: Option<String>,
    /// Those of the mode it is in, without the pc.
    pub registers: [u32; 15],
    /// FCSE's process identifier.
    pub pid: u32,
    /// How the caches are built, the data's first.
    pub shapes: [CacheGeometry; 2],
    /// Valid lines of the D-cache and of the I-cache.
    pub lines: [Vec<HeldLine>; 2],
    /// Valid entries of the TLBs.
    pub entries: Vec<HeldEntry>,
    /// What waits for the bus, in that order.
    pub waiting: Vec<WaitingWrite>,
}

/// The line of memory around an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Focus {
    /// As it was asked for.
    pub va: u32,
    /// Behind FCSE.
    pub mva: Mva,
    /// The first byte of its line in memory.
    pub pa: Pa,
}

/// What memory itself has at these eight words; none where there is no memory.
pub type Memory = [Option<u32>; 8];

impl State {
    /// Of a board. Writes that have begun by now are in memory, as for whoever reads next.
    pub fn of(machine: &Machine) -> State {
        let settled = settled(machine);
        let cpu = settled.cpu();
        let shapes = &machine.spec().core;
        State {
            cycle: machine.now(),
            pc: cpu.pc(),
            instruction: instruction(&settled),
            registers: std::array::from_fn(|n| cpu.register(n)),
            pid: cpu.cp15().pid >> 25,
            shapes: [shapes.dcache, shapes.icache],
            lines: [
                cpu.debug_lines(Side::Data),
                cpu.debug_lines(Side::Instruction),
            ],
            entries: cpu.debug_entries(),
            waiting: cpu.debug_waiting(),
        }
    }
}

fn settled(machine: &Machine) -> Machine {
    let mut fork = machine.clone();
    fork.cpu_mut().debug_settle();
    fork
}

/// The line of memory that a virtual address means now: by the tables, else by a line that is held.
pub fn focus(machine: &Machine, va: u32) -> Option<Focus> {
    let cpu = machine.cpu();
    let mva = cpu.debug_mva(Va(va));
    let held = || {
        let lines = cpu.debug_lines(Side::Data);
        let mut of_it = lines.iter().filter(|line| line.mva.0 == mva.0 & !31);
        of_it.next().and_then(|line| line.pa)
    };
    let pa = cpu.debug_translate(mva).or_else(held)?.line();
    Some(Focus { va, mva, pa })
}

/// Memory's own words.
pub fn memory(machine: &Machine, pa: Pa) -> Memory {
    let settled = settled(machine);
    std::array::from_fn(|n| settled.cpu().debug_memory(pa.plus(4 * n as u32)))
}

/// The next instruction: from its line in the I-cache, else from memory, which a fetch reads past the D-cache.
fn instruction(machine: &Machine) -> Option<String> {
    let cpu = machine.cpu();
    let pc = cpu.pc();
    let mva = cpu.debug_mva(Va(pc));
    let lines = cpu.debug_lines(Side::Instruction);
    let held = lines.iter().find(|line| line.mva.0 == mva.0 & !31);
    let word = match held {
        Some(line) => line.words[(mva.0 >> 2 & 7) as usize],
        None => cpu.debug_memory(cpu.debug_translate(Mva(mva.0 & !3))?)?,
    };
    Some(match cpu.cpsr() & THUMB {
        0 => disassemble(word, pc),
        _ => disassemble_thumb((word >> (8 * (pc & 2))) as u16, pc),
    })
}
