// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutants of the bus transactions that the core makes from runs of words. The fuzzer that compares bus transactions
//! must find these mutants. Letters refer to rows of the third review of the core.

use super::{Mutant, killed};

pub const MUTANTS: &[Mutant] = &[
    killed(
        "memory/transfer.rs",
        "            return Ok(match single {",
        "            return Ok(match single || true {",
        "B: STM past the cache is one run, not single words",
    ),
    killed(
        "memory/transfer.rs",
        "        if page.has(mmu::BUFFER) {\n            return Ok(Stored::Nothing);",
        "        if true {\n            return Ok(Stored::Nothing);",
        "B: STM that hits write-through lines is one run",
    ),
    killed(
        "write_buffer/runs.rs",
        "self.buffers.bursts == Bursts::Sequential",
        "false",
        "C: LDM past the cache is a burst on the ARM920T",
    ),
    killed(
        "write_buffer/runs.rs",
        "            Bursts::Sequential => within,",
        "            Bursts::Sequential => 1,",
        "C: STM past the cache is a burst of any length on the ARM920T",
    ),
    killed(
        "write_buffer/runs.rs",
        "BOUNDARY: u32 = 1024",
        "BOUNDARY: u32 = 1 << 20",
        "D: no burst crosses 1 KB",
    ),
    killed(
        "memory/transfer.rs",
        "here.is_multiple_of(SMALLEST_PAGE)",
        "here.is_multiple_of(32)",
        "E: a run does not end at the end of a line",
    ),
];
