// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/O permission bitmap of x86 at a task switch: the algorithms of four kernels behind one
//! interface, and a benchmark of them on this machine.
//!
//! At each `in` and `out` of a program, the processor reads the bitmap of its task state segment (TSS) (Intel SDM 1,
//! 19.5.2). A clear bit permits the port. A base beyond the segment's limit forbids all ports. A kernel has one TSS per
//! processor and one bitmap per task, and must make the TSS permit the ports of the running task's bitmap.

pub mod algorithm;
pub mod bench;
pub mod memory;

#[cfg(test)]
mod tests;
