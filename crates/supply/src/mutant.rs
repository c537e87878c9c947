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

mod cp15;
mod expected;

pub use cp15::Cp15;
pub use expected::{Expected, Late};

/// One mutant of `linux/<version>/mutants.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mutant {
    /// Name, unique in its file.
    pub name: String,
    /// The function to patch. A suffix that the compiler added (`.constprop.0`) may be left out if only one symbol
    /// fits.
    pub function: String,
    /// The change to the function.
    pub change: Change,
    /// The work that the mutated kernel omits, and the situation in which this matters.
    pub why: String,
    /// Kind of the checker's first report.
    pub expect: Kind,
    /// A test of `mm_suite` that makes the checker report the mutant.
    pub test: Option<String>,
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

/// The change that a mutant makes to its function.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Change {
    /// Skips a call: a BL gives the result 0, and a B in tail position returns to the caller.
    SkipCall {
        /// Name of the called function.
        callee: String,
        /// Which calls of `callee` are skipped.
        which: Which,
    },
    /// Skips a CP15 operation. A test-and-clean loop then finds nothing to clean.
    SkipCp15 {
        /// The operation.
        op: Cp15,
        /// Which instructions with this operation are skipped.
        which: Which,
    },
    /// Makes a CP15 operation take its address from another register.
    WrongRegister {
        /// The operation.
        op: Cp15,
        /// Number of the other register, 0 to 14.
        register: u32,
        /// Which instructions with this operation are changed.
        which: Which,
    },
    /// Changes the step of a loop's `add rX, rX, #step`.
    WrongStep {
        /// Immediate value of the `add` in the kernel.
        step: u32,
        /// Immediate value of the `add` in the mutated kernel: 8 bits, rotated by an even number.
        instead: u32,
        /// Which instructions with this step are changed.
        which: Which,
    },
    /// Skips an MSR that writes the CPSR's control bits. Interrupts then stay masked or unmasked.
    SkipMask {
        /// Which instructions are skipped.
        which: Which,
    },
}

/// The places to change, among the places that fit. At least one place has to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Which {
    /// The nth in the order of addresses, from 1.
    Nth(usize),
    /// `"all"` places.
    All(All),
}

/// The word `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum All {
    /// Every place that fits.
    All,
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
    /// A line or TLB entry of a page that remains when the page gets another owner.
    OutlivesPage,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
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

