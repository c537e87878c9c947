// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of CP15 that several cores share. A core's folder lists the rows that differ.

use crate::addr::Mva;
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::cpu::cp15::Row;
use crate::observe::TlbSide;

/// Rows of all cores.
pub(super) struct Every<B>(B);

impl<B: Bus> Every<B> {
    pub const ROWS: &[Row<B>] = &[
        // c0: main ID, cache type.
        Row::at(0, 0, 0, 0).read(|cpu| cpu.cp15.midr),
        Row::at(0, 0, 0, 1).read(|cpu| cpu.cp15.ctr),
        // c1: control.
        Row::at(0, 1, 0, 0)
            .read(|cpu| cpu.cp15.sctlr)
            .write(Cpu::write_sctlr),
        // c2: translation table base. c3: domain access control.
        Row::at(0, 2, 0, 0)
            .read(|cpu| cpu.cp15.ttb)
            .write(Cpu::write_ttb),
        Row::at(0, 3, 0, 0)
            .read(|cpu| cpu.cp15.dacr)
            .write(Cpu::write_dacr),
        // c6: fault address.
        Row::at(0, 6, 0, 0)
            .read(|cpu| cpu.cp15.far)
            .write(|cpu, value| cpu.cp15.far = value),
        // c7, I-cache: invalidate all, invalidate by MVA.
        Row::at(0, 7, 5, 0).write(|cpu, _| cpu.maintain(Cpu::invalidate_icache)),
        Row::at(0, 7, 5, 1).write(|cpu, value| cpu.invalidate_icache_mva(Mva(value))),
        // c7, D-cache: invalidate all, invalidate by MVA, clean by MVA.
        Row::at(0, 7, 6, 0).write(|cpu, _| cpu.maintain(Cpu::invalidate_dcache)),
        Row::at(0, 7, 6, 1)
            .write(|cpu, value| cpu.maintain_line(value, Cpu::invalidate_dcache_line)),
        Row::at(0, 7, 10, 1).write(|cpu, value| cpu.maintain_line(value, Cpu::clean_line)),
        // c7: invalidate both caches.
        Row::at(0, 7, 7, 0).write(|cpu, _| {
            cpu.maintain(|cpu| {
                cpu.invalidate_icache();
                cpu.invalidate_dcache();
            });
        }),
        // c13: FCSE PID.
        Row::at(0, 13, 0, 0)
            .read(|cpu| cpu.cp15.pid)
            .write(Cpu::write_pid),
    ];
}

/// Rows of ARM's own cores before ARMv6 (`DDI0151C 2.3`, `DDI0198D 2.3`).
pub(super) struct Arm<B>(B);

impl<B: Bus> Arm<B> {
    pub const ROWS: &[Row<B>] = &[
        // c5: fault status of data, fault status of instructions.
        Row::at(0, 5, 0, 0)
            .read(|cpu| cpu.cp15.dfsr)
            .write(|cpu, value| cpu.cp15.dfsr = value & 0xff),
        Row::at(0, 5, 0, 1)
            .read(|cpu| cpu.cp15.ifsr)
            .write(|cpu, value| cpu.cp15.ifsr = value & 0xff),
        // c7: drain the write buffer, wait for interrupt, prefetch an I-cache line, clean and invalidate a D-cache line.
        Row::at(0, 7, 10, 4).write(|cpu, _| cpu.drain_write_buffer()),
        Row::at(0, 7, 0, 4).write(|cpu, _| cpu.wait_for_interrupt()),
        Row::at(0, 7, 13, 1).write(|cpu, value| cpu.prefetch_line(Mva(value))),
        Row::at(0, 7, 14, 1)
            .write(|cpu, value| cpu.maintain_line(value, Cpu::clean_and_invalidate_line)),
    ];
}

/// Rows of cores with one TLB for each side. c8 invalidates all entries, or one entry by MVA. Each operation applies to
/// both TLBs, to the TLB of instructions, or to the TLB of data.
pub(super) struct TwoTlbs<B>(B);

impl<B: Bus> TwoTlbs<B> {
    pub const ROWS: &[Row<B>] = &[
        Row::at(0, 8, 7, 0).write(|cpu, _| cpu.invalidate_tlb(TlbSide::Both)),
        Row::at(0, 8, 5, 0).write(|cpu, _| cpu.invalidate_tlb(TlbSide::Instruction)),
        Row::at(0, 8, 5, 1)
            .write(|cpu, value| cpu.invalidate_tlb_entry(TlbSide::Instruction, Mva(value))),
        Row::at(0, 8, 6, 0).write(|cpu, _| cpu.invalidate_tlb(TlbSide::Data)),
        Row::at(0, 8, 6, 1).write(|cpu, value| cpu.invalidate_tlb_entry(TlbSide::Data, Mva(value))),
    ];
}
