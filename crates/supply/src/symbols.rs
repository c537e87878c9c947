// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of kernel addresses, from vmlinux.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use object::{ReadCache, SectionIndex, SectionKind, SymbolKind};

/// Lowest address of modules and the kernel. The kernel's own symbols may give a lower one.
const KERNEL: u32 = 0xbf00_0000;
/// Distance of the modules' area below the kernel, in bytes.
const MODULES: u32 = 0x0100_0000;

/// Largest distance, in bytes, at which a symbol still names an address.
const FAR: u32 = 0x1_0000;

/// Returns the file with a kernel's symbols. If the kernel is an ELF file, it has the symbols itself. Otherwise, a
/// vmlinux has the symbols. It is in the kernel's folder, or at the top of the tree if the kernel is in
/// `arch/arm/boot`.
pub fn vmlinux_of(kernel: &Path) -> Option<PathBuf> {
    let mut magic = [0; 4];
    let read = File::open(kernel).and_then(|mut file| file.read_exact(&mut magic));
    if read.is_ok() && magic == *b"\x7fELF" {
        return Some(kernel.to_path_buf());
    }
    let boot = kernel.parent()?;
    let whole = boot.canonicalize().ok();
    let in_tree = whole.is_some_and(|boot| boot.ends_with("arch/arm/boot"));
    let top = in_tree.then(|| boot.join("../../../vmlinux"));
    let places = [Some(boot.join("vmlinux")), top];
    places.into_iter().flatten().find(|v| v.is_file())
}

/// Returns whether an ELF file has a symbol of this name. Returns `None` when the file cannot be read.
pub fn has(vmlinux: &Path, name: &str) -> Option<bool> {
    // A vmlinux has many megabytes, so only the needed parts are read.
    let cache = ReadCache::new(File::open(vmlinux).ok()?);
    let elf = object::File::parse(&cache).ok()?;
    Some(elf.symbols().any(|symbol| symbol.name() == Ok(name)))
}

/// Returns the addresses of these symbols in an ELF file, in their order. Returns `None` when the file cannot be read.
pub fn places<const N: usize>(vmlinux: &Path, names: [&str; N]) -> Option<[Option<u64>; N]> {
    let cache = ReadCache::new(File::open(vmlinux).ok()?);
    let elf = object::File::parse(&cache).ok()?;
    let mut places = [None; N];
    for symbol in elf.symbols() {
        if let Some(n) = names.iter().position(|name| symbol.name() == Ok(name)) {
            places[n] = Some(symbol.address());
        }
    }
    Some(places)
}

/// Returns the start addresses and names of functions, and of labels that have no type and lie outside functions. Other
/// code calls some labels of assembly, such as `v5tj_early_abort`. Mapping symbols, such as `$a`, are left out.
fn code(elf: &object::File<'_>) -> Vec<(u32, String)> {
    let is_function =
        |s: &object::Symbol<'_, '_>| s.kind() == SymbolKind::Text && s.is_definition();
    let functions = elf.symbols().filter(is_function);
    let range = |s: object::Symbol<'_, '_>| (s.address(), s.address().saturating_add(s.size()));
    let mut ranges: Vec<(u64, u64)> = functions.map(range).collect();
    ranges.sort_unstable();
    let mut last = 0;
    for (_, end) in &mut ranges {
        last = last.max(*end);
        *end = last;
    }
    let is_in_none = |at: u64| {
        let before = ranges[..ranges.partition_point(|(start, _)| *start <= at)].last();
        before.is_none_or(|(start, end)| *start < at && *end <= at)
    };
    let sections = elf.sections().filter(|s| s.kind() == SectionKind::Text);
    let executable: Vec<SectionIndex> = sections.map(|s| s.index()).collect();
    let is_label = |s: &object::Symbol<'_, '_>| {
        let section = s.section_index();
        s.kind() == SymbolKind::Unknown && section.is_some_and(|n| executable.contains(&n))
    };
    elf.symbols()
        .filter(|s| is_function(s) || is_label(s) && is_in_none(s.address()))
        .filter_map(|s| Some((u32::try_from(s.address()).ok()?, s.name().ok()?.to_owned())))
        .filter(|(_, name)| !name.is_empty() && !name.starts_with('$'))
        .collect()
}

