// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers and operations of the system control coprocessor, and their effects. Each core has its own register
//! numbers. `model/` has the [`Row`]s, which connect numbers and effects.
//!
//! Operations by address take MVAs, which the FCSE does not relocate. The model guesses nothing. The run ends when
//! software reads a write-only register or writes a read-only register. It also ends at an access to a register that
//! the manual does not list, and at a write of debug bits that would change the core's behaviour.

use crate::addr::Mva;
use crate::bus::Bus;
use crate::config::Config;
use crate::cpu::{Cpu, Exit};
use crate::isa::Version;
use crate::mmu::Control;
use crate::model::Own;

/// The modelled bit of the cache debug control register. The other bits, which disable line fills, are not modelled
/// (`DDI0198D 2.3.15`).
pub(crate) const FORCE_WRITE_THROUGH: u32 = 1 << 2;

/// SCTLR.U: unaligned loads and stores work (ARMv6).
pub(crate) const SCTLR_U: u32 = 1 << 22;

/// What an access to an address that is not a multiple of its size does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unaligned {
    /// It is an access to the aligned address. A loaded word is rotated.
    Rotates,
    /// It accesses the bytes from the address on.
    Works,
    /// It faults.
    Faults,
}

/// A register or an operation of the coprocessor, with one or more numbers.
pub(crate) struct Row<B: Bus> {
    opc1: u32,
    crn: u32,
    /// First and last CRm.
    crm: (u32, u32),
    opc2: (u32, u32),
    read: Option<fn(&mut Cpu<B>) -> u32>,
    write: Option<fn(&mut Cpu<B>, u32)>,
    /// Bits that software may set.
    modelled: u32,
    /// Whether User mode may read, and whether it may write.
    user: (bool, bool),
}

impl<B: Bus> Clone for Row<B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Bus> Copy for Row<B> {}

impl<B: Bus> Row<B> {
    pub const fn at(opc1: u32, crn: u32, crm: u32, opc2: u32) -> Row<B> {
        Row {
            opc1,
            crn,
            crm: (crm, crm),
            opc2: (opc2, opc2),
            read: None,
            write: None,
            modelled: !0,
            user: (false, false),
        }
    }

    /// Starts a row of coprocessor 14.
    pub const fn cp14(crn: u32, crm: u32) -> Row<B> {
        Row::at(CP14, crn, crm, 0)
    }

    /// Extends the row to all CRm up to `last`.
    pub const fn crm_up_to(mut self, last: u32) -> Row<B> {
        self.crm.1 = last;
        self
    }

    /// Extends the row to all opcodes 2 up to `last`.
    pub const fn opc2_up_to(mut self, last: u32) -> Row<B> {
        self.opc2.1 = last;
        self
    }

    pub const fn read(mut self, read: fn(&mut Cpu<B>) -> u32) -> Row<B> {
        self.read = Some(read);
        self
    }

    pub const fn write(mut self, write: fn(&mut Cpu<B>, u32)) -> Row<B> {
        self.write = Some(write);
        self
    }

    /// Lets User mode read and write.
    pub const fn in_user_mode(mut self) -> Row<B> {
        self.user = (true, true);
        self
    }

    /// Lets User mode read.
    pub const fn read_in_user_mode(mut self) -> Row<B> {
        self.user = (true, false);
        self
    }

    /// Limits the bits that software may set. A one in any other bit ends the run.
    pub const fn modelled(mut self, bits: u32) -> Row<B> {
        self.modelled = bits;
        self
    }
}

/// Number of register numbers. Each consists of opcode 1, CRn, CRm (4 bits each) and opcode 2 (3 bits).
const NUMBERS: usize = 1 << 15;
/// First opcode 1 of CP14, whose rows follow those of CP15.
pub(crate) const CP14: u32 = 8;
/// Maximum number of rows of a core, plus one empty row.
const ROWS: usize = 128;
/// Index of the empty row.
const NONE: u8 = 0;

/// All rows of a core, indexed by register number.
pub(crate) struct Rows<B: Bus + 'static> {
    rows: [Row<B>; ROWS],
    index: [u8; NUMBERS],
}

impl<B: Bus> Rows<B> {
    /// Makes the table from lists of rows. All rows must have different numbers.
    pub const fn new(lists: &'static [&'static [Row<B>]]) -> Rows<B> {
        let mut all = Rows {
            rows: [Row::at(0, 0, 0, 0); ROWS],
            index: [NONE; NUMBERS],
        };
        let (mut list, mut count) = (0, NONE + 1);
        while list < lists.len() {
            let mut n = 0;
            while n < lists[list].len() {
                all.add(count, lists[list][n]);
                (n, count) = (n + 1, count + 1);
            }
            list += 1;
        }
        all
    }

    const fn add(&mut self, n: u8, row: Row<B>) {
        self.rows[n as usize] = row;
        let mut crm = row.crm.0;
        while crm <= row.crm.1 {
            let mut opc2 = row.opc2.0;
            while opc2 <= row.opc2.1 {
                let at = number(row.opc1, row.crn, crm, opc2);
                assert!(self.index[at] == NONE, "two rows have the same number");
                self.index[at] = n;
                opc2 += 1;
            }
            crm += 1;
        }
    }

    #[inline(always)]
    fn row(&'static self, opc1: u32, crn: u32, crm: u32, opc2: u32) -> &'static Row<B> {
        &self.rows[usize::from(self.index[number(opc1, crn, crm, opc2)]) % ROWS]
    }
}

