// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a vmlinux and a kernel's file come from one build. Both have the build's identifier in an ELF note. If
//! one of them has no identifier, their code is compared.

use std::path::Path;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind};

/// Start of the note: sizes of name and identifier (SHA-1), type and name.
const NOTE: [u8; 16] = *b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
/// Bytes of an identifier.
const ID: usize = 20;
/// Section of a vmlinux that is compared.
const CODE: &str = ".text";

/// Returns the identifier in an Image.
fn id(image: &[u8]) -> Option<&[u8]> {
    let notes = image.windows(NOTE.len()).enumerate();
    let mut notes = notes.filter(|(_, w)| w[0] == NOTE[0] && **w == NOTE);
    notes.find_map(|(at, _)| image.get(at + NOTE.len()..at + NOTE.len() + ID))
}

fn hex(id: &[u8]) -> String {
    id.iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Fails when `vmlinux` has no symbols, or is not from the build of this kernel. `image` is an Image or a vmlinux. The
/// messages continue "FILE: ".
pub fn check(vmlinux: &Path, image: &[u8]) -> Result<(), String> {
    let bytes = std::fs::read(vmlinux).map_err(|error| error.to_string())?;
    let elf = object::File::parse(&*bytes)
        .map_err(|_| "is not a vmlinux: it is not an ELF file".to_owned())?;
    if elf.architecture() != object::Architecture::Arm {
        return Err(format!("is for {:?}, not for ARM", elf.architecture()));
    }
    if !elf.symbols().any(|symbol| symbol.is_definition()) {
        return Err(
            "has no symbols: give the vmlinux at the top of the build, not a stripped one".into(),
        );
    }
    let kernel = object::File::parse(image).ok();
    let in_kernel = kernel
        .as_ref()
        .map(|kernel| kernel.build_id().ok().flatten());
    let theirs = in_kernel.unwrap_or_else(|| id(image));
    let ours = elf.build_id().ok().flatten();
    let same = match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours == theirs => return Ok(()),
        (Some(ours), Some(theirs)) => {
            let (ours, theirs) = (hex(ours), hex(theirs));
            return Err(format!(
                "is of another build: its build ID begins {ours}, the kernel's {theirs}"
            ));
        }
        _ => code(&elf, kernel.as_ref(), image),
    };
    match same {
        Some(true) => Ok(()),
        Some(false) => Err("is of another build: its code differs from the kernel's".into()),
        None => Err(format!(
            "has no {CODE} that can be compared with the kernel's"
        )),
    }
}

/// Returns whether the code of a vmlinux is the kernel's code. Returns `None` if it has no code.
fn code(elf: &object::File<'_>, kernel: Option<&object::File<'_>>, image: &[u8]) -> Option<bool> {
    let section = elf.section_by_name(CODE)?;
    let ours = section.data().ok().filter(|code| !code.is_empty())?;
    if let Some(kernel) = kernel {
        let theirs = kernel.section_by_name(CODE).and_then(|s| s.data().ok());
        return Some(theirs == Some(ours));
    }
    let loaded = elf.sections().filter(|s| s.address() > 0 && s.size() > 0);
    let loaded = loaded.filter(|s| s.kind() != SectionKind::UninitializedData);
    let base = loaded.map(|s| s.address()).min()?;
    let from = usize::try_from(section.address() - base).ok()?;
    Some(image.get(from..from.checked_add(ours.len())?) == Some(ours))
}

#[cfg(test)]
mod tests {
    use super::super::kallsyms::Symbol;
    use super::super::symbol_file;
    use super::*;

    #[test]
    fn a_vmlinux_of_another_build_is_refused() {
        let name = format!("warmswitch-same-build-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let symbols = [Symbol {
            address: 0xc000_8000,
            kind: b'T',
            name: "_text".into(),
        }];
        let image: Vec<u8> = (0..4000u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&path, symbol_file::of(&image, &symbols).unwrap()).unwrap();
        assert_eq!(check(&path, &image), Ok(()));
        let mut other = image.clone();
        other[77] ^= 1;
        let problem = check(&path, &other).unwrap_err();
        assert_eq!(
            problem,
            "is of another build: its code differs from the kernel's"
        );
        assert!(check(&path, &image[..100]).is_err());
        std::fs::write(&path, b"text").unwrap();
        let problem = check(&path, &image).unwrap_err();
        assert_eq!(problem, "is not a vmlinux: it is not an ELF file");
        std::fs::remove_file(&path).unwrap();
        assert!(check(&path, &image).unwrap_err().contains("No such file"));
    }

    #[test]
    fn the_identifier_of_an_image_is_in_its_note() {
        let mut image = vec![4; 100];
        assert_eq!(id(&image), None);
        image.extend(NOTE);
        assert_eq!(id(&image), None);
        image.extend([0xab; 30]);
        assert_eq!(id(&image), Some(&[0xab; 20][..]));
        assert_eq!(hex(&[0xab; 20]), "abababababab");
    }
}
