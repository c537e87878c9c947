// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/O permission bitmap of x86 at a task switch: what four kernels did, behind one interface,
//! and a bench of them on this machine.
//!
//! The processor looks into the bitmap of its task state segment (TSS) at each `in` and `out` of a
//! program (Intel SDM 1, 19.5.2): a clear bit permits the port, and a base beyond the segment's limit
//! forbids all. A kernel has one TSS a processor and a bitmap a task, and sees to it that the first
//! says what the second does.

pub mod algorithm;
pub mod bench;
pub mod memory;

#[cfg(test)]
mod tests;
