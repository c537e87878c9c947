// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the function and source line of a kernel address in the vmlinux.
//!
//! Line numbers come from the line programs in `.debug_line` (DWARF 4). Addresses in user land have no names.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use gimli::{EndianArcSlice, LittleEndian, Reader as _};
use object::{Object as _, ObjectSection as _};

use supply::symbols::Symbols;
use watch::checker::{Access, Path as Written, Report};

/// Name of all addresses outside the kernel. Suppressions use the same name.
pub const USER: &str = "user";

type Slice = EndianArcSlice<LittleEndian>;
type Lines = addr2line::Context<Slice>;
type Dwarf = gimli::Dwarf<Slice>;

/// Names of kernel addresses.
#[derive(Default)]
pub struct Names {
    symbols: Symbols,
    lines: Option<Lines>,
}

impl Names {
    /// Loads the names from a vmlinux. Without a readable vmlinux, addresses stay unnamed.
    pub fn of(vmlinux: Option<&Path>) -> Names {
        Names {
            symbols: Symbols::of(vmlinux),
            lines: vmlinux.and_then(lines),
        }
    }

    /// Returns the symbols.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Returns whether the kernel's functions have no names.
    pub fn are_none(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Returns the name of the function at `pc`, without compiler suffixes. For an address in user land, returns
    /// `user`.
    pub fn function(&self, pc: u32) -> String {
        if pc < self.symbols.kernel() {
            return USER.to_string();
        }
        let Some(name) = self.symbols.name(pc) else {
            return format!("{pc:#010x}");
        };
        let end = name.find(['+', '.']).unwrap_or(name.len());
        name[..end].to_string()
    }

    /// Returns the name of the user of a report's data. The user is a function (see [`Names::function`]) or a bus
    /// master.
    pub fn user_of(&self, report: &Report) -> String {
        match report.access {
            Access::Dma { master, .. } => match &report.trace.device {
                Some(device) => device.name.clone(),
                None => format!("bus master {master}"),
            },
            _ => self.function(report.context.pc),
        }
    }

    /// Returns the name of the writer of a report's newest data, in the form of [`Names::user_of`].
    pub fn writer_of(&self, report: &Report) -> String {
        match report.writer.path {
            Written::Dma => match &report.trace.device {
                Some(device) => device.name.clone(),
                None => "a bus master".to_string(),
            },
            _ => self.function(report.writer.pc),
        }
    }

    /// Returns whether `pc` is in the function whose name or alias is `name`. `f < g` means `f`, or the function `g` in
    /// a kernel whose compiler inlined `f` into `g`.
    pub fn is_in(&self, pc: u32, name: &str) -> bool {
        self.function(pc) == self.symbols.plainest(self.first_present(name))
    }

    /// Returns the first name in a chain `f < g < h` for which the kernel has a function.
    fn first_present<'a>(&self, mut name: &'a str) -> &'a str {
        // The search through all symbols is slow, so a single name is not searched for.
        while let Some((inlined, caller)) = name.split_once('<') {
            name = match self.symbols.has(inlined.trim()) {
                true => inlined,
                false => caller,
            };
        }
        name.trim()
    }

    /// Returns the address ranges for which [`Names::is_in`] is true. They include parts that the compiler split off
    /// the function.
    pub fn ranges(&self, name: &str) -> Vec<Range<u32>> {
        let (plainest, all) = (
            self.symbols.plainest(self.first_present(name)),
            self.symbols.functions(),
        );
        let ends = all.iter().skip(1).map(|(at, _)| *at).chain([u32::MAX]);
        let ranges = all
            .iter()
            .zip(ends)
            .filter(|((at, _), _)| self.function(*at) == plainest);
        ranges.map(|((at, _), end)| *at..end).collect()
    }

    /// Returns `function+0x10` and `file:line`. Each part is `None` if it is unknown.
    pub fn symbol_and_line(&self, pc: u32) -> (Option<String>, Option<String>) {
        if pc < self.symbols.kernel() {
            return (None, None);
        }
        (self.symbols.name(pc), self.line(pc))
    }

    /// Returns `0xc0010768 function+0x10 (file:line)`, without the parts that are unknown.
    pub fn place(&self, pc: u32) -> String {
        if pc < self.symbols.kernel() {
            return format!("{pc:#010x} in user land");
        }
        match self.symbol_and_line(pc) {
            (Some(symbol), Some(line)) => format!("{pc:#010x} {symbol} ({line})"),
            (Some(symbol), None) => format!("{pc:#010x} {symbol}"),
            (None, _) => format!("{pc:#010x}"),
        }
    }

    fn line(&self, pc: u32) -> Option<String> {
        let location = self.lines.as_ref()?.find_location(pc.into()).ok()??;
        let file = in_tree(location.file?);
        Some(match location.line {
            Some(line) => format!("{file}:{line}"),
            None => file.to_string(),
        })
    }
}