const fn number(opc1: u32, crn: u32, crm: u32, opc2: u32) -> usize {
    ((opc1 & 15) << 11 | (crn & 15) << 7 | (crm & 15) << 3 | opc2 & 7) as usize
}

/// Registers of the coprocessor.
#[derive(Clone, Debug)]
pub struct Cp15 {
    /// Control register.
    pub sctlr: u32,
    /// Translation table base register.
    pub ttb: u32,
    /// Domain access control register.
    pub dacr: u32,
    /// Data fault status register.
    pub dfsr: u32,
    /// Instruction fault status register.
    pub ifsr: u32,
    /// Fault address register: MVA of the data access.
    pub far: u32,
    /// FCSE PID register, bits 31:25.
    pub pid: u32,
    pub(crate) context_id: u32,
    pub(crate) cache_debug: u32,
    pub(crate) ctr: u32,
    pub(crate) midr: u32,
    /// Thread ID registers of ARMv6K.
    pub(crate) thread_ids: [u32; 3],
    /// Registers that only one kind of core has.
    pub(crate) own: Own,
}

crate::state!(
    Cp15: sctlr, ttb, dacr, dfsr, ifsr, far, pid, context_id, cache_debug, thread_ids, own; ctr, midr
);

impl Cp15 {
    /// Returns the registers as at reset.
    pub fn new(config: &Config) -> Cp15 {
        Cp15 {
            sctlr: config.core.sctlr.reset,
            ttb: 0,
            dacr: 0,
            dfsr: 0,
            ifsr: 0,
            far: 0,
            pid: 0,
            context_id: 0,
            cache_debug: 0,
            ctr: config.core.cache_type(config.icache, config.dcache),
            midr: config.core.midr,
            thread_ids: [0; 3],
            own: config.core.own_registers(),
        }
    }

    /// Whether alignment is checked: SCTLR.A.
    #[inline(always)]
    pub fn alignment_checked(&self) -> bool {
        self.sctlr & 2 != 0
    }

    /// What an access to an address that is not a multiple of its size does (A2.7, A2.8): SCTLR.A and SCTLR.U. Only
    /// ARMv6 has U.
    #[inline(always)]
    pub(crate) fn unaligned(&self) -> Unaligned {
        match self.sctlr & (2 | SCTLR_U) {
            0 => Unaligned::Rotates,
            SCTLR_U => Unaligned::Works,
            _ => Unaligned::Faults,
        }
    }

    /// Whether accesses to several words, exclusive accesses and swaps fault at an address that is not a multiple of
    /// four.
    #[inline(always)]
    pub(crate) fn words_are_aligned(&self) -> bool {
        self.sctlr & (2 | SCTLR_U) != 0
    }

    fn mmu_control(&self) -> Control {
        let bit = |n: u32| self.sctlr >> n & 1 != 0;
        Control {
            on: bit(0),
            dcache_on: bit(2),
            icache_on: bit(12),
            s: bit(8),
            r: bit(9),
            force_write_through: self.cache_debug & FORCE_WRITE_THROUGH != 0,
            mini: match &self.own {
                Own::XScale(registers) => registers.mini(),
                Own::None => 0,
            },
            ttb: self.ttb,
            dacr: self.dacr,
        }
    }
}

impl<B: Bus> Cpu<B> {
    /// Whether exception vectors are at 0xffff0000: SCTLR.V.
    pub(crate) fn high_vectors(&self) -> bool {
        self.cp15.sctlr >> 13 & 1 != 0
    }

    /// Whether bit 0 of a value loaded into the pc selects the Thumb state. It does on ARMv5 while SCTLR.L4 is clear.
    pub(crate) fn loads_interwork(&self) -> bool {
        self.config.core.version > Version::V4 && self.cp15.sctlr >> 15 & 1 == 0
    }

    /// ASID of the current translations: the low bits of the context ID. Zero on a core without ASIDs, on which the
    /// context ID is for trace tools only.
    #[inline(always)]
    pub(crate) fn asid(&self) -> u8 {
        match self.config.core.asids {
            false => 0,
            true => self.cp15.context_id as u8,
        }
    }

