// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a kernel's text.

use supply::mutant::Cp15;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub start: u32,
    pub end: u32,
    /// Source file from the top of the kernel's tree; empty when it is not known.
    pub file: String,
    pub section: String,
}

/// What a site does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does {
    /// An operation of CP15.
    Operation(Cp15),
    /// A call, or a jump in tail position.
    Calls(String),
}

/// A place that maintains something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Virtual address.
    pub at: u32,
    /// Index of the function that it is in.
    pub function: usize,
    pub does: Does,
}

/// A kernel's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// By address.
    pub functions: Vec<Function>,
    /// By address.
    pub sites: Vec<Site>,
    /// The first byte and how many.
    pub base: u32,
    pub bytes: u32,
    /// Which vmlinux it is.
    pub hash: String,
}
