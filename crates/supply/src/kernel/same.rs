// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares two kernels byte by byte, in every section that is in memory when the kernel runs. The comparison covers
//! code, data, addresses and strings, but not the build's identification, which is a hash of the whole file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionFlags, elf};

use base::paths::shown;

/// The section with the linker's `--build-id`, a hash of all other sections.
const BUILD_ID: &str = ".notes";

/// Address, size and content of each section, by name. The content is empty for a section such as `.bss`.
type Sections<'a> = BTreeMap<&'a str, (u64, u64, &'a [u8])>;

/// Returns a line for each difference between two kernels. Returns no lines if the kernels are equal.
pub fn differences(one: &Path, other: &Path) -> Result<Vec<String>> {
    let read = |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", shown(path)));
    let (bytes, other_bytes) = (read(one)?, read(other)?);
    let parse = |path, bytes| object::File::parse(bytes).with_context(|| shown(path));
    let (one, other) = (parse(one, &*bytes)?, parse(other, &*other_bytes)?);
    let place = |address| symbol(&one, address);
    Ok(compare(&sections(&one)?, &sections(&other)?, &place))
}

fn sections<'a>(file: &object::File<'a>) -> Result<Sections<'a>> {
    let mut all = Sections::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags } = section.flags() else {
            continue;
        };
        let name = section.name()?;
        if sh_flags & u64::from(elf::SHF_ALLOC) != 0 && name != BUILD_ID {
            all.insert(name, (section.address(), section.size(), section.data()?));
        }
    }
    Ok(all)
}

fn compare(one: &Sections<'_>, other: &Sections<'_>, place: &dyn Fn(u64) -> String) -> Vec<String> {
    let mut differences = Vec::new();
    for name in other.keys().filter(|name| !one.contains_key(*name)) {
        differences.push(format!("{name} is only in the second kernel"));
    }
    for (name, (address, size, data)) in one {
        let Some((other_address, other_size, other_data)) = other.get(name) else {
            differences.push(format!("{name} is only in the first kernel"));
            continue;
        };
        if (address, size) != (other_address, other_size) {
            differences.push(format!(
                "{name} has {size} bytes at {address:#x}, and {other_size} at {other_address:#x}"
            ));
        }
        let pairs = data.iter().zip(*other_data);
        let different = pairs.clone().filter(|(a, b)| a != b).count();
        if let Some(at) = pairs.clone().position(|(a, b)| a != b) {
            let at = address + at as u64;
            let place = place(at);
            differences.push(format!(
                "{name}: {different} bytes differ, the first at {at:#x}{place}"
            ));
        }
    }
    differences
}

/// Returns ` in NAME`. NAME is the symbol before an address. Returns an empty text if there is no such symbol.
fn symbol(file: &object::File<'_>, address: u64) -> String {
    let symbols = file.symbols().filter(|s| s.address() <= address);
    // Mapping symbols ($a, $d) name no code or data.
    let named = symbols.filter(|s| s.name().is_ok_and(|n| !n.is_empty() && !n.starts_with('$')));
    match named.max_by_key(object::ObjectSymbol::address) {
        Some(symbol) => format!(" in {}", symbol.name().unwrap_or_default()),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_a_place_or_a_section_that_differs_is_named() {
        let one = Sections::from([
            (".text", (0x100, 4, &b"abcd"[..])),
            (".bss", (0x200, 8, b"")),
        ]);
        let found = |other| compare(&one, &other, &|address| format!(" in f{address:x}"));
        assert_eq!(found(one.clone()), [""; 0]);
        let mut other = one.clone();
        other.insert(".text", (0x100, 4, b"abXY"));
        assert_eq!(
            found(other),
            [".text: 2 bytes differ, the first at 0x102 in f102"]
        );
        let mut other = one.clone();
        other.insert(".bss", (0x200, 12, b""));
        assert_eq!(found(other), [".bss has 8 bytes at 0x200, and 12 at 0x200"]);
        let other = Sections::from([(".bss", (0x200, 8, &b""[..])), (".new", (0, 1, b"x"))]);
        assert_eq!(
            found(other),
            [
                ".new is only in the second kernel",
                ".text is only in the first kernel"
            ]
        );
    }
}