    /// Reads a register (MRC). The top four bits of the value become the flags if the destination is r15.
    pub(crate) fn cp15_read(&mut self, opc1: u32, crn: u32, crm: u32, opc2: u32) -> u32 {
        self.spend_on_cp15(crn);
        let row = self.cp15_rows.row(opc1, crn, crm, opc2);
        match row.read {
            Some(read) => read(self),
            None => self.unmodelled_cp15(opc1, crn, crm, opc2),
        }
    }

    /// Writes a register (MCR).
    pub fn cp15_write(&mut self, opc1: u32, crn: u32, crm: u32, opc2: u32, value: u32) {
        self.spend_on_cp15(crn);
        let row = self.cp15_rows.row(opc1, crn, crm, opc2);
        match row.write {
            Some(write) if value & !row.modelled == 0 => write(self, value),
            _ => {
                self.unmodelled_cp15(opc1, crn, crm, opc2);
            }
        }
    }

    /// Whether the current mode may use the register of an MRC (`read`) or an MCR, which has this first opcode 1.
    #[inline(always)]
    pub(crate) fn may_use_cp15(&self, first: u32, insn: u32, read: bool) -> bool {
        self.privileged() || self.cp15_is_open(first, insn, read)
    }

    /// Whether User mode may use a register.
    #[cold]
    fn cp15_is_open(&self, first: u32, insn: u32, read: bool) -> bool {
        let opc1 = first | insn >> 21 & 7;
        let row = self.cp15_rows.row(opc1, insn >> 16, insn, insn >> 5);
        let (opened, is_there) = match read {
            true => (row.user.0, row.read.is_some()),
            false => (row.user.1, row.write.is_some()),
        };
        opened && is_there
    }

    /// Ends the run. Returns 0.
    pub(crate) fn unmodelled_cp15(&mut self, opc1: u32, crn: u32, crm: u32, opc2: u32) -> u32 {
        let operation = opc1 << 24 | crn << 16 | crm << 8 | opc2;
        self.exit = Some(Exit::UnmodelledCp15 { operation });
        self.horizon = 0;
        0
    }

    pub(crate) fn write_ttb(&mut self, value: u32) {
        self.cp15.ttb = value & 0xffff_c000;
        self.counters.ttb_writes += 1;
        if B::OBSERVED {
            // An observer receives the next use of each TLB entry again, because the entry comes from the old tables.
            self.memory.drop_translations();
        }
        self.control_changed();
    }

    pub(crate) fn write_dacr(&mut self, value: u32) {
        self.cp15.dacr = value;
        self.control_changed();
    }

    pub(crate) fn write_cache_debug(&mut self, value: u32) {
        self.cp15.cache_debug = value;
        self.control_changed();
    }

    pub(crate) fn write_sctlr(&mut self, value: u32) {
        let bits = &self.config.core.sctlr;
        let clocking = (value ^ bits.reset) & self.config.core.clocking;
        if value & bits.refused != 0 || clocking != 0 {
            self.unmodelled_cp15(0, 1, 0, 0);
        }
        let mmu_changed = (self.cp15.sctlr ^ value) & 1 != 0;
        self.cp15.sctlr = bits.reset | value & bits.writable;
        let round_robin = value >> 14 & 1 != 0;
        self.memory.set_round_robin(round_robin);
        self.memory.discard_prefetched();
        self.control_changed();
        self.fcse.set(self.cp15.pid, value & 1 != 0);
        if mmu_changed {
            self.refill_pipeline();
        }
    }

    /// Sets SCTLR.RR, as the decompressor of a zImage leaves it (Linux `arch/arm/boot/compressed/head.S`).
    pub fn set_round_robin(&mut self) {
        self.write_sctlr(self.cp15.sctlr | 1 << 14);
    }

    pub(crate) fn control_changed(&mut self) {
        self.memory.set_control(self.cp15.mmu_control());
        self.refetch();
    }

    pub(crate) fn write_pid(&mut self, value: u32) {
        self.cp15.pid = value & 0xfe00_0000;
        self.counters.pid_writes += 1;
        self.branches.forget();
        self.fcse.set(self.cp15.pid, self.cp15.sctlr & 1 != 0);
        self.horizon = 0;
    }

    pub(crate) fn wait_for_interrupt(&mut self) {
        self.drain_write_buffer();
        self.waiting = true;
        self.horizon = 0;
    }

    /// Flushes the prefetch buffer: the next instruction is fetched again.
    pub(crate) fn flush_prefetched(&mut self) {
        self.refill_pipeline();
        self.refetch();
    }

    pub(crate) fn prefetch_line(&mut self, mva: Mva) {
        if let Err(fault) = self.prefetch_icache_line(mva) {
            // An aborted prefetch raises no exception (`DDI0198D 3.3.1`).
            self.cp15.ifsr = fault.fsr();
        }
    }

    /// CP15 registers, for display.
    pub fn cp15(&self) -> &Cp15 {
        &self.cp15
    }
}

#[cfg(test)]
mod tests;
