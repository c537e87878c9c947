// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine that boots a kernel.

/// What a kernel needs to know about the machine that boots it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForMachine {
    /// Name of the machine.
    pub name: String,
    /// `compatible` of the machine's device trees.
    pub compatible: String,
    /// Options that a kernel needs for this machine and its console.
    pub kernel_options: Vec<String>,
    /// Device tree of Linux for this machine, relative to `arch/arm/boot/dts`.
    pub dtb: Option<String>,
}