/// Functions of a kernel, by address.
#[derive(Default)]
pub struct Symbols {
    functions: Vec<(u32, String)>,
    /// Further names of these functions, with their addresses.
    others: BTreeMap<String, u32>,
}

impl Symbols {
    /// Reads an ELF file. Returns no symbols when the file cannot be read, because names only make messages clearer.
    pub fn of(vmlinux: Option<&Path>) -> Symbols {
        let bytes = vmlinux
            .and_then(|path| std::fs::read(path).ok())
            .unwrap_or_default();
        let Ok(elf) = object::File::parse(&*bytes) else {
            return Symbols::default();
        };
        let mut functions = code(&elf);
        // If an address has several names, keeps the plainest one: memset, not __memset or mmioset.
        functions.sort_by_cached_key(|(at, name)| (*at, name.starts_with('_'), name.clone()));
        let mut others = BTreeMap::new();
        functions.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                others.insert(core::mem::take(&mut next.1), next.0);
            }
            same
        });
        Symbols { functions, others }
    }

    /// Returns whether a function has this name, without a suffix that the compiler added.
    pub fn has(&self, name: &str) -> bool {
        let plain = |full: &str| full.split('.').next() == Some(name);
        self.others.contains_key(name) || self.functions.iter().any(|(_, full)| plain(full))
    }

    /// Returns the lowest address of a function outside the first quarter of the address space. The kernel's start
    /// copies the functions in the first quarter to other addresses.
    pub fn first(&self) -> Option<u32> {
        let from = self.functions.partition_point(|(at, _)| *at < 0x4000_0000);
        self.functions.get(from).map(|(at, _)| *at)
    }

    /// Returns the start of the kernel's part of the address space. The part may be 1, 2 or 3 GB long.
    pub fn kernel(&self) -> u32 {
        let first = self.first().map(|first| first & 0xf000_0000);
        first.map_or(KERNEL, |first| KERNEL.min(first.saturating_sub(MODULES)))
    }

    /// Returns the functions, by address.
    pub fn functions(&self) -> &[(u32, String)] {
        &self.functions
    }

    /// Returns the start address of a function.
    pub fn address(&self, name: &str) -> Option<u32> {
        let other = self.others.get(name).copied();
        let named = || self.functions.iter().find(|(_, full)| full == name);
        other.or_else(|| named().map(|(at, _)| *at))
    }

    /// Returns whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Returns the name that [`Symbols::name`] gives to the function `name`, which may have several names.
    pub fn plainest<'a>(&'a self, name: &'a str) -> &'a str {
        let at = self.others.get(name);
        let same = at.and_then(|at| self.functions.iter().find(|f| f.0 == *at));
        same.map_or(name, |f| &f.1)
    }

    /// Returns `name+0x12`, if a function begins at the address or at most 64 KB before it.
    pub fn name(&self, address: u32) -> Option<String> {
        let behind = self
            .functions
            .partition_point(|(start, _)| *start <= address);
        let (start, name) = &self.functions[behind.checked_sub(1)?];
        let offset = address - start;
        match offset {
            0 => Some(name.clone()),
            1..FAR => Some(format!("{name}+{offset:#x}")),
            _ => None,
        }
    }
}

