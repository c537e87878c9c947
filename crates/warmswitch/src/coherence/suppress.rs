// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suppressions (`linux/<series>/coherence-suppressions.toml`). A suppression describes known reports, and the reason
//! to leave them out.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use arm::Kind;
use serde::Deserialize;
use watch::checker::{
    Access, Bits, Distinctions, Given, Newest, Path as Written, Report, ReportKind,
};

use super::names::Names;
use base::paths::{root, shown};
use base::suggest::did_you_mean;
use base::toml_file;
use session::boot::is_path;
use supply::kernel;

/// One suppression. A suppression covers a report that matches all of its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suppression {
    /// Name, unique in its file. Baselines and mutants refer to it.
    pub name: String,
    /// Kinds of report, by [`ReportKind::name`].
    pub wrong: Vec<String>,
    /// Functions that used the data. Names omit compiler suffixes, and `user` means user land. An entry with this key
    /// covers no evicted line, because any access may evict a line. It also covers no read by a bus master. In this key
    /// and in other keys, `f < g` means `f`, or its caller `g` if the compiler inlined `f` into `g`. In this key and in
    /// `writer`, `arm_copy_to_user` also means the two functions that copy for it with `CONFIG_UACCESS_WITH_MEMCPY`:
    /// `__copy_to_user_std`, and a `memcpy` that `__copy_to_user_memcpy` called.
    #[serde(default)]
    pub access: Vec<String>,
    /// Whether the access must be an instruction fetch.
    #[serde(default)]
    pub fetched: bool,
    /// Direct or indirect callers of the function that used the data. One of them must match.
    #[serde(default)]
    pub used_in: Vec<String>,
    /// Functions that wrote the newest data.
    #[serde(default)]
    pub writer: Vec<String>,
    /// Direct or indirect callers of the writer. One of them must match.
    #[serde(default)]
    pub called_by: Vec<String>,
    /// Callers of the writer that had not returned when the data was used. One of them must match.
    #[serde(default)]
    pub running: Vec<String>,
    /// Whether the system call that used the data must have begun before the newest data was written. Such a system
    /// call may see the old or the new value.
    #[serde(default)]
    pub overlapping: bool,
    /// Whether the access must have used a cached, read-only page. This page must have been mapped before its memory
    /// was written through an uncached mapping.
    #[serde(default)]
    pub private_view: bool,
    /// Where the newest data must have been when the old data was used.
    #[serde(default)]
    pub newest: Option<Place>,
    /// Whether the used line or TLB entry must have been filled before or after the newest data was written.
    #[serde(default)]
    pub filled: Option<Filled>,
    /// Whether the used line must have been dirty already when the newest data was written.
    #[serde(default)]
    pub dirty_before: bool,
    /// Whether user land must have only read access to the used page.
    #[serde(default)]
    pub read_only: bool,
    /// With `true`, the writer's address must still translate to the data, and user land must be allowed to write
    /// there. With `false`, the writer's address must translate to another address or to none.
    #[serde(default)]
    pub writer_maps: Option<bool>,
    /// Whether the used line must come from the physical page to which its address was mapped before a remap.
    #[serde(default)]
    pub remapped: bool,
    /// Whether the newest and the used descriptor must differ only in their permissions.
    #[serde(default)]
    pub permissions_only: bool,
    /// Functions that the writer's callers called next, after the write. One of them must match.
    #[serde(default)]
    pub then_called: Vec<String>,
    /// Callers of the writer that were called before the line was filled. One of them must match. The line must have
    /// been filled before the write.
    #[serde(default)]
    pub filled_in: Vec<String>,
    /// Functions that were called with an address of the data after the line or TLB entry was filled. One of them must
    /// match. `f(r2 & MASK)` matches only calls in which argument r2 has at least one bit of MASK set.
    #[serde(default)]
    pub called_since_fill: Vec<String>,
    /// Functions that must not have been called with an address of the data after the line or TLB entry was filled.
    #[serde(default)]
    pub not_called_since_fill: Vec<String>,
    /// Functions that must not have been called after the newest data was written.
    #[serde(default)]
    pub not_called_since: Vec<String>,
    /// Functions in which another task was suspended when the newest data was written. One of them must match.
    #[serde(default)]
    pub suspended_in: Vec<String>,
    /// Reason why no mutant takes another operation out of the same functions. Reports are not compared with this key.
    #[serde(default)]
    pub no_mutant: Option<String>,
    /// Patch series that fixes the bug. The entry does not apply to kernels with this patch series.
    #[serde(default)]
    pub mended_by: Option<String>,
    /// Reason why these reports are suppressed.
    pub reason: String,
}

