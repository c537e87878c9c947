// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cycle costs. Issue cycles of instructions follow `DDI0222B 8.1` (ARM9EJ-S); the memory-system
//! part holds what the manuals leave open, to be calibrated per chip.

/// Costs in core cycles. "Extra" adds to the issue cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostTable {
    /// Cycles between the core's request and the bus grant (synchronisation), each transaction.
    pub bus_sync: u32,
    /// Share of a line fill's tail (after the critical word) the pipeline waits for, in 1/256.
    pub tail_exposed_256: u32,
    /// Added to the descriptor reads of a table walk.
    pub walk_overhead: u32,
    /// D-cache lines looked at by one test-and-clean operation.
    pub lines_tested_per_op: u32,
    /// Extra cycles of any MCR or MRC to CP15.
    pub cp15_busy: u32,
}