impl Symbols {
    /// Makes symbols from a list of functions, for tests.
    pub fn by_hand(functions: &[(u32, &str)]) -> Symbols {
        let functions = functions.iter().map(|f| (f.0, f.1.to_owned()));
        Symbols {
            functions: functions.collect(),
            others: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_named_by_the_function_it_is_in() {
        let symbols = Symbols::by_hand(&[(0x8000, "start"), (0x9000, "loop")]);
        assert_eq!(symbols.name(0x8000).as_deref(), Some("start"));
        assert_eq!(symbols.name(0x8ffc).as_deref(), Some("start+0xffc"));
        assert_eq!(symbols.name(0x9010).as_deref(), Some("loop+0x10"));
        assert_eq!(symbols.name(0x7fff), None);
        assert_eq!(symbols.name(0x4000_0000), None);
        assert_eq!(Symbols::of(None).name(0x8000), None);
    }

    /// An ELF file with `.text` from 0x8000 on, `.data` from 0x9000 on, and symbols. A symbol has a name, address,
    /// bytes, type and section.
    fn elf(symbols: &[(&str, u32, u32, u8, u16)]) -> Vec<u8> {
        let (mut names, mut table) = (vec![0], vec![0; 16]);
        for (name, at, bytes, kind, section) in symbols {
            for word in [names.len() as u32, *at, *bytes] {
                table.extend(word.to_le_bytes());
            }
            table.extend([*kind, 0]);
            table.extend(section.to_le_bytes());
            names.extend(name.bytes().chain([0]));
        }
        let (of_symbols, of_names) = (table.len() as u32, names.len() as u32);
        let mut file = b"\x7fELF\x01\x01\x01".to_vec();
        file.resize(16, 0);
        // An executable for ARM, version 1. It has a header of 52 bytes, followed by 5 sections. The last section has
        // the sections' names.
        for word in [0x28_0002, 1, 0, 0, 52, 0, 52, 40 << 16, 4 << 16 | 5] {
            file.extend(u32::to_le_bytes(word));
        }
        // Name, type, flags, address, offset, bytes, link, first global, alignment, bytes of an entry.
        let behind = 52 + 5 * 40;
        for section in [
            [0; 10],
            [0, 1, 6, 0x8000, 0, 0x1000, 0, 0, 4, 0],
            [0, 1, 3, 0x9000, 0, 0x1000, 0, 0, 4, 0],
            [0, 2, 0, 0, behind, of_symbols, 4, 1, 4, 16],
            [0, 3, 0, 0, behind + of_symbols, of_names, 0, 0, 1, 0],
        ] {
            file.extend(section.into_iter().flat_map(u32::to_le_bytes));
        }
        [file, table, names].concat()
    }

    #[test]
    fn a_label_without_a_type_names_code_that_is_in_no_function() {
        const FUNCTION: u8 = 2;
        let bytes = elf(&[
            ("alignment_proc_write", 0x8000, 0x20, FUNCTION, 1),
            ("a_label_within", 0x8010, 0, 0, 1),
            ("the_start", 0x8000, 0, 0, 1),
            ("$a", 0x8020, 0, 0, 1),
            ("v5tj_early_abort", 0x8020, 0, 0, 1),
            ("$d", 0x8028, 0, 0, 1),
            ("cpu_arm926_reset", 0x8040, 0x10, FUNCTION, 1),
            ("a_variable", 0x9000, 0, 0, 2),
            ("elsewhere", 0x8060, 0, 0, 0),
        ]);
        let file = object::File::parse(&*bytes).unwrap();
        let mut code = code(&file);
        code.sort();
        let code: Vec<_> = code.iter().map(|(at, name)| (*at, name.as_str())).collect();
        assert_eq!(
            code,
            [
                (0x8000, "alignment_proc_write"),
                (0x8020, "v5tj_early_abort"),
                (0x8040, "cpu_arm926_reset")
            ]
        );
    }

    #[test]
    fn an_elf_kernel_names_its_own_functions_and_another_has_a_vmlinux_beside_it() {
        let dir = std::env::temp_dir().join(format!("warmswitch-beside-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (elf, image) = (dir.join("kernel.elf"), dir.join("Image"));
        std::fs::write(&elf, b"\x7fELF...").unwrap();
        std::fs::write(&image, b"not an ELF file").unwrap();
        assert_eq!(vmlinux_of(&elf), Some(elf));
        assert_eq!(vmlinux_of(&image), None);
        std::fs::write(dir.join("vmlinux"), b"\x7fELF...").unwrap();
        assert_eq!(vmlinux_of(&image), Some(dir.join("vmlinux")));
        assert!(Symbols::of(Some(&image)).is_empty());
        let boot = dir.join("arch/arm/boot");
        std::fs::create_dir_all(&boot).unwrap();
        std::fs::write(boot.join("zImage"), b"not an ELF file").unwrap();
        let found = vmlinux_of(&boot.join("zImage")).unwrap();
        assert_eq!(
            found.canonicalize().unwrap(),
            dir.join("vmlinux").canonicalize().unwrap()
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
