// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions and sites of a kernel's text.

use supply::mutant::Cp15;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub start: u32,
    pub end: u32,
    /// Path of the source file in the kernel's tree. Empty if the path is unknown.
    pub file: String,
    pub section: String,
}

/// Action of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does {
    /// An operation of CP15.
    Operation(Cp15),
    /// A call or tail call of this function.
    Calls(String),
}

/// An instruction that maintains caches, write buffer or TLB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Virtual address.
    pub at: u32,
    /// Index of the containing function.
    pub function: usize,
    pub does: Does,
}

/// Text of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Sorted by address.
    pub functions: Vec<Function>,
    /// Sorted by address.
    pub sites: Vec<Site>,
    /// Address of the first byte.
    pub base: u32,
    /// Length, in bytes.
    pub bytes: u32,
    /// Hash of the vmlinux.
    pub hash: String,
}
