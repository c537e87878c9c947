// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a core instruction by instruction. Checks against the reference: the PID under which each instruction was
//! fetched, the translations of its accesses, and the reasons for its aborts.
//!
//! Three instructions are in the pipeline. A PID write therefore first affects the third instruction after the write.
//! If a branch or an exception flushes the pipeline, the write affects the next instruction (`DDI0198D 2.3.13`). The
//! translation of a line holds while its instructions execute (docs/understand/LIMITS.md).

use std::collections::{BTreeSet, VecDeque};

use super::bus::{FuzzBus, Seen};
use super::reference::{Checked, Reference};
use super::search::Tally;
use crate::addr::Mva;
use crate::cpu::Cpu;
use crate::mmu::Kind;

/// The core that is followed.
pub type Plain = Cpu<FuzzBus<true>>;

/// State before a step.
pub struct Before {
    pc: u32,
    cpsr: u32,
    exceptions: u64,
}

impl Before {
    pub fn new(cpu: &Plain) -> Before {
        Before {
            pc: cpu.pc,
            cpsr: cpu.cpsr(),
            exceptions: cpu.counters.exceptions,
        }
    }
}

/// An executed instruction.
#[derive(Clone, Copy)]
struct Executed {
    pc: u32,
    word: u32,
    thumb: bool,
    registers: [u32; 16],
    /// CPSR before it executed.
    cpsr: u32,
}

/// Follows one core.
pub struct Follower {
    pub reference: Reference,
    /// Relocations after the last three instructions. The list always contains the relocation of the last pipeline
    /// refill.
    relocations: VecDeque<u32>,
    /// Address of the current line, and its physical address.
    line: (u32, u32),
    /// Physical addresses of all lines executed so far.
    lines: BTreeSet<u32>,
    pub tally: Tally,
}

impl Follower {
    pub fn new(late: bool) -> Follower {
        Follower {
            reference: Reference::new(late),
            relocations: VecDeque::from([0]),
            line: (1, 0),
            lines: BTreeSet::new(),
            tally: Tally::new(),
        }
    }

    pub fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    /// Counts a write to a line that has been executed.
    pub fn count_write(&mut self, pa: u32, what: &'static str) {
        if self.lines.contains(&(pa & !31)) {
            self.count(what);
        }
    }

    /// Records that the pipeline was refilled.
    pub fn refill(&mut self) {
        self.relocations.clear();
        self.relocations.push_back(self.reference.relocation());
    }

