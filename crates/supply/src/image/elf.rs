// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the files that a dynamically linked ARM program needs at its start: its loader, the shared libraries that it
//! names, and the libraries that these libraries name.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use object::elf;
use object::read::elf::{
    Dyn as _, FileHeader as _, ProgramHeader as _, SectionHeader as _, SectionTable,
};
use object::{Endianness, ReadRef as _};

/// The first tags of the build attributes (IHI0045). Their values are two strings and a number.
const CPU_RAW_NAME: u64 = 4;
const CPU_NAME: u64 = 5;
const CPU_ARCH: u64 = 6;

/// File name of Debian's C library.
pub const C_LIBRARY: &str = "libc.so.6";

type Header = elf::FileHeader32<Endianness>;

/// What one ELF file needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Path of the loader. `None` for a library or a static program.
    pub loader: Option<String>,
    /// Names of shared libraries.
    pub libraries: Vec<String>,
    /// Versions of Debian's C library that the file needs. Empty if the file has no table of sections.
    pub c_library: BTreeSet<String>,
    /// Whether the file runs at one address only.
    pub fixed: bool,
}

/// Reads an ELF file for soft-float ARM. `name` is for messages.
pub fn needs(name: &str, data: &[u8]) -> Result<Needs> {
    let bad = |error: object::Error| anyhow::anyhow!("{name}: not a valid ELF file: {error}");
    check_machine(name, data)?;
    let header = Header::parse(data).map_err(bad)?;
    let endian = header.endian().map_err(bad)?;
    if header.e_machine(endian) != elf::EM_ARM || endian != Endianness::Little {
        bail!("{name}: not for little-endian ARM");
    }
    if header.e_flags(endian) & elf::EF_ARM_ABI_FLOAT_HARD != 0 {
        bail!("{name}: built for hardware floating point, which these cores do not have");
    }
    let mut needs = Needs {
        c_library: c_library_wanted(data).unwrap_or_default(),
        fixed: header.e_type(endian) == elf::ET_EXEC,
        ..Needs::default()
    };
    let segments = header.program_headers(endian, data).map_err(bad)?;
    for segment in segments {
        if let Some(path) = segment.interpreter(endian, data).map_err(bad)? {
            needs.loader = Some(String::from_utf8_lossy(path).into_owned());
        }
        let Some(entries) = segment.dynamic(endian, data).map_err(bad)? else {
            continue;
        };
        let value = |tag: u32| {
            entries
                .iter()
                .find(|d| d.d_tag(endian) == tag)
                .map(|d| d.d_val(endian))
        };
        let Some(strings) = value(elf::DT_STRTAB).and_then(|va| offset_of(segments, endian, va))
        else {
            bail!("{name}: not a valid ELF file: no table of names");
        };
        let end = strings.saturating_add(u64::from(value(elf::DT_STRSZ).unwrap_or(0)));
        for entry in entries.iter().filter(|d| d.d_tag(endian) == elf::DT_NEEDED) {
            let at = strings + u64::from(entry.d_val(endian));
            match data.read_bytes_at_until(at..end, 0) {
                Ok(library) => needs
                    .libraries
                    .push(String::from_utf8_lossy(library).into_owned()),
                Err(()) => bail!(
                    "{name}: not a valid ELF file: the name of a library lies outside its table"
                ),
            }
        }
    }
    Ok(needs)
}

fn c_library_wanted(data: &[u8]) -> Option<BTreeSet<String>> {
    let (endian, sections) = sections(data)?;
    let (mut wanted, link) = sections.gnu_verneed(endian, data).ok()??;
    let names = sections.strings(endian, data, link).ok()?;
    let mut versions = BTreeSet::new();
    while let Some((need, mut each)) = wanted.next().ok()? {
        if need.file(endian, names).ok()? != C_LIBRARY.as_bytes() {
            continue;
        }
        while let Some(version) = each.next().ok()? {
            let name = version.name(endian, names).ok()?;
            versions.insert(String::from_utf8_lossy(name).into_owned());
        }
    }
    Some(versions)
}

