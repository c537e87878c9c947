// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel mutants: built kernels in which one operation of cache, TLB or write-buffer maintenance is removed or
//! changed. Patches of single instructions in the plain `Image` make these changes.
//!
//! A mutant identifies a function by name, and a place in the function by its instruction: the nth call of a callee, or
//! the nth CP15 instruction of a kind. A mutant contains no address. Therefore, one list serves every build of a
//! series. Only A32 instructions are patched, one word at a time, and only if the image and `vmlinux` have the same
//! word there.
//!
//! Encodings: DDI0100I A3 (B/BL, data processing, MCR/MRC); CP15 operations: DDI0198D 2.3.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use object::read::elf::{ProgramHeader as _, SectionHeader as _};
use object::{Endianness, Object as _, ObjectSymbol as _, elf};
use serde::Deserialize;

use base::paths::shown;
use base::suggest::did_you_mean;
use base::toml_file;

mod change;
mod cp15;
mod expected;

use change::encode_immediate;
pub use change::{All, Change, Which, branch_target};
pub use cp15::Cp15;
pub use expected::{Expected, Late};

/// One mutant of `linux/<version>/mutants.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mutant {
    /// Name, unique in its file.
    pub name: String,
    /// The function to patch. A suffix that the compiler added (`.constprop.0`) may be left out if only one symbol
    /// fits. `NAME@OTHER` is the function NAME of the source file that has the function OTHER: the nearest function of
    /// this name. The compiler makes such a function for each file that uses an inline function of a header.
    pub function: String,
    /// The change to the function.
    pub change: Change,
    /// The work that the mutated kernel omits, and the situation in which this matters.
    pub why: String,
    /// Kind of the checker's first report.
    pub expect: Kind,
    /// A test of the list's program that makes the checker report the mutant.
    pub test: Option<String>,
    /// The only board on which the list runs the mutant. Without this key, the board of the list counts.
    pub board: Option<String>,
    /// Words that the kernel's command line gets for this mutant.
    #[serde(default)]
    pub append: String,
    /// Reason why only the complete quick suite causes a report. This key replaces `test`.
    pub suite: Option<String>,
    /// Reason why no report is expected. This key replaces `test`.
    pub survives: Option<String>,
    /// Reason why chance decides whether the quick suite causes a report. This key replaces `test`.
    pub chance: Option<String>,
    /// Name of the suppression for a known report that the test causes, too. The test then runs with the suppression
    /// list.
    pub beside: Option<String>,
    /// Different expectation with `--victims late`.
    pub late: Option<Late>,
    /// Reason why no report names the function. Absent if a report does.
    pub unnamed: Option<String>,
}

/// Kinds of incoherence that the checker reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A read of a line that is older than a write through another address.
    StaleRead,
    /// A fetched instruction that is older than a write.
    StaleInstruction,
    /// Use of a TLB entry after its page-table entry changed.
    StaleTranslation,
    /// A walk that read memory while the cache or the write buffer had a newer entry.
    UnseenDescriptor,
    /// A dirty line that an invalidate threw away.
    LostByInvalidate,
    /// A dirty line written back over newer data.
    OldOverNewer,
    /// One physical line dirty at two addresses.
    TwoDirtyAliases,
    /// A load that got data older than what a bus master wrote.
    StaleAfterDma,
    /// A bus master that read data older than what the core wrote.
    StaleDmaRead,
    /// A line or TLB entry of a page that remains when the page gets another owner.
    OutlivesPage,
    /// `touched-while-mapped`.
    TouchedWhileMapped,
    /// `mapped-twice`.
    MappedTwice,
    /// `wrong-direction`.
    WrongDirection,
    /// `dma-after-unmap`.
    DmaAfterUnmap,
}

/// One changed word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Virtual address.
    pub address: u32,
    /// Offset in the image, in bytes.
    pub offset: usize,
    /// Original instruction.
    pub old: u32,
    /// Instruction in its place.
    pub new: u32,
}

impl Mutant {
    /// Returns the names of the broken functions. For `NAME@OTHER`, both functions count, because they are in one source
    /// file.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.function.split('@')
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// Program of the guest whose tests the mutants name.
    #[serde(default = "mm_suite")]
    program: String,
    /// Board of the mutants that name none. Without this key, such a mutant is for all boards.
    board: Option<String>,
    mutant: Vec<Mutant>,
}

/// Returns the mutant that `--mutant` names. `NAME` is a mutant of the list `own`. `FILE:NAME` is a mutant of the list
/// FILE.
pub fn named(text: &str, own: impl FnOnce() -> Result<PathBuf>) -> Result<Mutant> {
    let (path, name) = match text.rsplit_once(':') {
        Some((file, name)) => (PathBuf::from(file), name),
        None => (own()?, text),
    };
    let all = load(&path)?;
    let names: Vec<&str> = all.iter().map(|m| m.name.as_str()).collect();
    let (hint, file) = (did_you_mean(name, &names), shown(&path));
    let found = all.iter().find(|m| m.name == name).cloned();
    found.with_context(|| format!("--mutant {text}: no mutant \"{name}\" in {file}{hint}"))
}

