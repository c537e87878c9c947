// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the functions of a kernel with their source files, and all sites that maintain caches, write buffer or TLB.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use object::{Object as _, ObjectSection as _, SectionKind};

use super::indirect;
use super::rules::{Rules, Table};
use super::text::{Does, Function, Site, Text};
use crate::coherence::names::units;
use base::paths::shown;
use supply::mutant::{Cp15, Kernel, branch_target};
use supply::variables;

/// Sections of a vmlinux below this address are copied elsewhere before they are executed.
const LOWEST: u64 = 0x4000_0000;
/// Address of the exception vectors. Sections at or above this address are copied to the vectors before they are
/// executed.
const VECTORS: u64 = 0xffff_0000;

/// Address range and name of a section.
type Section = (std::ops::Range<u32>, String);

impl Text {
    /// Reads a vmlinux with symbols and debug information.
    pub fn of(vmlinux: &Path, rules: &Rules) -> Result<Text> {
        let bytes =
            std::fs::read(vmlinux).with_context(|| format!("cannot read {}", shown(vmlinux)))?;
        let kernel = Kernel::parse(&bytes).with_context(|| shown(vmlinux))?;
        let sections = sections(&bytes).with_context(|| shown(vmlinux))?;
        let mut functions = functions(&kernel, &sections);
        if functions.is_empty() {
            bail!(
                "{} has no symbols, so functions have no names; use an unstripped vmlinux",
                shown(vmlinux)
            );
        }
        let units = units(vmlinux);
        if units.is_empty() {
            bail!(
                "{} has no debug information, so functions have no source files; \
                 build the kernel with CONFIG_DEBUG_INFO",
                shown(vmlinux)
            );
        }
        for function in &mut functions {
            let next = units.partition_point(|(range, _)| range.start <= function.start.into());
            let unit = next.checked_sub(1).map(|n| &units[n]);
            let inside = unit.filter(|(range, _)| range.contains(&function.start.into()));
            function.file = inside.map(|(_, file)| file.clone()).unwrap_or_default();
        }
        let tables = rules.table.iter().filter_map(|table| {
            let address = variables::of(vmlinux, &table.symbol)?.address;
            Some((address, table))
        });
        let tables: Vec<_> = tables.collect();
        let sites = sites(&functions, |at| Some(kernel.word(at)?.0), rules, &tables);
        let base = sections.first().map_or(0, |(range, _)| range.start);
        let end = sections.last().map_or(0, |(range, _)| range.end);
        Ok(Text {
            functions,
            sites,
            base,
            bytes: end - base,
            hash: blake3::hash(&bytes).to_hex().to_string(),
        })
    }
}

/// Returns the sections with code, sorted by address.
fn sections(bytes: &[u8]) -> Result<Vec<Section>> {
    let elf = object::File::parse(bytes)?;
    let mut all: Vec<Section> = elf
        .sections()
        .filter(|s| s.kind() == SectionKind::Text)
        .filter(|s| (LOWEST..VECTORS).contains(&s.address()))
        .filter_map(|s| {
            let start = u32::try_from(s.address()).ok()?;
            let end = u32::try_from(s.address() + s.size()).ok()?;
            Some((start..end, s.name().ok()?.to_string()))
        })
        .collect();
    all.sort_by_key(|(range, _)| range.start);
    Ok(all)
}

/// Returns the functions in the sections, sorted by address. If a function has several names, a name without a leading
/// `_` is preferred.
fn functions(kernel: &Kernel<'_>, sections: &[Section]) -> Vec<Function> {
    let mut named: Vec<&(u32, u32, &str)> = kernel.functions.iter().collect();
    named.sort_by_key(|(at, _, name)| (*at, name.starts_with('_'), *name));
    named.dedup_by_key(|(at, ..)| *at);
    let ends = named.iter().skip(1).map(|(at, ..)| *at).chain([u32::MAX]);
    let place = |at: u32| sections.iter().find(|(range, _)| range.contains(&at));
    let function = |((at, size, name), next): (&&(u32, u32, &str), u32)| {
        let (range, section) = place(*at)?;
        let end = match size {
            0 => next,
            size => at.saturating_add(*size),
        };
        Some(Function {
            name: name.to_string(),
            start: *at,
            // A function in assembler can contain further entry points.
            end: end.min(next).min(range.end),
            file: String::new(),
            section: section.clone(),
        })
    };
    named.iter().zip(ends).filter_map(function).collect()
}

/// Returns the sites in these functions. `word` returns the instruction at an address.
fn sites(
    functions: &[Function],
    word: impl Fn(u32) -> Option<u32>,
    rules: &Rules,
    tables: &[(u32, &Table)],
) -> Vec<Site> {
    let mut all = Vec::new();
    for (n, function) in functions.iter().enumerate() {
        for at in (function.start..function.end).step_by(4) {
            let does = word(at).and_then(|instruction| {
                let called = || {
                    let direct = callee(functions, n, (at, instruction), rules);
                    direct.or_else(|| through(tables, &word, (function.start, at), rules))
                };
                let operation = operation(instruction).map(Does::Operation);
                operation.or_else(|| Some(Does::Calls(called()?)))
            });
            all.extend(does.map(|does| Site {
                at,
                function: n,
                does,
            }));
        }
    }
    all
}