/// Where the newest value was when older data was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// In the dirty line to which it was stored.
    Dirty,
    /// In memory, or in the write buffer on its way to memory.
    Memory,
}

/// When the used line or TLB entry was filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filled {
    /// Before the newest data was written.
    Before,
    /// After the newest data was written.
    After,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    suppression: Vec<Suppression>,
}

/// The function by which the kernel copies to user land.
const COPY_TO_USER: &str = "arm_copy_to_user";

/// With `CONFIG_UACCESS_WITH_MEMCPY`, this function copies short blocks to user land. Without it, this is another name
/// of [`COPY_TO_USER`].
const COPY_SHORT: &str = "__copy_to_user_std";

/// With `CONFIG_UACCESS_WITH_MEMCPY`, this function copies long blocks to user land. It calls `memcpy`.
const COPY_BY_MEMCPY: &str = "__copy_to_user_memcpy";

/// Returns whether `pc` is in a copy to user land by [`COPY_SHORT`] or [`COPY_BY_MEMCPY`].
fn is_copy(pc: u32, callers: &[u32], names: &Names) -> bool {
    let by_memcpy = || {
        let caller = callers.first();
        names.is_in(pc, "memcpy") && caller.is_some_and(|pc| names.is_in(*pc, COPY_BY_MEMCPY))
    };
    names.is_in(pc, COPY_SHORT) || by_memcpy()
}

fn is_fetch(access: Access) -> bool {
    matches!(
        access,
        Access::Fetch { .. } | Access::Translation(Kind::Fetch)
    )
}

impl Suppression {
    /// Returns whether the entry covers a report.
    pub fn covers(&self, report: &Report, names: &Names) -> bool {
        let is = |wanted: &[String], pc, callers: &[u32]| {
            let is_in = |name: &String| {
                names.is_in(pc, name) || (name == COPY_TO_USER && is_copy(pc, callers, names))
            };
            wanted.is_empty() || wanted.iter().any(is_in)
        };
        let among = |wanted: &[String], callers: &[u32]| {
            let is_in = |name: &String| callers.iter().any(|pc| names.is_in(*pc, name));
            wanted.is_empty() || wanted.iter().any(is_in)
        };
        let asks_for_access = self.fetched || !self.access.is_empty() || !self.used_in.is_empty();
        // Any access may evict a line, so the accessing function says nothing about the cause. A bus master has no
        // function.
        let has_no_function = matches!(
            report.access,
            Access::WriteBack { victim: true } | Access::Dma { .. }
        );
        if asks_for_access && has_no_function {
            return false;
        }
        if !self.writer.is_empty() && report.writer.path == Written::Dma {
            return false;
        }
        among(&self.called_by, &report.trace.written)
            && among(&self.running, &report.trace.running)
            && (!self.overlapping || report.trace.circumstances.overlapping)
            && (!self.private_view || report.trace.circumstances.private_view)
            && self.fits_state(report)
            && self.fits_order(report, names)
            && self.wrong.iter().any(|w| w == report.kind.name())
            && is(&self.access, report.context.pc, &report.trace.used)
            && among(&self.used_in, &report.trace.used)
            && (!self.fetched || is_fetch(report.access))
            && is(&self.writer, report.writer.pc, &report.trace.written)
    }

