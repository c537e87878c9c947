// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the kernels and root file systems that boards run. Fetches the sources and packages for them from Debian's
//! archive, and keeps everything in the cache.

#[macro_use]
extern crate base;

pub mod added;
pub mod cache;
pub mod fetch;
pub mod image;
pub mod kernel;
pub mod kernel_file;
pub mod mutant;
pub mod package;
pub mod source_build;
pub mod symbols;
pub mod toolchain;
pub mod variables;
