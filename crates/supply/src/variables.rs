// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses and initial values of kernel variables, from vmlinux.

use std::path::Path;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

/// A variable of the kernel.
pub struct Variable {
    /// Virtual address.
    pub address: u32,
    /// Initial value. Empty if the file has no content for the variable, as for zeros.
    pub initial: Vec<u8>,
}

/// Returns the variable `name`. Returns `None` if the file cannot be read or does not have the variable.
pub fn of(vmlinux: &Path, name: &str) -> Option<Variable> {
    let bytes = std::fs::read(vmlinux).ok()?;
    let elf = object::File::parse(&*bytes).ok()?;
    let named = |symbol: &object::Symbol| symbol.name() == Ok(name) && symbol.is_definition();
    let symbol = elf.symbols().find(named)?;
    let section = elf.section_by_index(symbol.section_index()?).ok()?;
    let data = section.data_range(symbol.address(), symbol.size());
    Some(Variable {
        address: u32::try_from(symbol.address()).ok()?,
        initial: data.ok().flatten().unwrap_or_default().to_vec(),
    })
}