/// Returns `table->slot` for a call through a table, if calls of that slot are sites.
fn through(
    tables: &[(u32, &Table)],
    word: &impl Fn(u32) -> Option<u32>,
    (start, at): (u32, u32),
    rules: &Rules,
) -> Option<String> {
    if tables.is_empty() {
        return None;
    }
    let (address, offset) = indirect::slot(word, start, at)?;
    let (_, table) = tables.iter().find(|(table, _)| *table == address)?;
    let slot = table.slots.get(offset as usize / 4)?;
    let name = format!("{}->{slot}", table.symbol);
    rules.maintains(&name).then_some(name)
}

/// Returns the operation of an instruction on caches, write buffer or TLB. Reads of CP15 do not count, except a read
/// that tests and cleans lines.
fn operation(word: u32) -> Option<Cp15> {
    let reads = word >> 20 & 1 == 1;
    let into_flags = word >> 12 & 15 == 15;
    let op = Cp15::of(word).filter(|_| word >> 28 != 15)?;
    (op.is_maintenance() && (!reads || into_flags)).then_some(op)
}

/// Returns the maintaining function that an instruction of function `n` calls or jumps to.
fn callee(
    functions: &[Function],
    n: usize,
    (at, word): (u32, u32),
    rules: &Rules,
) -> Option<String> {
    let branches = word >> 28 != 15 && word & 0x0e00_0000 == 0x0a00_0000;
    let to = branches.then(|| branch_target(at, word))?;
    let next = functions.partition_point(|f| f.start <= to);
    let index = next.checked_sub(1)?;
    let called = functions.get(index).filter(|f| to < f.end)?;
    // A branch within the function is a loop. Exception: a branch with link to the start of the function is a call of
    // the function itself.
    let inside = index == n && (word >> 24 & 1 == 0 || to != called.start);
    (!inside && rules.maintains(&called.name)).then(|| called.name.clone())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Three functions with sites of each kind. `user` of `mm/a.c` is at 0x1000, `flush_all` of `arch/arm/mm/b.S` at
    /// 0x1020, and `other` of `fs/c.c` at 0x1040.
    pub fn text(rules: &Rules) -> Text {
        let function = |(name, start, file): (&str, u32, &str)| Function {
            name: name.into(),
            start,
            end: start + 0x20,
            file: file.into(),
            section: ".text".into(),
        };
        let functions = [
            ("user", 0x1000, "mm/a.c"),
            ("flush_all", 0x1020, "arch/arm/mm/b.S"),
            ("other", 0x1040, "fs/c.c"),
        ];
        let functions: Vec<Function> = functions.into_iter().map(function).collect();
        let words = [
            (0x1000, 0xeb00_0006), // bl flush_all
            (0x1004, 0x0a00_0006), // beq flush_all+4
            (0x1008, 0xeb00_000c), // bl other
            (0x100c, 0xee07_0f9a), // mcr 15, 0, r0, c7, c10, 4
            (0x1010, 0xee17_0f9a), // mrc 15, 0, r0, c7, c10, 4
            (0x1020, 0xee17_ff7e), // mrc 15, 0, pc, c7, c14, 3
            (0x1024, 0x1aff_fffd), // bne flush_all
            (0x1028, 0xee07_0f90), // mcr 15, 0, r0, c7, c0, 4
            (0x102c, 0xee01_0f10), // mcr 15, 0, r0, c1, c0, 0
            (0x1040, 0xeaff_fff6), // b flush_all
        ];
        let word = |at| words.iter().find(|w| w.0 == at).map(|w| w.1);
        Text {
            sites: sites(&functions, word, rules, &[]),
            functions,
            base: 0x1000,
            bytes: 0x100,
            hash: "h".into(),
        }
    }

    /// Rules for [`text`].
    pub fn rules(more: &str) -> Rules {
        let rules = "folders=['mm/', 'arch/arm/mm/']\nmaintains=['flush_*']\nmaintains-not=[]\n";
        toml::from_str(&format!("{rules}{more}")).unwrap()
    }

    #[test]
    fn calls_jumps_and_operations_are_sites_and_reads_loops_and_other_registers_are_none() {
        let text = text(&rules(""));
        let does = |site: &Site| match &site.does {
            Does::Operation(op) => (site.at, site.function, op.to_string()),
            Does::Calls(name) => (site.at, site.function, name.clone()),
        };
        let found: Vec<_> = text.sites.iter().map(does).collect();
        let expected = [
            (0x1000, 0, "flush_all"),
            (0x1004, 0, "flush_all"),
            (0x100c, 0, "0,c7,c10,4"),
            (0x1020, 1, "0,c7,c14,3"),
            (0x1028, 1, "0,c7,c0,4"),
            (0x1040, 2, "flush_all"),
        ];
        assert_eq!(
            found,
            expected.map(|(at, n, does)| (at, n, does.to_string()))
        );
    }
}
