// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads caches, TLB and write buffer of a board at one moment, without changing the board.

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
    /// Address of the next instruction.
    pub pc: u32,
    /// Disassembly of the next instruction. `None` if no memory is mapped at its address.
    pub instruction: Option<String>,
    /// Registers of the current mode, without the pc.
    pub registers: [u32; 15],
    /// Process identifier of FCSE.
    pub pid: u32,
    /// Geometries of the D-cache and of the I-cache.
    pub shapes: [CacheGeometry; 2],
    /// Valid lines of the D-cache and of the I-cache.
    pub lines: [Vec<HeldLine>; 2],
    /// Valid entries of the TLBs.
    pub entries: Vec<HeldEntry>,
    /// Writes that wait for the bus, in order of writing.
    pub waiting: Vec<WaitingWrite>,
}

/// The line of memory at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Focus {
    /// Virtual address that the user gave.
    pub va: u32,
    /// Modified virtual address, after FCSE.
    pub mva: Mva,
    /// Physical address of the line's first byte.
    pub pa: Pa,
}

/// The eight words of a line in memory. A word is `None` if the board has no memory at its address.
pub type Memory = [Option<u32>; 8];

impl State {
    /// Reads the state of a board. A write that has begun counts as done, because the next reader of memory sees its
    /// data.
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

/// Translates a virtual address to a line of memory. If the page tables do not map the address, uses a D-cache line
/// that holds it.
pub fn focus(machine: &Machine, va: u32) -> Option<Focus> {
    let cpu = machine.cpu();
    let mva = cpu.debug_mva(Va(va));
    let held = || {
        let lines = cpu.debug_lines(Side::Data);
        let mut matching = lines.iter().filter(|line| line.mva.0 == mva.0 & !31);
        matching.next().and_then(|line| line.pa)
    };
    let pa = cpu.debug_translate(mva).or_else(held)?.line();
    Some(Focus { va, mva, pa })
}

/// Reads the words of a line from memory, without the caches.
pub fn memory(machine: &Machine, pa: Pa) -> Memory {
    let settled = settled(machine);
    std::array::from_fn(|n| settled.cpu().debug_memory(pa.plus(4 * n as u32)))
}

/// Disassembles the next instruction. Takes the instruction from its line in the I-cache. If the I-cache does not hold
/// the line, takes it from memory. Ignores the D-cache, because a fetch bypasses the D-cache.
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