    /// Checks the keys about the state of lines and mappings.
    fn fits_state(&self, report: &Report) -> bool {
        let met = &report.trace.circumstances;
        let is_newest_in = |place| match place {
            Place::Dirty => matches!(report.place, Newest::Dirty(_)),
            Place::Memory => matches!(report.place, Newest::Memory | Newest::Buffer),
        };
        let maps = |is| match is {
            true => met.writer_maps,
            false => !met.writer_leads,
        };
        let has_maps = report.access.is_by_core() && report.writer.path != Written::Dma;
        self.newest.is_none_or(is_newest_in)
            && (!self.dirty_before || met.dirty_before)
            && (!self.read_only || met.read_only)
            && self.writer_maps.is_none_or(|is| has_maps && maps(is))
            && (!self.remapped || report.filled_from.is_some())
            && (!self.permissions_only || met.permissions_only)
    }

    /// Checks the keys about the order of events.
    fn fits_order(&self, report: &Report, names: &Names) -> bool {
        let met = &report.trace.circumstances;
        let is_any = |wanted: &[String], called: &[u32]| {
            let is = |name: &String| called.iter().any(|pc| names.is_in(*pc, name));
            wanted.iter().any(is)
        };
        let asks = |wanted: &[String], called| wanted.is_empty() || is_any(wanted, called);
        let filled = |when| met.filled_before == Some(when == Filled::Before);
        let is_known = self.not_called_since.is_empty() || met.between.is_whole;
        let given = |name: &String| {
            let (name, bits) = with_bits(name);
            let called = met.between.called_since_fill.iter();
            called
                .filter(|(_, asked)| *asked == bits)
                .any(|(pc, _)| names.is_in(*pc, name))
        };
        let called = &self.called_since_fill;
        let not_called = &self.not_called_since_fill;
        self.filled.is_none_or(filled)
            && asks(&self.then_called, &met.between.then_called)
            && asks(&self.filled_in, &met.between.filled_in)
            && (called.is_empty() || called.iter().any(given))
            && (not_called.is_empty() || met.between.is_whole_since_fill)
            && !not_called.iter().any(given)
            && asks(&self.suspended_in, &met.between.suspended_in)
            && is_known
            && !is_any(&self.not_called_since, &met.between.called_since)
    }

    /// Describes the reports that the entry covers, for notes.
    pub fn label(&self) -> String {
        let side = |word, names: &[String]| match names {
            [] => String::new(),
            names => format!(", {word} {}", names.join("/")),
        };
        format!(
            "{}{}{}{}{}{}{}{}",
            self.wrong.join("/"),
            side(
                if self.fetched {
                    "fetched by"
                } else {
                    "used by"
                },
                &self.access
            ),
            side("in", &self.used_in),
            side("written by", &self.writer),
            side("called by", &self.called_by),
            side("during", &self.running),
            if self.overlapping {
                ", overlapping the write"
            } else {
                ""
            },
            if self.private_view {
                ", through a private view"
            } else {
                ""
            }
        )
    }
}

/// Splits `f(r2 & 4)` into the function and the bits of its argument.
fn with_bits(text: &str) -> (&str, Option<Bits>) {
    let Some((name, rest)) = text.split_once('(') else {
        return (text, None);
    };
    (name.trim(), bits(rest))
}

/// Parses the bits in `r2 & 4)`.
fn bits(text: &str) -> Option<Bits> {
    let (register, mask) = text.trim().strip_suffix(')')?.split_once('&')?;
    let register = register.trim().strip_prefix('r')?.parse().ok()?;
    let mask = mask.trim().parse().ok()?;
    (register < 4).then_some(Bits { register, mask })
}

/// Returns the functions that entries name in `called_since_fill` and `not_called_since_fill`, with the tested bits of
/// their arguments.
fn given(all: &[Suppression], names: &Names) -> Vec<Given> {
    let asked_for = all
        .iter()
        .flat_map(|s| [&s.called_since_fill, &s.not_called_since_fill]);
    let calls = |text: &String| {
        let (name, bits) = with_bits(text);
        let functions = names.ranges(name).into_iter();
        functions.map(move |function| Given { function, bits })
    };
    asked_for.flatten().flat_map(calls).collect()
}