/// Reads the mutants of a file that are for a board, in the order of the file.
pub fn load_for(path: &Path, board: &str) -> Result<Vec<Mutant>> {
    let mut list = load(path)?;
    list.retain(|mutant| mutant.board.as_deref().is_none_or(|only| only == board));
    if list.is_empty() {
        bail!("{}: no mutant is for the board {board}", shown(path));
    }
    Ok(list)
}

/// Reads all mutants of a file, in its order.
pub fn load(path: &Path) -> Result<Vec<Mutant>> {
    let mut list: List = toml_file::read(path)?;
    for mutant in &mut list.mutant {
        mutant.board = mutant.board.take().or_else(|| list.board.clone());
    }
    for (i, mutant) in list.mutant.iter().enumerate() {
        let place = format!("{}: mutant \"{}\"", shown(path), mutant.name);
        match mutant.change {
            Change::WrongRegister { register, .. }
            | Change::ShortLength { register, .. }
            | Change::WrongArgument { register, .. }
                if register > 14 =>
            {
                bail!("{place}: change.register: {register} is not 0 to 14");
            }
            Change::WrongStep { instead, .. }
            | Change::WrongConstant { instead, .. }
            | Change::WrongArgument { instead, .. }
                if encode_immediate(instead).is_none() =>
            {
                bail!("{place}: change.instead: {instead} does not fit an instruction");
            }
            _ => {}
        }
        if list.mutant[..i].iter().any(|m| m.name == mutant.name) {
            bail!("{place}: two mutants have this name");
        }
        let Mutant {
            test,
            suite,
            survives,
            chance,
            ..
        } = mutant;
        let expected = [test, suite, survives, chance];
        if expected.iter().filter(|e| e.is_some()).count() != 1 {
            bail!("{place}: give exactly one of test, suite, survives and chance");
        }
    }
    Ok(list.mutant)
}

/// Returns the program whose tests the mutants of a file name.
pub fn program(path: &Path) -> Result<String> {
    let list: List = toml_file::read(path)?;
    Ok(list.program)
}

fn mm_suite() -> String {
    "mm_suite".to_string()
}

/// Patches `image`, a plain `Image` built together with `vmlinux`. Returns the changed words, in the order of
/// addresses. On an error, the image is unchanged.
pub fn apply(image: &mut [u8], vmlinux: &Path, mutant: &Mutant) -> Result<Vec<Patch>> {
    let bytes = fs::read(vmlinux).with_context(|| format!("cannot read {}", shown(vmlinux)))?;
    Kernel::parse(&bytes)
        .with_context(|| shown(vmlinux))
        .and_then(|kernel| kernel.apply(image, mutant))
        .with_context(|| format!("mutant \"{}\"", mutant.name))
}