/// Returns a source file's path relative to the top of the kernel tree.
fn in_tree(file: &str) -> &str {
    let mut rest = file;
    let mut before = "";
    while let Some((first, behind)) = rest.split_once('/') {
        let is_tree = first == "linux" || first.starts_with("linux-");
        if is_tree && before != "include" && before != "uapi" {
            return behind;
        }
        (before, rest) = (first, behind);
    }
    file.trim_start_matches("./")
}

/// Returns the address ranges of the compiled files, in order. Each range comes with the file's path in the kernel
/// tree.
pub fn units(vmlinux: &Path) -> Vec<(Range<u64>, String)> {
    let mut all = Vec::new();
    if let Some(dwarf) = dwarf(vmlinux) {
        // After an error, keep the units that were read before the error.
        let _: Result<(), gimli::Error> = read_units(&dwarf, &mut all);
    }
    all.sort_by_key(|(range, _)| range.start);
    all
}

fn read_units(dwarf: &Dwarf, all: &mut Vec<(Range<u64>, String)>) -> Result<(), gimli::Error> {
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let unit = dwarf.unit(header)?;
        let Some(name) = &unit.name else {
            continue;
        };
        let mut ranges = dwarf.unit_ranges(&unit)?;
        while let Some(range) = ranges.next()? {
            let file = in_tree(&name.to_string_lossy()?).to_string();
            all.push((range.begin..range.end, file));
        }
    }
    Ok(())
}

fn lines(vmlinux: &Path) -> Option<Lines> {
    Lines::from_dwarf(dwarf(vmlinux)?).ok()
}

fn dwarf(vmlinux: &Path) -> Option<Dwarf> {
    let bytes = std::fs::read(vmlinux).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let section = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let data = file
            .section_by_name(id.name())
            .and_then(|s| s.data().ok())
            .unwrap_or_default();
        Ok(EndianArcSlice::new(Arc::from(data), LittleEndian))
    };
    gimli::Dwarf::load(section).ok()
}

#[cfg(test)]
impl Names {
    /// Makes names from a list of functions by address.
    pub fn by_hand(functions: &[(u32, &str)]) -> Names {
        Names {
            symbols: Symbols::by_hand(functions),
            lines: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_without_offset_and_suffix_and_user_land_as_such() {
        let names = Names::by_hand(&[(0xc000_1000, "copy.constprop.0"), (0xc000_2000, "zero")]);
        assert_eq!(names.function(0xc000_1008), "copy");
        assert_eq!(names.function(0xc000_2000), "zero");
        assert_eq!(names.function(0x0001_0400), USER);
        assert_eq!(names.place(0xc000_2004), "0xc0002004 zero+0x4");
        assert_eq!(names.place(0x0001_0400), "0x00010400 in user land");
    }

    #[test]
    fn a_function_that_was_put_into_its_caller_is_there_by_the_callers_name() {
        let both = Names::by_hand(&[(0xc000_1000, "copy_mm.isra.0"), (0xc000_2000, "fork")]);
        assert!(both.is_in(0xc000_1004, "copy_mm < fork"));
        assert!(!both.is_in(0xc000_2004, "copy_mm < fork"));
        let one = Names::by_hand(&[(0xc000_2000, "fork"), (0xc000_3000, "other")]);
        assert!(one.is_in(0xc000_2004, "copy_mm < fork"));
        assert!(!one.is_in(0xc000_3004, "copy_mm < fork"));
        assert!(both.is_in(0x0001_0000, USER));
        let only = |start, end| Vec::from_iter([start].map(|start: u32| start..end));
        assert_eq!(
            both.ranges("copy_mm < fork"),
            only(0xc000_1000, 0xc000_2000)
        );
        assert_eq!(one.ranges("copy_mm < fork"), only(0xc000_2000, 0xc000_3000));
        assert_eq!(one.ranges("copy_mm"), []);
    }

    #[test]
    fn a_kernel_with_two_gigabytes_of_its_own_begins_lower() {
        let names = Names::by_hand(&[(0x8000_8000, "stext"), (0x8031_9880, "copy")]);
        assert_eq!(names.function(0x8031_9884), "copy");
        assert_eq!(names.function(0x7f00_0000), "0x7f000000");
        assert_eq!(names.function(0x7eff_fffc), USER);
    }

    #[test]
    fn a_source_file_is_named_from_the_top_of_its_tree() {
        assert_eq!(in_tree("/x/linux-source-6.12/mm/gup.c"), "mm/gup.c");
        assert_eq!(in_tree("linux/include/linux/mm.h"), "include/linux/mm.h");
        assert_eq!(in_tree("./mm/gup.c"), "mm/gup.c");
        assert_eq!(in_tree("include/linux/mm.h"), "include/linux/mm.h");
    }

    #[test]
    fn a_file_without_line_numbers_gives_none() {
        let names = Names::of(Some(&std::env::current_exe().unwrap()));
        assert_eq!(names.line(0xffff_fff0), None);
    }
}
