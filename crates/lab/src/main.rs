// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch`: boots simulated ARM9 boards and measures context switches on them.

fn main() {}