/// The parts of a `vmlinux` that patching needs.
pub struct Kernel<'a> {
    bytes: &'a [u8],
    /// Functions by address: address, size in bytes (0 if the symbol has none), name.
    pub functions: Vec<(u32, u32, &'a str)>,
    /// Labels of assembly code that are no functions: address, size in bytes (0 if the symbol has none), name. Only
    /// places without a function of the name look here.
    labels: Vec<(u32, u32, &'a str)>,
    segments: Vec<Segment>,
    /// Load address of the image's first byte.
    base: u32,
}

/// A loaded segment: virtual address, load address, offset in the file, size in bytes.
struct Segment {
    virt: u32,
    load: u32,
    at: u32,
    size: u32,
}

impl Segment {
    fn has(&self, address: u32) -> bool {
        address >= self.virt && address - self.virt < self.size
    }
}

impl<'a> Kernel<'a> {
    /// Reads the bytes of a `vmlinux`.
    pub fn parse(bytes: &'a [u8]) -> Result<Kernel<'a>> {
        let file = object::read::elf::ElfFile32::<Endianness>::parse(bytes)
            .map_err(|error| anyhow!("not a valid ELF file: {error}"))?;
        let order = Endianness::Little;
        let named = |kind| {
            let symbols = file.symbols().filter(move |s| s.kind() == kind);
            let named =
                symbols.filter_map(|s| Some((s.address() as u32, s.size() as u32, s.name().ok()?)));
            let mut all: Vec<(u32, u32, &str)> = named.collect();
            all.sort_unstable();
            all
        };
        let functions = named(object::SymbolKind::Text);
        // The ARM ABI's mapping symbols ($a, $t, $d) name no code.
        let mut labels = named(object::SymbolKind::Unknown);
        labels.extend(named(object::SymbolKind::Label));
        labels.retain(|label| !label.2.starts_with('$'));
        labels.sort_unstable();
        let segments: Vec<Segment> = file
            .elf_program_headers()
            .iter()
            .filter(|h| h.p_type(order) == elf::PT_LOAD && h.p_filesz(order) > 0)
            .map(|h| Segment {
                virt: h.p_vaddr(order),
                load: h.p_paddr(order),
                at: h.p_offset(order),
                size: h.p_filesz(order),
            })
            .collect();
        // A segment may begin with headers, before its first section. The image does not contain them.
        let sections = file.elf_section_table().iter();
        let loaded = sections.filter(|s| {
            s.sh_type(order) != elf::SHT_NOBITS && s.sh_flags(order) & elf::SHF_ALLOC != 0
        });
        let base = loaded
            .filter_map(|section| {
                let address = section.sh_addr(order);
                let segment = segments.iter().find(|s| s.has(address))?;
                Some(segment.load + (address - segment.virt))
            })
            .min();
        Ok(Kernel {
            bytes,
            functions,
            labels,
            segments,
            base: base.context("not a kernel: no section to load")?,
        })
    }

    /// Returns the start and end of the function `name`. `key` is the key in the list of mutants that names the
    /// function. Error messages show the key.
    fn function(&self, key: &str, name: &str) -> Result<(u32, u32)> {
        if let Some((name, other)) = name.split_once('@') {
            let (near, _) = self.function(key, other)?;
            let all = self.functions.iter().filter(|f| bare(f.2) == name);
            let nearest = all.min_by_key(|f| f.0.abs_diff(near));
            let Some((address, size, _)) = nearest else {
                bail!("{key}: no function \"{name}\"{}", self.near(name));
            };
            return Ok((*address, address.saturating_add(*size)));
        }
        let exact = self.functions.iter().find(|f| f.2 == name);
        let label = self.labels.iter().find(|label| label.2 == name);
        let mut suffixed = self.functions.iter().filter(|f| {
            f.2.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.') && !rest.starts_with(".cold"))
        });
        let (address, size, _) = match (exact.or(label), suffixed.next(), suffixed.next()) {
            (Some(function), _, _) | (None, Some(function), None) => *function,
            _ => bail!("{key}: no function \"{name}\"{}", self.near(name)),
        };
        let both = self.functions.iter().chain(&self.labels);
        let next = both.map(|f| f.0).filter(|a| *a > address).min();
        let end = match size {
            0 => next.unwrap_or(address),
            size => address.saturating_add(size),
        };
        Ok((address, end))
    }

    /// Returns a hint with the nearest name. It is empty if no name is near, because a list of thousands of names would
    /// not help.
    fn near(&self, name: &str) -> String {
        let names: Vec<&str> = self.functions.iter().map(|f| f.2).collect();
        Some(did_you_mean(name, &names))
            .filter(|hint| !hint.starts_with("; there are"))
            .unwrap_or_default()
    }

    /// Returns the word of `vmlinux` at a virtual address, and its offset in the image.
    pub fn word(&self, address: u32) -> Option<(u32, usize)> {
        let segment = self.segments.iter().find(|s| s.has(address))?;
        let inside = address - segment.virt;
        let at = segment.at.checked_add(inside)? as usize;
        let bytes = self.bytes.get(at..at.checked_add(4)?)?;
        let word = u32::from_le_bytes(bytes.try_into().ok()?);
        Some((
            word,
            segment.load.checked_add(inside)?.checked_sub(self.base)? as usize,
        ))
    }

    /// Patches an image, see [`apply`].
    fn apply(&self, image: &mut [u8], mutant: &Mutant) -> Result<Vec<Patch>> {
        let patches = self.patches(image, mutant)?;
        for patch in &patches {
            image[patch.offset..patch.offset + 4].copy_from_slice(&patch.new.to_le_bytes());
        }
        Ok(patches)
    }

    fn patches(&self, image: &[u8], mutant: &Mutant) -> Result<Vec<Patch>> {
        let (start, end) = self.function("function", &mutant.function)?;
        let callee = match &mutant.change {
            Change::SkipCall { callee, .. } => Some(self.function("change.callee", callee)?.0),
            _ => None,
        };
        let mut patches = Vec::new();
        for address in (start..end).step_by(4) {
            let Some((old, offset)) = self.word(address) else {
                bail!("function: address {:#x} is not in the image", address);
            };
            let Some(new) = mutant.change.replaced(address, old, callee) else {
                continue;
            };
            let in_image = image.get(offset..offset + 4).unwrap_or_default();
            if in_image != old.to_le_bytes() {
                bail!("the image differs from its vmlinux at {address:#x}: use files of one build");
            }
            patches.push(Patch {
                address,
                offset,
                old,
                new,
            });
        }
        mutant.change.choose(patches, &mutant.function)
    }
}

/// Returns a symbol's name without the suffix that the compiler added.
fn bare(symbol: &str) -> &str {
    symbol.split_once('.').map_or(symbol, |(name, _)| name)
}

#[cfg(test)]
#[path = "mutant_tests.rs"]
mod tests;