/// Reads all mutants of a file, in its order.
pub fn load(path: &Path) -> Result<Vec<Mutant>> {
    let list: List = toml_file::read(path)?;
    for (i, mutant) in list.mutant.iter().enumerate() {
        let place = format!("{}: mutant \"{}\"", shown(path), mutant.name);
        match mutant.change {
            Change::WrongRegister { register, .. } if register > 14 => {
                bail!("{place}: change.register: {register} is not 0 to 14");
            }
            Change::WrongStep { instead, .. } if encode_immediate(instead).is_none() => {
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
        let mut functions: Vec<(u32, u32, &str)> = file
            .symbols()
            .filter(|s| s.kind() == object::SymbolKind::Text)
            .filter_map(|s| Some((s.address() as u32, s.size() as u32, s.name().ok()?)))
            .collect();
        functions.sort_unstable();
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
            segments,
            base: base.context("not a kernel: no section to load")?,
        })
    }

    /// Returns the start and end of the function `name`. `key` is the key in the list of mutants that names the
    /// function. Error messages show the key.
    fn function(&self, key: &str, name: &str) -> Result<(u32, u32)> {
        let exact = self.functions.iter().find(|f| f.2 == name);
        let mut suffixed = self.functions.iter().filter(|f| {
            f.2.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.') && !rest.starts_with(".cold"))
        });
        let (address, size, _) = match (exact, suffixed.next(), suffixed.next()) {
            (Some(function), _, _) | (None, Some(function), None) => *function,
            _ => bail!("{key}: no function \"{name}\"{}", self.near(name)),
        };
        let next = self.functions.iter().map(|f| f.0).find(|a| *a > address);
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

/// `mov r0, r0`, which does nothing.
const NOTHING: u32 = 0x01a0_0000;
/// `mov r0, #0`, the result of a skipped call.
const RESULT_0: u32 = 0x03a0_0000;
/// `mov pc, lr`, which returns from the function.
const RETURN: u32 = 0x01a0_f00e;
/// `cmp r0, r0`: sets the flags of a clean cache.
const ALL_CLEAN: u32 = 0x0150_0000;
/// Bits of the condition.
const CONDITION: u32 = 0xf000_0000;

impl Change {
    fn which(&self) -> Which {
        match self {
            Change::SkipCall { which, .. }
            | Change::SkipCp15 { which, .. }
            | Change::WrongRegister { which, .. }
            | Change::WrongStep { which, .. }
            | Change::SkipMask { which } => *which,
        }
    }

    /// Returns the replacement for `word` at `address`. Returns `None` if the mutant does not change this instruction.
    fn replaced(&self, address: u32, word: u32, callee: Option<u32>) -> Option<u32> {
        let condition = word & CONDITION;
        if condition == CONDITION {
            return None;
        }
        match self {
            Change::SkipCall { .. } => {
                let link = word & 0x0f00_0000 == 0x0b00_0000;
                let branch = word & 0x0f00_0000 == 0x0a00_0000;
                let to = (link || branch).then(|| branch_target(address, word));
                if to.is_none() || to != callee {
                    return None;
                }
                Some(condition | if link { RESULT_0 } else { RETURN })
            }
            Change::SkipCp15 { op, .. } => {
                let tests = (word >> 20 & 1, word >> 12 & 15) == (1, 15);
                let nothing = if tests { ALL_CLEAN } else { NOTHING };
                op.matches(word).then_some(condition | nothing)
            }
            Change::WrongRegister { op, register, .. } => op
                .matches(word)
                .then(|| word & !0xf000 | (register & 15) << 12),
            Change::WrongStep { step, instead, .. } => {
                // ADD (immediate), rd equal to rn.
                let add = word & 0x0fe0_0000 == 0x0280_0000;
                let same = word >> 16 & 15 == word >> 12 & 15;
                (add && same && immediate(word) == *step)
                    .then(|| encode_immediate(*instead))
                    .flatten()
                    .map(|bits| word & !0xfff | bits)
            }
            Change::SkipMask { .. } => {
                let register = word & 0x0fff_fff0 == 0x0121_f000;
                let immediate = word & 0x0fff_f000 == 0x0321_f000;
                (register || immediate).then_some(condition | NOTHING)
            }
        }
    }

    /// Selects the places that `which` describes.
    fn choose(&self, mut places: Vec<Patch>, function: &str) -> Result<Vec<Patch>> {
        let what = match self {
            Change::SkipCall { callee, .. } => format!("change.callee: calls of {callee}"),
            Change::SkipCp15 { op, .. } | Change::WrongRegister { op, .. } => {
                format!("change.op: CP15 operations {op}")
            }
            Change::WrongStep { step, .. } => format!("change.step: steps of {step}"),
            Change::SkipMask { .. } => "change: MSR cpsr_c".to_string(),
        };
        let count = places.len();
        match self.which() {
            Which::All(All::All) if count > 0 => Ok(places),
            Which::Nth(n) if (1..=count).contains(&n) => Ok(vec![places.remove(n - 1)]),
            _ => bail!("{what} in {function}: found {count}"),
        }
    }
}

/// Returns the target of a B or BL at `address`.
pub fn branch_target(address: u32, word: u32) -> u32 {
    // Sign-extends the 24 bits.
    let words = (word & 0x00ff_ffff ^ 0x0080_0000).wrapping_sub(0x0080_0000);
    address.wrapping_add(8).wrapping_add(words << 2)
}

/// Returns the value of the immediate of a data-processing instruction.
fn immediate(word: u32) -> u32 {
    (word & 0xff).rotate_right((word >> 8 & 15) * 2)
}

/// Encodes a value as eight bits rotated right by an even number. Returns `None` if that is not possible.
fn encode_immediate(value: u32) -> Option<u32> {
    (0..16)
        .map(|turn| (turn, value.rotate_left(turn * 2)))
        .find(|(_, bits)| *bits < 256)
        .map(|(turn, bits)| turn << 8 | bits)
}

#[cfg(test)]
#[path = "mutant_tests.rs"]
mod tests;
