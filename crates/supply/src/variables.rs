// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variables of the kernel, from its vmlinux: where they are, and with what they begin.

use std::path::Path;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

/// A variable.
pub struct Variable {
    /// Virtual address.
    pub address: u32,
    /// What it is initialised with; nothing where that is zeros.
    pub initial: Vec<u8>,
}

/// The variable of that name, if the file can be read and has it.
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