    /// Checks a step.
    pub fn step(&mut self, before: &Before, cpu: &Plain) -> Checked {
        self.reference.between()?;
        let mut exceptions = cpu.counters.exceptions - before.exceptions;
        let fetched = cpu.bus.seen.iter().find_map(|seen| match seen {
            Seen::Fetched { pc, .. } => Some(*pc),
            _ => None,
        });
        let (mut pc, mut cpsr) = (before.pc, before.cpsr);
        if let Some((vector, mode)) = interrupt(before.cpsr, cpu) {
            if exceptions == 0 {
                return Err("an interrupt was not taken".into());
            }
            exceptions -= 1;
            self.count(if mode == 0x11 { "FIQ" } else { "IRQ" });
            if self
                .relocations
                .iter()
                .any(|r| *r != self.reference.relocation())
            {
                self.count("interrupt behind a PID write");
            }
            self.refill();
            pc = self.reference.vectors() + vector;
            cpsr = cpsr & !0x3f | mode;
        }
        let aborted = exceptions > 0 && fetched.is_none();
        self.fetch(pc, cpsr, cpu, aborted)?;
        let executed = self.events(pc, cpsr, cpu)?;
        match executed {
            Some(executed) => self.executed(executed, exceptions > 0, cpu),
            None if aborted => {
                self.count("prefetch abort");
                self.refill();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Address from which an instruction must be fetched.
    fn wanted(&self, pc: u32) -> u32 {
        let old = self.relocations.front().copied().unwrap_or(0);
        if pc >> 25 == 0 { pc | old } else { pc }
    }

    fn fetch(&mut self, pc: u32, cpsr: u32, cpu: &Plain, aborted: bool) -> Checked {
        // Translations before the fetch event belong to the fetch.
        let wanted = self.wanted(pc);
        let mut last = None;
        for seen in &cpu.bus.seen {
            match *seen {
                Seen::Fetched { .. } => break,
                Seen::Walked { mva, at, value } => {
                    self.reference.walked(mva, at, value)?;
                    fetch_of(mva, wanted)?;
                }
                Seen::Loaded { mva, bytes } => self.reference.loaded(mva, bytes)?,
                Seen::Used {
                    mva,
                    pa,
                    kind,
                    privileged,
                } => {
                    fetch_of(mva, wanted)?;
                    if privileged != (cpsr & 0x1f != 0x10) {
                        return Err(format!("fetch of {mva:?} with the wrong privilege"));
                    }
                    self.reference.used(mva, pa, kind, privileged)?;
                    self.line = (mva.0 & !31, pa & !31);
                    self.lines.insert(pa & !31);
                    last = Some(pa);
                    *self.tally.entry(self.reference.page(mva.0)).or_default() += 1;
                }
            }
        }
        if !aborted {
            return Ok(());
        }
        let status = cpu.cp15.ifsr;
        self.count(fault(status));
        if status & 0xd == 8 {
            let pa = if self.reference.mmu() {
                last
            } else {
                Some(wanted)
            };
            let pa = pa.ok_or("external abort of a fetch that was not translated")?;
            return self.reference.aborted_outside(wanted, pa, status);
        }
        let privileged = cpsr & 0x1f != 0x10;
        self.reference
            .aborted(wanted, status, &[Kind::Fetch], &[privileged])
    }

    /// Checks the instruction and its accesses.
    fn events(&mut self, at: u32, cpsr: u32, cpu: &Plain) -> Checked<Option<Executed>> {
        let mut executed = None;
        for seen in &cpu.bus.seen {
            match *seen {
                Seen::Fetched {
                    pc,
                    mva,
                    pa,
                    word,
                    registers,
                } => {
                    let wanted = self.wanted(at);
                    let place = match self.reference.mmu() {
                        true if self.line.0 != mva.0 & !31 => {
                            return Err(format!("{mva:?} is executed and was not translated"));
                        }
                        true => self.line.1 | mva.0 & 31,
                        false => mva.0,
                    };
                    if (pc, mva.0, pa) != (at, wanted, place) {
                        return Err(format!(
                            "fetch at {pc:#x}, {mva:?}, {pa:#x}, not {at:#x}, {wanted:#x}, {place:#x}"
                        ));
                    }
                    let thumb = cpsr & 0x20 != 0;
                    executed = Some(Executed {
                        pc,
                        word,
                        thumb,
                        registers,
                        cpsr,
                    });
                }
                _ if executed.is_none() => {}
                Seen::Walked { mva, at, value } => self.reference.walked(mva, at, value)?,
                Seen::Loaded { mva, bytes } => self.reference.loaded(mva, bytes)?,
                Seen::Used {
                    mva,
                    pa,
                    kind,
                    privileged,
                } => {
                    if privileged && cpsr & 0x1f == 0x10 {
                        return Err(format!("{kind:?} of {mva:?} with the wrong privilege"));
                    }
                    self.reference.used(mva, pa, kind, privileged)?;
                    self.count(match kind {
                        Kind::Write => "store translated",
                        _ => "load translated",
                    });
                    if kind == Kind::Write {
                        self.count_write(pa, "store into a line that was executed");
                    }
                }
            }
        }
        Ok(executed)
    }

    fn executed(&mut self, i: Executed, raised: bool, cpu: &Plain) -> Checked {
        self.count(if i.thumb {
            "Thumb instruction"
        } else {
            "A32 instruction"
        });
        if i.word == 0 {
            self.count("instruction of zeros");
        }
        let vectors = self.reference.vectors();
        let accesses = if i.thumb {
            i.word >> 12 & 15 >= 4
        } else {
            true
        };
        if raised && accesses && cpu.pc == vectors + 0x10 {
            self.count("data abort");
            self.data_abort(cpu)?;
        } else if raised {
            self.count("undefined, SWI or BKPT");
        }
        let size = if i.thumb { 2 } else { 4 };
        let mut refilled = raised || cpu.pc != i.pc.wrapping_add(size);
        if refilled && !raised {
            self.count(match cpu.pc ^ i.pc {
                0..0x400 => "jump within a quarter",
                0x400..0x1000 => "jump to another quarter of a page",
                _ => "jump to another page",
            });
        }
        if !passes(&i) {
            self.count("condition that fails");
        } else {
            refilled |= jumps(&i);
            if let Some((register, value)) = coprocessor_write(&i) {
                refilled |= self.reference.written(register, value);
                self.count(name_of(register));
            }
        }
        if refilled {
            self.refill();
        } else {
            self.relocations.push_back(self.reference.relocation());
            if self.relocations.len() > 3 {
                self.relocations.pop_front();
            }
        }
        let actual = [cpu.cp15.sctlr, cpu.cp15.ttb, cpu.cp15.dacr, cpu.cp15.pid];
        let r = &self.reference;
        let expected = [r.sctlr, r.ttb, r.dacr, r.pid];
        if expected != actual {
            return Err(format!(
                "SCTLR, TTB, DACR, PID are {actual:x?}, not {expected:x?}"
            ));
        }
        Ok(())
    }

    fn data_abort(&mut self, cpu: &Plain) -> Checked {
        let (status, far) = (cpu.cp15.dfsr, cpu.cp15.far);
        self.count(fault(status));
        if status & 0xf == 1 {
            let odd = self.reference.checks_alignment() && far & 3 != 0;
            return odd
                .then_some(())
                .ok_or(format!("alignment fault at {far:#x}"));
        }
        if status & 0xd == 8 {
            let last = cpu.bus.seen.iter().rev().find_map(|seen| match seen {
                Seen::Used { mva, pa, .. } => Some((mva.0, *pa)),
                _ => None,
            });
            let (mva, pa) = last.filter(|_| self.reference.mmu()).unwrap_or((far, far));
            return self.reference.aborted_outside(mva, pa, status);
        }
        let privileged = [false, true];
        self.reference
            .aborted(far, status, &[Kind::Read, Kind::Write], &privileged)
    }
}

/// Vector and mode of the interrupt that precedes the next instruction, if one does.
fn interrupt(cpsr: u32, cpu: &Plain) -> Option<(u32, u32)> {
    let signals = cpu.bus.signals;
    if signals.fiq && cpsr & 0x40 == 0 {
        Some((0x1c, 0x11))
    } else if signals.irq && cpsr & 0x80 == 0 {
        Some((0x18, 0x12))
    } else {
        None
    }
}

/// Name of a fault status.
fn fault(status: u32) -> &'static str {
    match status & 0xf {
        0x1 => "fault: alignment",
        0x5 | 0x7 => "fault: translation",
        0x9 | 0xb => "fault: domain",
        0xd | 0xf => "fault: permission",
        _ => "fault: external",
    }
}

fn fetch_of(mva: Mva, wanted: u32) -> Checked {
    match mva.0 == wanted {
        true => Ok(()),
        false => Err(format!("fetch of {mva:?}, not {wanted:#x}")),
    }
}

/// Whether the condition of an instruction passes (ARM ARM A3.2).
fn passes(i: &Executed) -> bool {
    let [n, z, c, v] = [31, 30, 29, 28].map(|bit| i.cpsr >> bit & 1 != 0);
    let condition = match (i.thumb, i.word >> 12 & 15) {
        (false, _) => i.word >> 28,
        (true, 0xd) => i.word >> 8 & 15,
        _ => 14,
    };
    let passes = match condition >> 1 {
        0 => z,
        1 => c,
        2 => n,
        3 => v,
        4 => c && !z,
        5 => n == v,
        6 => n == v && !z,
        _ => return true,
    };
    passes != (condition & 1 != 0)
}

/// Whether an executed instruction writes the pc (ARM ARM A4, A7).
fn jumps(i: &Executed) -> bool {
    let w = i.word;
    if i.thumb {
        return match w >> 8 {
            0xd0..=0xdd | 0xe0..=0xef | 0x47 | 0xbd | 0xf8..=0xff => true,
            0x44 | 0x46 => w & 0x87 == 0x87,
            _ => false,
        };
    }
    let to_pc = w >> 12 & 15 == 15;
    match w >> 25 & 7 {
        5 => true,
        _ if w >> 28 == 15 => false,
        0 if w & 0x0fff_ffd0 == 0x012f_ff10 => true,
        0 if w & 0x90 == 0x90 => false,
        0 | 1 => to_pc && w >> 23 & 3 != 2,
        2 | 3 => to_pc && w >> 20 & 1 != 0,
        4 => w >> 15 & 1 != 0 && w >> 20 & 1 != 0,
        _ => false,
    }
}

/// CRn, CRm, opcode 2 and value of an MCR to CP15.
fn coprocessor_write(i: &Executed) -> Option<([u32; 3], u32)> {
    let w = i.word;
    let is_write = !i.thumb && w & 0x0ff0_0f10 == 0x0e00_0f10 && w >> 28 != 15;
    let privileged = i.cpsr & 0x1f != 0x10;
    let value = i.registers[(w >> 12 & 15) as usize];
    (is_write && privileged).then_some(([w >> 16 & 15, w & 15, w >> 5 & 7], value))
}

fn name_of([crn, crm, opc2]: [u32; 3]) -> &'static str {
    match (crn, crm, opc2) {
        (1, ..) => "control register write",
        (2, ..) => "TTB write",
        (3, ..) => "domain register write",
        (7, 5 | 13, _) => "I-cache operation",
        (7, ..) => "D-cache or write buffer operation",
        (8, _, 0) => "TLB invalidation",
        (8, ..) => "TLB invalidation by MVA",
        (9, ..) => "cache lockdown",
        (10, ..) => "TLB lockdown",
        (13, 0, 0) => "PID write",
        _ => "other CP15 write",
    }
}