/// Returns the symbol versions that a library defines.
pub fn versions_of(data: &[u8]) -> Option<BTreeSet<String>> {
    let (endian, sections) = sections(data)?;
    let (mut defined, link) = sections.gnu_verdef(endian, data).ok()??;
    let names = sections.strings(endian, data, link).ok()?;
    let mut versions = BTreeSet::new();
    while let Some((_, mut each)) = defined.next().ok()? {
        // The first name is the version itself. Further names are the versions that it extends.
        if let Some(version) = each.next().ok()? {
            let name = version.name(endian, names).ok()?;
            versions.insert(String::from_utf8_lossy(name).into_owned());
        }
    }
    Some(versions)
}

/// Fails for programs of other common machines. The error names the machine.
fn check_machine(name: &str, data: &[u8]) -> Result<()> {
    let Some(machine) = data.get(18..20).filter(|_| data.starts_with(b"\x7fELF")) else {
        return Ok(());
    };
    let machine = match u16::from_le_bytes([machine[0], machine[1]]) {
        elf::EM_X86_64 => "x86-64 (amd64)",
        elf::EM_386 => "x86 (i386)",
        elf::EM_AARCH64 => "64-bit ARM (arm64)",
        elf::EM_RISCV => "RISC-V",
        _ => return Ok(()),
    };
    bail!(
        "{name}: a program for {machine}, not for little-endian ARM: compile it for these boards with \
        arm-linux-gnueabi-gcc"
    );
}

/// Returns the architecture that a file needs, as a value of `Tag_CPU_arch` (ARM's ABI, IHI0045). Returns `None` if the
/// file has no such value.
pub fn architecture(data: &[u8]) -> Option<u64> {
    let (endian, sections) = sections(data)?;
    let section = sections
        .iter()
        .find(|section| section.sh_type(endian) == elf::SHT_ARM_ATTRIBUTES)?;
    let mut attributes = section
        .attributes(endian, data)
        .and_then(|attributes| attributes.subsections())
        .ok()?;
    while let Some(subsection) = attributes.next().ok()? {
        let mut parts = subsection.subsubsections();
        while let Some(part) = parts.next().ok()? {
            let mut reader = part.attributes();
            while let Some(tag) = reader.read_tag().ok()? {
                match tag {
                    CPU_ARCH => return reader.read_integer().ok(),
                    CPU_RAW_NAME | CPU_NAME => drop(reader.read_string().ok()?),
                    _ => return None,
                }
            }
        }
    }
    None
}

fn sections(data: &[u8]) -> Option<(Endianness, SectionTable<'_, Header>)> {
    let header = Header::parse(data).ok()?;
    let endian = header.endian().ok()?;
    Some((endian, header.sections(endian, data).ok()?))
}

/// Returns the offset in the file of the address `va`.
fn offset_of(
    segments: &[elf::ProgramHeader32<Endianness>],
    endian: Endianness,
    va: u32,
) -> Option<u64> {
    let holds = |s: &&elf::ProgramHeader32<Endianness>| {
        let start = s.p_vaddr(endian);
        s.p_type(endian) == elf::PT_LOAD && va >= start && va - start < s.p_filesz(endian)
    };
    let segment = segments.iter().find(holds)?;
    Some(u64::from(segment.p_offset(endian)) + u64::from(va - segment.p_vaddr(endian)))
}

