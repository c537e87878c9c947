// SPDX-License-Identifier: MIT OR Apache-2.0
//! Developer tasks: `cargo xtask NAME`.

fn main() {}