/// Returns the functions whose calls are conditions of entries. Reports that differ in such a call are different
/// reports.
pub fn distinctions(all: &[Suppression], names: &Names) -> Distinctions {
    let ranges = |field: &dyn Fn(&Suppression) -> Vec<String>| {
        let asked_for = all.iter().flat_map(field);
        asked_for.flat_map(|name| names.ranges(&name)).collect()
    };
    Distinctions {
        callers: ranges(&|s| [&s.used_in[..], &s.called_by, &s.running].concat()),
        direct_callers: ranges(&|s| {
            let mut functions = s.access.iter().chain(&s.writer);
            let copies = functions.any(|f| f == COPY_TO_USER);
            Vec::from_iter(copies.then(|| COPY_BY_MEMCPY.to_string()))
        }),
        then_called: ranges(&|s| s.then_called.clone()),
        filled_in: ranges(&|s| s.filled_in.clone()),
        called_since_fill: given(all, names),
        called_since: ranges(&|s| s.not_called_since.clone()),
        suspended_in: ranges(&|s| s.suspended_in.clone()),
    }
}

/// Default series, for a kernel name without a series.
pub const SERIES: &str = "6.12";

/// Reads the suppressions of a kernel. `name` is a kernel name, like `6.12/plain` or `plain`. A kernel that is given by
/// path has no suppressions.
pub fn of_kernel(name: &str) -> Result<Vec<Suppression>> {
    if is_path(name) {
        return Ok(Vec::new());
    }
    let series = match name.split_once('/') {
        Some((series, variant)) if !variant.contains('/') && series != "." => series,
        _ if name.contains('/') => return Ok(Vec::new()),
        _ => SERIES,
    };
    let path = kernel::file_of(series, "coherence-suppressions.toml");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for suppression in load(&path)? {
        let by = suppression.mended_by.as_ref();
        let is_mended = by.map(|by| kernel::has_series(name, by)).transpose()?;
        if is_mended != Some(true) {
            all.push(suppression);
        }
    }
    Ok(all)
}

/// Returns the path of a list in the folder of a series.
pub fn list(series: &str, file: &str) -> PathBuf {
    root().join("linux").join(series).join(file)
}

/// Reads and checks all entries of a file.
pub fn load(path: &Path) -> Result<Vec<Suppression>> {
    let list: List = toml_file::read(path)?;
    let names: Vec<&str> = ReportKind::ALL.iter().map(|w| w.name()).collect();
    for (n, entry) in list.suppression.iter().enumerate() {
        let place = format!("{}: suppression {}", shown(path), n + 1);
        if let Some(bad) = entry.wrong.iter().find(|w| !names.contains(&w.as_str())) {
            bail!(
                "{place}: wrong: no kind of report \"{bad}\"{}",
                did_you_mean(bad, &names)
            );
        }
        if entry.name.trim().is_empty() {
            bail!("{place}: name: must not be empty");
        }
        if entry.name.contains(char::is_control) {
            bail!("{place}: name: {:?} must be one line of text", entry.name);
        }
        if list.suppression[..n].iter().any(|e| e.name == entry.name) {
            bail!(
                "{place}: name: an earlier entry is called \"{}\"",
                entry.name
            );
        }
        if entry.wrong.is_empty() {
            bail!("{place}: wrong: at least one kind is needed");
        }
        if entry.access.is_empty() && entry.writer.is_empty() {
            bail!("{place}: access or writer is needed");
        }
        let given = [&entry.called_since_fill, &entry.not_called_since_fill];
        let is_bad = |text: &&String| text.contains('(') && with_bits(text).1.is_none();
        if let Some(bad) = given.into_iter().flatten().find(is_bad) {
            bail!(
                "{place}: \"{bad}\": bits of an argument, in r0 to r3, are written like \"f(r2 & 4)\""
            );
        }
        if entry.reason.trim().is_empty() {
            bail!("{place}: reason: must not be empty");
        }
    }
    Ok(list.suppression)
}

#[cfg(test)]
#[path = "suppress_tests.rs"]
mod tests;