/// Returns every library that `programs` need, by name, with its content. Each program has a name and its content.
/// `find` gives the content of a library. If a program names a loader, the loader is among the libraries, under its
/// file name.
pub fn closure(
    programs: &[(String, Vec<u8>)],
    find: impl Fn(&str) -> Result<Option<Vec<u8>>>,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut pending: Vec<(String, String)> = Vec::new();
    let queue = |name: &str, data: &[u8], pending: &mut Vec<(String, String)>| -> Result<()> {
        let needs = needs(name, data)?;
        let loader = needs
            .loader
            .iter()
            .filter_map(|path| path.rsplit('/').next());
        let libraries = needs.libraries.iter().map(String::as_str);
        pending.extend(
            libraries
                .chain(loader)
                .map(|l| (l.to_string(), name.to_string())),
        );
        Ok(())
    };
    for (name, data) in programs {
        queue(name, data, &mut pending)?;
    }
    while let Some((library, wanted_by)) = pending.pop() {
        if found.contains_key(&library) {
            continue;
        }
        let Some(data) = find(&library)? else {
            bail!("{wanted_by} needs the library {library}, and no package has it");
        };
        queue(&library, &data, &mut pending)?;
        found.insert(library, data);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small ELF file for ARM: one loaded segment that is the whole file, a dynamic segment, and
    /// a table of names.
    fn elf(machine: u16, flags: u32, libraries: &[&str]) -> Vec<u8> {
        let mut names = vec![0_u8];
        let mut tags: Vec<(u32, u32)> = Vec::new();
        for library in libraries {
            tags.push((elf::DT_NEEDED, names.len() as u32));
            names.extend_from_slice(library.as_bytes());
            names.push(0);
        }
        let dynamic_at = 52 + 2 * 32;
        let dynamic_size = (tags.len() as u32 + 3) * 8;
        let names_at = dynamic_at + dynamic_size;
        tags.push((elf::DT_STRTAB, names_at));
        tags.push((elf::DT_STRSZ, names.len() as u32));
        tags.push((elf::DT_NULL, 0));
        let total = names_at + names.len() as u32;
        let mut out = vec![0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        out.extend_from_slice(&3_u16.to_le_bytes());
        out.extend_from_slice(&machine.to_le_bytes());
        for word in [1, 0, 52, 0, flags] {
            out.extend_from_slice(&u32::to_le_bytes(word));
        }
        for half in [52_u16, 32, 2, 40, 0, 0] {
            out.extend_from_slice(&half.to_le_bytes());
        }
        for words in [
            [1, 0, 0, 0, total, total, 5, 4],
            [
                2,
                dynamic_at,
                dynamic_at,
                dynamic_at,
                dynamic_size,
                dynamic_size,
                6,
                4,
            ],
        ] {
            words
                .iter()
                .for_each(|w| out.extend_from_slice(&u32::to_le_bytes(*w)));
        }
        for (tag, value) in tags {
            out.extend_from_slice(&tag.to_le_bytes());
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&names);
        out
    }

    #[test]
    fn the_libraries_of_libraries_are_found() {
        let program = (
            "program".to_string(),
            elf(elf::EM_ARM, 0, &["liba.so", "libc.so"]),
        );
        let all = closure(&[program], |name| {
            Ok(match name {
                "liba.so" => Some(elf(elf::EM_ARM, 0, &["libb.so", "libc.so"])),
                "libb.so" | "libc.so" => Some(elf(elf::EM_ARM, 0, &[])),
                _ => None,
            })
        })
        .unwrap();
        assert_eq!(
            all.keys().collect::<Vec<_>>(),
            ["liba.so", "libb.so", "libc.so"]
        );
    }

    #[test]
    fn a_library_that_no_package_has_is_named_with_who_needs_it() {
        let program = ("program".to_string(), elf(elf::EM_ARM, 0, &["libz.so"]));
        let error = closure(&[program], |_| Ok(None)).unwrap_err().to_string();
        assert!(
            error.contains("libz.so") && error.contains("program"),
            "{error}"
        );
    }

    #[test]
    fn other_machines_and_hard_float_are_refused() {
        let error = needs("x", &elf(elf::EM_386, 0, &[]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("not for little-endian ARM"), "{error}");
        let hard = elf(elf::EM_ARM, elf::EF_ARM_ABI_FLOAT_HARD, &[]);
        assert!(
            needs("x", &hard)
                .unwrap_err()
                .to_string()
                .contains("floating point")
        );
    }

    #[test]
    fn damaged_files_are_errors_and_never_panics() {
        let good = elf(elf::EM_ARM, 0, &["libc.so.6", "libm.so.6"]);
        for length in 0..good.len() {
            let _ = needs("x", &good[..length]);
        }
        for at in 0..good.len() {
            let mut damaged = good.clone();
            damaged[at] ^= 0xff;
            let _ = needs("x", &damaged);
        }
        assert!(needs("x", b"").is_err());
        assert!(needs("x", b"#!/bin/sh\n").is_err());
    }
}
