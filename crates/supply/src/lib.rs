// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a board is given: kernels, root file systems, and what they are made of, from Debian's
//! archive to the cache.

#[macro_use]
extern crate base;

pub mod added;
pub mod cache;
pub mod fetch;
pub mod image;
pub mod kernel;
pub mod mutant;
pub mod package;
pub mod source_build;
pub mod symbols;
pub mod toolchain;
pub mod variables;
