// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cycle costs. Issue cycles of instructions follow `DDI0222B 8.1` (ARM9EJ-S). The manuals leave the costs of the
//! memory system open. Calibrate these costs for each chip.

/// Costs in core cycles. "Extra" cycles are added to the issue cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostTable {
    /// Cycles of synchronisation in each transaction, between the core's request and the bus grant.
    pub bus_sync: u32,
    /// Share of a line fill, in 1/256 of the time after the critical word, for which the pipeline also waits.
    pub tail_exposed_256: u32,
    /// Cycles of a translation-table walk in addition to its descriptor reads.
    pub walk_overhead: u32,
    /// D-cache lines that one test-and-clean operation examines.
    pub lines_tested_per_op: u32,
    /// Extra cycles of each MCR or MRC to CP15.
    pub cp15_busy: u32,
}
